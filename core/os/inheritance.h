// State that exec passes on to a program and that mprun changes for its own use. main reads it before any change, and
// spawn_process restores it for a program that must run as it would without mprun. Processes of a job get their own.
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
  std::array<bool, 3> standard_descriptors{};  ///< which are open; for callers that plan descriptors
};

/// What this process has inherited; to be called before anything is changed.
[[nodiscard]] Inheritance read_inheritance();

/// Whether this process ignores a signal.
[[nodiscard]] bool is_ignored(int number);

/// Applies `signals` to all signals that mprun changes in itself or resets in a job; the others stay as they were.
/// False with errno. Context: child between vfork and exec.
[[nodiscard]] bool take_on(const SignalState& signals);

}  // namespace mprun
