// mprun -- COMMAND: runs a program (or N copies, as ranks) in the terminal it was started from, passes signals on and
// its exit status through, and leaves nothing of it running. Called in the supervisor's process.
#pragma once

#include <functional>

#include "launch/environment.h"
#include "launch/guard.h"
#include "run/job_request.h"
#include "wire/notes.h"

namespace mprun {

/// What `mprun doctor` changes when it runs a program.
struct ProgramObserver {
  Environment environment;                       ///< replaces mprun's own
  bool stdout_to_stderr = false;                 ///< keeps the program's output out of ours
  std::function<bool(const AdapterNote&)> take;  ///< true: the note is handled, and not shown
  bool started = false;                          ///< set by run_program: the program ran
};

/// Returns mprun's exit code. Errors: nothing was launched.
[[nodiscard]] Result<int> run_program(const JobRequest& request, const Guard& guard,
                                      ProgramObserver* observer = nullptr);

}  // namespace mprun
