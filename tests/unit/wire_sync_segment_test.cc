// SyncSegment: which deaths it reports, and that nothing a process can write there does it any harm.
#include "sync/sync_segment.h"

#include <gtest/gtest.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <random>
#include <thread>

namespace mprun {
namespace {

class SyncSegmentTest : public testing::Test {
 protected:
  void SetUp() override {
    auto segment = SyncSegment::create();
    ASSERT_TRUE(segment);
    segment_.emplace(std::move(*segment));
  }

  void* place(std::uint64_t offset) { return reinterpret_cast<char*>(segment_->memory()) + offset; }

  // As the extension does it.
  std::uint64_t name(std::uint32_t kind, const char* text) {
    mprun_sync* memory = segment_->memory();
    const std::uint64_t body = memory->end;
    memory->end += 4096;
    mprun_sync_name& entry = memory->names[memory->used];
    entry.kind = kind;
    entry.body = body;
    std::strncpy(static_cast<char*>(entry.name), text, sizeof entry.name - 1);
    ++memory->used;
    return body;
  }

  mprun_sync_lock* lock(const char* text) {
    auto* made = static_cast<mprun_sync_lock*>(place(name(MPRUN_SYNC_LOCK, text)));
    EXPECT_EQ(mprun_sync_make_mutex(&made->mutex), 0);
    return made;
  }

  // A process takes the lock, signs it as worker 3 in task 17, and ends.
  static void die_with(mprun_sync_lock* lock, pid_t pid) {
    const pid_t child = fork();
    if (child == 0) {
      const bool locked = pthread_mutex_lock(&lock->mutex) == 0;
      ++lock->turn;
      lock->holder = {pid, MPRUN_SYNC_WORKER, 3, 1, 17};
      _exit(locked ? 0 : 1);
    }
    int status = -1;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  }

  std::uint64_t offset_of(const void* word) {
    return static_cast<std::uint64_t>(static_cast<const char*>(word) - static_cast<char*>(place(0)));
  }

  std::optional<SyncSegment> segment_;
};

TEST_F(SyncSegmentTest, ReportsOnceWhichProcessDiedWithALock) {
  mprun_sync_lock* first = lock("first");
  lock("second");
  EXPECT_TRUE(segment_->on_death().empty());
  die_with(first, 4711);
  const auto lost = segment_->on_death();
  ASSERT_EQ(lost.size(), 1U);
  EXPECT_EQ(lost[0].name, "first");
  EXPECT_EQ(to_string(lost[0].holder), "worker 3 (pid 4711)");
  EXPECT_EQ(lost[0].holder.task, 17);
  EXPECT_TRUE(segment_->on_death().empty());
}

TEST_F(SyncSegmentTest, ReportsALockThatAnotherHasTakenSince) {
  mprun_sync_lock* taken = lock("taken");
  die_with(taken, 4711);
  ASSERT_EQ(pthread_mutex_lock(&taken->mutex), EOWNERDEAD);
  ++taken->turn;
  taken->dead = taken->holder;
  taken->dead_turn = taken->turn;
  taken->holder = {4712, MPRUN_SYNC_RANK, 0, 0, -1};
  ASSERT_EQ(pthread_mutex_consistent(&taken->mutex), 0);
  const auto lost = segment_->on_death();
  ASSERT_EQ(lost.size(), 1U);
  EXPECT_EQ(lost[0].holder.pid, 4711);
  taken->holder.pid = 0;
  ASSERT_EQ(pthread_mutex_unlock(&taken->mutex), 0);
  EXPECT_TRUE(segment_->on_death().empty());
  die_with(taken, 4713);  // the same lock again
  ASSERT_EQ(segment_->on_death().size(), 1U);
}

TEST_F(SyncSegmentTest, WakesThreadsThatWait) {
  auto* queue = static_cast<mprun_sync_queue*>(place(name(MPRUN_SYNC_QUEUE, "jobs")));
  auto* barrier = static_cast<mprun_sync_barrier*>(place(name(MPRUN_SYNC_BARRIER, "all")));
  mprun_sync_lock* held = lock("held");
  for (std::uint32_t* word :
       {&queue->items, &queue->room, &barrier->generation, reinterpret_cast<std::uint32_t*>(&held->mutex)}) {
    std::atomic<bool> woken = false;
    std::thread sleeper([word, &woken] {
      while (syscall(SYS_futex, word, FUTEX_WAIT, *word, nullptr, nullptr, 0) != 0) {
      }
      woken = true;
    });
    while (!woken) {
      EXPECT_TRUE(segment_->on_death().empty());
      std::this_thread::yield();
    }
    sleeper.join();
  }
}

// The holder of a lock whose word is not marked wakes no thread, so mprun does: for the locks of the job, and for the
// one of the table of names.
TEST_F(SyncSegmentTest, WakesThreadsThatSleepOnAnUnmarkedLock) {
  for (mprun_sync_lock* held : {lock("held"), &segment_->memory()->lock}) {
    auto* word = reinterpret_cast<std::uint32_t*>(&held->mutex);
    *word = 4711;
    std::atomic<bool> done = false, woken = false;
    std::thread sleeper([word, &done, &woken] {
      const timespec longest{10, 0};
      woken = syscall(SYS_futex, word, FUTEX_WAIT, 4711, &longest, nullptr, 0) == 0;
      done = true;
    });
    while (!done) {
      segment_->wake_forgotten();
      std::this_thread::yield();
    }
    sleeper.join();
    EXPECT_TRUE(woken) << offset_of(word);
  }
}

TEST_F(SyncSegmentTest, FindsWaitersThatWereForgotten) {
  auto* queue = static_cast<mprun_sync_queue*>(place(name(MPRUN_SYNC_QUEUE, "jobs")));
  auto* barrier = static_cast<mprun_sync_barrier*>(place(name(MPRUN_SYNC_BARRIER, "all")));
  auto* seat = reinterpret_cast<mprun_sync_seat*>(barrier + 1);
  mprun_sync_lock* held = lock("held");
  auto* word = reinterpret_cast<std::uint32_t*>(&held->mutex);
  const auto is_due = [this](const std::uint32_t* at) { return segment_->find_word(offset_of(at))->is_due; };
  EXPECT_FALSE(is_due(&queue->items));
  queue->first = 4096;
  EXPECT_TRUE(is_due(&queue->items));
  queue->most = queue->count = 3;
  EXPECT_FALSE(is_due(&queue->room));
  queue->count = 2;
  EXPECT_TRUE(is_due(&queue->room));
  barrier->seat_count = 1;
  *reinterpret_cast<std::uint32_t*>(&seat->taken) = 4711;
  EXPECT_FALSE(is_due(&barrier->generation));
  barrier->generation = 1;
  EXPECT_TRUE(is_due(&barrier->generation));
  for (const std::uint32_t value : {0U, 4711U, std::uint32_t{FUTEX_OWNER_DIED | FUTEX_WAITERS}}) {
    *word = value;
    EXPECT_TRUE(is_due(word)) << value;
  }
  *word = 4711U | FUTEX_WAITERS;
  EXPECT_FALSE(is_due(word));
}

TEST_F(SyncSegmentTest, FindsWhatIsWaitedFor) {
  auto* queue = static_cast<mprun_sync_queue*>(place(name(MPRUN_SYNC_QUEUE, "jobs")));
  mprun_sync_lock* held = lock("held");
  ASSERT_EQ(pthread_mutex_lock(&held->mutex), 0);
  held->holder = {getpid(), MPRUN_SYNC_PROCESS, 0, 0, -1};
  const auto word = segment_->find_word(offset_of(held));
  ASSERT_TRUE(word);
  EXPECT_TRUE(word->is_lock);
  EXPECT_EQ(word->name, "held");
  EXPECT_EQ(word->owner, gettid());
  EXPECT_EQ(to_string(word->holder), "process " + std::to_string(getpid()));
  ASSERT_EQ(pthread_mutex_unlock(&held->mutex), 0);
  EXPECT_EQ(segment_->find_word(offset_of(held))->owner, 0);
  const auto items = segment_->find_word(offset_of(&queue->items));
  ASSERT_TRUE(items);
  EXPECT_FALSE(items->is_lock);
  EXPECT_STREQ(sync_kind_name(items->kind), "queue");
  EXPECT_FALSE(segment_->find_word(offset_of(&queue->count)));
  EXPECT_TRUE(segment_->find_word(offset_of(&segment_->memory()->lock))->is_lock);
}

TEST_F(SyncSegmentTest, BelievesNothing) {
  mprun_sync* memory = segment_->memory();
  const std::uint64_t size = memory->size;
  memory->used = 0xffffffffU;
  const std::uint64_t places[] = {
      0, 8, sizeof(mprun_sync) + 1, size, size - 8, size - 64, size + 8, ~0ULL, ~0ULL - 7, 1ULL << 63U};
  std::uint32_t number = 0;
  for (mprun_sync_name& entry : memory->names) {
    std::memset(static_cast<void*>(&entry), 0xff, sizeof entry);
    entry.kind = number % 8;
    entry.body = places[number % std::size(places)];
    ++number;
  }
  EXPECT_TRUE(segment_->on_death().empty());
  for (const std::uint64_t offset : places) EXPECT_FALSE(segment_->find_word(offset));
}

TEST_F(SyncSegmentTest, BecomesAgainWhatItWas) {
  mprun_sync* memory = segment_->memory();
  lock("before");
  const std::vector<char> begin(static_cast<char*>(place(0)), static_cast<char*>(place(memory->end)));
  segment_->renew();
  die_with(static_cast<mprun_sync_lock*>(place(memory->names[0].body)), 4711);
  die_with(lock("since"), 4712);
  EXPECT_EQ(segment_->on_death().size(), 2U);
  const std::uint64_t end = memory->end;
  segment_->renew();
  EXPECT_EQ(std::memcmp(place(0), begin.data(), begin.size()), 0);
  EXPECT_EQ(std::count(static_cast<char*>(place(begin.size())), static_cast<char*>(place(end)), '\0'),
            static_cast<std::ptrdiff_t>(end - begin.size()));
  EXPECT_TRUE(segment_->on_death().empty());
  die_with(lock("since"), 4713);
  EXPECT_EQ(segment_->on_death().size(), 1U) << "it is another lock than the one of before";
}

TEST_F(SyncSegmentTest, LivesThroughNoise) {
  constexpr std::size_t kNoise = 1U << 20U;
  std::mt19937_64 random(4711);
  for (int round = 0; round < 5; ++round) {
    char* at = static_cast<char*>(place(0));
    for (std::size_t i = 0; i < kNoise; i += sizeof(std::uint64_t)) {
      const std::uint64_t value = random() >> (random() % 64);
      std::memcpy(at + i, &value, sizeof value);
    }
    for (mprun_sync_name& entry : segment_->memory()->names) {
      entry.kind = static_cast<std::uint32_t>(random() % 6);
      if (random() % 2 == 0) entry.body = random() % kNoise / 8 * 8;
    }
    EXPECT_LE(segment_->on_death().size(), std::size_t{MPRUN_SYNC_NAMES});
    for (int i = 0; i < 50; ++i) (void)segment_->find_word(random() % kNoise);
  }
}

}  // namespace
}  // namespace mprun
