// The exit codes of mprun (mprun(1), EXIT STATUS), and which of them an error, an end or a job gets. No other file has
// these numbers.
#pragma once

#include "base/process_end.h"
#include "base/result.h"

namespace mprun {

enum ExitCode : int {
  kExitOk = 0,
  kExitFailed = 1,           ///< a task failed after its retries
  kExitStuck = 1,            ///< of `mprun inspect`: a hang is proved
  kExitUsage = 2,            ///< the command line or the spec is wrong; nothing was launched
  kExitLaunch = 3,           ///< the job could not be launched
  kExitMayNotLook = 4,       ///< of `mprun inspect` and `mprun watch`: not permitted to look into the process
  kExitUnfinished = 124,     ///< it would not have finished: a hang, or a limit of the job
  kExitInternal = 125,       ///< a fault of mprun or of the machine
  kExitNotExecutable = 126,  ///< of `mprun -- COMMAND`
  kExitNotFound = 127,       ///< of `mprun -- COMMAND`
  kExitSignal = 128,         ///< and the number of the signal that ended it
};

[[nodiscard]] constexpr int exit_code_of_signal(int number) { return kExitSignal + number; }

[[nodiscard]] constexpr bool is_by_signal(int exit_code) { return exit_code > kExitSignal; }

/// As a shell gives it.
[[nodiscard]] inline int exit_code_of(const ProcessEnd& end) {
  return end.signal != 0 ? exit_code_of_signal(end.signal) : end.exit_code;
}

[[nodiscard]] inline int exit_code_of(const Error& error) {
  switch (error.fault) {
    case Fault::kUsage:
      return kExitUsage;
    case Fault::kLaunch:
      return kExitLaunch;
    case Fault::kAccess:
      return kExitMayNotLook;
    case Fault::kInternal:
      return kExitInternal;
  }
  return kExitInternal;
}

/// How a job ended: the first of these that holds decides.
struct JobEnding {
  bool by_fault = false;
  bool launch_failed = false;
  int signal = 0;  ///< that asked mprun to stop; 0: none
  bool unfinished = false;
  bool tasks_failed = false;  ///< or were cancelled
};

[[nodiscard]] inline int exit_code_of(const JobEnding& ending) {
  if (ending.by_fault) return kExitInternal;
  if (ending.launch_failed) return kExitLaunch;
  if (ending.signal != 0) return exit_code_of_signal(ending.signal);
  if (ending.unfinished) return kExitUnfinished;
  return ending.tasks_failed ? kExitFailed : kExitOk;
}

/// The gravest of the codes of shards.
[[nodiscard]] inline int graver_exit_code(int one, int other) {
  for (const int code : {kExitInternal, kExitLaunch, kExitUnfinished, kExitFailed}) {
    if (one == code || other == code) return code;
  }
  return kExitOk;
}

}  // namespace mprun
