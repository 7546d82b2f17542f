// Hang: a hang as mprun reports it, with all its evidence. Made by the watch, shown by core/report. The hang report
// (hangs/N.json; mprun(1), HANGS) has exactly this content.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/process_end.h"

namespace mprun {

enum class HangVerdict {
  kLive,             ///< nothing is stuck; only an inspection reports it
  kDeadlock,         ///< proved for the whole tree
  kPartialDeadlock,  ///< proved for the processes named, while others run
  kOrphanedLock,     ///< a lock whose owner does not exist in that process, or owners that wait for each other
  kStalled,          ///< nothing moved for long, but a timer or the outside could still act
  kOverdue,          ///< a limit has passed
};
/// "deadlock", "partial-deadlock", ...
[[nodiscard]] const char* to_string(HangVerdict verdict);
/// True if the verdict proves that what is blocked for ever is so: deadlock, partial-deadlock, orphaned-lock.
[[nodiscard]] bool is_proved(HangVerdict verdict);

struct HangCause {
  std::string id = "unknown";  ///< a name from cause_table.h
  std::string explanation;     ///< one sentence
  std::string fix;             ///< one command or change; empty: none is known
  bool looks_idle = false;     ///< a wait for work looks the same: in a part of a tree, no fault by itself
};

/// The call that waits for what is stuck, named as a user would name it.
struct WaitingJoin {
  std::string call;  ///< "multiprocessing.pool.Pool.join", "waitpid"
  pid_t pid = 0, tid = 0;
  std::string file;  ///< of the line that called it; empty: not Python
  int line = 0;
  double waiting_seconds = 0;  ///< negative: not known
};

/// What a thread waits for.
struct ThreadWait {
  std::string kind;           ///< "futex", "pipe-read", "child", ...: to_string(WaitKind)
  bool timed = false;         ///< it ends by itself
  std::string object;         ///< human-readable: "mutex 0x7f12 of thread 12", "pipe 4711"
  std::vector<pid_t> wakers;  ///< processes or threads that could end it
  std::string why_live;  ///< why it may end by itself or from outside: "a timer"; empty: it cannot, or only by `wakers`
};

struct PythonFrame {
  std::string file;
  int line = 0;
  std::string function;
};

struct HungThread {
  pid_t tid = 0;
  std::string name;
  std::string state;  ///< "blocked for ever", "blocked", "running", "stopped", "ended"
  ThreadWait wait;
  std::vector<PythonFrame> python;  ///< innermost first
  std::vector<std::string> native;  ///< innermost first: "function (library)" or "library+0x123"
  bool native_approximate = false;  ///< frames may be missing
};

struct HungProcess {
  pid_t pid = 0, parent = 0;
  std::string command;
  bool forked = false;  ///< it was started by fork, not exec
  std::vector<HungThread> threads;
  std::size_t threads_left_out = 0;  ///< how many more there are
  std::string python_unread = {};    ///< of a Python: why no frames of it are known; empty: they are
};

/// Process `from` waits for process `to`.
struct WaitEdge {
  pid_t from = 0, to = 0;
  std::string why;  ///< "waitpid", "pipe 4711", "lock"
};

struct RecordedDeath {
  pid_t pid = 0, parent = 0;
  ProcessEnd end;
  bool end_known = true;
  Nanos when = 0;             ///< wall clock
  bool forked = false;        ///< it was a child of fork(), not of a spawn
  bool by_mprun = false;      ///< mprun ended it itself: no evidence
  bool was_asked_to = false;  ///< another process of the tree had sent it SIGTERM
};

/// The limit of kOverdue.
struct PassedLimit {
  std::string label;   ///< what it was for, as the program or mprun calls it; may be empty
  double seconds = 0;  ///< the time given
  pid_t pid = 0, tid = 0;
};

/// The nearest process above a stuck part that can still go on.
struct StillRunning {
  pid_t pid = 0, tid = 0;
  std::string command;
  std::string call;  ///< as WaitingJoin's; empty: not known
  std::string file;  ///< of its line; empty: not Python
  int line = 0;
  std::string why;      ///< "a wait with a time limit", "it runs"
  double ends_in = -1;  ///< seconds until its wait ends by itself; negative: not known, or never
};

struct Hang {
  HangVerdict verdict = HangVerdict::kDeadlock;
  double seconds_since_progress = 0;  ///< negative: not known
  std::optional<PassedLimit> limit;   ///< kOverdue
  std::optional<WaitingJoin> join;
  HangCause cause;
  std::vector<HungProcess> processes;
  std::size_t processes_left_out = 0;  ///< how many more there are
  std::vector<WaitEdge> edges;
  std::vector<RecordedDeath> deaths;
  std::vector<pid_t> cannot_return;         ///< processes of which the first thread is stuck, or waits only for what is
  std::vector<StillRunning> still_running;  ///< if a part is proved stuck; empty: no process above can go on
};

/// No fault, as far as can be seen: a part of a tree that no process waits for and no rule knows, as a wait for work
/// looks the same; or a program that sleeps until a signal comes.
[[nodiscard]] bool is_idle(const Hang& hang);

/// Something is proved stuck that should move.
[[nodiscard]] bool is_proved_hang(const Hang& hang);

}  // namespace mprun
