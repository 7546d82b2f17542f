#include "watch/judge/orphaned_lock_watch.h"

#include <linux/futex.h>

#include <algorithm>
#include <unordered_map>

#include "watch/judge/glibc_mutex.h"
#include "watch/sample/syscall_table.h"

namespace mprun {
namespace {

constexpr Nanos kBetween = 300 * kNanosPerMilli;
// What was judged but not proved is judged again after this time.
constexpr Nanos kAgain = 30 * kNanosPerSecond;
// What was reported is proved again after this time: more processes may have come to wait for it.
constexpr Nanos kReportedAgain = 5 * kNanosPerSecond;
constexpr int kMostTries = 5;
// The owners of at most so many mutexes that threads wait for are read.
constexpr std::size_t kMostWaiters = 256;

// Unlike still_part(): other threads may come and go, since they are not the owners that both judgements agree on.
std::unique_ptr<Sample> marked(const Sample& before, std::unique_ptr<Sample> after) {
  std::unordered_map<pid_t, const ThreadSample*> earlier;
  for (const ThreadSample& thread : before.threads) earlier[thread.tid] = &thread;
  for (ThreadSample& thread : after->threads) {
    const auto same = earlier.find(thread.tid);
    if (same == earlier.end()) {
      thread.moved = true;
      continue;
    }
    ThreadSample then = *same->second;
    then.moved = thread.moved;
    thread.moved = then != thread;
  }
  return after;
}

// Threads that wait for the GIL wait on a condition with a time limit; so do many others.
bool may_want_gil(const ThreadSample& thread) {
  return call_of(thread.call.number) == Call::kFutex && thread.call.arguments[3] != 0 &&
         (static_cast<int>(thread.call.arguments[1]) & FUTEX_CMD_MASK) == FUTEX_WAIT_BITSET;
}

}  // namespace

std::set<OrphanedLockWatch::Key> OrphanedLockWatch::suspects_of(const Sample& sample) const {
  constexpr MutexScope kScope = MutexScope::kPrivate;
  std::map<pid_t, Key> waits;  // by thread
  std::set<pid_t> joins, may_want;
  for (const ThreadSample& thread : sample.threads) {
    if (may_want_gil(thread)) may_want.insert(thread.tid);
    if (thread.moved || waits.size() >= kMostWaiters) continue;
    const bool is_mutex = seems_to_wait_for_mutex(thread, kScope);
    const pid_t owner = is_mutex ? owner_of_mutex(proc_, thread, kScope) : joined_thread(proc_, thread);
    if (owner == 0 || owner == thread.tid) continue;
    waits[thread.tid] = {thread.tid, thread.call.arguments[0], owner};
    if (!is_mutex) joins.insert(thread.tid);
  }
  if (waits.empty()) return {};
  std::map<pid_t, pid_t> living;  // the process of each thread
  for (const ThreadSample& thread : sample.threads) {
    if (thread.state != 'Z') living[thread.tid] = thread.pid;
  }
  const auto has_living_owner = [&living](const auto& wait) {
    const auto owner = living.find(std::get<2>(wait.second));
    return owner != living.end() && owner->second == living[wait.first];
  };
  std::erase_if(waits, [&](const auto& wait) { return joins.count(wait.first) != 0 && !has_living_owner(wait); });
  for (std::size_t count = 0; count != waits.size();) {
    count = waits.size();
    std::erase_if(waits, [&](const auto& wait) {
      const pid_t owner = std::get<2>(wait.second);
      return has_living_owner(wait) && waits.count(owner) == 0 && may_want.count(owner) == 0;
    });
  }
  std::set<Key> keys;
  for (const auto& [tid, key] : waits) keys.insert(key);
  return keys;
}

bool OrphanedLockWatch::is_awaited(pid_t tid) const {
  return std::any_of(suspects_.begin(), suspects_.end(), [tid](const Key& key) { return std::get<2>(key) == tid; });
}

void OrphanedLockWatch::consider(const Sample& sample, Nanos now) {
  if (before_ != nullptr) return;
  std::set<Key> suspects = suspects_of(sample);
  if (suspects.empty() || (suspects == suspects_ && now < again_)) return;
  suspects_ = std::move(suspects);
  before_ = std::make_unique<Sample>(sample);
  agreed_.clear();
  tries_ = 0;
  due_ = now + kBetween;
  again_ = now + kAgain;
}

bool OrphanedLockWatch::look(std::unique_ptr<Sample> sample, Nanos now, const Judge& judge) {
  if (!sample->whole) {
    // A thread that could not be read may be the owner.
    if (++tries_ >= kMostTries) drop();
    return false;
  }
  sample = marked(*before_, std::move(sample));
  if (suspects_of(*sample).empty()) {
    drop();
    again_ = 0;
    return false;
  }
  before_ = std::make_unique<Sample>(*sample);
  for (ThreadSample& thread : before_->threads) thread.moved = false;
  due_ = now + kBetween;
  std::vector<OrphanedWait> found = judge(std::move(sample));
  if (found.empty()) {
    drop();
    return false;
  }
  if (agreed_.empty()) {
    agreed_ = std::move(found);
    return false;
  }
  drop();
  if (found != agreed_) {
    again_ = 0;
    return false;
  }
  again_ = now + kReportedAgain;
  bool is_news = false;
  std::map<Key, std::size_t> reported;
  for (const OrphanedWait& wait : found) {
    const Key key{wait.tid, wait.address, wait.owner};
    const auto before = reported_.find(key);
    is_news = is_news || before == reported_.end() || wait.held_up > before->second;
    reported[key] = before == reported_.end() ? wait.held_up : std::max(before->second, wait.held_up);
  }
  reported_ = std::move(reported);
  return is_news;
}

}  // namespace mprun
