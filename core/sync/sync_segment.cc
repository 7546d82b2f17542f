#include "sync/sync_segment.h"

#include <linux/futex.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cstddef>
#include <cstring>

namespace mprun {
namespace {

static_assert(offsetof(mprun_sync_lock, mutex) == 0 && offsetof(pthread_mutex_t, __data.__lock) == 0);

template <typename Word>
Word load(const Word* word) {
  return __atomic_load_n(word, __ATOMIC_ACQUIRE);
}

// Acquire, so that what is loaded next is not older: another process may take the lock and sign it meanwhile.
mprun_sync_holder load(const mprun_sync_holder& holder) {
  return {load(&holder.pid), load(&holder.role), load(&holder.number), load(&holder.attempt), load(&holder.task)};
}

std::uint32_t word_of(const mprun_sync_lock& lock) { return load(reinterpret_cast<const std::uint32_t*>(&lock.mutex)); }

void wake_all(const std::uint32_t* word) { syscall(SYS_futex, word, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0); }

}  // namespace

Result<SyncSegment> SyncSegment::create() {
  rlimit files{};
  std::uint64_t size = MPRUN_SYNC_BYTES;
  constexpr std::uint64_t kPage = 4096;
  if (getrlimit(RLIMIT_FSIZE, &files) == 0) size = std::min<std::uint64_t>(size, files.rlim_cur / kPage * kPage);
  if (size < MPRUN_SYNC_LEAST_BYTES) {
    return internal_error("the limit of file sizes (ulimit -f) leaves no room for the memory that processes share");
  }
  auto memory = SharedMemory::create("mprun-sync", size);
  while (!memory && size / 2 >= MPRUN_SYNC_LEAST_BYTES) {
    size /= 2;
    memory = SharedMemory::create("mprun-sync", size);
  }
  if (!memory) return memory.error();
  SyncSegment segment(std::move(*memory), size);
  if (const int failed = mprun_sync_make(segment.memory(), size); failed != 0) {
    return system_error("cannot make locks between processes", failed);
  }
  return segment;
}

std::string SyncSegment::path() const { return path_of_descriptor(memory_.fd()); }

template <typename Body>
Body* SyncSegment::at(std::uint64_t offset) const {
  if (offset % alignof(std::uint64_t) != 0 || offset < sizeof(mprun_sync) || offset > size_) return nullptr;
  if (size_ - offset < sizeof(Body)) return nullptr;
  return reinterpret_cast<Body*>(static_cast<char*>(memory_.data()) + offset);
}

std::vector<SyncSegment::Named> SyncSegment::names() const {
  std::vector<Named> found;
  const std::uint32_t used = std::min(load(&memory()->used), MPRUN_SYNC_NAMES);
  for (std::uint32_t i = 0; i < used; ++i) {
    const mprun_sync_name& entry = memory()->names[i];
    Named named{load(&entry.kind), load(&entry.body), {}};
    for (const char& byte : entry.name) {
      const char copy = __atomic_load_n(&byte, __ATOMIC_RELAXED);
      if (copy == '\0') break;
      const bool is_text = static_cast<unsigned char>(copy) >= 0x20 && copy != 0x7f;
      named.name += is_text ? copy : '?';
    }
    found.push_back(std::move(named));
  }
  return found;
}

// Whether a seat that follows a barrier is taken for a generation that is over.
bool SyncSegment::is_over(const Named& named, const mprun_sync_barrier& barrier) const {
  const std::uint32_t count = std::min(load(&barrier.seat_count), 4 * MPRUN_SYNC_MOST_PARTIES);
  for (std::uint32_t i = 0; i < count; ++i) {
    const auto* seat = at<mprun_sync_seat>(named.body + sizeof barrier + i * sizeof(mprun_sync_seat));
    if (seat == nullptr) return false;
    const bool taken = (load(reinterpret_cast<const std::uint32_t*>(&seat->taken)) & FUTEX_TID_MASK) != 0;
    if (taken && load(&seat->generation) != load(&barrier.generation)) return true;
  }
  return false;
}

// visit(word, lock, is_due): each word that threads wait for; the lock that it belongs to, if any; whether no wait is
// needed now.
template <typename Visit>
void SyncSegment::visit_words(const Named& named, const Visit& visit) const {
  const auto visit_lock = [&visit](const mprun_sync_lock& lock) {
    const std::uint32_t word = word_of(lock);
    // Without the mark its owner wakes no thread; a thread that is woken sets it again.
    const bool is_due = (word & FUTEX_TID_MASK) == 0 || (word & FUTEX_WAITERS) == 0;
    visit(reinterpret_cast<const std::uint32_t*>(&lock.mutex), &lock, is_due);
  };
  if (named.kind == MPRUN_SYNC_LOCK) {
    if (const auto* lock = at<mprun_sync_lock>(named.body)) visit_lock(*lock);
  } else if (named.kind == MPRUN_SYNC_BARRIER) {
    const auto* barrier = at<mprun_sync_barrier>(named.body);
    if (barrier == nullptr) return;
    visit_lock(barrier->lock);
    visit(&barrier->generation, nullptr, is_over(named, *barrier));
  } else if (named.kind == MPRUN_SYNC_QUEUE) {
    const auto* queue = at<mprun_sync_queue>(named.body);
    if (queue == nullptr) return;
    visit_lock(queue->lock);
    const bool uncounted = (word_of(queue->lock) & FUTEX_OWNER_DIED) != 0;  // the next owner will count
    visit(&queue->items, nullptr, uncounted || load(&queue->first) != 0);
    visit(&queue->room, nullptr, uncounted || load(&queue->count) < load(&queue->most));
  } else if (named.kind == MPRUN_SYNC_DICT) {
    if (const auto* dict = at<mprun_sync_dict>(named.body)) visit_lock(dict->lock);
  }
}

void SyncSegment::wake_forgotten() const {
  if ((word_of(memory()->lock) & FUTEX_WAITERS) == 0) {
    wake_all(reinterpret_cast<const std::uint32_t*>(&memory()->lock.mutex));
  }
  for (const Named& named : names()) {
    visit_words(named, [](const std::uint32_t* word, const mprun_sync_lock* /*lock*/, bool is_due) {
      if (is_due) wake_all(word);
    });
  }
}

std::vector<SyncLoss> SyncSegment::on_death() {
  std::vector<SyncLoss> lost;
  wake_all(reinterpret_cast<const std::uint32_t*>(&memory()->lock.mutex));
  for (const Named& named : names()) {
    visit_words(named, [](const std::uint32_t* word, const mprun_sync_lock*, bool) { wake_all(word); });
    const auto* lock = named.kind == MPRUN_SYNC_LOCK ? at<mprun_sync_lock>(named.body) : nullptr;
    if (lock == nullptr) continue;
    // No process has taken it since; or one has, and has recorded the dead holder.
    const mprun_sync_holder holder = load(lock->holder);
    const mprun_sync_holder dead = load(lock->dead);
    const std::uint64_t turn = load(&lock->turn);
    const std::uint64_t dead_turn = load(&lock->dead_turn);
    const bool is_left = (word_of(*lock) & FUTEX_OWNER_DIED) != 0 && holder.pid > 0;
    const bool was_left = dead_turn != 0 && dead.pid > 0;
    if (!is_left && !was_left) continue;
    const std::uint64_t lost_turn = is_left ? turn : dead_turn - 1;
    const auto [reported, is_new] = reported_.try_emplace(named.body, lost_turn);
    if (!is_new && reported->second == lost_turn) continue;
    reported->second = lost_turn;
    lost.push_back({named.name, is_left ? holder : dead});
  }
  return lost;
}

void SyncSegment::renew() {
  const std::uint64_t used = std::min(load(&memory()->end), size_);
  auto* begin = static_cast<char*>(memory_.data());
  if (first_.empty()) {
    first_.assign(begin, begin + used);
    return;
  }
  if (used > first_.size()) std::memset(begin + first_.size(), 0, used - first_.size());
  std::copy(first_.begin(), first_.end(), begin);
  reported_.clear();
}

std::optional<SyncWord> SyncSegment::find_word(std::uint64_t offset) const {
  const auto offset_of = [this](const std::uint32_t* word) {
    return static_cast<std::uint64_t>(reinterpret_cast<const char*>(word) - static_cast<char*>(memory_.data()));
  };
  std::optional<SyncWord> found;
  const auto take = [&found](const mprun_sync_lock* lock) {
    if (lock == nullptr) return;
    found->is_lock = true;
    const std::uint32_t word = word_of(*lock);
    if ((word & FUTEX_OWNER_DIED) == 0) found->owner = static_cast<pid_t>(word & FUTEX_TID_MASK);
    found->holder = load(lock->holder);
  };
  if (offset == offset_of(reinterpret_cast<const std::uint32_t*>(&memory()->lock.mutex))) {
    found = SyncWord{};
    take(&memory()->lock);
    return found;
  }
  for (const Named& named : names()) {
    visit_words(named, [&](const std::uint32_t* word, const mprun_sync_lock* lock, bool is_due) {
      if (found || offset != offset_of(word)) return;
      found = SyncWord{};
      found->kind = named.kind;
      found->name = named.name;
      found->is_due = is_due;
      found->value = load(word);
      take(lock);
    });
    if (found) break;
  }
  return found;
}

std::string to_string(const mprun_sync_holder& holder) {
  const std::string pid = std::to_string(holder.pid);
  if (holder.role == MPRUN_SYNC_WORKER) return "worker " + std::to_string(holder.number) + " (pid " + pid + ")";
  if (holder.role == MPRUN_SYNC_RANK) return "rank " + std::to_string(holder.number) + " (pid " + pid + ")";
  return "process " + pid;
}

std::string to_string(const SyncLoss& loss) {
  std::string text = to_string(loss.holder) + " ended";
  if (loss.holder.task >= 0 && loss.holder.role != MPRUN_SYNC_RANK) {
    text += " in task " + std::to_string(loss.holder.task);
  }
  return text + " while it held the lock \"" + loss.name + "\"; the next one who asks gets it";
}

const char* sync_kind_name(std::uint32_t kind) {
  switch (kind) {
    case MPRUN_SYNC_COUNTER:
      return "counter";
    case MPRUN_SYNC_LOCK:
      return "lock";
    case MPRUN_SYNC_BARRIER:
      return "barrier";
    case MPRUN_SYNC_QUEUE:
      return "queue";
    case MPRUN_SYNC_DICT:
      return "dict";
    default:
      return "memory";
  }
}

}  // namespace mprun
