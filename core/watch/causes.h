// Why a tree hangs: rules over the wait-for graph, stacks, fork history and deaths, asked in the order of the table
// (cause_table.h). Pure, but for what the snapshot still reads.
#pragma once

#include "watch/cause_table.h"
#include "watch/judge.h"
#include "watch/process_history.h"

namespace mprun {

/// What the rules look at. Borrows everything.
struct Evidence {
  const Judgement* judgement = nullptr;
  TreeSnapshot* snapshot = nullptr;
  std::map<pid_t, std::vector<PythonFrame>> python;  ///< by thread, innermost first
  const ProcessHistory* history = nullptr;
  pid_t lost_helper = 0;  ///< of a stall: the process whose multiprocessing.Pool takes no results any more; 0: none
  pid_t late = 0;         ///< the thread that is late; 0: none

  /// The file that holds the code a blocked thread is in: "/usr/lib/.../libgomp.so.1".
  [[nodiscard]] std::string code_file(const JudgedThread& thread) const;
  /// True if a frame of that function ("": of any) is on the thread's stack; `file`: the end of its path.
  [[nodiscard]] bool is_in(pid_t tid, std::string_view file, std::string_view function) const;
};

/// Asks the rules of a set. The cause is `unknown` only of a stall or of a thread that is late.
[[nodiscard]] HangCause find_cause(const Evidence& evidence, RuleSet set);

/// Who waits for a signal, whose handler writes to a pipe, closes one or sets something, looks as this cause does.
[[nodiscard]] bool is_like_waiting_for_signal(const HangCause& cause);

}  // namespace mprun
