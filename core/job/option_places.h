// The one table of where each option of the command line and each field of a spec has an effect, and the words that
// refuse an option without an effect. Read by cli/ (subcommands) and by resolve() (kinds of jobs). Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace mprun {

/// A set of places.
using Places = std::uint32_t;

enum Place : Places {
  // By the command line.
  kRunPlace = 1U << 0U,
  kRunWithResumePlace = 1U << 1U,  ///< a job with --resume
  kCheckPlace = 1U << 2U,
  kResumePlace = 1U << 3U,
  kSubmitPlace = 1U << 4U,
  kProgramPlace = 1U << 5U,  ///< mprun -- COMMAND
  kDoctorPlace = 1U << 6U,
  kDoctorScriptPlace = 1U << 7U,
  kDoctorProgramPlace = 1U << 8U,
  kInitPlace = 1U << 9U,
  kInspectPlace = 1U << 10U,
  kMergePlace = 1U << 11U,
  kReportPlace = 1U << 12U,
  kExplainPlace = 1U << 13U,
  kWatchPlace = 1U << 14U,
  kHelpPlace = 1U << 15U,
  // By what a job runs.
  kFunctionPlace = 1U << 16U,
  kCommandPlace = 1U << 17U,
  kScriptRanksPlace = 1U << 18U,
  kProgramRanksPlace = 1U << 19U,  ///< of an executable that is not a .py file
};
inline constexpr Places kKindPlaces = 0xf0000U;

/// Where an option ("--json") or a field ("/limits/task_seconds") has an effect. A field that is not in the table has
/// one in every job, an option has none at all.
[[nodiscard]] Places places_of(std::string_view option);

struct FieldWithoutEffect {
  std::string field;      ///< a JSON pointer
  bool only_how = false;  ///< it says how tasks are run, not what is run: dropped with a warning, not refused
};
/// The fields that have no effect on this kind of job.
[[nodiscard]] std::vector<FieldWithoutEffect> fields_without_effect(Place kind);

/// "is only valid with `mprun doctor` or `mprun inspect`".
[[nodiscard]] std::string only_valid_with(Places places);

}  // namespace mprun
