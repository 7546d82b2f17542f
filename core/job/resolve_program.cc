#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <vector>

#include "job/option_places.h"
#include "job/resolve_parts.h"
#include "json/words.h"

namespace mprun::job {

namespace {

const char* describe_kind(Place kind) {
  switch (kind) {
    case kCommandPlace:
      return "this job is a command";
    case kScriptRanksPlace:
      return "this script is without a function: every process runs it once (ranks)";
    case kProgramRanksPlace:
      return "this program is no .py file: every process runs it once (ranks)";
    default:
      return "this job is a function";
  }
}

/// What to do instead; empty if there is no hint.
std::string cure(Place kind, const std::string& field) {
  if (kind == kCommandPlace && field == "/args") return "\n  write the arguments into the command";
  if (kind != kScriptRanksPlace) return "";
  return "\n  to call a function of it once per task, name the function to call: \"function\": \"...\"";
}

/// Drops fields without an effect on this kind of job. If they are set for it, and not in a layer below the one that
/// names the program: an error if they say what is run, a warning if they only say how.
Result<void> refuse_without_effect(Resolving& job, Place kind, const char* program) {
  const int program_rank = job.layers.rank(program);
  for (const auto& [field, only_how] : fields_without_effect(kind)) {
    if (const Document* document = job.layers.strict_owner(field, program_rank)) {
      std::string words = place_of(*document, field) + ": " + field + ": " +
                          only_valid_with(places_of(field) & kKindPlaces) + "; " + describe_kind(kind);
      if (!only_how) return usage_error(words + cure(kind, field));
      job.warnings.push_back(words + "; it is left out");
    }
    job.layers.erase(field);
  }
  return {};
}

Error missing_script(const Resolving& job, const std::string& path) {
  namespace fs = std::filesystem;
  const fs::path parent = fs::path(path).parent_path();
  std::error_code fault;
  if (!fs::is_directory(parent, fault)) {
    return job.layers.error("/script", "no such file: the directory " + parent.string() + " does not exist");
  }
  std::vector<std::string> names;
  for (const fs::directory_entry& entry : fs::directory_iterator(parent, fault)) {
    std::error_code ignored;
    if (entry.is_regular_file(ignored)) names.push_back(entry.path().filename().string());
  }
  std::string words = "no such file: " + path;
  if (const auto near = nearest_name(fs::path(path).filename().string(), names)) {
    words += "\n  did you mean " + in_quotes(*near) + "?";
  }
  return job.layers.error("/script", words);
}

Result<void> check_script(Resolving& job) {
  JobSpec& spec = job.spec;
  spec.script = job.path_from_owner("/script", job.text("/script"));
  spec.script_is_python = std::filesystem::path(spec.script).extension() == ".py";
  struct stat status {};
  if (stat(spec.script.c_str(), &status) != 0) {
    if (errno == ENOENT || errno == ENOTDIR) return missing_script(job, spec.script);
    return job.layers.error("/script", spec.script + " cannot be read: " + std::strerror(errno));
  }
  if (S_ISDIR(status.st_mode)) {
    return job.layers.error("/script", spec.script + " is a directory, allowed: a .py file or an executable");
  }
  if (access(spec.script.c_str(), R_OK) != 0 && spec.script_is_python) {
    return job.layers.error("/script", spec.script + " cannot be read: permission denied");
  }
  if (!spec.script_is_python && access(spec.script.c_str(), X_OK) != 0) {
    return job.layers.error(
        "/script", spec.script + " is neither a .py file nor executable\n  make it one: chmod +x " + spec.script);
  }
  job.layers.put("/script", spec.script);
  return {};
}

Result<void> check_function_names(const Resolving& job) {
  for (const char* pointer : {"/function", "/setup", "/worker_setup"}) {
    const std::string name = job.text(pointer);
    if (name.empty() || is_identifier(name)) continue;
    std::string words = "found " + in_quotes(clip(name)) + ", allowed: the name of a function of the script";
    if (name.find('.') != std::string::npos) words += ", without dots";
    return job.layers.error(pointer, words);
  }
  return {};
}

Result<void> resolve_ranks(Resolving& job) {
  job.spec.kind = JobKind::kRanks;
  return refuse_without_effect(job, job.spec.script_is_python ? kScriptRanksPlace : kProgramRanksPlace, "/script");
}

Result<void> resolve_command(Resolving& job) {
  job.spec.kind = JobKind::kCommand;
  job.spec.command = job.layers.find("/command")->get<std::vector<std::string>>();
  if (auto refused = refuse_without_effect(job, kCommandPlace, "/command"); !refused) return refused;
  if (job.spec.command.front().empty()) {
    return job.layers.error("/command/0", "found \"\", allowed: the program to execute");
  }
  if (job.layers.find("/inputs") == nullptr) {
    return job.layers.error("/command",
                            "a command is executed once per task and needs inputs\n"
                            "  add for example \"inputs\": {\"glob\": \"data/*.txt\"} or {\"range\": 10}");
  }
  return {};
}

}  // namespace

Result<void> resolve_program(Resolving& job) {
  Layers& layers = job.layers;
  if (layers.find("/command") != nullptr) return resolve_command(job);
  if (layers.find("/script") == nullptr) {
    const std::string words =
        "neither script nor command: name what to run, \"script\": \"job.py\" or \"command\": [\"program\", \"{}\"]";
    for (const char* pointer : {"/function", "/inputs", "/setup"}) {
      if (layers.is_set(pointer)) return layers.error(pointer, words);
    }
    return usage_error(layers.highest_name() + ": " + words);
  }
  Result<void> checked = check_script(job);
  if (!checked) return checked;
  checked = check_function_names(job);
  if (!checked) return checked;
  job.spec.function = job.text("/function");
  if (job.spec.function.empty()) return resolve_ranks(job);
  if (!job.spec.script_is_python) {
    return layers.error("/function", "does not fit " + job.spec.script + ", which is no .py file");
  }
  job.spec.kind = JobKind::kFunction;
  job.spec.setup = job.text("/setup");
  job.spec.worker_setup = job.text("/worker_setup");
  if (layers.find("/inputs") == nullptr) {
    return layers.error("/function",
                        "a function is called once per task and needs inputs\n"
                        "  add for example \"inputs\": {\"range\": 10}, or remove function to run the script once "
                        "per process");
  }
  return {};
}

}  // namespace mprun::job
