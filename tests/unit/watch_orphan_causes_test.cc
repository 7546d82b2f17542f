// Why a thread waits forever for a mutex in a process that runs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cause_evidence.h"

namespace mprun {
namespace {

using testing::HasSubstr;

constexpr std::uint64_t kMutex = 0x5000, kSecondMutex = 0x6000;
constexpr pid_t kWaiter = 4'194'100, kOwner = 4'194'200;

TEST(OrphanCauses, NamesTheThreadThatHasEnded) {
  CauseEvidence evidence;
  evidence.proc.process(kParent).thread(kParent).sleeps();
  evidence.proc.processes[kParent].waits_for_mutex(kWaiter, kMutex, kOwner);
  const HangCause cause = evidence.of_orphaned_lock();
  EXPECT_EQ(cause.id, "mutex-owner-ended");
  EXPECT_THAT(cause.explanation, HasSubstr("thread " + std::to_string(kOwner) + ", which held the mutex"));
  EXPECT_THAT(cause.explanation, HasSubstr("has ended"));
}

TEST(OrphanCauses, KnowsACycle) {
  CauseEvidence evidence;
  evidence.proc.process(kParent).thread(kParent).sleeps();
  evidence.proc.processes[kParent].waits_for_mutex(kWaiter, kMutex, kOwner);
  evidence.proc.processes[kParent].waits_for_mutex(kOwner, kSecondMutex, kWaiter);
  EXPECT_EQ(evidence.of_orphaned_lock().id, "lock-cycle");
}

/// A child of kParent, which has a thread kOwner, waits for a mutex of kOwner and has a second thread that works.
void fork_it(CauseEvidence* evidence) {
  const pid_t child = evidence->alive;
  evidence->proc.process(kParent).thread(kParent).sleeps();
  evidence->proc.processes[kParent].thread(kOwner).sleeps();
  evidence->proc.process(child, kParent).forked = true;
  evidence->proc.processes[child].waits_for_mutex(child, kMutex, kOwner);
  evidence->proc.processes[child].thread(kWaiter).sleeps();
  evidence->forked(child, kParent, 2);
  evidence->boundary.forker_of = [child](pid_t pid) {
    return pid == child ? std::optional(TreeBoundary::Forker{kParent, kParent}) : std::nullopt;
  };
}

TEST(OrphanCauses, KnowsALockThatWasHeldAtFork) {
  CauseEvidence evidence;
  fork_it(&evidence);
  const HangCause cause = evidence.of_orphaned_lock();
  EXPECT_EQ(cause.id, "lock-held-at-fork");
  EXPECT_THAT(cause.explanation, HasSubstr("thread " + std::to_string(kOwner)));
}

// The owner may as well have been a thread of the child.
TEST(OrphanCauses, DoNotBlameTheForkForALockOfAnEndedThread) {
  CauseEvidence evidence;
  fork_it(&evidence);
  evidence.proc.processes[kParent].threads.erase(kOwner);
  EXPECT_EQ(evidence.of_orphaned_lock().id, "mutex-owner-ended");
}

}  // namespace
}  // namespace mprun
