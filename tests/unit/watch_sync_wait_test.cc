// Waits for what the processes of a job share by name: which processes could end them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <cstring>

#include "fake_proc.h"
#include "sync/sync_segment.h"

namespace mprun {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

// Where the processes have mapped the segment.
constexpr std::uint64_t kAt = 0x7e1000000000;

class SyncWaitTest : public testing::Test {
 protected:
  void SetUp() override {
    auto segment = SyncSegment::create();
    ASSERT_TRUE(segment);
    segment_.emplace(std::move(*segment));
    boundary_.sync = &*segment_;
    first_ = name(MPRUN_SYNC_LOCK, "a");
    second_ = name(MPRUN_SYNC_LOCK, "b");
    queue_ = name(MPRUN_SYNC_QUEUE, "jobs") + offsetof(mprun_sync_queue, items);
  }

  std::uint64_t name(std::uint32_t kind, const char* text) {
    mprun_sync* memory = segment_->memory();
    mprun_sync_name& entry = memory->names[memory->used++];
    entry.kind = kind;
    entry.body = memory->end;
    std::strncpy(static_cast<char*>(entry.name), text, sizeof entry.name - 1);
    memory->end += 4096;
    return entry.body;
  }

  void hold(std::uint64_t lock, pid_t tid) {
    auto* held = reinterpret_cast<mprun_sync_lock*>(reinterpret_cast<char*>(segment_->memory()) + lock);
    *reinterpret_cast<std::uint32_t*>(&held->mutex) = static_cast<std::uint32_t>(tid) | FUTEX_WAITERS;
    held->holder = {tid, MPRUN_SYNC_WORKER, 7, 1, 17};
  }

  // With one thread that waits in the segment.
  TreeProcess& waiter(pid_t pid, std::uint64_t offset, std::uint64_t timeout = 0) {
    struct stat info {};
    EXPECT_EQ(stat(segment_->path().c_str(), &info), 0);
    std::array<char, 128> line{};
    std::snprintf(line.data(), line.size(), "7e1000000000-7e2000000000 rw-s 00000000 %02x:%02x %lu /memfd:mprun-sync\n",
                  major(info.st_dev), minor(info.st_dev), static_cast<unsigned long>(info.st_ino));
    TreeProcess& made = proc_.process(pid);
    made.maps = line.data() + made.maps;
    made.thread(pid).call(SYS_futex, {kAt + offset, FUTEX_WAIT, 0, timeout});
    return made;
  }

  Judged judge() {
    std::vector<pid_t> tree;
    for (const auto& [pid, process] : proc_.processes) {
      if (pid != 1) tree.push_back(pid);
    }
    return judged(&proc_, tree, boundary_);
  }

  FakeProc proc_;
  std::optional<SyncSegment> segment_;
  TreeBoundary boundary_;
  std::uint64_t first_ = 0, second_ = 0, queue_ = 0;
};

TEST_F(SyncWaitTest, ProvesACycleOfLocksBesideRunningProcesses) {
  hold(first_, 10);
  hold(second_, 11);
  waiter(10, second_);
  waiter(11, first_);
  proc_.process(12).thread(12).running = true;
  const Judged all = judge();
  EXPECT_THAT(all.stuck, UnorderedElementsAre(10, 11));
  EXPECT_EQ(all.waits.at(10).owner, 11);
  EXPECT_THAT(all.waits.at(10).object, HasSubstr("lock \"b\", held by worker 7 (pid 11)"));
}

TEST_F(SyncWaitTest, WaitsForAHolderThatRuns) {
  hold(first_, 11);
  waiter(10, first_);
  proc_.process(11).thread(11).running = true;
  EXPECT_THAT(judge().stuck, IsEmpty());
}

TEST_F(SyncWaitTest, SaysNothingOfALockWhoseHolderIsNotSeen) {
  hold(first_, 99);
  waiter(10, first_);
  EXPECT_THAT(judge().stuck, IsEmpty());
  hold(first_, 0);  // just released
  EXPECT_THAT(judge().stuck, IsEmpty());
}

TEST_F(SyncWaitTest, ProvesAQueueThatNoProcessWillFill) {
  waiter(10, queue_);
  waiter(11, queue_);
  EXPECT_TRUE(judge().is_deadlock);
  // Whether it has mapped the memory or not, it may act.
  proc_.process(12).thread(12).sleeps();
  EXPECT_THAT(judge().stuck, IsEmpty());
}

TEST_F(SyncWaitTest, ExpectsNothingOfAHostThatOnlyForks) {
  waiter(10, queue_);
  proc_.process(12).thread(12).sleeps();
  boundary_.hosts = {12};
  EXPECT_THAT(judge().stuck, UnorderedElementsAre(10));
  boundary_.may_start = true;  // a worker, for the remaining work
  EXPECT_THAT(judge().stuck, IsEmpty());
  boundary_.may_start = false;
  proc_.processes[12].thread(13).sleeps();  // the user's own, from `setup`
  EXPECT_THAT(judge().stuck, IsEmpty());
}

TEST_F(SyncWaitTest, CallsNoThreadStuckThatIsAboutToBeWoken) {
  auto* queue = reinterpret_cast<mprun_sync_queue*>(reinterpret_cast<char*>(segment_->memory()) + queue_ -
                                                    offsetof(mprun_sync_queue, items));
  waiter(10, queue_);
  EXPECT_TRUE(judge().is_deadlock);
  queue->first = 4096;  // there is an item
  EXPECT_THAT(judge().stuck, IsEmpty());
  queue->first = 0;
  queue->items = 2;  // there has been one since
  EXPECT_THAT(judge().stuck, IsEmpty());
}

TEST_F(SyncWaitTest, LeavesTimedAndUnknownWaitsAlone) {
  waiter(10, queue_, 0x1000);
  EXPECT_THAT(judge().stuck, IsEmpty());
  waiter(10, queue_ + 64);
  EXPECT_THAT(judge().stuck, IsEmpty());
  waiter(10, queue_);
  EXPECT_THAT(judge().stuck, UnorderedElementsAre(10));
  boundary_.sync = nullptr;  // not the job's memory
  EXPECT_THAT(judge().stuck, IsEmpty());
}

}  // namespace
}  // namespace mprun
