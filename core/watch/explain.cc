#include "watch/explain.h"

#include <algorithm>

#include "procfs/process_tree.h"
#include "watch/causes.h"
#include "watch/joins.h"
#include "watch/native_stack.h"
#include "watch/python_stack.h"

namespace mprun {
namespace {

// Reports stay readable, and quick to make, for trees of any size.
constexpr std::size_t kMostProcesses = 64, kMostThreads = 64;

class Explainer {
 public:
  Explainer(Proof* proof, ProcSource* proc, const Family& family, Nanos now) : proof_(*proof), proc_(proc), now_(now) {
    evidence_.judgement = &proof->judgement;
    evidence_.world = proof->world.get();
    evidence_.family = &family;
  }

  Hang explain() {
    hang_.verdict = proof_.verdict;
    find_concerned();
    hang_.seconds_since_progress = to_seconds(now_ - proof_.last_moved);
    for (const RecordedDeath& death : evidence_.family->deaths()) {
      if (is_violent(death)) hang_.deaths.push_back(death);
    }
    for (const JudgedThread& thread : proof_.judgement.threads) add(thread);
    hang_.join = find_join();
    hang_.cause = is_stall() ? find_cause_of_stall(evidence_) : find_cause(evidence_);
    return std::move(hang_);
  }

 private:
  [[nodiscard]] bool is_stall() const { return proof_.verdict == HangVerdict::kStalled; }

  // The processes that are stuck, and those they descend from, which may wait for them. Of a stall: all.
  void find_concerned() {
    for (const auto& [pid, process] : proof_.world->processes()) {
      if (!is_stall() && proof_.judgement.stuck.count(pid) == 0) continue;
      const World::Process* next = &process;
      while (next != nullptr && concerned_.insert(next->pid).second) next = proof_.world->process(next->parent);
    }
  }

  // In the order of the sample: parents before children.
  void add(const JudgedThread& thread) {
    const pid_t pid = thread.sample->pid;
    if (concerned_.count(pid) == 0 || thread.wait.kind == WaitKind::kEnded) return;
    if (hang_.processes.empty() || hang_.processes.back().pid != pid) {
      if (hang_.processes.size() == kMostProcesses) return;
      add_process(*proof_.world->process(pid));
    }
    add_edges(thread);
    HungProcess& process = hang_.processes.back();
    if (process.threads.size() < kMostThreads) process.threads.push_back(describe(thread));
  }

  void add_process(const World::Process& process) {
    HungProcess described;
    described.pid = process.pid;
    described.parent = process.parent;
    described.forked = process.forked;
    described.command = proc_->read(std::to_string(process.pid) + "/cmdline").value_or("");
    while (!described.command.empty() && described.command.back() == '\0') described.command.pop_back();
    std::replace(described.command.begin(), described.command.end(), '\0', ' ');
    if (described.command.empty()) described.command = process.name;
    hang_.processes.push_back(std::move(described));
    for (PythonThread& thread : read_python_stacks(proc_, process.pid).threads) {
      if (!thread.frames.empty()) evidence_.python[thread.tid] = std::move(thread.frames);
    }
    native_ = std::make_unique<NativeStacks>(process.pid);
  }

  HungThread describe(const JudgedThread& thread) {
    const ThreadSample& sample = *thread.sample;
    HungThread described;
    described.tid = sample.tid;
    const auto name = proc_->read(std::to_string(sample.pid) + "/task/" + std::to_string(sample.tid) + "/comm");
    described.name = name.value_or("").substr(0, name.value_or("").find('\n'));
    const bool runs = thread.wait.kind == WaitKind::kRunning;
    const bool stopped = thread.wait.kind == WaitKind::kStopped;
    described.state = runs ? "running" : stopped ? "stopped" : thread.live ? "blocked" : "blocked for ever";
    described.wait.kind = to_string(thread.wait.kind);
    described.wait.timed = thread.wait.timed;
    described.wait.object = thread.wait.object;
    for (const Waker& waker : thread.wait.wakers) {
      described.wait.wakers.push_back(waker.tid != 0 ? waker.tid : waker.pid);
    }
    const auto python = evidence_.python.find(sample.tid);
    if (python != evidence_.python.end()) described.python = python->second;
    NativeStack native = native_->of_thread(sample.tid, sample.call.stack_pointer, sample.call.program_counter);
    described.native = std::move(native.frames);
    described.native_approximate = native.approximate;
    return described;
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

  // The call of the outermost process that has one in Python; else what the outermost process waits for.
  std::optional<WaitingJoin> find_join() const {
    std::optional<WaitingJoin> join;
    for (const HungProcess& process : hang_.processes) {
      for (const HungThread& thread : process.threads) {
        // What a person waits for is in the first thread.
        if (thread.tid != process.pid || (thread.state != "blocked for ever" && !is_stall())) continue;
        const auto named = name_call(thread.python);
        if (join && !named) continue;
        join.emplace();
        join->pid = process.pid;
        join->tid = thread.tid;
        join->waiting_seconds = hang_.seconds_since_progress;
        join->call = named && !named->call.empty() ? named->call : call_of_wait(thread.wait.kind);
        if (!named) continue;
        join->file = named->file;
        join->line = named->line;
        return join;
      }
    }
    return join;
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
  Evidence evidence_;
  Hang hang_;
  std::set<pid_t> concerned_;
  std::unique_ptr<NativeStacks> native_;
};

}  // namespace

Hang explain(Proof* proof, ProcSource* proc, const Family& family, Nanos now) {
  return Explainer(proof, proc, family, now).explain();
}

}  // namespace mprun
