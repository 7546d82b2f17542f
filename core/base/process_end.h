// How a process ended. Never encoded as 128+n inside mprun.
#pragma once

#include <sys/wait.h>

#include <csignal>
#include <cstring>
#include <string>

namespace mprun {

struct ProcessEnd {
  int exit_code = 0;
  int signal = 0;  ///< 0: it exited
};

/// From a status of wait(2).
[[nodiscard]] inline ProcessEnd end_from_status(int status) {
  ProcessEnd end;
  if (WIFSIGNALED(status)) {
    end.signal = WTERMSIG(status);
  } else {
    end.exit_code = WEXITSTATUS(status);
  }
  return end;
}

/// From what waitid(2) reports about a child that has ended.
[[nodiscard]] inline ProcessEnd end_from_info(const siginfo_t& info) {
  return info.si_code == CLD_EXITED ? ProcessEnd{info.si_status, 0} : ProcessEnd{0, info.si_status};
}

/// Whether a process outside may have ended it: programs hardly ever die of these signals by themselves.
[[nodiscard]] inline bool may_be_from_outside(const ProcessEnd& end) {
  return end.signal == SIGKILL || end.signal == SIGTERM;
}

/// "signal 9 (Killed)".
[[nodiscard]] inline std::string signal_text(int signal) {
  return "signal " + std::to_string(signal) + " (" + strsignal(signal) + ")";
}

/// "exit code 3" or "signal 9 (Killed)".
[[nodiscard]] inline std::string to_string(const ProcessEnd& end) {
  return end.signal == 0 ? "exit code " + std::to_string(end.exit_code) : signal_text(end.signal);
}

}  // namespace mprun
