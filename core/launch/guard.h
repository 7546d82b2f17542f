// The guard: the process a person started. It forks the supervisor, stays outside of it, and ends
// all that is left should the supervisor die in any way; the supervisor does the same for it.
// So killing either with -9 leaves nothing behind, and killing the guard's process group does not
// reach the supervisor. Called once by main, before there is any state to lose.
#pragma once

#include <sys/types.h>

#include <functional>

namespace mprun {

/// What the supervisor needs to know of its guard.
struct Guard {
  pid_t pid = 0;
  pid_t process_group = 0;  ///< the one the shell gave us: programs of `mprun -- COMMAND` join it
  int alive_fd = -1;        ///< hangs up when the guard is gone

  /// Lets what `fd` refers to stay open as long as the guard lives: the lock of a run directory, which must outlive a
  /// supervisor whose workers are still being ended.
  void keep_open(int fd) const;
};

/// Runs `supervise` in a child and returns its exit code to the caller, which is the guard.
/// Forwards INT, TERM, HUP, QUIT, USR1 and USR2; stops and continues with it on TSTP and CONT.
/// In `terminal_shared` mode, signals that the terminal sent are not forwarded: the program that
/// shares our process group got them already. Where there can be no child: says so and returns 3, in that mode 125.
[[nodiscard]] int run_guarded(bool terminal_shared, const std::function<int(const Guard&)>& supervise);

}  // namespace mprun
