// Why a tree hangs: rules over the wait-for graph, stacks, fork history and deaths. Each rule is one function that says
// what it is sure of, or nothing; the last one fits every proof. Of what is not proved the cause may be `unknown`.
// Pure, but for what the world still reads.
#pragma once

#include "watch/family.h"
#include "watch/judge.h"

namespace mprun {

/// What the rules look at. Borrows everything.
struct Evidence {
  const Judgement* judgement = nullptr;
  World* world = nullptr;
  std::map<pid_t, std::vector<PythonFrame>> python;  ///< by thread, innermost first
  const Family* family = nullptr;

  /// The file that holds the code a blocked thread is in: "/usr/lib/.../libgomp.so.1".
  [[nodiscard]] std::string code_file(const JudgedThread& thread) const;
  /// True if a frame of that function ("": of any) is on the thread's stack; `file`: the end of its path.
  [[nodiscard]] bool is_in(pid_t tid, std::string_view file, std::string_view function) const;
};

/// Of what was proved.
[[nodiscard]] HangCause find_cause(const Evidence& evidence);
/// Of the threads that are stuck in a process that runs (Judgement::orphaned).
[[nodiscard]] HangCause find_cause_of_orphaned_lock(const Evidence& evidence);
/// Of what has not moved for long.
[[nodiscard]] HangCause find_cause_of_stall(const Evidence& evidence);
/// Of a thread that is late.
[[nodiscard]] HangCause find_cause_of_delay(const Evidence& evidence, pid_t tid);

/// Who waits for a signal, whose handler writes to a pipe, closes one or sets something, looks as this cause does.
[[nodiscard]] bool is_like_waiting_for_signal(const HangCause& cause);

/// "process 10"; "thread 11 of process 10" of one that is not its main thread.
[[nodiscard]] std::string thread_text(const JudgedThread& thread);
/// Those who wait in a circle, each for the next and the last for the first; empty: there is none.
[[nodiscard]] std::vector<pid_t> find_cycle(const std::map<pid_t, pid_t>& waits_for);
/// Of a process whose multiprocessing.Pool has lost the thread that takes its results.
[[nodiscard]] HangCause cause_of_lost_pool_helper(pid_t pid);
/// "threads wait for each other's locks: 10 for 11 for 10".
[[nodiscard]] HangCause cause_of_lock_cycle(const std::vector<pid_t>& threads);

}  // namespace mprun
