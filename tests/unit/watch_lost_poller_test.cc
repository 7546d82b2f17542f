// Processes that listen to nothing while they wait, by their system calls.
#include "watch/stalls/lost_poller.h"

#include <gtest/gtest.h>
#include <sys/syscall.h>

namespace mprun {
namespace {

constexpr pid_t kPid = 10;
constexpr int kWaitUntil = 0x189;  // FUTEX_WAIT_BITSET | FUTEX_PRIVATE_FLAG | FUTEX_CLOCK_REALTIME

ThreadSample waiting_in(pid_t tid, std::int64_t number, std::uint64_t fourth = 0) {
  ThreadSample thread;
  thread.pid = kPid;
  thread.tid = tid;
  thread.state = 'S';
  thread.call.running = false;
  thread.call.number = number;
  thread.call.arguments[1] = kWaitUntil;
  thread.call.arguments[3] = fourth;
  return thread;
}

/// A main thread that waits with a limit of time, and one that waits for it.
Sample without_poller() {
  Sample sample;
  sample.threads = {waiting_in(kPid, SYS_futex, 0x7000), waiting_in(kPid + 1, SYS_futex)};
  return sample;
}

TEST(LostPoller, IsMissedByAProcessOfWhichAllThreadsWaitForEachOther) {
  EXPECT_EQ(processes_that_poll_nothing(without_poller()), std::set<pid_t>{kPid});
}

TEST(LostPoller, IsThereWhereAThreadWaitsForADescriptor) {
  for (const std::int64_t call : {SYS_epoll_pwait, SYS_ppoll, SYS_read, SYS_accept4}) {
    Sample sample = without_poller();
    sample.threads.push_back(waiting_in(kPid + 2, call));
    EXPECT_TRUE(processes_that_poll_nothing(sample).empty()) << call;
  }
}

TEST(LostPoller, IsNotKnownToBeLostWhileAThreadRunsOrIsHidden) {
  Sample sample = without_poller();
  sample.threads[1].call.running = true;
  EXPECT_TRUE(processes_that_poll_nothing(sample).empty());
  sample.threads[1].state = 'Z';
  EXPECT_EQ(processes_that_poll_nothing(sample), std::set<pid_t>{kPid}) << "it has ended";
  sample = without_poller();
  sample.threads[1].hidden = true;
  EXPECT_TRUE(processes_that_poll_nothing(sample).empty());
}

TEST(LostPoller, IsOfNoInterestToAMainThreadWithoutALimit) {
  Sample sample = without_poller();
  sample.threads[0].call.arguments[3] = 0;
  EXPECT_TRUE(processes_that_poll_nothing(sample).empty());
}

}  // namespace
}  // namespace mprun
