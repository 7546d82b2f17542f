// What exec hands on to a program and mprun changes for its own sake. main reads it before anything is changed, and
// spawn_process gives it back to a program that is to run as without mprun; for the processes of a job it is made.
#pragma once

#include <array>
#include <csignal>

namespace mprun {

/// The signals that a process begins with blocked and ignored. Default: none.
struct SignalState {
  sigset_t blocked{};
  sigset_t ignored{};
};

/// Default: what the processes of a job get.
struct Inheritance {
  SignalState signals;
  int parent_death_signal = SIGKILL;           ///< PR_SET_PDEATHSIG; 0: none
  int subreaper = 0;                           ///< PR_SET_CHILD_SUBREAPER
  std::array<bool, 3> standard_descriptors{};  ///< which are open; for whoever plans descriptors
};

/// What this process has inherited, as long as nothing has been changed.
[[nodiscard]] Inheritance read_inheritance();

/// Whether this process ignores a signal.
[[nodiscard]] bool is_ignored(int number);

/// Takes on `signals`, for all signals that mprun changes in itself or resets in a job; the others are as they were.
/// False with errno. Context: child between vfork and exec.
[[nodiscard]] bool take_on(const SignalState& signals);

}  // namespace mprun
