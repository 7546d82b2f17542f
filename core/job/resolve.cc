#include "job/resolve.h"

#include <sys/stat.h>

#include <algorithm>
#include <filesystem>

#include "job/redact.h"
#include "job/resolve_parts.h"
#include "job/schema.h"
#include "job/validate.h"
#include "json/words.h"
#include "os/fd.h"

namespace mprun {

namespace {

using job::Layers;
using job::read_seconds;
using job::Resolving;

std::string text_at(const Layers& layers, const std::string& pointer) {
  const Json* value = layers.find(pointer);
  return value != nullptr && value->is_string() ? value->get<std::string>() : std::string();
}

bool is_directory(const std::string& path) {
  struct stat status {};
  return stat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode);
}

/// Refuses texts that hold a NUL, which the kernel does not accept.
Result<void> refuse_nul(const Layers& layers, const Json& value, const Json::json_pointer& at) {
  if (value.is_string() && value.get_ref<const std::string&>().find('\0') != std::string::npos) {
    return layers.error(at.to_string(), "contains a NUL character");
  }
  if (value.is_structured()) {
    for (const auto& [key, member] : value.items()) {
      if (at.empty() && key == "inputs") continue;
      Json::json_pointer inner = at;
      inner.push_back(key);
      if (key.find('\0') != std::string::npos) return layers.error(at.to_string(), "a name contains a NUL character");
      if (Result<void> checked = refuse_nul(layers, member, inner); !checked) return checked;
    }
  }
  return {};
}

Result<void> resolve_limits(const Layers& layers, Limits* limits) {
  const auto read = [&](const char* name, auto* target) -> Result<void> {
    const std::string pointer = std::string("/limits/") + name;
    if (layers.find(pointer) == nullptr) return {};
    Result<double> seconds = read_seconds(layers, pointer, false);
    if (!seconds) return std::move(seconds).error();
    *target = *seconds;
    return {};
  };
  if (Result<void> done = read("task_seconds", &limits->task_seconds); !done) return done;
  if (Result<void> done = read("job_seconds", &limits->job_seconds); !done) return done;
  if (Result<void> done = read("join_seconds", &limits->join_seconds); !done) return done;
  if (Result<void> done = read("grace_seconds", &limits->grace_seconds); !done) return done;
  if (Result<void> done = read("heartbeat_seconds", &limits->heartbeat_seconds); !done) return done;
  if (const Json* tasks = layers.find("/limits/tasks_per_worker")) limits->tasks_per_worker = tasks->get<int>();
  return {};
}

// A limit below an interpreter's needs would end every worker at once; one above the memory would be noticed too late.
Result<void> resolve_memory_limit(Resolving& job) {
  const std::string pointer = "/limits/memory_per_worker";
  const Json* const value = job.layers.find(pointer);
  if (value == nullptr) return {};
  constexpr std::uint64_t kLeast = std::uint64_t{1} << 20U;
  const std::optional<std::uint64_t> bytes = size_bytes(*value);
  if (!bytes || *bytes < kLeast) {
    return job.layers.error(
        pointer, "found " + preview(*value) + ", allowed: a size of at least 1 MiB, as bytes or such as \"2GiB\"");
  }
  if (*bytes > job.around.memory_bytes) {
    return job.layers.error(pointer, "found " + preview(*value) + ", which is more than there is: " +
                                         size_text(job.around.memory_bytes) + " (" + job.around.memory_source +
                                         ")\n  a worker could use up the machine's memory before it reaches that");
  }
  job.spec.limits.memory_per_worker = bytes;
  return {};
}

Result<void> resolve_watch(const Layers& layers, const std::string& current_directory, WatchPolicy* watch) {
  const std::string on_hang = text_at(layers, "/watch/on_hang");
  if (!on_hang.empty()) {
    watch->on_hang = on_hang == "retry" ? OnHang::kRetry : on_hang == "kill" ? OnHang::kKill : OnHang::kReport;
  }
  Result<double> seconds = read_seconds(layers, "/watch/stall_seconds", false);
  if (!seconds) return std::move(seconds).error();
  watch->stall_seconds = *seconds;
  const std::string path = text_at(layers, "/watch/hang_report");
  if (path.empty()) return {};
  watch->hang_report = job::absolute_path(current_directory, path);
  const std::string parent = std::filesystem::path(watch->hang_report).parent_path().string();
  if (!is_directory(parent)) return layers.error("/watch/hang_report", "no such directory: " + parent);
  if (const std::string why = why_not_replaced(watch->hang_report); !why.empty()) {
    return layers.error("/watch/hang_report", why + ": " + watch->hang_report);
  }
  return {};
}

template <typename Number>
std::optional<Number> number_at(const Layers& layers, const std::string& pointer) {
  const Json* value = layers.find(pointer);
  return value != nullptr && value->is_number() ? std::optional<Number>(value->get<Number>()) : std::nullopt;
}

std::vector<std::string> switched_off(const Json* adapters) {
  std::vector<std::string> names;
  if (adapters == nullptr) return names;
  for (const auto& [name, value] : adapters->items()) {
    if (value == "off") names.push_back(name);
  }
  return names;
}

/// Resolves the fields that need no look at the machine beyond its number of CPUs.
void resolve_plain(Resolving& job) {
  Layers& layers = job.layers;
  JobSpec& spec = job.spec;
  const std::string method = job.text("/start_method");
  spec.start_method = method == "spawn"        ? StartMethod::kSpawn
                      : method == "forkserver" ? StartMethod::kForkserver
                                               : StartMethod::kFork;
  spec.chunk_size = number_at<int>(layers, "/chunk_size");
  spec.max_failures = number_at<std::int64_t>(layers, "/max_failures");
  spec.seed = number_at<std::uint64_t>(layers, "/seed");
  if (const Json* args = layers.find("/args")) spec.args = args->get<std::vector<std::string>>();
  if (const Json* preload = layers.find("/preload")) spec.preload = preload->get<std::vector<std::string>>();
  if (const Json* env = layers.find("/env")) {
    for (const auto& [name, value] : env->items()) spec.env[name] = value.get<std::string>();
  }
  spec.redact = layers.find("/redact")->get<std::vector<std::string>>();
  spec.adapters_off = switched_off(layers.find("/adapters"));
  const std::string call = job.text("/call");
  spec.call = call == "args" ? CallStyle::kArgs : call == "kwargs" ? CallStyle::kKwargs : CallStyle::kItem;
  spec.order = job.text("/order") == "completion" ? Order::kCompletion : Order::kInput;
  const std::string durability = job.text("/durability");
  spec.durability = durability == "none"   ? Durability::kNone
                    : durability == "each" ? Durability::kEach
                                           : Durability::kBatch;
  spec.stop_on_error = job.text("/on_error") == "stop";
  spec.tensors = job.text("/output/tensors") == "safetensors" ? TensorFormat::kSafetensors : TensorFormat::kNpy;
  const std::string progress = job.text("/progress");
  spec.progress = progress == "always"  ? ProgressMode::kAlways
                  : progress == "never" ? ProgressMode::kNever
                                        : ProgressMode::kAuto;
  spec.view = job.text("/view") == "workers" ? ViewMode::kWorkers : ViewMode::kSummary;
}

Result<void> resolve_padding(Resolving& job) {
  const Json* const pad = job.layers.find("/output/pad");
  if (pad == nullptr) return {};
  if (job.spec.tensors != TensorFormat::kNpy) {
    return job.layers.error("/output/pad", "tensors are padded to be gathered, which \"output.tensors\" of " +
                                               in_quotes(to_string(job.spec.tensors)) + " does not do");
  }
  for (const auto& [name, wanted] : pad->items()) {
    const bool plain = wanted.is_array();
    if (!plain && !wanted.contains("shape")) {
      return job.layers.error((Json::json_pointer("/output/pad") / name).to_string(),
                              "found no \"shape\", allowed: an object of \"shape\" and \"fill\", or an array of sizes");
    }
    Padding padding{(plain ? wanted : wanted["shape"]).get<std::vector<std::int64_t>>(), "0"};
    if (!plain && wanted.contains("fill")) padding.fill = wanted["fill"].dump();
    job.spec.pad[name] = std::move(padding);
  }
  return {};
}

/// A file that mprun will write, in a directory that exists; *path stays empty where the field is not set.
Result<void> resolve_file(Resolving& job, const char* pointer, std::string* path) {
  Layers& layers = job.layers;
  const std::string text = job.text(pointer);
  if (text.empty()) return {};
  *path = job::absolute_path(job.around.current_directory, text);
  const std::string parent = std::filesystem::path(*path).parent_path().string();
  if (!is_directory(parent)) return layers.error(pointer, "no such directory: " + parent);
  if (is_directory(*path)) return layers.error(pointer, "is a directory: " + *path);
  layers.put(pointer, *path);
  return {};
}

Result<void> resolve_directories(Resolving& job) {
  Layers& layers = job.layers;
  JobSpec& spec = job.spec;
  const std::string& here = job.around.current_directory;
  const std::string wanted = job.text("/working_directory");
  spec.working_directory = wanted.empty() ? here : job.path_from_owner("/working_directory", wanted);
  if (!is_directory(spec.working_directory)) {
    std::error_code failed;
    const auto status = std::filesystem::status(spec.working_directory, failed);
    const std::string what = status.type() == std::filesystem::file_type::none        ? failed.message()
                             : status.type() == std::filesystem::file_type::not_found ? "no such directory"
                                                                                      : "not a directory";
    return layers.error("/working_directory", what + ": " + spec.working_directory);
  }
  layers.put("/working_directory", spec.working_directory);
  if (layers.find("/output/dir") != nullptr) {
    spec.output_dir = job::absolute_path(here, job.text("/output/dir"));
    std::error_code ignored;
    if (std::filesystem::exists(spec.output_dir, ignored) && !is_directory(spec.output_dir)) {
      return layers.error("/output/dir", "not a directory: " + spec.output_dir);
    }
    layers.put("/output/dir", spec.output_dir);
  }
  if (auto metrics = resolve_file(job, "/output/metrics", &spec.metrics); !metrics) return metrics;
  if (const std::string why = why_not_replaced(spec.metrics); !why.empty()) {
    return layers.error("/output/metrics", why + ": " + spec.metrics);
  }
  spec.results = job.text("/output/results");
  return spec.results == "-" ? Result<void>() : resolve_file(job, "/output/results", &spec.results);
}

/// The stem of the spec file, else of the script or program; only characters that are safe in a directory name.
std::string job_name(const std::vector<Document>& documents, const JobSpec& spec) {
  std::string file = spec.script.empty() && !spec.command.empty() ? spec.command.front() : spec.script;
  for (const Document& document : documents) {
    // the user's configuration is a file too, but names no job
    const std::string tail = "mprun/config.json";
    const bool config = document.name.size() >= tail.size() &&
                        document.name.compare(document.name.size() - tail.size(), tail.size(), tail) == 0;
    if (!document.text.empty() && !config && document.name != kStdinName) file = document.name;
  }
  std::string name = std::filesystem::path(file).stem().string();
  for (char& c : name) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    if (!plain && c != '.' && c != '_' && c != '-') c = '-';
  }
  name.erase(0, std::min(name.find_first_not_of('.'), name.size()));
  return name.empty() ? "job" : name.substr(0, 100);
}

std::vector<Decision> decisions_of(const Resolving& job) {
  const Layers& layers = job.layers;
  const JobSpec& spec = job.spec;
  std::vector<Decision> decisions;
  const auto add = [&](const std::string& field, std::string value, const std::string& reason) {
    decisions.push_back({field, std::move(value), reason});
  };
  const auto add_value = [&](const std::string& field, const std::string& pointer) {
    const Json* value = layers.find(pointer);
    if (value == nullptr || value->is_null()) return;
    const bool of_ranks = spec.kind == JobKind::kRanks && field.rfind("retries.", 0) == 0;
    add(field, value->is_string() ? value->get<std::string>() : preview(*value),
        layers.origin(pointer, of_ranks ? "the default for ranks" : "the default"));
  };
  const auto automatic = [&](const std::string& pointer, bool is_automatic, const std::string& how) {
    return layers.is_set(pointer) ? layers.origin(pointer) + (is_automatic ? ": auto, " + how : "")
                                  : "the default: " + how;
  };
  add_value("script", "/script");
  add_value("function", "/function");
  add_value("command", "/command");
  add_value("start_method", "/start_method");
  add("processes", std::to_string(spec.processes),
      automatic("/processes",
                !layers.sets_number("/processes") || job.placing.processes_source != job.placing.cpus_source,
                job.placing.processes_source));
  add_value("device", "/device");
  const bool venv = job.variable("VIRTUAL_ENV") != nullptr && !job.variable("VIRTUAL_ENV")->empty();
  const char* python_reason = venv ? "the active virtual environment" : "the default: python3 on PATH";
  if (!spec.python.empty()) add("python", spec.python, layers.origin("/python", python_reason));
  add("working_directory", spec.working_directory, layers.origin("/working_directory", "the current directory"));
  if (const auto* arrays = std::get_if<ArraysInput>(&spec.inputs)) {
    add("inputs", job::describe_arrays(*arrays), layers.origin("/inputs"));
  }
  if (!spec.shared.empty()) add("shared", job::describe_shared(spec.shared), layers.origin("/shared"));
  for (const char* field : {"chunk_size", "order", "durability", "seed"}) add_value(field, std::string("/") + field);
  for (const char* field : {"needs", "retries", "limits", "watch", "adapters"}) {
    const Json* object = layers.find(std::string("/") + field);
    if (object == nullptr) continue;
    for (const auto& [name, value] : object->items()) {
      add_value(std::string(field) + "." + name, std::string("/") + field + "/" + name);
    }
  }
  add("threads_per_worker", std::to_string(spec.threads_per_worker),
      automatic("/threads_per_worker", !spec.threads_explicit,
                layers.find("/needs/cpus") != nullptr ? "needs.cpus"
                : spec.worker_cpus.empty()            ? job.placing.cpus_source + " / processes"
                                                      : "the processors of each worker"));
  add_value("hyperthreads", "/hyperthreads");
  add("binding", describe_binding(spec), automatic("/binding", job.text("/binding") == "auto", spec.binding_reason));
  const auto add_memory = [&](const std::string& field, bool has_effect, const std::string& nodes) {
    const bool on = job.text("/" + field) == "on";
    const std::string effect = has_effect ? ", memory nodes " + nodes : ", without effect on one memory node";
    add(field, on ? "on" + effect : "off", layers.origin("/" + field));
  };
  add_memory("membind", !spec.worker_nodes.empty(), "of each worker's processors");
  add_memory("interleave", !spec.interleave_nodes.empty(), to_string(spec.interleave_nodes));
  add("allocator", job.text("/allocator") + (spec.allocator_library.empty() ? "" : ", " + spec.allocator_library),
      layers.origin("/allocator"));
  if (!spec.shared.empty()) {
    const std::string page = spec.hugetlb ? ", pages of " + size_text(job.around.huge_page_bytes) : "";
    add("huge_pages", job.text("/huge_pages") + page, layers.origin("/huge_pages"));
  }
  if (spec.shard) {
    const std::string& source = spec.allocation.shard_source;
    add("shard", to_string(*spec.shard), layers.origin("/shard", source));
    add_value("balance", "/balance");
  }
  const std::string run_directory = spec.output_dir.empty() ? "runs/" + spec.name + "/<timestamp>" : spec.output_dir;
  add("output.dir", run_directory, layers.origin("/output/dir"));
  return decisions;
}

Result<Resolved> resolve_complete(const std::vector<Document>& documents, const Surroundings& around) {
  for (const Document& document : documents) {
    if (Result<void> valid = job::validate(document); !valid) return std::move(valid).error();
  }
  Result<Layers> layers = Layers::merge(documents);
  if (!layers) return std::move(layers).error();
  layers->erase("/$schema");  // for editors only
  Resolved resolved;
  Resolving job{*layers, around, resolved.spec, resolved.placing, resolved.warnings};
  if (Result<void> done = refuse_nul(*layers, layers->value(), Json::json_pointer()); !done)
    return std::move(done).error();
  if (Result<void> done = job::resolve_program(job); !done) return std::move(done).error();
  resolve_plain(job);
  if (Result<void> done = job::restore_redacted(job); !done) return std::move(done).error();
  if (Result<void> done = job::resolve_device(job); !done) return std::move(done).error();
  if (Result<void> done = job::resolve_processors(job); !done) return std::move(done).error();
  if (Result<void> done = job::resolve_allocator(job); !done) return std::move(done).error();
  if (Result<void> done = resolve_padding(job); !done) return std::move(done).error();
  if (Result<void> done = job::resolve_inputs(job); !done) return std::move(done).error();
  if (Result<void> done = job::resolve_shared(job); !done) return std::move(done).error();
  if (Result<void> done = job::resolve_retries(job); !done) return std::move(done).error();
  if (Result<void> done = resolve_limits(*layers, &resolved.spec.limits); !done) return std::move(done).error();
  if (Result<void> done = resolve_memory_limit(job); !done) return std::move(done).error();
  const std::string& here = around.current_directory;
  resolved.spec.watch.on_hang = OnHang::kRetry;
  if (Result<void> done = resolve_watch(*layers, here, &resolved.spec.watch); !done) return std::move(done).error();
  if (Result<void> done = resolve_directories(job); !done) return std::move(done).error();
  if (Result<void> done = job::resolve_python(job); !done) return std::move(done).error();
  resolved.spec.name = job_name(documents, resolved.spec);
  if (Result<void> done = job::resolve_shard(job); !done) return std::move(done).error();
  resolved.decisions = decisions_of(job);
  Json merged = layers->take_value();
  resolved.merged = Json::object();
  for (const std::string& field : job::property_names(job::schema_json())) {
    if (merged.contains(field)) resolved.merged[field] = std::move(merged[field]);
  }
  job::redact_env(resolved.spec.redact, &resolved.merged);
  return resolved;
}

}  // namespace

Result<Resolved> resolve(const std::vector<Document>& layers, const Surroundings& around) {
  try {
    if (!layers.empty() && layers.front().name == job::kDefaultsName) return resolve_complete(layers, around);
    std::vector<Document> with_defaults = {default_layer()};
    with_defaults.insert(with_defaults.end(), layers.begin(), layers.end());
    return resolve_complete(with_defaults, around);
  } catch (const std::exception& error) {  // nlohmann or filesystem; the checks above should prevent it
    return internal_error(std::string("the job spec could not be resolved: ") + error.what());
  }
}

Result<ProgramSpec> resolve_program(const Document& layer, const std::string& current_directory) {
  if (Result<void> valid = job::validate(layer); !valid) return std::move(valid).error();
  const std::vector<Document> documents{default_layer(), layer};
  Result<Layers> layers = Layers::merge(documents);
  if (!layers) return std::move(layers).error();
  ProgramSpec program;
  if (layers->is_set("/processes")) {
    if (!layers->sets_number("/processes")) {
      return layers->error("/processes", "found \"auto\", allowed for a program: a whole number from 1 to 4096");
    }
    program.copies = layers->find("/processes")->get<int>();
  }
  program.adapters_off = switched_off(layers->find("/adapters"));
  program.watch.on_hang = OnHang::kReport;
  if (Result<void> done = resolve_watch(*layers, current_directory, &program.watch); !done) return done.error();
  if (program.watch.on_hang == OnHang::kRetry) {
    return layers->error("/watch/on_hang", "found \"retry\", allowed for a program: \"kill\", \"report\"");
  }
  return program;
}

Document default_layer() {
  Document document;
  document.name = job::kDefaultsName;
  document.value = Json::parse(job::kDefaultsText);
  return document;
}

namespace job {

std::string Resolving::text(const std::string& pointer) const { return text_at(layers, pointer); }

const std::string* Resolving::variable(const std::string& name) const {
  const auto found = around.env.find(name);
  return found == around.env.end() ? nullptr : &found->second;
}

std::string Resolving::path_from_owner(const std::string& pointer, const std::string& path) const {
  const Document* document = layers.owner(pointer);
  const bool has_base = document != nullptr && !document->base_dir.empty();
  const std::string base = has_base ? document->base_dir : around.current_directory;
  return absolute_path(absolute_path(around.current_directory, base), path);
}

std::string absolute_path(const std::string& base, const std::string& path) {
  std::filesystem::path full = std::filesystem::path(base) / path;
  // If x is a symbolic link, "x/.." is not x's directory: only paths without ".." can be normalized by their text.
  const bool has_parent = std::find(full.begin(), full.end(), "..") != full.end();
  return has_parent ? full.string() : full.lexically_normal().string();
}

}  // namespace job

}  // namespace mprun
