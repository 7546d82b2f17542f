// Waits with a time limit, and loops that sleep, which are judged as if they had no limit: because of a library that
// waits for the same again, or under assumptions.
#include <fcntl.h>

#include <algorithm>
#include <array>

#include "watch/judge/library_waits.h"
#include "watch/judge/partners.h"
#include "watch/judge/spinning_calls.h"
#include "watch/judge/time_limit.h"
#include "watch/judge/wait.h"
#include "watch/sample/syscall_table.h"

namespace mprun {
namespace {

// Whether an event loop waits for as long as it ever does, and may be taken for one without timers.
bool assumes_no_timer(const ThreadSample& thread, const LibraryPoll& poll, TreeSnapshot* snapshot) {
  if (snapshot->assumptions().no_limit_from == 0 || !is_idle_event_loop(thread, snapshot)) return false;
  snapshot->assume("thread " + std::to_string(thread.tid) + " of process " + std::to_string(thread.pid) +
                   " has no timer for the next " + std::to_string(static_cast<int>(poll.longest)) +
                   " s, and perhaps one for later");
  return true;
}

// A forkserver has reaped a child of the process, and has closed the pipe by which it has told of the end. That stays
// open at the other end (Popen.sentinel) as long as the Process object lives.
bool has_ended_sentinel(const TreeSnapshot::Process& process, TreeSnapshot* snapshot) {
  const auto& children = process.children;
  const bool has_server = std::any_of(children.begin(), children.end(),
                                      [&](pid_t child) { return snapshot->is_forkserver(*snapshot->process(child)); });
  const auto& all = process.descriptors;
  return has_server && std::any_of(all.begin(), all.end(), [&](const Descriptor& descriptor) {
           return descriptor.kind == Descriptor::Kind::kPipe && (descriptor.flags & O_ACCMODE) == O_RDONLY &&
                  !snapshot->is_foreign(descriptor) &&
                  snapshot->pipe_holders(descriptor.inode, TreeSnapshot::End::kWrite).empty();
         });
}

// Whether a child that matters to a poll has ended, and the next look may find it: one of the processes that its object
// has started. After three looks in vain, none does.
bool has_lost_child(const ThreadSample& thread, const LibraryPoll& poll, const TreeSnapshot::Process& process,
                    TreeSnapshot* snapshot) {
  if (!poll.ends_with_child) return false;
  const auto& ended = process.ended_children;
  const bool has_sentinel = has_ended_sentinel(process, snapshot);
  if (ended.empty() && !has_sentinel) return false;
  if (snapshot->assumptions().polls.count(thread.tid) != 0) {
    snapshot->assume("thread " + std::to_string(thread.tid) + " of process " + std::to_string(thread.pid) +
                     " polls, and has found nothing that would let it go on");
    return false;
  }
  if (has_sentinel) return true;
  const auto own = numbers_of_own_processes(snapshot->proc(), thread.pid, thread.tid, poll.function);
  return !own || std::any_of(ended.begin(), ended.end(), [&](pid_t child) { return own->count(child) != 0; });
}

// A library that looks around now and then and waits for the same again: for ever, if nothing has happened.
std::optional<Wait> decode_library_poll(const ThreadSample& thread, const TreeSnapshot::Process& process,
                                        TreeSnapshot* snapshot) {
  const auto endless = without_limit(thread);
  if (!endless) return std::nullopt;
  const PythonThread* python = snapshot->python_thread(thread.pid, thread.tid);
  const LibraryPoll* poll = python == nullptr ? nullptr : find_library_poll(python->frames);
  if (poll == nullptr) return std::nullopt;
  if (poll->has_limit_of_caller &&
      first_default_is_used(snapshot->proc(), thread.pid, thread.tid, poll->function) != true) {
    return std::nullopt;
  }
  if (poll->longest != 0) {
    if (!assumes_no_timer(thread, *poll, snapshot)) return std::nullopt;
  }
  Wait wait = decode_call(*endless, process, snapshot);
  wait.object += std::string(wait.object.empty() ? "" : ", ") + "looking now and then " + poll->looks_at;
  if (has_lost_child(thread, *poll, process, snapshot)) wait.why_live = "a child of its process has ended";
  if (poll->ends_with_parent) {
    add_wakers({{process.parent, 0}}, &wait);
    if (snapshot->process(process.parent) == nullptr) wait.why_live = "the parent of its process is not known";
  }
  return wait;
}

// The monitor of Go's runtime, which wakes up after a minute. Every two minutes it has garbage collected: a finalizer
// may close a file that the program has forgotten.
std::optional<Wait> decode_go_monitor(const ThreadSample& thread, TreeSnapshot* snapshot) {
  if (snapshot->assumptions().no_limit_from == 0 || !is_go_monitor(thread, snapshot)) return std::nullopt;
  snapshot->assume_idle_runtime("the runtime of Go in process " + std::to_string(thread.pid) +
                                " wakes up by itself, and may collect garbage");
  Wait wait{WaitKind::kFutex, "work for Go's monitor", {}, {}};
  add_processes(snapshot->sharing_memory(thread.pid), &wait);
  return wait;
}

// True if the thread still waits for the descriptors of `wait`. Their array is read later than the sample was taken: if
// the poll has expired meanwhile, that memory may hold anything.
bool still_polls(const ThreadSample& thread, const ThreadSample& endless, const TreeSnapshot::Process& process,
                 const Wait& wait, TreeSnapshot* snapshot) {
  const auto line =
      snapshot->proc()->read(std::to_string(thread.pid) + "/task/" + std::to_string(thread.tid) + "/syscall");
  const auto call = line ? parse_syscall(*line) : std::nullopt;
  return call && *call == thread.call && decode_call(endless, process, snapshot).polled == wait.polled;
}

// Whether a process of the tree reads what the process writes to its standard output or error.
bool writes_to_tree(pid_t pid, const TreeSnapshot& snapshot) {
  constexpr std::array kOutputs = {1, 2};
  return std::any_of(kOutputs.begin(), kOutputs.end(), [&](int number) {
    const Descriptor* const output = snapshot.descriptor(pid, number);
    if (output == nullptr || output->kind != Descriptor::Kind::kPipe) {
      return output != nullptr && output->kind == Descriptor::Kind::kSocket;
    }
    return !snapshot.pipe_holders(output->inode, TreeSnapshot::End::kRead).empty();
  });
}

// Whether a thread lets no other one go on between its sleeps or its waits with a limit.
bool only_beats(const ThreadSample& thread, TreeSnapshot* snapshot) {
  const Assumptions& assumptions = snapshot->assumptions();
  const auto beat = assumptions.beats.find(thread.tid);
  if (beat == assumptions.beats.end()) return false;
  const auto is_beat = [&](pid_t tid) { return assumptions.beats.count(tid) != 0; };
  const auto is_of_other = [&](const auto& poll) { return !is_beat(poll.first); };
  const auto& polls = assumptions.polls;
  const bool any_looks = !std::all_of(polls.begin(), polls.end(), is_beat) ||
                         std::any_of(assumptions.child_polls.begin(), assumptions.child_polls.end(), is_of_other) ||
                         std::any_of(assumptions.own_polls.begin(), assumptions.own_polls.end(), is_of_other);
  if (beat->second.changes_variables && any_looks) return false;
  if (beat->second.prints_at_times && writes_to_tree(thread.pid, *snapshot)) return false;
  snapshot->assume_beat("thread " + std::to_string(thread.tid) + " of process " + std::to_string(thread.pid) +
                        " wakes up now and then, and lets no other one go on");
  return true;
}

// A wait with a time limit that may be judged as if it had none.
std::optional<Wait> decode_assumed_endless(const ThreadSample& thread, const TreeSnapshot::Process& process,
                                           TreeSnapshot* snapshot) {
  const auto endless = without_limit(thread);
  if (!endless) return std::nullopt;
  const std::string who = "thread " + std::to_string(thread.tid) + " of process " + std::to_string(thread.pid);
  const Assumptions& assumptions = snapshot->assumptions();
  const auto left = time_left(thread, 0, snapshot);
  if (assumptions.no_limit_from != 0 && left && *left >= assumptions.no_limit_from) {
    snapshot->assume_no_limit(who + " waits with a limit, at most " + std::to_string(*left / kNanosPerSecond) +
                              " s longer");
  } else if (assumptions.polls.count(thread.tid) != 0) {
    snapshot->assume(who + " polls, and has found nothing that would let it go on");
  } else if (!only_beats(thread, snapshot)) {
    return std::nullopt;
  }
  Wait wait = decode_call(*endless, process, snapshot);
  wait.timed = true;
  if (wait.kind != WaitKind::kPoll) return wait;
  if (!still_polls(thread, *endless, process, wait, snapshot)) return std::nullopt;
  if (wait.why_live != kOnlyASignal) return wait;
  // It polls nothing at all, until another thread gives it something to poll.
  wait.why_live.clear();
  add_processes(snapshot->sharing_memory(process.pid), &wait);
  return wait;
}

// A loop that sleeps until a child has ended, as far as can be seen.
std::optional<Wait> decode_child_poll(const ThreadSample& thread, TreeSnapshot* snapshot) {
  const auto poll = snapshot->assumptions().child_polls.find(thread.tid);
  if (poll == snapshot->assumptions().child_polls.end()) return std::nullopt;
  // Whoever hands out work does this too, and looks meanwhile for something that comes from outside.
  snapshot->assume_no_client("thread " + std::to_string(thread.tid) + " of process " + std::to_string(thread.pid) +
                             " sleeps and looks whether process " + std::to_string(poll->second) +
                             " has ended, and perhaps for more");
  Wait wait = wait_for_child(poll->second, *snapshot, thread.pid);
  wait.object += ", looking now and then whether it has ended";
  return wait;
}

// A loop that sleeps until a future is done, or the like, which only threads of its process bring about, or of the
// tree.
std::optional<Wait> decode_own_poll(const ThreadSample& thread, TreeSnapshot* snapshot) {
  const auto poll = snapshot->assumptions().own_polls.find(thread.tid);
  if (poll == snapshot->assumptions().own_polls.end()) return std::nullopt;
  if (poll->second.is_shared && snapshot->may_share_with_outside(thread.pid)) return std::nullopt;
  snapshot->assume("thread " + std::to_string(thread.tid) + " of process " + std::to_string(thread.pid) +
                   " sleeps and looks again for " + poll->second.awaited);
  Wait wait{WaitKind::kTimer, poll->second.awaited + ", looking for it between sleeps", {}, {}};
  add_processes(poll->second.is_shared ? snapshot->everybody() : snapshot->sharing_memory(thread.pid), &wait);
  return wait;
}

// An event loop with nothing to poll, which sleeps for as long as it ever does.
std::optional<Wait> decode_idle_loop(const ThreadSample& thread, const PythonThread& python, TreeSnapshot* snapshot) {
  const LibraryPoll* poll = find_library_poll(python.frames);
  if (poll == nullptr || poll->longest == 0 || !assumes_no_timer(thread, *poll, snapshot)) return std::nullopt;
  Wait wait{WaitKind::kTimer, std::string("a sleep, to look again ") + poll->looks_at, {}, {}};
  add_processes(snapshot->sharing_memory(thread.pid), &wait);
  return wait;
}

// Whether a process of the tree has locked a file, any file; else the lock that is wanted is held outside.
bool holds_file_lock(TreeSnapshot* snapshot) {
  const auto& locks = snapshot->file_locks();
  const bool has_taken = std::any_of(locks.begin(), locks.end(), [snapshot](const FileLock& lock) {
    return !lock.waiting && snapshot->process(lock.holder) != nullptr;
  });
  const auto& all = snapshot->processes();
  return has_taken || std::any_of(all.begin(), all.end(), [](const auto& one) {
           const auto& open = one.second.descriptors;  // its parent may have taken it
           return std::any_of(open.begin(), open.end(), [](const Descriptor& file) { return !file.locks.empty(); });
         });
}

}  // namespace

// A library's loop that sleeps until it finds something, which any process may bring about.
std::optional<Wait> decode_sleep_loop(const ThreadSample& thread, TreeSnapshot* snapshot) {
  if (auto wait = decode_child_poll(thread, snapshot)) return wait;
  if (auto wait = decode_own_poll(thread, snapshot)) return wait;
  if (only_beats(thread, snapshot)) {
    Wait wait{WaitKind::kTimer, "a sleep, again and again", {}, {}};
    add_processes(snapshot->sharing_memory(thread.pid), &wait);
    return wait;
  }
  if (snapshot->assumptions().no_limit_from == 0) return std::nullopt;
  const PythonThread* python = snapshot->python_thread(thread.pid, thread.tid);
  if (python == nullptr) return std::nullopt;
  if (auto wait = decode_idle_loop(thread, *python, snapshot)) return wait;
  const char* const looks_at = looks_between_sleeps(python->frames);
  if (looks_at == nullptr) return std::nullopt;
  if (looks_at == std::string_view(kLooksForFileLock) && !holds_file_lock(snapshot)) return std::nullopt;
  snapshot->assume("thread " + std::to_string(thread.tid) + " of process " + std::to_string(thread.pid) +
                   " sleeps and looks " + looks_at + ", which a process outside may bring about");
  Wait wait{WaitKind::kTimer, std::string("a sleep, to look again ") + looks_at, {}, {}};
  const bool for_ranks = looks_at == std::string_view(kLooksForRanks) || looks_at == std::string_view(kLooksForNodes);
  add_processes(for_ranks ? possible_partners(thread.pid, uses_torch, snapshot) : snapshot->everybody(), &wait);
  return wait;
}

std::optional<Wait> decode_as_endless(const ThreadSample& thread, const TreeSnapshot::Process& process,
                                      TreeSnapshot* snapshot) {
  if (is_idle_libev(thread)) return decode_call(*without_limit(thread), process, snapshot);
  if (auto wait = decode_library_poll(thread, process, snapshot)) return wait;
  if (auto wait = decode_go_monitor(thread, snapshot)) return wait;
  return decode_assumed_endless(thread, process, snapshot);
}

}  // namespace mprun
