// Why a tree hangs: rules over the wait-for graph, stacks, fork history and deaths, tried in the order of the table
// (cause_table.h). Pure, except for what the snapshot reads on demand.
#pragma once

#include "watch/causes/cause_table.h"
#include "watch/causes/process_history.h"
#include "watch/judge/judge.h"
#include "watch/stacks/native_stack.h"

namespace mprun {

/// What the rules look at. Borrows everything.
struct Evidence {
  const Judgement* judgement = nullptr;
  TreeSnapshot* snapshot = nullptr;
  std::map<pid_t, std::vector<PythonFrame>> python;  ///< by thread, innermost first
  std::map<pid_t, std::vector<std::string>> native;  ///< the same, as NativeStack has them
  const ProcessHistory* history = nullptr;
  pid_t respawner = 0;    ///< for a stall: the process whose children die one after the other; 0: none
  pid_t lost_helper = 0;  ///< for a stall: the process whose multiprocessing.Pool no longer takes results; 0: none
  pid_t late = 0;         ///< the thread that is late; 0: none
  std::map<pid_t, double> wakeups = {};  ///< for a stall: how often a second each thread gets a CPU
  pid_t lost_task = 0;  ///< for a stall: the process whose multiprocessing.Pool has lost a task with a worker; 0: none
  pid_t lost_poller = 0;  ///< for a stall: a process that waits for gRPC, and listens to nothing; 0: none

  /// The file that holds the code a blocked thread is in: "/usr/lib/.../libgomp.so.1".
  [[nodiscard]] std::string code_file(const JudgedThread& thread) const;
  /// True if a frame of that function ("": any) is on the thread's stack; `file`: the end of its path.
  [[nodiscard]] bool is_in(pid_t tid, std::string_view file, std::string_view function) const;
  /// The native frames of a thread from the first that has a name or is not libc's: how many functions without a public
  /// name a libc waits in differs between its versions.
  [[nodiscard]] std::span<const std::string> named_native(pid_t tid) const;
  /// True if one of the `innermost` of these frames has that text in it.
  [[nodiscard]] bool is_in_native(pid_t tid, std::string_view text, std::size_t innermost = kMostNativeFrames) const;
};

/// Tries the rules of a set. The cause is `unknown` only for a stall or a late thread.
[[nodiscard]] HangCause find_cause(const Evidence& evidence, RuleSet set);

/// True if the cause looks like a wait for a signal whose handler writes to a pipe, closes one or sets something.
[[nodiscard]] bool is_like_waiting_for_signal(const HangCause& cause);

}  // namespace mprun
