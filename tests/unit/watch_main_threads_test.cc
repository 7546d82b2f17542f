// Which processes can never return: those that wait without a limit for what is stuck, up to the root.
#include "watch/judge/main_threads.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fake_proc.h"
#include "watch/judge/orphaned_lock.h"

namespace mprun {
namespace {

using testing::ElementsAre;

constexpr pid_t kRoot = 10, kMiddle = 20, kStuck = 30;

std::set<pid_t> cannot_return(FakeProc* proc, const TreeBoundary& boundary = {}) {
  const Sample sample = take_sample(proc, process_tree(proc, 1, false));
  TreeSnapshot snapshot(proc, &sample, boundary);
  Judgement judgement = judge(sample, &snapshot);
  judgement.orphaned = find_orphaned_waits(judgement, &snapshot);
  mark_orphaned(&judgement);
  return processes_that_cannot_return(judgement, &snapshot);
}

/// The root waits for a middle process, which waits for a stuck one.
FakeProc chain() {
  FakeProc proc;
  proc.process(kRoot).thread(kRoot).waits_for_child(kMiddle);
  proc.process(kMiddle, kRoot).thread(kMiddle).waits_for_child(kStuck);
  proc.process(kStuck, kMiddle).thread(kStuck).waits_on(0x5000);
  return proc;
}

TEST(MainThreads, OfAllProcessesThatWaitWithoutALimitCannotReturn) {
  FakeProc proc = chain();
  EXPECT_THAT(cannot_return(&proc), ElementsAre(kRoot, kMiddle, kStuck));
}

TEST(MainThreads, CountWhateverTheOtherThreadsDo) {
  for (const pid_t busy : {kRoot, kMiddle}) {
    FakeProc proc = chain();
    proc.processes[busy].thread(busy + 1).sleeps();
    EXPECT_THAT(cannot_return(&proc), ElementsAre(kRoot, kMiddle, kStuck)) << busy;
  }
}

TEST(MainThreads, CanReturnAfterALimit) {
  FakeProc proc = chain();
  proc.processes[kMiddle].thread(kMiddle).sleeps();
  EXPECT_THAT(cannot_return(&proc), ElementsAre(kStuck));
  proc = chain();
  proc.processes[kRoot].thread(kRoot).call(SYS_poll, {0x1000, 0, 5000});
  EXPECT_THAT(cannot_return(&proc), ElementsAre(kMiddle, kStuck));
}

TEST(MainThreads, CanReturnForAnotherChild) {
  FakeProc proc = chain();
  proc.processes[kRoot].thread(kRoot).waits_for_child(-1);
  EXPECT_THAT(cannot_return(&proc), ElementsAre(kRoot, kMiddle, kStuck));
  proc.process(40, kRoot).thread(40).sleeps();
  EXPECT_THAT(cannot_return(&proc), ElementsAre(kMiddle, kStuck));
}

TEST(MainThreads, CanReturnFromALockThatAnotherThreadMayLetGo) {
  FakeProc proc = chain();
  proc.processes[kMiddle].thread(kMiddle).waits_on(0x6000);
  proc.processes[kMiddle].thread(kMiddle + 1).sleeps();
  EXPECT_THAT(cannot_return(&proc), ElementsAre(kStuck));
}

TEST(MainThreads, CanReturnWhereASignalIsExpected) {
  FakeProc proc = chain();
  proc.processes[kMiddle].thread(kMiddle + 1).sleeps();
  TreeBoundary boundary;
  boundary.why_alarm_may_come = [](pid_t pid, pid_t) { return pid == kRoot ? "has asked for an alarm" : ""; };
  EXPECT_THAT(cannot_return(&proc, boundary), ElementsAre(kMiddle, kStuck));
}

TEST(MainThreads, ThatHaveEndedLeaveTheirProcessToTheOthers) {
  FakeProc proc = chain();
  proc.processes[kMiddle].thread(kMiddle).state = 'Z';
  proc.processes[kMiddle].thread(kMiddle + 1).sleeps();
  EXPECT_THAT(cannot_return(&proc), ElementsAre(kStuck));
}

TEST(MainThreads, ThatWaitForAnOrphanedLockAndThoseThatWaitForThem) {
  FakeProc proc = chain();
  proc.processes.erase(kStuck);
  proc.processes[kMiddle].waits_for_mutex(kMiddle, 0x5000, 999);
  proc.processes[kMiddle].thread(kMiddle + 1).sleeps();
  EXPECT_THAT(cannot_return(&proc), ElementsAre(kRoot, kMiddle));
}

}  // namespace
}  // namespace mprun
