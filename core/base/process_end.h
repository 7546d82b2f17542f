// How a process ended. Never encoded as 128+n inside mprun.
#pragma once

#include <csignal>
#include <cstring>
#include <string>

namespace mprun {

struct ProcessEnd {
  int exit_code = 0;
  int signal = 0;  ///< 0: it exited
};

/// Whether somebody else may have ended it: by a signal that programs hardly ever die of by themselves.
[[nodiscard]] inline bool may_be_from_outside(const ProcessEnd& end) {
  return end.signal == SIGKILL || end.signal == SIGTERM;
}

/// "exit code 3" or "signal 9 (Killed)".
[[nodiscard]] inline std::string to_string(const ProcessEnd& end) {
  if (end.signal == 0) return "exit code " + std::to_string(end.exit_code);
  return "signal " + std::to_string(end.signal) + " (" + strsignal(end.signal) + ")";
}

}  // namespace mprun
