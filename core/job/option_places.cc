#include "job/option_places.h"

#include <array>

namespace mprun {
namespace {

struct Row {
  std::string_view option;
  Places places;
  bool only_how = false;  ///< it says how tasks are run, not what is run: where it has no effect it can be dropped
};

constexpr Places kRun = kRunPlace | kRunWithResumePlace;
constexpr Places kJob = kRun | kCheckPlace | kResumePlace | kSubmitPlace;
constexpr Places kProgram = kProgramPlace | kDoctorProgramPlace;
constexpr Places kDoctor = kDoctorPlace | kDoctorScriptPlace | kDoctorProgramPlace;
constexpr Places kPython = kFunctionPlace | kScriptRanksPlace;
constexpr Places kTasks = kFunctionPlace | kCommandPlace;

// A field that is not listed has an effect in every job. The manuals say the same (mprun.1, mprun-job.5).
constexpr std::array kFields = {
    Row{"/script", kJob | kDoctorScriptPlace | kKindPlaces},
    Row{"/function", kJob | kFunctionPlace},
    Row{"/start_method", kJob | kPython, true},
    Row{"/processes", kJob | kProgram | kDoctorScriptPlace | kKindPlaces},
    Row{"/python", kJob | kInitPlace | kDoctorPlace | kDoctorScriptPlace | kPython},
    Row{"/args", kJob | kDoctorScriptPlace | kPython | kProgramRanksPlace},
    Row{"/env", kJob | kDoctorScriptPlace | kKindPlaces},
    Row{"/redact", kJob | kDoctorScriptPlace | kKindPlaces},
    Row{"/setup", kJob | kFunctionPlace},
    Row{"/worker_setup", kJob | kFunctionPlace},
    Row{"/preload", kJob | kPython},
    Row{"/inputs", kJob | kTasks},
    Row{"/call", kJob | kFunctionPlace},
    Row{"/chunk_size", kJob | kFunctionPlace, true},
    Row{"/on_error", kJob | kTasks, true},
    Row{"/max_failures", kJob | kTasks, true},
    Row{"/shard", (kJob & ~kSubmitPlace) | kKindPlaces},
    Row{"/balance", kJob | kTasks},
    Row{"/seed", kJob | kDoctorScriptPlace | kKindPlaces},
    Row{"/retries", kJob | kKindPlaces},
    Row{"/limits/join_seconds", kJob | kPython, true},
    Row{"/limits/heartbeat_seconds", kJob | kKindPlaces},
    Row{"/limits/tasks_per_worker", kJob | kFunctionPlace, true},
    Row{"/threads_per_worker", kJob | kDoctorScriptPlace | kKindPlaces},
    Row{"/needs", kJob | kKindPlaces},
    Row{"/hyperthreads", kJob | kKindPlaces},
    Row{"/binding", kJob | kKindPlaces},
    Row{"/membind", kJob | kKindPlaces},
    Row{"/interleave", kJob | kPython, true},
    Row{"/allocator", kJob | kDoctorScriptPlace | kKindPlaces},
    Row{"/huge_pages", kJob | kPython, true},
    Row{"/output/dir", (kJob & ~kResumePlace) | kKindPlaces},
    Row{"/output/tensors", kJob | kPython, true},
    Row{"/output/pad", kJob | kPython, true},
    Row{"/watch", kJob | kProgram | kWatchPlace | kKindPlaces},
    Row{"/adapters", kJob | kProgram | kDoctorScriptPlace | kKindPlaces},
};

// The options that set no field.
constexpr std::array kOptions = {
    Row{"--resume", kRun},
    Row{"--retry-failed", kRunWithResumePlace | kResumePlace | kSubmitPlace},
    Row{"--accept-changes", kRunWithResumePlace | kResumePlace | kSubmitPlace},
    Row{"--quiet", kRun | kResumePlace | kSubmitPlace | kMergePlace | kProgramPlace | kWatchPlace},
    Row{"--verbose", kRun | kResumePlace | kSubmitPlace | kProgramPlace | kWatchPlace},
    Row{"--explain", kRun | kResumePlace | kSubmitPlace},
    Row{"--debug", kRun | kResumePlace | kSubmitPlace},
    Row{"--log-level", kRun | kResumePlace | kSubmitPlace},
    Row{"--log-format", kRun | kResumePlace | kSubmitPlace},
    Row{"--summary-json", kRun | kResumePlace},
    Row{"--json", kDoctor | kInspectPlace},
    Row{"--dot", kInspectPlace},
    Row{"--record", kInspectPlace},
    Row{"--html", kReportPlace},
    Row{"--trace", kReportPlace},
    Row{"--junit", kRun | kResumePlace | kReportPlace},
    Row{"--nodes", kSubmitPlace},
    Row{"--partition", kSubmitPlace},
    Row{"--time", kSubmitPlace},
    Row{"--account", kSubmitPlace},
    Row{"--sbatch-option", kSubmitPlace},
    Row{"--wait", kSubmitPlace | kInspectPlace},
    Row{"--all", kInspectPlace},
    Row{"--dry-run", kSubmitPlace},
};

struct Name {
  Places places;
  std::string_view words;
};

// A name for several places comes before their own.
constexpr std::array kNames = {
    Name{kJob, "a job"},
    Name{kRun, "`mprun run`"},
    Name{kRunWithResumePlace, "--resume"},
    Name{kCheckPlace, "`mprun check`"},
    Name{kResumePlace, "`mprun resume`"},
    Name{kSubmitPlace, "`mprun submit`"},
    Name{kProgramPlace, "`mprun -- COMMAND`"},
    Name{kInitPlace, "`mprun init`"},
    Name{kDoctor, "`mprun doctor`"},
    Name{kDoctorPlace, "`mprun doctor`"},
    Name{kDoctorScriptPlace, "`mprun doctor SCRIPT.py`"},
    Name{kDoctorProgramPlace, "`mprun doctor -- COMMAND`"},
    Name{kInspectPlace, "`mprun inspect`"},
    Name{kWatchPlace, "`mprun watch`"},
    Name{kMergePlace, "`mprun merge`"},
    Name{kReportPlace, "`mprun report`"},
    Name{kPython | kProgramRanksPlace, "a script"},
    Name{kPython, "a Python script"},
    Name{kFunctionPlace, "a function"},
    Name{kCommandPlace, "a command"},
    Name{kScriptRanksPlace | kProgramRanksPlace, "ranks"},
};

// A field's row also covers its members.
bool covers(std::string_view row, std::string_view option) {
  return option.substr(0, row.size()) == row && (option.size() == row.size() || option[row.size()] == '/');
}

}  // namespace

Places places_of(std::string_view option) {
  const bool is_field = !option.empty() && option.front() == '/';
  if (!is_field) {
    for (const Row& row : kOptions) {
      if (row.option == option) return row.places;
    }
    return 0;
  }
  for (const Row& row : kFields) {
    if (covers(row.option, option)) return row.places;
  }
  return kJob | kKindPlaces;
}

std::vector<FieldWithoutEffect> fields_without_effect(Place kind) {
  std::vector<FieldWithoutEffect> fields;
  for (const Row& row : kFields) {
    if ((row.places & kind) == 0) fields.push_back({std::string(row.option), row.only_how});
  }
  return fields;
}

std::string only_valid_with(Places places) {
  std::vector<std::string_view> names;
  for (const Name& name : kNames) {
    if ((places & name.places) != name.places) continue;
    names.push_back(name.words);
    places &= ~name.places;
  }
  std::string text = "is only valid with ";
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (i > 0) text += i + 1 == names.size() ? " or " : ", ";
    text += names[i];
  }
  return text;
}

}  // namespace mprun
