#include "watch/explain.h"

#include <sys/socket.h>
#include <sys/syscall.h>

#include <algorithm>

#include "procfs/process_table.h"
#include "procfs/process_tree.h"
#include "watch/causes/causes.h"
#include "watch/causes/joins.h"
#include "watch/judge/time_limit.h"
#include "watch/sample/syscall_table.h"
#include "watch/stacks/native_stack.h"
#include "watch/stacks/python_stack.h"

namespace mprun {
namespace {

// Keep reports readable, and quick to make, for trees of any size.
struct Limits {
  std::size_t processes, threads, all_threads;
};
constexpr Limits kOfHang{64, 64, 4096};
constexpr Limits kOfAll{1024, 1024, 4096};

enum class Scope { kStuck, kAll };

// Whether the call goes on as if nothing had happened after ptrace has stopped its thread. A write returns what it has
// written so far, and so does a read that waits for all bytes; signal(7) names those that fail with EINTR.
bool goes_on_after_stop(const SyscallLine& call) {
  switch (mprun::call_of(call.number)) {
    case Call::kFutex:
    case Call::kWait4:
    case Call::kWaitid:
    case Call::kAccept:
    case Call::kFlock:
    case Call::kOpen:
      return true;
    case Call::kRead: {
      const std::uint64_t flags = call.number == SYS_recvfrom  ? call.arguments[3]
                                  : call.number == SYS_recvmsg ? call.arguments[2]
                                                               : 0;
      return (flags & MSG_WAITALL) == 0;
    }
    default:
      return false;
  }
}

class Explainer {
 public:
  Explainer(Proof* proof, ProcSource* proc, const ProcessHistory& history, Nanos now, Scope scope)
      : proof_(*proof), proc_(proc), now_(now), scope_(scope), limits_(scope == Scope::kAll ? kOfAll : kOfHang) {
    evidence_.judgement = &proof->judgement;
    evidence_.snapshot = proof->snapshot.get();
    evidence_.history = &history;
    evidence_.respawner = proof->respawner;
    evidence_.lost_helper = proof->lost_helper;
    evidence_.lost_task = proof->lost_task;
    evidence_.lost_poller = proof->lost_poller;
    evidence_.wakeups = proof->wakeups;
  }

  Hang explain() {
    describe_all();
    if (hang_.verdict == HangVerdict::kLive) return std::move(hang_);
    hang_.join = find_join();
    find_still_running();
    hang_.cause = find_cause(evidence_, is_orphan()                            ? RuleSet::kOrphanedLock
                                        : is_stall() && proof_.but_for.empty() ? RuleSet::kStall
                                                                               : RuleSet::kStuck);
    if (!proof_.but_for.empty()) {
      hang_.cause.explanation += "; not proved: " + proof_.but_for;
    }
    return std::move(hang_);
  }

  Hang explain_overdue(const PassedLimit& limit) {
    describe_all();
    hang_.limit = limit;
    evidence_.late = limit.tid;
    hang_.cause = find_cause(evidence_, RuleSet::kLate);
    for (const HungProcess& process : hang_.processes) {
      for (const HungThread& thread : process.threads) {
        if (thread.tid == limit.tid) hang_.join = call_of(process, thread);
      }
    }
    if (hang_.join) hang_.join->waiting_seconds = limit.seconds;
    return std::move(hang_);
  }

 private:
  void describe_all() {
    hang_.verdict = proof_.verdict;
    find_concerned();
    hang_.seconds_since_progress = proof_.last_moved == 0 ? -1 : to_seconds(now_ - proof_.last_moved);
    for (const RecordedDeath& death : evidence_.history->deaths()) {
      if (is_violent(death)) hang_.deaths.push_back(death);
    }
    for (const JudgedThread& thread : proof_.judgement.threads) add(thread);
    const std::set<pid_t>& cannot_return = proof_.judgement.cannot_return;
    if (is_proved(proof_.verdict)) hang_.cannot_return.assign(cannot_return.begin(), cannot_return.end());
  }

  [[nodiscard]] bool is_stall() const { return proof_.verdict == HangVerdict::kStalled; }
  // Threads of a process whose other threads run: only they are reported.
  [[nodiscard]] bool is_orphan() const { return proof_.verdict == HangVerdict::kOrphanedLock; }
  [[nodiscard]] bool is_stuck(pid_t pid) const { return proof_.judgement.stuck.count(pid) != 0; }

  // The stuck processes and their ancestors, which may wait for them; or all.
  void find_concerned() {
    if (is_orphan() && scope_ == Scope::kStuck) {
      for (const OrphanedWait& wait : proof_.judgement.orphaned) concerned_.insert(wait.pid);
      return;
    }
    for (const auto& [pid, process] : proof_.snapshot->processes()) {
      if (scope_ == Scope::kStuck && !is_stall() && !is_stuck(pid)) continue;
      const TreeSnapshot::Process* next = &process;
      while (next != nullptr && concerned_.insert(next->pid).second) next = proof_.snapshot->process(next->parent);
    }
  }

  // Processes in the order of the sample: parents before children.
  void add(const JudgedThread& thread) {
    const pid_t pid = thread.sample->pid;
    if (concerned_.count(pid) == 0) return;
    if (scope_ == Scope::kStuck && (thread.wait.kind == WaitKind::kEnded || (is_orphan() && thread.live))) return;
    if (pid != last_) {
      last_ = pid;
      has_room_ = hang_.processes.size() < limits_.processes;
      if (!has_room_) ++hang_.processes_left_out;
      if (has_room_) add_process(*proof_.snapshot->process(pid));
    }
    if (!has_room_) return;
    add_edges(thread);
    HungProcess& process = hang_.processes.back();
    if (process.threads.size() < limits_.threads && described_ < limits_.all_threads) {
      ++described_;
      process.threads.push_back(describe(thread));
    } else {
      ++process.threads_left_out;
    }
  }

  void add_process(const TreeSnapshot::Process& process) {
    HungProcess described;
    described.pid = process.pid;
    described.parent = process.parent;
    described.forked = process.forked;
    described.command = command_of(process);
    PythonStacks stacks = read_python_stacks(proc_, process.pid);
    described.python_unread = std::move(stacks.reason);
    hang_.processes.push_back(std::move(described));
    for (PythonThread& thread : stacks.threads) {
      if (!thread.frames.empty()) evidence_.python[thread.tid] = std::move(thread.frames);
    }
    native_ = std::make_unique<NativeStacks>(process.pid);
  }

  [[nodiscard]] std::string command_of(const TreeSnapshot::Process& process) const {
    std::string command = proc_->read(std::to_string(process.pid) + "/cmdline").value_or("");
    while (!command.empty() && command.back() == '\0') command.pop_back();
    std::replace(command.begin(), command.end(), '\0', ' ');
    return command.empty() ? process.name : command;
  }

  HungThread describe(const JudgedThread& thread) {
    const ThreadSample& sample = *thread.sample;
    HungThread described;
    described.tid = sample.tid;
    const auto name = proc_->read(std::to_string(sample.pid) + "/task/" + std::to_string(sample.tid) + "/comm");
    described.name = name.value_or("").substr(0, name.value_or("").find('\n'));
    described.state = proof_.but_for.empty() || thread.wait.kind == WaitKind::kEnded ? state_of(thread) : "blocked";
    if (described.state.compare(0, 7, "blocked") == 0) describe_wait(thread, &described.wait);
    const auto python = evidence_.python.find(sample.tid);
    if (python != evidence_.python.end()) described.python = python->second;
    const bool is_asleep = !sample.call.running && mprun::call_of(sample.call.number) == Call::kSleep;
    const bool runs = thread.wait.kind == WaitKind::kRunning && !is_asleep;  // one that sleeps has a stack meanwhile
    if (runs || thread.wait.kind == WaitKind::kEnded || sample.hidden) return described;
    NativeStack native = native_->of_thread(sample.tid, sample.call.stack_pointer, sample.call.program_counter);
    // Only a thread that is blocked for ever is stopped for this; it goes on waiting.
    const bool is_stuck = scope_ == Scope::kStuck && !is_stall() && !thread.live;
    if (native.approximate && is_stuck && goes_on_after_stop(sample.call)) {
      native = native_->complete_with_ptrace(sample.tid, std::move(native));
    }
    evidence_.native[sample.tid] = native.frames;
    described.native = std::move(native.frames);
    described.native_approximate = native.approximate;
    return described;
  }

  static std::string state_of(const JudgedThread& thread) {
    switch (thread.wait.kind) {
      case WaitKind::kRunning:
      case WaitKind::kStopped:
      case WaitKind::kEnded:
        return to_string(thread.wait.kind);
      default:
        return thread.live ? "blocked" : "blocked for ever";
    }
  }

  static void describe_wait(const JudgedThread& thread, ThreadWait* wait) {
    wait->kind = to_string(thread.wait.kind);
    wait->timed = thread.wait.timed;
    wait->object = thread.wait.object;
    wait->why_live = thread.wait.why_live;
    for (const Waker& waker : thread.wait.wakers) wait->wakers.push_back(waker.tid != 0 ? waker.tid : waker.pid);
  }

  void add_edges(const JudgedThread& thread) {
    for (const Waker& waker : thread.wait.wakers) {
      if (waker.pid == thread.sample->pid) continue;
      const bool known = std::any_of(hang_.edges.begin(), hang_.edges.end(), [&](const WaitEdge& edge) {
        return edge.from == thread.sample->pid && edge.to == waker.pid;
      });
      if (known) continue;
      const std::string why = thread.wait.object.empty() ? to_string(thread.wait.kind) : thread.wait.object;
      hang_.edges.push_back({thread.sample->pid, waker.pid, why});
    }
  }

  // The call of the outermost process that has one in Python; else what the outermost process waits for. A shell waits
  // for whatever it runs.
  std::optional<WaitingJoin> find_join() const {
    const std::set<pid_t>& stuck = proof_.judgement.stuck;
    std::set<pid_t> left_out;
    for (const JudgedThread& thread : proof_.judgement.threads) {
      const pid_t pid = thread.sample->pid;
      const bool runs = is_stall() && !stuck.empty() && stuck.count(pid) == 0;
      if (runs || thread.wait.of_command) left_out.insert(pid);
    }
    std::optional<WaitingJoin> join;
    for (const HungProcess& process : hang_.processes) {
      if (left_out.count(process.pid) != 0) continue;
      for (const HungThread& thread : process.threads) {
        // The call that a user waits for is in the first thread.
        if (thread.tid != process.pid || (thread.state != "blocked for ever" && !is_stall())) continue;
        const bool has_name = name_call(thread.python).has_value();
        if (join && !has_name) continue;
        join = call_of(process, thread);
        if (has_name) return join;
      }
    }
    return join;
  }

  // Finds the nearest process above each stuck part that can still return.
  void find_still_running() {
    std::set<pid_t> found;
    for (const pid_t pid : proof_.judgement.cannot_return) {
      const TreeSnapshot::Process* process = proof_.snapshot->process(pid);
      while (process != nullptr && proof_.judgement.cannot_return.count(process->pid) != 0) {
        process = proof_.snapshot->process(process->parent);
      }
      if (process == nullptr || !found.insert(process->pid).second) continue;
      if (const JudgedThread* thread = live_thread_of(process->pid))
        hang_.still_running.push_back(describe_running(*thread));
    }
  }

  // Its main thread; if that is blocked for ever, another live one, preferably one with a time limit.
  [[nodiscard]] const JudgedThread* live_thread_of(pid_t pid) const {
    const JudgedThread* found = nullptr;
    for (const JudgedThread& thread : proof_.judgement.threads) {
      if (thread.sample->pid != pid || !thread.live) continue;
      if (thread.sample->tid == pid) return &thread;
      if (found == nullptr || (thread.wait.kind == WaitKind::kTimer && found->wait.kind != WaitKind::kTimer)) {
        found = &thread;
      }
    }
    return found;
  }

  [[nodiscard]] std::vector<PythonFrame> python_of(pid_t pid, pid_t tid) const {
    if (const auto known = evidence_.python.find(tid); known != evidence_.python.end()) return known->second;
    if (concerned_.count(pid) != 0) return {};
    for (PythonThread& thread : read_python_stacks(proc_, pid).threads) {
      if (thread.tid == tid) return std::move(thread.frames);
    }
    return {};
  }

  [[nodiscard]] StillRunning describe_running(const JudgedThread& thread) {
    StillRunning running;
    running.pid = thread.sample->pid;
    running.tid = thread.sample->tid;
    running.command = command_of(*proof_.snapshot->process(running.pid));
    running.why = thread.wait.why_live.empty() ? "others of its process may wake it" : thread.wait.why_live;
    const auto moved = proof_.last_moves.find(running.tid);
    const Nanos waited = moved == proof_.last_moves.end() ? 0 : now_ - moved->second;
    if (const auto left = time_left(*thread.sample, waited, proof_.snapshot.get())) running.ends_in = to_seconds(*left);
    if (const auto named = name_call(python_of(running.pid, running.tid))) {
      running.call = named->call;
      running.file = named->file;
      running.line = named->line;
    }
    return running;
  }

  WaitingJoin call_of(const HungProcess& process, const HungThread& thread) const {
    const auto named = name_call(thread.python);
    WaitingJoin call;
    call.pid = process.pid;
    call.tid = thread.tid;
    // The others may have run for long while this one waited already.
    const auto moved = proof_.last_moves.find(thread.tid);
    const double waited = moved == proof_.last_moves.end() ? -1 : to_seconds(now_ - moved->second);
    call.waiting_seconds = std::max(waited, hang_.seconds_since_progress);
    call.call = named && !named->call.empty() ? named->call : call_of_wait(thread.wait.kind);
    if (named) {
      call.file = named->file;
      call.line = named->line;
    }
    return call;
  }

  static std::string call_of_wait(const std::string& kind) {
    if (kind == "child") return "waitpid";
    if (kind == "thread-end") return "pthread_join";
    if (kind == "mutex") return "pthread_mutex_lock";
    return kind;
  }

  Proof& proof_;
  ProcSource* proc_;
  Nanos now_;
  Scope scope_;
  Limits limits_;
  Evidence evidence_;
  Hang hang_;
  std::set<pid_t> concerned_;
  pid_t last_ = 0;  // the process whose threads are being added
  bool has_room_ = true;
  std::size_t described_ = 0;
  std::unique_ptr<NativeStacks> native_;
};

// A DataLoader is asked for a batch only when its workers have been given its indices: none of them is idle.
bool waits_for_batch(const Hang& hang) {
  return hang.join && hang.join->call.ends_with("_BaseDataLoaderIter.__next__");
}

// Only this process has the queue, and waits for an item of it.
bool waits_for_own_queue(const Hang& hang) {
  return hang.cause.id == causes::kPipeNeverClosed.name && hang.join && hang.join->call == "multiprocessing.Queue.get";
}

// A thread waits for the end of something, or for results. A program that idles until a signal ends it does not do
// that.
bool joins(const Hang& hang) {
  if (!hang.join) return false;
  const std::string_view call = hang.join->call;
  return call.ends_with(".join") || call.find("torch.multiprocessing.s") != call.npos || call == "waitpid" ||
         call == "pthread_join" || call.starts_with("multiprocessing.pool.") ||
         call.starts_with("concurrent.futures.") || call.ends_with(".Context.term") ||  // of ZeroMQ
         call == "trio._core._run.run" || call == "eventlet.hubs.hub.BaseHub.run";
}

// A thread waits in a callback of its event loop, which runs no handler of a signal meanwhile: no program idles so.
bool blocks_event_loop(const Hang& hang) {
  const auto runs_callbacks = [](const PythonFrame& frame) {
    const bool of_reactor = frame.file.ends_with("/twisted/internet/base.py");
    return (frame.function == "Handle._run" && frame.file.ends_with("/asyncio/events.py")) ||
           (of_reactor && (frame.function == "ReactorBase.runUntilCurrent" ||
                           frame.function == "ReactorBase.fireSystemEvent"));  // of callWhenRunning()
  };
  return std::any_of(hang.processes.begin(), hang.processes.end(), [&](const HungProcess& process) {
    return std::any_of(process.threads.begin(), process.threads.end(), [&](const HungThread& thread) {
      return std::any_of(thread.python.begin(), thread.python.end(), runs_callbacks);
    });
  });
}

// Something is stuck that looks again and again for what only the tree itself could bring about.
bool looks_for_own(const Proof& proof) {
  return std::any_of(proof.judgement.threads.begin(), proof.judgement.threads.end(), [&](const JudgedThread& thread) {
    return proof.judgement.stuck.count(thread.sample->pid) != 0 &&
           proof.snapshot->assumptions().own_polls.count(thread.sample->tid) != 0;
  });
}

// The first process of the tree, or of a command of a shell, and another one wait to hear from each other. To idle, a
// program would wait for a signal or for anybody.
bool waits_for_partner(const Proof& proof, const Hang& hang) {
  if (hang.cause.id != causes::kPipeCycle.name) return false;
  const std::set<pid_t> commands = commands_of_shells(proof.judgement);
  const auto is_of_first = [&](const JudgedThread& thread) {
    const TreeSnapshot::Process* process = proof.snapshot->process(thread.sample->pid);
    return process != nullptr &&
           (proof.snapshot->process(process->parent) == nullptr || commands.count(process->pid) != 0);
  };
  return std::any_of(proof.judgement.threads.begin(), proof.judgement.threads.end(), [&](const JudgedThread& thread) {
    const auto& wakers = thread.wait.wakers;
    return thread.sample->tid == thread.sample->pid && !thread.live && is_of_first(thread) &&
           std::any_of(wakers.begin(), wakers.end(),
                       [&](const Waker& waker) { return waker.pid != thread.sample->pid; });
  });
}

}  // namespace

bool may_be_idle(const Proof& proof, const Hang& hang) {
  const bool is_stalled = proof.verdict == HangVerdict::kStalled && !proof.was_proved;
  if (is_stalled && is_unawaited_part(proof.judgement)) {
    const bool tells_nothing = is_like_waiting_for_signal(hang.cause) || hang.cause.id == causes::kUnknown.name;
    return tells_nothing && !waits_for_batch(hang) && !blocks_event_loop(hang);
  }
  // No signal that the program asked for, and nothing from outside, can end any wait in it.
  if (!proof.is_early || proof.needs_only_idle_runtimes) return false;
  // Main threads of Ruby sleep for ever while others work; no program reads or opens a pipe for that.
  const bool may_sleep = hang.cause.id == causes::kNeverNotified.name || hang.cause.id == causes::kNoWaker.name;
  if (proof.needs_only_timers && !may_sleep) return false;
  if (!is_like_waiting_for_signal(hang.cause) || waits_for_batch(hang)) return false;
  if (blocks_event_loop(hang)) return false;
  if (!proof.needs_no_signal && waits_for_own_queue(hang)) return false;
  if (proof.needs_no_signal || proof.needs_no_client || proof.needs_no_limit) return true;
  // It may wait for the end of the very thread that shows now and then that it is alive.
  if (proof.needs_no_beat) return !hang.join || hang.join->call != "queue.Queue.join";
  return !joins(hang) && !looks_for_own(proof) && !waits_for_partner(proof, hang);
}

Hang explain(Proof* proof, ProcSource* proc, const ProcessHistory& history, Nanos now) {
  return Explainer(proof, proc, history, now, Scope::kStuck).explain();
}

Hang describe(Proof* found, ProcSource* proc, const ProcessHistory& history, Nanos now) {
  return Explainer(found, proc, history, now, Scope::kAll).explain();
}

Hang explain_overdue(const PassedLimit& limit, ProcSource* proc, const WatchedTree::AskBoundary& boundary,
                     const ProcessHistory& history) {
  const auto tree = process_tree(proc, limit.pid, true);
  Proof found = judge_sample(proc, std::make_unique<Sample>(take_sample(proc, tree)), boundary());
  for (JudgedThread& thread : found.judgement.threads) thread.live = true;  // one sample proves nothing
  found.verdict = HangVerdict::kOverdue;
  return Explainer(&found, proc, history, monotonic_now(), Scope::kAll).explain_overdue(limit);
}

}  // namespace mprun
