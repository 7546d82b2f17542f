#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <utility>

#include "base/run_layout.h"
#include "json/json.h"
#include "json/json_object.h"
#include "json/json_text.h"
#include "launch/launcher.h"
#include "os/fd.h"

namespace mprun {
namespace {

constexpr int kChannelNumber = 3, kResultsNumber = 4, kClaimsNumber = 5;

// The settings by which a process puts a task's tensors where they belong.
std::string tensors_config(const LaunchPlan& plan) {
  const auto number = [](std::optional<std::uint64_t> n) { return n ? Json(*n) : Json(); };
  JsonObject paddings;
  for (const auto& [name, padding] : plan.spec->pad) {
    paddings.json(name, JsonObject().value("shape", padding.shape).json("fill", padding.fill).text());
  }
  return JsonObject()
      .bytes("folder", tensors_folder(plan.run_dir))
      .value("format", to_string(plan.spec->tensors))
      .value("tasks", number(plan.tasks))
      .value("rows", number(plan.rows))
      .json("pad", paddings.text())
      .text();
}

std::string array_config(const InputArray& array) {
  return JsonObject()
      .bytes("name", array.name)
      .bytes("path", array.path)
      .value("rows", array.rows)
      .value("dtype", array.dtype)
      .value("shape", array.shape)
      .value("offset", array.offset)
      .text();
}

/// The arrays that a worker maps; files that are tasks themselves are named by their inputs.
std::string arrays_config(const InputSpec& inputs) {
  const auto* arrays = std::get_if<ArraysInput>(&inputs);
  if (arrays == nullptr) return "null";
  const bool file_is_task = arrays->one_by_one && !arrays->batch;
  std::string stored;
  for (const InputArray& array : arrays->arrays) {
    if (file_is_task) break;
    if (!stored.empty()) stored += ',';
    stored += array_config(array);
  }
  return JsonObject()
      .value("file_is_task", file_is_task)
      .value("one_by_one", arrays->one_by_one)
      .json("stored", "[" + stored + "]")
      .text();
}

}  // namespace

std::string start_config(const LaunchPlan& plan, const std::string& role, int slot) {
  const JobSpec& spec = *plan.spec;
  std::string args;
  for (const std::string& arg : spec.args) {
    if (!args.empty()) args += ',';
    append_json_string(&args, arg);
  }
  return JsonObject()
      .value("role", role)
      .value("slot", slot)
      .value("function", spec.function)
      .value("call", to_string(spec.call))
      .value("setup", spec.setup)
      .value("worker_setup", spec.worker_setup)
      .value("preload", spec.preload)
      .value("cpus", role == "host" ? CpuList() : cpus_of(spec, slot))
      .value("nodes", role == "host" ? std::vector<int>() : nodes_of(spec, slot))
      .value("interleave", role == "host" ? spec.interleave_nodes : std::vector<int>())
      .value("seed", spec.seed ? Json(*spec.seed) : Json())
      .value("forked", spec.start_method == StartMethod::kFork)
      .bytes("script", spec.script)
      .json("arrays", arrays_config(spec.inputs))
      .json("tensors", tensors_config(plan))
      .json("args", "[" + args + "]")
      .text();
}

Inheritance job_inheritance(const JobSpec& spec) {
  Inheritance given;
  if (is_ignored(SIGHUP)) sigaddset(&given.signals.ignored, SIGHUP);
  for (const int warning : {SIGUSR1, SIGUSR2}) {
    if (spec.allocation.slurm) sigaddset(&given.signals.ignored, warning);
  }
  return given;
}

SpawnPlan python_plan(const LaunchPlan& plan, const Environment& own, int channel, int results, int out, int err) {
  SpawnPlan spawn;
  spawn.argv = {plan.spec->python, plan.bootstrap, std::to_string(kChannelNumber), std::to_string(kResultsNumber),
                std::to_string(kClaimsNumber)};
  spawn.env = flatten(plan.environment, own);
  spawn.directory = plan.spec->working_directory;
  spawn.fds = {{null_device(), 0},          {out, 1}, {err, 2}, {channel, kChannelNumber}, {results, kResultsNumber},
               {plan.claims, kClaimsNumber}};
  if (plan.claims < 0) spawn.fds.pop_back();  // ranks have none
  spawn.open_files = plan.open_files;
  spawn.inheritance = job_inheritance(*plan.spec);
  return spawn;
}

int number_in(const Json& body, const char* key, int otherwise) {
  const auto found = body.find(key);
  return found != body.end() && found->is_number_integer() ? found->get<int>() : otherwise;
}

std::string text_in(const Json& body, const char* key, const std::string& otherwise) {
  const auto found = body.find(key);
  return found != body.end() && found->is_string() ? found->get<std::string>() : otherwise;
}

std::string explain_spawn_failure(const LaunchPlan& plan, const SpawnFailure& failure) {
  std::string text = "cannot start the interpreter " + plan.spec->python + ": ";
  if (std::strcmp(failure.stage, "exec") != 0) text += std::string(failure.stage) + ": ";
  text += std::strerror(failure.error_number);
  if (std::strcmp(failure.stage, "exec") == 0) text += "\n  set \"python\" (--python) to a CPython 3.11 or later";
  return text;
}

std::string explain_start_failure(std::string_view payload) {
  const Json body = parse_escaped_json(payload);
  if (!body.is_object()) return "a worker could not start, and did not say why";
  std::string text = text_in(body, "message", "a worker could not start");
  if (const std::string traceback = text_in(body, "traceback", ""); !traceback.empty()) {
    text += "\n" + traceback;
    while (!text.empty() && text.back() == '\n') text.pop_back();
  }
  if (text_in(body, "stage", "") == "interpreter") text += "\n  set \"python\" (--python) to a CPython 3.11 or later";
  if (text_in(body, "type", "") == "ModuleNotFoundError") {
    text += "\n  " + text_in(body, "python", "that Python") + " has no such module: install it there, or set " +
            "\"python\" (--python) to one that has it";
  }
  return text;
}

Result<std::pair<Fd, Fd>> open_logs(const std::string& run_dir, std::string_view name) {
  auto out = open_file(log_file(run_dir, name, "out"), O_RDWR | O_CREAT | O_APPEND, 0600);
  if (!out) return out.error();
  auto err = open_file(log_file(run_dir, name, "err"), O_RDWR | O_CREAT | O_APPEND, 0600);
  if (!err) return err.error();
  return std::pair{std::move(*out), std::move(*err)};
}

Result<WorkerChannels> open_worker_channels(const std::string& run_dir, int slot, LaunchRequest* request) {
  auto channel = make_socket_pair();
  if (!channel) return channel.error();
  auto results = make_pipe();
  if (!results) return results.error();
  auto logs = open_logs(run_dir, worker_name(slot));
  if (!logs) return logs.error();
  struct stat info {};
  WorkerChannels ours{FrameSender(std::move(channel->ours)), std::move(results->read), 0};
  if (fstat(logs->second.get(), &info) == 0) ours.log_offset = info.st_size;
  set_nonblocking(ours.results.get());
  request->channel = std::move(channel->theirs);
  request->results = std::move(results->write);
  request->out = std::move(logs->first);
  request->err = std::move(logs->second);
  return ours;
}

std::string log_tail(const std::string& path, std::int64_t offset) {
  constexpr std::int64_t kMostBytes = 2048;
  constexpr int kMostLines = 10;
  const Fd file = open_fd(path, O_RDONLY);
  struct stat info {};
  if (!file || fstat(file.get(), &info) != 0 || info.st_size <= offset) return "";
  std::array<char, kMostBytes> text{};
  const std::int64_t from = std::max(offset, static_cast<std::int64_t>(info.st_size) - kMostBytes);
  const ssize_t n = pread_all(file.get(), text.data(), text.size(), static_cast<std::uint64_t>(from));
  std::string_view tail(text.data(), static_cast<std::size_t>(std::max<ssize_t>(n, 0)));
  while (!tail.empty() && tail.back() == '\n') tail.remove_suffix(1);
  std::size_t begin = tail.size();
  for (int line = 0; line < kMostLines && begin != std::string_view::npos && begin > 0; ++line) {
    begin = tail.rfind('\n', begin - 1);
  }
  return std::string(begin == std::string_view::npos ? tail : tail.substr(begin == 0 ? 0 : begin + 1));
}

}  // namespace mprun
