// Locks that processes share, in shared memory, in the kernel or at a manager. They do not record who holds them: rules
// of the table.
#include <algorithm>
#include <array>

#include "watch/causes/cause_rules.h"
#include "watch/stacks/python_code.h"

namespace mprun {
namespace {

// Queues and pools of multiprocessing and of packages made after it take semaphores that are no locks of the user's.
bool takes_shared_lock(const PythonFrame& frame) {
  constexpr std::array<std::string_view, 3> kQueueing = {"/multiprocessing/", "/loky/", "/billiard/"};
  return frame.function == "SemLock.__enter__" || !is_library_file(frame.file) ||
         std::none_of(kQueueing.begin(), kQueueing.end(),
                      [&](std::string_view folder) { return frame.file.find(folder) != std::string::npos; });
}

// Locks that processes share do not record who holds them, nor does the watch know what was before it began.
std::string or_holder_has_ended(const Evidence& evidence) {
  const auto& deaths = evidence.history->deaths();
  const bool may_have_ended =
      !evidence.history->has_members() || std::any_of(deaths.begin(), deaths.end(), [&](const RecordedDeath& death) {
        return evidence.judgement->stuck.count(death.parent) != 0;
      });
  return may_have_ended ? ", or a process that had it has ended" : "";
}

// Only one worker at a time reads from their queue, or polls it with a limit of time; the others wait for their turn.
bool waits_for_turn_to_read(const Evidence& evidence, const JudgedThread& thread) {
  const auto gets = [&](const JudgedThread& one) {
    return evidence.is_in(one.sample->tid, "/multiprocessing/queues.py", "SimpleQueue.get") ||
           evidence.is_in(one.sample->tid, "/multiprocessing/queues.py", "Queue.get");
  };
  return gets(thread) && find_stuck(evidence, [&](const JudgedThread& other) {
                           const WaitKind kind = other.wait.kind;
                           return other.sample->pid != thread.sample->pid && gets(other) &&
                                  (kind == WaitKind::kPipeRead || kind == WaitKind::kPoll);
                         }) != nullptr;
}

}  // namespace

std::optional<Explanation> manager_lock_owner_died(const Evidence& evidence) {
  const RecordedDeath* dead = find_dead_worker(evidence);
  const JudgedThread* asks =
      find_stuck(evidence, [&](const JudgedThread& thread) { return asks_manager_for_lock(evidence, thread); });
  if (dead == nullptr || asks == nullptr) return std::nullopt;
  return Explanation{thread_text(*asks) +
                     " waits for a lock of a manager, and every process that could release it waits itself or has "
                     "ended: " +
                     end_text(*dead) + ", and may have had it"};
}

// A semaphore of System V has no owner either, but the kernel knows which process changed it last.
std::optional<Explanation> semaphore_user_died(const Evidence& evidence) {
  const RecordedDeath* dead = find_dead_worker(evidence);
  if (dead == nullptr) return std::nullopt;
  const JudgedThread* down = find_stuck(evidence, [dead](const JudgedThread& thread) {
    return thread.wait.kind == WaitKind::kSemaphore && thread.wait.last_user == dead->pid;
  });
  if (down == nullptr) return std::nullopt;
  return Explanation{thread_text(*down) + " waits for " + down->wait.object +
                     ", which no living process will free: the last one to change it died: " + end_text(*dead)};
}

// A lock in shared memory has no owner that the kernel knows.
std::optional<Explanation> lock_owner_died(const Evidence& evidence) {
  const RecordedDeath* dead = find_dead_worker(evidence);
  const JudgedThread* locked = find_stuck(evidence, [&](const JudgedThread& thread) {
    return thread.wait.kind == WaitKind::kSharedFutex && !thread.wait.of_sync &&
           !waits_for_turn_to_read(evidence, thread);
  });
  if (dead == nullptr || locked == nullptr) return std::nullopt;
  return Explanation{thread_text(*locked) +
                     " waits for a lock in shared memory, and every process that could release it waits itself or has "
                     "ended: " +
                     end_text(*dead) + ", and may have had it"};
}

// A lock of a manager, which serves it to whoever asks.
std::optional<Explanation> manager_lock_cycle(const Evidence& evidence) {
  const JudgedThread* asks =
      find_stuck(evidence, [&](const JudgedThread& thread) { return asks_manager_for_lock(evidence, thread); });
  if (asks == nullptr) return std::nullopt;
  return Explanation{thread_text(*asks) +
                     " waits for a lock of a manager that only processes that wait themselves could free" +
                     or_holder_has_ended(evidence)};
}

// Locks of multiprocessing, which do not record their holder.
std::optional<Explanation> shared_lock_cycle(const Evidence& evidence) {
  std::vector<const JudgedThread*> waiting;
  for (const JudgedThread* thread : chain_of(evidence)) {
    const auto frames = evidence.python.find(thread->sample->tid);
    if (thread->wait.kind != WaitKind::kSharedFutex || thread->wait.of_sync) continue;
    if (frames == evidence.python.end() || !has_own_code(frames->second)) continue;
    if (waits_for_turn_to_read(evidence, *thread)) continue;
    if (takes_shared_lock(frames->second.front())) waiting.push_back(thread);
  }
  if (waiting.empty()) return std::nullopt;
  const std::string who = waiting.size() == 1 ? thread_text(*waiting.front()) + " waits for a lock"
                                              : thread_text(*waiting[0]) + " and " + thread_text(*waiting[1]) +
                                                    (waiting.size() > 2 ? " and others" : "") + " wait for locks";
  return Explanation{who + " of multiprocessing that only processes that wait themselves could free" +
                     or_holder_has_ended(evidence)};
}

}  // namespace mprun
