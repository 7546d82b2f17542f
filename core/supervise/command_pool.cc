#include "supervise/command_pool.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <utility>

#include "base/exit_codes.h"
#include "json/json.h"
#include "json/json_text.h"
#include "launch/teardown.h"
#include "os/fd.h"
#include "supervise/cause_text.h"

namespace mprun {
namespace {

// Of each stream this much is quoted in the result; all of it is in the log.
constexpr std::int64_t kMostQuoted = std::int64_t{64} * 1024;

std::int64_t size_of(int fd) {
  struct stat info {};
  return fstat(fd, &info) == 0 ? info.st_size : 0;
}

void replace_all(std::string* text, std::string_view what, std::string_view with) {
  for (std::size_t at = text->find(what); at != std::string::npos; at = text->find(what, at + with.size())) {
    text->replace(at, what.size(), with);
  }
}

// The kernel would take what stands before it as the whole argument.
bool holds_nul(const std::vector<std::string>& argv) {
  return std::any_of(argv.begin(), argv.end(), [](const std::string& word) { return word.find('\0') != word.npos; });
}

std::string read_range(int fd, std::int64_t begin, std::int64_t end) {
  std::string text(static_cast<std::size_t>(std::min(end - begin, kMostQuoted)), '\0');
  const ssize_t n = pread_all(fd, text.data(), text.size(), static_cast<std::uint64_t>(begin));
  text.resize(static_cast<std::size_t>(std::max<ssize_t>(n, 0)));
  return text;
}

}  // namespace

std::vector<std::string> fill_command(const std::vector<std::string>& argv, std::string_view input, TaskId task,
                                      int slot) {
  std::vector<std::string> filled;
  filled.reserve(argv.size());
  for (const std::string& word : argv) {
    if (word.find('{') == std::string::npos) {
      filled.push_back(word);
      continue;
    }
    std::string text = word;  // the input last: nothing in it is replaced
    replace_all(&text, "{#}", std::to_string(task));
    replace_all(&text, "{%}", std::to_string(slot));
    replace_all(&text, "{}", decode_json_text(input));
    filled.push_back(std::move(text));
  }
  return filled;
}

CommandPool::CommandPool(LaunchPlan plan, std::vector<std::pair<Fd, Fd>> logs, WorkerPoolListener* listener)
    : plan_(std::move(plan)), listener_(listener), attempt_(plan_.spec, plan_.run_dir), slots_(logs.size()) {
  const JobSpec& spec = *plan_.spec;
  if (spec.kind == JobKind::kCommand) {
    argv_ = spec.command;
  } else {
    argv_ = {spec.script};
    argv_.insert(argv_.end(), spec.args.begin(), spec.args.end());
  }
  search_path_ = plan_.environment.count("PATH") != 0 ? plan_.environment.at("PATH") : "";
  for (std::size_t i = 0; i < logs.size(); ++i) {
    slots_[i].out = std::move(logs[i].first);
    slots_[i].err = std::move(logs[i].second);
  }
}

void CommandPool::start(int number) {
  plan_.loop->at(0, [this, number] { listener_->on_ready(number); });
}

void CommandPool::retire(int number) {
  plan_.loop->at(0, [this, number] { listener_->on_gone(number, {}); });
}

void CommandPool::signal(int number, int signal_number) {
  if (at(number).process) signal_group(at(number).process, signal_number);
}

void CommandPool::assign(int number, const std::vector<HandedTask>& tasks) {
  const HandedTask& handed = tasks.front();
  Slot& slot = at(number);
  if (handed.has_no_input) {  // the supervisor knows why
    slot.start = wall_now();
    plan_.loop->at(0, [this, number] { listener_->on_result(number, {true, at(number).start, 0, "null", {}}); });
    return;
  }
  if (is_rank() && attempt_.begin(handed.task.attempt)) listener_->on_attempt();
  SpawnPlan spawn;
  spawn.argv = is_rank() ? argv_ : fill_command(argv_, handed.input, handed.task.task, number);
  const std::string program = spawn.argv[0];
  bool not_executable = false;
  spawn.file = find_program(program, search_path_, plan_.spec->working_directory, &not_executable);
  Environment own = slot_environment(*plan_.spec, number);
  own["MPRUN_TASK"] = std::to_string(handed.task.task);
  own["MPRUN_ATTEMPT"] = std::to_string(handed.task.attempt);
  if (is_rank()) own.merge(attempt_.prepare(number));
  spawn.env = flatten(plan_.environment, own);
  spawn.directory = plan_.spec->working_directory;
  spawn.fds = {{null_device(), 0}, {slot.out.get(), 1}, {slot.err.get(), 2}};
  spawn.open_files = plan_.open_files;
  spawn.cpus = cpus_of(*plan_.spec, number);
  spawn.nodes = nodes_of(*plan_.spec, number);
  spawn.inheritance = job_inheritance(*plan_.spec);
  slot.out_begin = size_of(slot.out.get());
  slot.err_begin = size_of(slot.err.get());
  slot.start = wall_now();
  slot.began = monotonic_now();
  if (holds_nul(spawn.argv)) {
    spawn_failed(number, program, "the input has a byte of 0, which no argument may have");
    return;
  }
  SpawnFailure failure{"exec", not_executable ? EACCES : ENOENT};
  const pid_t pid = spawn.file.empty() ? -1 : spawn_process(spawn, &failure);
  if (pid > 0) {
    slot.process = ProcessRef::of_child(pid);
    running_[pid] = number;
    listener_->on_process_started(number, pid);
    return;
  }
  const std::string stage = std::strcmp(failure.stage, "exec") == 0 ? "" : failure.stage + std::string(": ");
  spawn_failed(number, program, stage + std::strerror(failure.error_number));
}

void CommandPool::spawn_failed(int number, const std::string& program, const std::string& why) {
  const std::string message = "cannot execute " + program + ": " + why;
  plan_.loop->at(0, [this, number, text = task_error("SpawnFailed", message).text()] {
    listener_->on_result(number, {true, at(number).start, 0, text, {kExitNotFound, 0}});
  });
}

// The value of a command, or what its error holds next to type and message: exit code and output.
std::string CommandPool::describe(int number, ProcessEnd end) const {
  const Slot& slot = at(number);
  const std::int64_t out_end = size_of(slot.out.get());
  const std::int64_t err_end = size_of(slot.err.get());
  const bool killed = end.signal != 0;
  JsonObject object;
  if (killed || end.exit_code != 0) {
    const RankError left = is_rank() ? attempt_.error_of(number).value_or(RankError()) : RankError();
    const std::string message = "the command ended with " + to_string(end);
    object = task_error(killed ? "Signal" : "ExitCode", left.message.empty() ? message : message + ": " + left.message,
                        left.traceback);
  }
  object.value(killed ? "signal" : "exit_code", killed ? end.signal : end.exit_code);
  object.bytes("stdout", read_range(slot.out.get(), slot.out_begin, out_end));
  object.bytes("stderr", read_range(slot.err.get(), slot.err_begin, err_end));
  if (out_end - slot.out_begin > kMostQuoted) object.value("stdout_bytes", Json::array({slot.out_begin, out_end}));
  if (err_end - slot.err_begin > kMostQuoted) object.value("stderr_bytes", Json::array({slot.err_begin, err_end}));
  return object.text();
}

bool CommandPool::child_gone(pid_t pid, ProcessEnd end) {
  const auto it = running_.find(pid);
  if (it == running_.end()) return false;
  const int number = it->second;
  running_.erase(it);
  Slot& slot = at(number);
  if (is_rank()) kill_leftovers(slot.process);  // the next attempt shall not meet them
  slot.process = {};
  const bool failed = end.signal != 0 || end.exit_code != 0;
  const Nanos duration = monotonic_now() - slot.began;
  listener_->on_process_ended(number, pid, is_rank() ? "rank" : "command", end, true);
  listener_->on_result(number, {failed, slot.start, duration, describe(number, end), end});
  return true;
}

}  // namespace mprun
