// The guard: the process a person started. It forks the supervisor, stays outside of it, and ends
// all that is left should the supervisor die in any way; the supervisor does the same for it.
// So killing either with -9 leaves nothing behind, and killing the guard's process group does not
// reach the supervisor. Called once by main, before there is any state to lose.
#pragma once

#include <sys/types.h>

#include <csignal>
#include <functional>

#include "os/inheritance.h"
#include "procfs/process_ref.h"

namespace mprun {

/// The value of a signal (sigqueue) that the terminal has sent to the program as well, which shares our process group.
inline constexpr int kFromSharedTerminal = 1;

/// What the supervisor needs to know of its guard.
struct Guard {
  pid_t pid = 0;
  ProcessRef process;
  pid_t process_group = 0;  ///< the one the shell gave us: programs of `mprun -- COMMAND` join it
  int alive_fd = -1;        ///< hangs up when the guard is gone
  Inheritance inheritance;  ///< of mprun itself: what programs of `mprun -- COMMAND` get

  /// Lets what `fd` refers to stay open as long as the guard lives: the lock of a run directory, which must outlive a
  /// supervisor whose workers are still being ended.
  void keep_open(int fd) const;
};

/// The signals that guard and supervisor take, blocked as they are. A job is not asked to end or stop by what its
/// caller ignores: `nohup` and the `&` of a script mean that. A program (`of_program`) is passed all and decides
/// itself.
[[nodiscard]] sigset_t taken_signals(bool of_program);

/// Whether a signal is one by which a terminal or a shell stops a job. SIGSTOP is not: who sends that to one process
/// continues the same one.
[[nodiscard]] bool stops_jobs(int number);

/// Runs `supervise` in a child and returns its exit code to the caller, which is the guard.
/// Forwards taken_signals(); stops and continues with it on TSTP and CONT.
/// In `terminal_shared` mode, signals that the terminal sent bear the value kFromSharedTerminal: the program has got
/// them already. It is the supervisor then that has us stop and continue when the program does.
/// Where there can be no child: says so and returns 3, in that mode 125.
[[nodiscard]] int run_guarded(const Inheritance& inheritance, bool terminal_shared,
                              const std::function<int(const Guard&)>& supervise);

}  // namespace mprun
