// The output of `mprun doctor`, as human-readable text and as JSON. Pure functions; called once by cli/doctor.
#pragma once

#include <string>
#include <vector>

#include "json/document.h"
#include "json/json_fwd.h"
#include "report/doctor_findings.h"

namespace mprun {

/// One feature of this machine that mprun uses.
struct MachineFeature {
  std::string name;     ///< "pidfd_open"
  bool ok = true;       ///< it is there and works
  bool needed = true;   ///< mprun does not work without it
  std::string value;    ///< "yes", "6.18.5", a path, or what is wrong
  std::string use;      ///< what mprun uses it for
  std::string limit{};  ///< what that means for jobs, if it limits them: a sentence
};

/// The text of `mprun doctor`: a line for each feature, the lines `processors`, what is missing, and what limits jobs
/// here.
[[nodiscard]] std::string machine_text(const std::vector<MachineFeature>& features, const std::string& processors);
[[nodiscard]] Json machine_json(const std::vector<MachineFeature>& features, const std::string& processors);
/// Whether everything that mprun needs is there.
[[nodiscard]] bool is_fit(const std::vector<MachineFeature>& features);

/// The outcome of a program, or of the import of a script.
struct Examination {
  std::string subject;    ///< the command line, or the script
  bool imported = false;  ///< the subject is a script that was imported
  int exit_code = 0;      ///< as a shell would give it
  DoctorFindings findings;
  std::vector<std::string> notes;  ///< what the adapters reported
};

/// The text of `mprun doctor -- COMMAND` and `mprun doctor SCRIPT.py`.
[[nodiscard]] std::string examination_text(const Examination& examination);
[[nodiscard]] Json examination_json(const Examination& examination);

}  // namespace mprun
