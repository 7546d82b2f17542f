// Threads of one process that wait for each other's ends, or in their own event loop: rules of the table.
#include <algorithm>

#include "watch/causes/cause_rules.h"
#include "watch/causes/joins.h"

namespace mprun {
namespace {

bool joins_thread(const Evidence& evidence, const JudgedThread& thread) {
  return evidence.is_in(thread.sample->tid, "/threading.py", "Thread.join");
}

// " at train.py:6", where the user's own code called what waits; empty: not known.
std::string place_text(const Evidence& evidence, const JudgedThread& thread) {
  const auto frames = evidence.python.find(thread.sample->tid);
  const auto named = frames == evidence.python.end() ? std::nullopt : name_call(frames->second);
  return named ? " at " + named->file + ":" + std::to_string(named->line) : "";
}

// All wakers of a read are of its own process, whose other threads wait too.
bool reads_from_itself(const JudgedThread& thread) {
  const auto& wakers = thread.wait.wakers;
  return (thread.wait.kind == WaitKind::kPipeRead || thread.wait.kind == WaitKind::kSocket) && !wakers.empty() &&
         std::all_of(wakers.begin(), wakers.end(), [&](const Waker& waker) { return waker.pid == thread.sample->pid; });
}

}  // namespace

std::optional<Explanation> closed_while_waiting(const Evidence& evidence) {
  const JudgedThread* waits = find_stuck(evidence, [](const JudgedThread& thread) { return thread.wait.closed; });
  if (waits == nullptr) return std::nullopt;
  return Explanation{thread_text(*waits) + " waits" + place_text(evidence, *waits) + " for " + waits->wait.object +
                         ": another thread has closed it, and close() ends no wait that has begun",
                     {},
                     true};
}

// Every thread of a process waits for the end of another one of it, so that some wait for each other.
std::optional<Explanation> threads_join_each_other(const Evidence& evidence) {
  const JudgedThread* first =
      find_stuck(evidence, [&](const JudgedThread& thread) { return joins_thread(evidence, thread); });
  if (first == nullptr) return std::nullopt;
  const pid_t pid = first->sample->pid;
  std::string who;
  int count = 0;
  for (const JudgedThread& thread : evidence.judgement->threads) {
    if (thread.sample->pid != pid) continue;
    if (!joins_thread(evidence, thread)) return std::nullopt;
    if (++count <= 3)
      who += (who.empty() ? "" : ", ") + std::to_string(thread.sample->tid) + place_text(evidence, thread);
  }
  if (count < 2) return std::nullopt;
  return Explanation{"every thread of process " + std::to_string(pid) +
                     " waits for the end of another one (Thread.join), so that some wait for each other: " + who};
}

// A thread reads what only its own process could write, and that waits for the end of the thread.
std::optional<Explanation> reader_is_joined(const Evidence& evidence) {
  const JudgedThread* reader = find_stuck(evidence, reads_from_itself);
  if (reader == nullptr) return std::nullopt;
  const JudgedThread* joins = find_stuck(evidence, [&](const JudgedThread& thread) {
    return thread.sample->pid == reader->sample->pid && joins_thread(evidence, thread);
  });
  if (joins == nullptr) return std::nullopt;
  return Explanation{thread_text(*reader) + " reads " + reader->wait.object +
                         ", of which only its own process has the other end open, and " + thread_text(*joins) +
                         " waits for the end of a thread" + place_text(evidence, *joins),
                     evidence.is_in(reader->sample->tid, "/multiprocessing/queues.py", "Queue.get")
                         ? "put what tells the thread to end, such as None, before you wait for it"
                         : ""};
}

// What runs in an event loop blocks it, until a future is set.
std::optional<Explanation> loop_waits_for_future(const Evidence& evidence) {
  const JudgedThread* waits = find_stuck(evidence, [&](const JudgedThread& thread) {
    const pid_t tid = thread.sample->tid;
    return evidence.is_in(tid, "/asyncio/base_events.py", "BaseEventLoop._run_once") &&
           evidence.is_in(tid, "/concurrent/futures/_base.py", "Future.result");
  });
  // A task of an executor that waits for something else would have set the future.
  const JudgedThread* works = find_stuck(evidence, [&](const JudgedThread& thread) {
    return evidence.is_in(thread.sample->tid, "/concurrent/futures/thread.py", "_WorkItem.run");
  });
  if (waits == nullptr || works != nullptr) return std::nullopt;
  return Explanation{thread_text(*waits) + " waits in its event loop for a future (Future.result" +
                     place_text(evidence, *waits) +
                     "), and the loop runs nothing meanwhile; every thread that could set the future waits, too"};
}

// A loop that sleeps between looks at a future, a thread, a queue or a variable.
std::optional<Explanation> looks_for_own_in_vain(const Evidence& evidence) {
  const auto& polls = evidence.snapshot->assumptions().own_polls;
  const JudgedThread* looks =
      find_stuck(evidence, [&](const JudgedThread& thread) { return polls.count(thread.sample->tid) != 0; });
  if (looks == nullptr) return std::nullopt;
  const OwnPoll& poll = polls.at(looks->sample->tid);
  return Explanation{thread_text(*looks) + " looks again and again" + place_text(evidence, *looks) + " for " +
                         poll.awaited + ", and every thread that could bring that about waits itself, or has ended",
                     {},
                     poll.is_flag};
}

}  // namespace mprun
