// Pipes, FIFOs and sockets between processes that wait: rules of the table.
#include <fcntl.h>

#include <algorithm>

#include "watch/causes/cause_rules.h"
#include "watch/judge/library_waits.h"
#include "watch/sample/syscall_table.h"

namespace mprun {
namespace {

constexpr std::string_view kQueues = "/multiprocessing/queues.py";

bool wakes(const JudgedThread& thread, pid_t pid) {
  return std::any_of(thread.wait.wakers.begin(), thread.wait.wakers.end(),
                     [pid](const Waker& waker) { return waker.pid == pid; });
}

// Polls nothing but a counter, as threads of Ruby do for other threads of the process, or for the end of a child.
bool polls_eventfd(const Evidence& evidence, const JudgedThread& thread) {
  const auto& polled = thread.wait.polled;
  return thread.wait.kind == WaitKind::kPoll && std::all_of(polled.begin(), polled.end(), [&](std::int64_t number) {
           const Descriptor* descriptor = evidence.snapshot->descriptor(thread.sample->pid, number);
           return descriptor != nullptr && descriptor->event_id.has_value();
         });
}

// A worker of a multiprocessing.Pool that waits for its next task: worker() itself calls what waits.
bool is_idle_in_pool(const Evidence& evidence, const JudgedThread& thread) {
  const auto it = evidence.python.find(thread.sample->tid);
  if (it == evidence.python.end()) return false;
  const auto frames = own_frames(it->second);
  const auto waits = std::find_if(frames.begin(), frames.end(), [](const PythonFrame& frame) {
    return frame.function == "SimpleQueue.get" && frame.file.ends_with(kQueues);
  });
  return waits != frames.end() && waits + 1 != frames.end() && (waits + 1)->function == "worker" &&
         (waits + 1)->file.ends_with("/multiprocessing/pool.py");
}

// It waits for whoever wants something of it.
bool serves_multiprocessing(const Evidence& evidence, const JudgedThread& thread) {
  const pid_t tid = thread.sample->tid;
  return evidence.is_in(tid, "/multiprocessing/resource_sharer.py", "") ||
         evidence.is_in(tid, "/multiprocessing/resource_tracker.py", "main") ||
         evidence.snapshot->is_forkserver(*evidence.snapshot->process(thread.sample->pid));
}

bool talks(const Evidence& evidence, const JudgedThread& thread) {
  const WaitKind kind = thread.wait.kind;
  // Who accepts connections waits for all.
  if (call_of(thread.sample->call.number) == Call::kAccept) return false;
  if (serves_multiprocessing(evidence, thread)) return false;
  if (is_idle_in_pool(evidence, thread)) return false;
  return kind == WaitKind::kPipeRead || kind == WaitKind::kPipeWrite || kind == WaitKind::kSocket ||
         kind == WaitKind::kPoll;
}

bool is_pipe(const Evidence& evidence, pid_t pid, const Descriptor& descriptor) {
  return descriptor.kind == Descriptor::Kind::kPipe ||
         (descriptor.kind == Descriptor::Kind::kFile && evidence.snapshot->proc()->named_pipe(pid, descriptor.target));
}

// Whether one of the pipes and FIFOs that it polls is open in this mode only.
bool polls_pipe(const Evidence& evidence, const JudgedThread& thread, std::uint64_t mode) {
  const pid_t pid = thread.sample->pid;
  const auto& polled = thread.wait.polled;
  return std::any_of(polled.begin(), polled.end(), [&](std::int64_t number) {
    const Descriptor* descriptor = evidence.snapshot->descriptor(pid, number);
    return descriptor != nullptr && (descriptor->flags & O_ACCMODE) == mode && is_pipe(evidence, pid, *descriptor);
  });
}

bool waits_to_write(const Evidence& evidence, const JudgedThread& thread) {
  const WaitKind kind = thread.wait.kind;
  return kind == WaitKind::kPipeWrite ||
         (kind == WaitKind::kSocket && call_of(thread.sample->call.number) == Call::kWrite) ||
         (kind == WaitKind::kPoll && polls_pipe(evidence, thread, O_WRONLY));
}

bool waits_to_read(const Evidence& evidence, const JudgedThread& thread) {
  const WaitKind kind = thread.wait.kind;
  return kind == WaitKind::kPipeRead ||
         (kind == WaitKind::kSocket && call_of(thread.sample->call.number) == Call::kRead) ||
         (kind == WaitKind::kPoll && polls_pipe(evidence, thread, O_RDONLY));
}

// Another thread of the process could have written before it began to wait. In Python, one that helps a library or runs
// no Python would not.
bool has_writer_beside(const Evidence& evidence, const JudgedThread& thread) {
  return find_stuck(evidence, [&](const JudgedThread& other) {
           if (other.sample->pid != thread.sample->pid || &other == &thread) return false;
           if (evidence.python.count(thread.sample->tid) == 0) return true;
           const auto frames = evidence.python.find(other.sample->tid);
           return frames != evidence.python.end() && !is_library_helper(frames->second);
         }) != nullptr;
}

bool has_open_too(const Evidence& evidence, const JudgedThread& thread, pid_t pid) {
  if (thread.wait.kind != WaitKind::kPipeRead && thread.wait.kind != WaitKind::kPipeWrite) return true;
  const auto number = static_cast<std::int32_t>(thread.sample->call.arguments[0]);
  const Descriptor* own = evidence.snapshot->descriptor(thread.sample->pid, number);
  const TreeSnapshot::Process* process = evidence.snapshot->process(pid);
  if (own == nullptr || process == nullptr) return false;
  if (own->kind != Descriptor::Kind::kFile || own->terminal || slave_of_terminal(*own)) return true;
  return std::any_of(process->descriptors.begin(), process->descriptors.end(),
                     [own](const Descriptor& descriptor) { return descriptor.target == own->target; });
}

// Whether it reads from what make names in MAKEFLAGS: --jobserver-auth=R,W, or since 4.4 --jobserver-auth=fifo:PATH.
bool waits_for_token(const Evidence& evidence, const JudgedThread& thread) {
  const auto environment = evidence.snapshot->proc()->read(std::to_string(thread.sample->pid) + "/environ");
  const auto number = thread.wait.polled.size() == 1 ? thread.wait.polled.front()
                                                     : static_cast<std::int32_t>(thread.sample->call.arguments[0]);
  const Descriptor* descriptor = evidence.snapshot->descriptor(thread.sample->pid, number);
  const std::string text = environment.value_or("");
  return text.find("--jobserver-auth=" + std::to_string(number) + ',') != std::string::npos ||
         text.find("--jobserver-fds=" + std::to_string(number) + ',') != std::string::npos ||
         (descriptor != nullptr && text.find("--jobserver-auth=fifo:" + descriptor->target) != std::string::npos);
}

// Whether `thread` waits for the process, perhaps through others that wait for an end or a lock.
bool waits_for_process(const Evidence& evidence, const JudgedThread& thread, pid_t pid) {
  std::set<pid_t> reached;
  std::vector<const JudgedThread*> at{&thread};
  while (!at.empty()) {
    const JudgedThread& next = *at.back();
    at.pop_back();
    for (const Waker& waker : next.wait.wakers) {
      if (waker.pid == pid) return true;
      if (waker.pid == thread.sample->pid || !reached.insert(waker.pid).second) continue;
      for (const JudgedThread& other : evidence.judgement->threads) {
        const bool talks = (waits_to_read(evidence, other) || waits_to_write(evidence, other)) &&
                           !evidence.is_in(other.sample->tid, "/multiprocessing/forkserver.py", "main");
        if (other.sample->pid == waker.pid && is_stuck(evidence, other) && !talks) at.push_back(&other);
      }
    }
  }
  return false;
}

// A process that cannot end because it writes into a full pipe, which only processes that wait for its end could read.
const JudgedThread* find_unread_writer(const Evidence& evidence) {
  return find_stuck(evidence, [&](const JudgedThread& thread) {
    if (!waits_to_write(evidence, thread)) return false;
    return find_stuck(evidence, [&](const JudgedThread& other) {
             return other.sample->pid != thread.sample->pid && wakes(thread, other.sample->pid) &&
                    has_open_too(evidence, thread, other.sample->pid) &&
                    (other.wait.kind == WaitKind::kChild || other.wait.kind == WaitKind::kPoll) &&
                    waits_for_process(evidence, other, thread.sample->pid);
           }) != nullptr;
  });
}

// A queue.Queue with a maxsize, for which a thread of a library waits: the callback of a pool.
bool puts_into_own_queue(const Evidence& evidence, const JudgedThread& thread) {
  return thread.wait.kind == WaitKind::kFutex && evidence.is_in(thread.sample->tid, "/queue.py", "Queue.put");
}

}  // namespace

// FIFOs that are opened at one end only.
std::optional<Explanation> fifo_not_opened(const Evidence& evidence) {
  std::string text;
  std::set<pid_t> processes;
  for (const JudgedThread& thread : evidence.judgement->threads) {
    if (!is_stuck(evidence, thread) || call_of(thread.sample->call.number) != Call::kOpen) continue;
    if (!processes.insert(thread.sample->pid).second) continue;
    text += (text.empty() ? "" : "; ") + thread_text(thread) + " waits until a process opens " + thread.wait.object +
            (thread.wait.kind == WaitKind::kPipeRead ? " to write" : " to read");
  }
  if (processes.empty()) return std::nullopt;
  return Explanation{text, {}, processes.size() == 1};
}

std::optional<Explanation> output_not_read(const Evidence& evidence) {
  const JudgedThread* writer = find_unread_writer(evidence);
  if (writer == nullptr) return std::nullopt;
  return Explanation{thread_text(*writer) + " cannot end before its output (" + writer->wait.object +
                     ") is read, and the one who could read it waits for its end"};
}

// A multiprocessing.Queue with a maxsize, or the same for threads.
std::optional<Explanation> queue_full(const Evidence& evidence) {
  const JudgedThread* puts = find_stuck(evidence, [&](const JudgedThread& thread) {
    const auto frames = evidence.python.find(thread.sample->tid);
    if (puts_into_own_queue(evidence, thread)) return true;
    return thread.wait.kind == WaitKind::kSharedFutex && frames != evidence.python.end() && !frames->second.empty() &&
           frames->second.front().function == "Queue.put" && frames->second.front().file.ends_with(kQueues);
  });
  if (puts == nullptr) return std::nullopt;
  return Explanation{thread_text(*puts) + " waits in Queue.put: the queue is full, and every " +
                     (puts_into_own_queue(evidence, *puts) ? "thread" : "process") +
                     " that could take an item out waits"};
}

// A process fills a pipe or a connection that no other process has open.
std::optional<Explanation> own_output_not_read(const Evidence& evidence) {
  const JudgedThread* writer = find_stuck(evidence, [&](const JudgedThread& thread) {
    const auto& readers = thread.wait.wakers;
    return thread.wait.kind != WaitKind::kPoll && waits_to_write(evidence, thread) && !readers.empty() &&
           std::all_of(readers.begin(), readers.end(),
                       [&](const Waker& reader) { return reader.pid == thread.sample->pid; });
  });
  if (writer == nullptr) return std::nullopt;
  return Explanation{thread_text(*writer) + " writes to " + writer->wait.object +
                     ", which is full, and only its own process could read it: all of its threads wait"};
}

// The pipe is one of a multiprocessing.Queue.
std::optional<Explanation> queue_not_drained(const Evidence& evidence) {
  const JudgedThread* writer = find_unread_writer(evidence);
  if (writer == nullptr || !evidence.is_in(writer->sample->tid, kQueues, "")) return std::nullopt;
  auto found = output_not_read(evidence);
  const RecordedDeath* const dead = find_dead_worker(evidence);
  if (found && dead != nullptr) found->text += "; " + end_text(*dead) + ", which may have been meant to read it";
  return found;
}

// A reader waits for the end of a pipe whose writing end it has open itself, or of a pair of sockets, and which no
// other thread was to write.
std::optional<Explanation> pipe_never_closed(const Evidence& evidence) {
  const JudgedThread* reader = find_stuck(evidence, [&](const JudgedThread& thread) {
    const auto& writers = thread.wait.wakers;
    const bool polls_queue =
        thread.wait.kind == WaitKind::kPoll && evidence.is_in(thread.sample->tid, kQueues, "Queue.get");
    return (thread.wait.kind == WaitKind::kPipeRead || thread.wait.kind == WaitKind::kSocket || polls_queue) &&
           waits_to_read(evidence, thread) && writers.size() == 1 && writers[0].pid == thread.sample->pid &&
           !asks_itself(evidence, thread) && !has_writer_beside(evidence, thread);
  });
  if (reader == nullptr) return std::nullopt;
  const RecordedDeath* const dead = find_dead_worker(evidence);
  const std::string end = dead != nullptr && dead->parent == reader->sample->pid ? "; " + end_text(*dead) : "";
  if (evidence.is_in(reader->sample->tid, kQueues, "Queue.get")) {
    return Explanation{thread_text(*reader) + " waits for an item of a queue (" + reader->wait.object +
                           "), and no other process that could put one has it open any more" + end,
                       "put one result for each task, also after an error: what cannot be pickled is not put, and "
                       "reported by a traceback above; get(timeout=...) notices"};
  }
  if (reader->wait.kind == WaitKind::kSocket) {
    return Explanation{
        thread_text(*reader) + " reads from " + reader->wait.object +
            ", and no other process has the other end open: only this one, which waits" + end,
        "close the other end in the process that reads: it then finds the end when its partner has ended"};
  }
  return Explanation{thread_text(*reader) + " reads " + reader->wait.object +
                     " to its end, which never comes: no other process has the writing end open" + end};
}

// The same in Ruby, which polls a pipe before it reads it, and a counter for its own threads.
std::optional<Explanation> ruby_pipe_never_closed(const Evidence& evidence) {
  const JudgedThread* reader = find_stuck(evidence, [&](const JudgedThread& thread) {
    const auto& writers = thread.wait.wakers;
    return thread.wait.kind == WaitKind::kPoll && waits_to_read(evidence, thread) && writers.size() == 1 &&
           writers[0].pid == thread.sample->pid && evidence.is_in_native(thread.sample->tid, "(libruby");
  });
  if (reader == nullptr) return std::nullopt;
  return Explanation{thread_text(*reader) + " reads " + reader->wait.object +
                     " to its end, which never comes: no other process has the writing end open"};
}

// Both read, both write, or each waits to be read before it reads.
std::optional<Explanation> pipe_cycle(const Evidence& evidence) {
  std::map<pid_t, pid_t> waits_for;
  std::map<pid_t, const JudgedThread*> threads;
  for (const JudgedThread& thread : evidence.judgement->threads) {
    const bool is_link = talks(evidence, thread) || thread.wait.kind == WaitKind::kChild;
    if (!is_stuck(evidence, thread) || !is_link || thread.wait.wakers.empty()) continue;
    const auto other = std::find_if(thread.wait.wakers.begin(), thread.wait.wakers.end(),
                                    [&](const Waker& waker) { return waker.pid != thread.sample->pid; });
    const auto known = threads.find(thread.sample->pid);
    const bool is_worse = known != threads.end() && !polls_eventfd(evidence, *known->second);
    if (other == thread.wait.wakers.end() || is_worse) continue;
    waits_for[thread.sample->pid] = other->pid;
    threads[thread.sample->pid] = &thread;
  }
  const auto cycle = find_cycle(waits_for);
  const auto talkers =
      std::count_if(cycle.begin(), cycle.end(), [&](pid_t pid) { return talks(evidence, *threads.at(pid)); });
  if (talkers < 2) return std::nullopt;
  std::string text;
  bool all_write = true;
  for (const pid_t pid : cycle) {
    const JudgedThread& thread = *threads.at(pid);
    text += (text.empty() ? "" : ", ") + thread_text(thread);
    if (!talks(evidence, thread)) {
      text += " waits for the end of " + std::to_string(waits_for.at(pid));
      continue;
    }
    const bool writes = waits_to_write(evidence, thread);
    all_write = all_write && writes;
    text += (writes ? " waits until " : " waits to read from ") + thread.wait.object +
            (writes ? " is read by " : " from ") + std::to_string(waits_for.at(pid));
  }
  return Explanation{
      "processes wait for each other: " + text,
      all_write ? "read what the other side writes before it fills the pipe, by a thread if need be" : "", !all_write};
}

// The parent waits for the end of a child that reads what the parent has not closed.
std::optional<Explanation> input_never_closed(const Evidence& evidence) {
  const JudgedThread* reader = find_stuck(evidence, [&](const JudgedThread& thread) {
    const TreeSnapshot::Process* process = evidence.snapshot->process(thread.sample->pid);
    const pid_t parent = evidence.snapshot->starter_of(*process);
    if (!waits_to_read(evidence, thread) || !wakes(thread, parent)) return false;
    if (!has_open_too(evidence, thread, parent)) return false;
    return find_stuck(evidence, [&](const JudgedThread& other) {
             return other.sample->pid == parent && other.wait.kind == WaitKind::kChild && wakes(other, process->pid);
           }) != nullptr;
  });
  if (reader == nullptr) return std::nullopt;
  const std::string parent =
      std::to_string(evidence.snapshot->starter_of(*evidence.snapshot->process(reader->sample->pid)));
  if (waits_for_token(evidence, *reader)) {
    return Explanation{thread_text(*reader) + " waits for a token of make's jobserver (" + reader->wait.object +
                           "), and no process is left that would give one back but those that wait for its end",
                       "take no more tokens than there are (make -jN has N-1), give each back, and wait for none while "
                       "you have one"};
  }
  return Explanation{thread_text(*reader) + " reads " + reader->wait.object + ", which process " + parent +
                     " has open for writing, and that waits for the end of the reader"};
}

// The thread's process has neither started the other one, nor is it the same.
bool is_distant(const Evidence& evidence, const JudgedThread& thread, pid_t pid) {
  const TreeSnapshot::Process* process = evidence.snapshot->process(pid);
  return process != nullptr && pid != thread.sample->pid &&
         evidence.snapshot->starter_of(*process) != thread.sample->pid;
}

// An event loop of asyncio reads the output of its children, besides a pair of sockets by which threads wake it.
std::optional<Explanation> output_of_loop_is_kept(const Evidence& evidence) {
  for (const JudgedThread& thread : evidence.judgement->threads) {
    if (!is_stuck(evidence, thread) || !is_in_event_loop(evidence, thread)) continue;
    for (const std::int64_t number : thread.wait.polled) {
      const Descriptor* pipe = evidence.snapshot->descriptor(thread.sample->pid, number);
      if (pipe == nullptr || pipe->kind != Descriptor::Kind::kPipe || (pipe->flags & O_ACCMODE) != O_RDONLY) continue;
      const auto writers = evidence.snapshot->pipe_holders(pipe->inode, TreeSnapshot::End::kWrite);
      const bool are_distant = std::all_of(writers.begin(), writers.end(),
                                           [&](pid_t writer) { return is_distant(evidence, thread, writer); });
      if (writers.empty() || !are_distant) continue;
      return Explanation{thread_text(thread) + " reads pipe " + std::to_string(pipe->inode) +
                         " in its event loop to its end, which never comes: process " +
                         std::to_string(writers.front()) + ", which is no child of it, has inherited the writing end"};
    }
  }
  return std::nullopt;
}

// A process reads to its end a pipe that a child of its child has inherited.
std::optional<Explanation> pipe_kept_by_grandchild(const Evidence& evidence) {
  const JudgedThread* reader = find_stuck(evidence, [&](const JudgedThread& thread) {
    const auto& writers = thread.wait.wakers;
    if ((thread.wait.kind != WaitKind::kPipeRead && thread.wait.kind != WaitKind::kPoll) || writers.empty())
      return false;
    return evidence.is_in(thread.sample->tid, "/subprocess.py", "") &&
           std::all_of(writers.begin(), writers.end(),
                       [&](const Waker& waker) { return is_distant(evidence, thread, waker.pid); });
  });
  if (reader == nullptr) return output_of_loop_is_kept(evidence);
  const std::string writer = std::to_string(reader->wait.wakers.front().pid);
  return Explanation{thread_text(*reader) + " reads " + reader->wait.object +
                     " to its end, which never comes: process " + writer +
                     ", which is no child of it, has inherited the writing end"};
}

}  // namespace mprun
