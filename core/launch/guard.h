// The guard: the process that the user started. It forks the supervisor, stays outside of it, and kills
// all that is left if the supervisor dies in any way; the supervisor does the same if the guard dies.
// So kill -9 of either leaves nothing behind, and a signal to the guard's process group does not reach
// the supervisor. Called once by main, before there is any state to lose.
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

  /// Keeps what `fd` refers to open as long as the guard lives: the lock of a run directory, which must outlive a
  /// supervisor whose workers are still being ended.
  void keep_open(int fd) const;
};

/// The signals that guard and supervisor handle; both block them. Signals that the caller ignores do not end or stop a
/// job: `nohup` and the `&` of a script mean that. A program (`of_program`) receives all of them and decides itself.
[[nodiscard]] sigset_t taken_signals(bool of_program);

/// Whether a signal is one by which a terminal or a shell stops a job. SIGSTOP is not: its sender stops one process and
/// continues the same one.
[[nodiscard]] bool stops_jobs(int number);

/// Runs `supervise` in a child and returns its exit code to the caller, which is the guard.
/// Forwards taken_signals(); stops and continues with it on TSTP and CONT.
/// In `terminal_shared` mode, signals that the terminal sent bear the value kFromSharedTerminal: the program has got
/// them already. The supervisor then makes us stop and continue when the program does.
/// If the child cannot be created, it says so and returns 3, in that mode 125.
[[nodiscard]] int run_guarded(const Inheritance& inheritance, bool terminal_shared,
                              const std::function<int(const Guard&)>& supervise);

}  // namespace mprun
