// The judge: any thread that a live one may wake is live.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fake_proc.h"

namespace mprun {
namespace {

using testing::IsEmpty;
using testing::UnorderedElementsAre;

TEST(Judge, CallsACycleADeadlock) {
  FakeProc proc;
  proc.process(10).pipe(3, 70, O_RDONLY).pipe(4, 71, O_WRONLY).thread(10).reads(3);
  proc.process(11).pipe(3, 71, O_RDONLY).pipe(4, 70, O_WRONLY).thread(11).reads(3);
  const Judged all = judged(&proc);
  EXPECT_TRUE(all.is_deadlock);
  EXPECT_THAT(all.stuck, UnorderedElementsAre(10, 11));
  EXPECT_THAT(all.live, IsEmpty());
}

TEST(Judge, FollowsChainsToTheLastLiveThread) {
  FakeProc proc;
  constexpr pid_t kFirst = 10, kLast = 40;
  for (pid_t pid = kFirst; pid < kLast; ++pid) {
    proc.process(pid, pid == kFirst ? 1 : pid - 1).thread(pid).waits_for_child(pid + 1);
  }
  proc.process(kLast, kLast - 1).thread(kLast).sleeps();
  EXPECT_THAT(judged(&proc).stuck, IsEmpty());
  proc.processes[kLast].threads[kLast].waits_on(0x5000);
  EXPECT_TRUE(judged(&proc).is_deadlock);
}

TEST(Judge, CallsAProcessLiveIfOneOfItsThreadsIs) {
  FakeProc proc;
  proc.process(10).thread(10).waits_for_child(11);
  proc.process(11, 10).thread(11).waits_on(0x5000);
  proc.processes[10].thread(20).sleeps();
  const Judged all = judged(&proc);
  EXPECT_FALSE(all.is_deadlock);
  EXPECT_THAT(all.stuck, UnorderedElementsAre(11));
  EXPECT_THAT(all.live, UnorderedElementsAre(10));
}

TEST(Judge, SaysNothingOfAnEmptyTreeAndOfEndedProcesses) {
  FakeProc proc;
  EXPECT_FALSE(judged(&proc).is_deadlock);
  proc.process(10).thread(10).state = 'Z';
  Sample sample = take_sample(&proc, {10});
  TreeSnapshot snapshot(&proc, &sample, {});
  EXPECT_FALSE(judge(sample, &snapshot).is_deadlock());
}

// It ran between the samples: through it, others may be woken.
TEST(Judge, CountsThreadsThatMovedAsLive) {
  FakeProc proc;
  proc.process(10).thread(10).waits_for_child(11);
  proc.process(11, 10).thread(11).waits_on(0x5000);
  Sample sample = take_sample(&proc, {10, 11});
  sample.threads[1].moved = true;
  TreeSnapshot snapshot(&proc, &sample, {});
  EXPECT_THAT(judge(sample, &snapshot).stuck, IsEmpty());
}

// Passed on by SCM_RIGHTS, say.
TEST(Judge, CountsWhatAProcessOutsideHoldsTooAsForeign) {
  FakeProc proc;
  proc.process(10).pipe(3, 70, O_RDONLY).pipe(4, 70, O_WRONLY).thread(10).reads(3);
  proc.process(11).eventfd(3, 5).thread(11).reads(3);
  proc.process(20).pipe(3, 71, O_WRONLY).eventfd(4, 6).thread(20);
  const std::vector<pid_t> tree{10, 11};
  EXPECT_THAT(judged(&proc, tree, {}).stuck, UnorderedElementsAre(10, 11));
  proc.processes[20].pipe(5, 70, O_WRONLY);
  EXPECT_THAT(judged(&proc, tree, {}).stuck, UnorderedElementsAre(11));
  proc.processes[20].eventfd(6, 5);
  EXPECT_THAT(judged(&proc, tree, {}).stuck, IsEmpty());
}

}  // namespace
}  // namespace mprun
