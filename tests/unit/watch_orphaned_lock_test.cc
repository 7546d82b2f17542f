// Threads that wait for mutexes no thread can unlock, in processes that run.
#include "watch/judge/orphaned_lock.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fake_proc.h"
#include "watch/judge/orphaned_lock_watch.h"

namespace mprun {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr std::uint64_t kLost = 0x5000, kOtherLost = 0x6000;

/// Process 10, whose first thread sleeps. Thread 20 waits for a mutex of thread 30, which has ended.
FakeProc orphan() {
  FakeProc proc;
  TreeProcess& process = proc.process(10);
  process.thread(10).sleeps();
  process.waits_for_mutex(20, kLost, 30);
  return proc;
}

/// The threads found to be stuck.
std::vector<pid_t> stuck(FakeProc* proc, const TreeBoundary& boundary = {}, pid_t moved = 0) {
  Sample sample = take_sample(proc, process_tree(proc, 1, false));
  for (ThreadSample& thread : sample.threads) thread.moved = thread.tid == moved;
  TreeSnapshot snapshot(proc, &sample, boundary);
  const Judgement judgement = judge(sample, &snapshot);
  std::vector<pid_t> tids;
  for (const OrphanedWait& wait : find_orphaned_waits(judgement, &snapshot)) tids.push_back(wait.tid);
  return tids;
}

TEST(OrphanedLock, IsOneWhoseOwnerHasEnded) {
  FakeProc proc = orphan();
  EXPECT_FALSE(judged(&proc).is_stuck(10));  // the judge does not see it
  EXPECT_THAT(stuck(&proc), ElementsAre(20));
}

TEST(OrphanedLock, IsNoneWhoseOwnerLives) {
  FakeProc proc = orphan();
  proc.processes[10].thread(30).running = true;
  EXPECT_THAT(stuck(&proc), IsEmpty());
  proc.processes[10].threads[30].running = false;
  EXPECT_THAT(stuck(&proc), IsEmpty());
  proc.processes[10].threads[30].sleeps();
  EXPECT_THAT(stuck(&proc), IsEmpty());
  proc.processes[10].threads[30].state = 'Z';
  EXPECT_THAT(stuck(&proc), ElementsAre(20));
}

TEST(OrphanedLock, MayHaveAnOwnerThatWaitsForOne) {
  FakeProc proc = orphan();
  proc.processes[10].waits_for_mutex(21, kOtherLost, 20);
  EXPECT_THAT(stuck(&proc), ElementsAre(20, 21));
}

TEST(OrphanedLock, IsOneOfACycle) {
  FakeProc proc = orphan();
  proc.processes[10].waits_for_mutex(20, kLost, 21);
  proc.processes[10].waits_for_mutex(21, kOtherLost, 20);
  EXPECT_THAT(stuck(&proc), ElementsAre(20, 21));
  proc.processes[10].threads[21].arguments[3] = 0x1000;  // with a time limit
  EXPECT_THAT(stuck(&proc), IsEmpty());
}

TEST(OrphanedLock, BlocksTheThreadThatJoinsItsWaiter) {
  FakeProc proc = orphan();
  TreeProcess& process = proc.processes[10];
  process.map("rw-p", 0, "").put(FakeProc::kMapped, std::uint32_t{20});
  process.thread(10).call(SYS_futex, {FakeProc::kMapped, FUTEX_WAIT_BITSET | FUTEX_CLOCK_REALTIME, 20, 0});
  process.thread(11).sleeps();
  EXPECT_THAT(stuck(&proc), ElementsAre(10, 20));
}

// That one may want the GIL. Waits for other words that processes could share look the same.
TEST(OrphanedLock, IsSuspectedOfAJoinOfAThreadThatWaitsWithALimit) {
  const auto is_suspected = [](std::uint64_t awaited) {
    FakeProc proc;
    TreeProcess& process = proc.process(10);
    process.map("rw-p", 0, "").put(FakeProc::kMapped, static_cast<std::uint32_t>(awaited));
    process.thread(10).call(SYS_futex, {FakeProc::kMapped, FUTEX_WAIT_BITSET | FUTEX_CLOCK_REALTIME, awaited, 0});
    process.thread(20).call(SYS_futex, {kLost, FUTEX_WAIT_BITSET_PRIVATE, 0, 0x1000});
    OrphanedLockWatch watch(&proc);
    watch.consider(take_sample(&proc, {10}), kNanosPerSecond);
    return watch.suspects();
  };
  EXPECT_TRUE(is_suspected(20));
  EXPECT_FALSE(is_suspected(2)) << "no thread has this number";
}

// Another thread may unlock it: with glibc that works.
TEST(OrphanedLock, IsNoneOfItsWaiter) {
  FakeProc proc = orphan();
  proc.processes[10].waits_for_mutex(20, kLost, 20);
  EXPECT_THAT(stuck(&proc), IsEmpty());
  proc.processes[10].waits_for_mutex(21, kOtherLost, 20);
  EXPECT_THAT(stuck(&proc), IsEmpty());
}

TEST(OrphanedLock, IsOfAnOrdinaryKind) {
  for (const int kind : {0, 1, 2, 3}) {
    FakeProc proc = orphan();
    proc.processes[10].waits_for_mutex(20, kLost, 30, kind);
    EXPECT_THAT(stuck(&proc), ElementsAre(20)) << kind;
  }
  for (const int kind : {4, 16, 17, 32, 64, 128, 256, -1}) {
    FakeProc proc = orphan();
    proc.processes[10].waits_for_mutex(20, kLost, 30, kind);
    EXPECT_THAT(stuck(&proc), IsEmpty()) << kind;
  }
}

TEST(OrphanedLock, LooksLikeAMutexInEveryWord) {
  using Words = std::array<std::int32_t, 10>;
  for (const Words& words :
       {Words{0, 0, 30, 1}, Words{1, 0, 30, 1}, Words{2, 1, 30, 1}, Words{2, 0, 0, 1}, Words{2, 0, -30, 1},
        Words{2, 0, 4'194'305, 1}, Words{2, 0, 30, 0}, Words{2, 0, 30, 32'530}, Words{2, 0, 30, 1, 0, 1},
        Words{2, 0, 30, 1, 0, 0, 1}, Words{2, 0, 30, 1, 0, 0, 0, 0, 0, 1}, Words{2, 0, 30, 1, 1}}) {
    FakeProc proc = orphan();
    proc.processes[10].put(kLost, words);
    EXPECT_THAT(stuck(&proc), IsEmpty()) << testing::PrintToString(words);
  }
  FakeProc unread = orphan();
  unread.processes[10].bytes.erase(kLost + 39);
  EXPECT_THAT(stuck(&unread), IsEmpty());
}

TEST(OrphanedLock, IsWaitedForInTheCodeOfGlibcForMutexes) {
  FakeProc by_syscall = orphan();  // which gets the number as an argument
  by_syscall.processes[10].put_code(std::string(architecture::kLockWaitSize, '\0'));
  EXPECT_THAT(stuck(&by_syscall), IsEmpty());
  for (const std::string_view set_private_wait : architecture::kSetPrivateWait) {
    FakeProc inside = orphan();
    inside.processes[10].put_code(std::string(set_private_wait) + std::string(architecture::kSetFutex));
    EXPECT_THAT(stuck(&inside), IsEmpty());
  }
  FakeProc other = orphan();
  other.processes[10].maps.replace(other.processes[10].maps.find("libc.so.6"), 9, "libgomp.so.1");
  EXPECT_THAT(stuck(&other), IsEmpty());
}

TEST(OrphanedLock, IsNoneOfAnotherNamespaceOfProcesses) {
  FakeProc proc = orphan();
  proc.processes[10].namespace_ids = "NSpid:\t10\t1\n";
  EXPECT_THAT(stuck(&proc), IsEmpty());
}

TEST(OrphanedLock, IsNoneOfAProcessThatSharesItsMemory) {
  FakeProc proc = orphan();
  proc.process(40).thread(40).sleeps();
  EXPECT_THAT(stuck(&proc), ElementsAre(20));
  proc.processes[10].memory_of = proc.processes[40].memory_of = 1;
  EXPECT_THAT(stuck(&proc), IsEmpty());
}

TEST(OrphanedLock, IsNoneOfAProcessThatMayActByItself) {
  FakeProc proc = orphan();
  proc.processes[10].catches(SIGUSR1);
  EXPECT_THAT(stuck(&proc), IsEmpty());
  FakeProc father = orphan();
  father.processes[10].catches(SIGCHLD);
  EXPECT_THAT(stuck(&father), ElementsAre(20));
  father.process(40, 10).thread(40).sleeps();
  EXPECT_THAT(stuck(&father), IsEmpty());
}

TEST(OrphanedLock, IsNoneWhereProcessesMayBeHidden) {
  FakeProc proc = orphan();
  proc.hides_others = true;
  proc.tells_children = false;
  EXPECT_THAT(stuck(&proc), IsEmpty());
}

TEST(OrphanedLock, IsWaitedForAllTheTime) {
  FakeProc proc = orphan();
  EXPECT_THAT(stuck(&proc, {}, 20), IsEmpty());
  EXPECT_THAT(stuck(&proc, {}, 10), ElementsAre(20));
}

TEST(OrphanedLock, IsNotReportedOfAProcessThatIsStuckWhole) {
  FakeProc proc = orphan();
  proc.processes[10].thread(10).waits_on(0x7000);
  EXPECT_TRUE(judged(&proc).is_stuck(10));
  EXPECT_THAT(stuck(&proc), IsEmpty());
}

/// Process 10 was forked by thread `forker` of process 5, which was not forked.
FakeProc forked_orphan() {
  FakeProc proc = orphan();
  proc.process(5).thread(5).sleeps();
  proc.processes[10].parent = 5;
  proc.processes[10].forked = true;
  return proc;
}

TreeBoundary forked_by(std::map<pid_t, TreeBoundary::Forker> forkers) {
  TreeBoundary boundary;
  boundary.forker_of = [forkers = std::move(forkers)](pid_t child) -> std::optional<TreeBoundary::Forker> {
    const auto it = forkers.find(child);
    return it == forkers.end() ? std::nullopt : std::optional(it->second);
  };
  return boundary;
}

TEST(OrphanedLock, OfAForkedChildMayBeOfItsFirstThread) {
  FakeProc proc = forked_orphan();
  EXPECT_THAT(stuck(&proc), IsEmpty());                              // it is not known which thread forked it
  EXPECT_THAT(stuck(&proc, forked_by({{10, {5, 30}}})), IsEmpty());  // the owner did
  EXPECT_THAT(stuck(&proc, forked_by({{10, {5, 5}}})), ElementsAre(20));
  proc.processes[10].threads[10].state = 'Z';
  proc.processes[10].thread(11).sleeps();
  EXPECT_THAT(stuck(&proc, forked_by({{10, {5, 30}}})), ElementsAre(20));
}

TEST(OrphanedLock, MayBeInheritedFromAnyAncestor) {
  FakeProc proc = forked_orphan();
  proc.process(4).thread(4).sleeps();
  proc.processes[5].parent = 4;
  const std::map<pid_t, TreeBoundary::Forker> forkers{{10, {5, 5}}, {5, {4, 30}}};
  EXPECT_THAT(stuck(&proc, forked_by(forkers)), IsEmpty());  // even if 5 now runs another program
  proc.processes[5].forked = true;
  EXPECT_THAT(stuck(&proc, forked_by(forkers)), IsEmpty());
  EXPECT_THAT(stuck(&proc, forked_by({{10, {5, 5}}})), IsEmpty());  // it is not known which thread forked 5
  EXPECT_THAT(stuck(&proc, forked_by({{10, {5, 5}}, {5, {4, 4}}})), ElementsAre(20));
  EXPECT_THAT(stuck(&proc, forked_by({{10, {7, 7}}})), IsEmpty());  // its parent has ended
}

TEST(OrphanedLock, IsNoLongerInheritedByAnotherProgram) {
  FakeProc proc = forked_orphan();
  proc.processes[10].forked = false;
  EXPECT_THAT(stuck(&proc, forked_by({{10, {5, 30}}})), ElementsAre(20));
}

TEST(OrphanedLock, IsMarkedInTheJudgement) {
  FakeProc proc = orphan();
  proc.processes[10].waits_for_mutex(21, kOtherLost, 20);
  const Sample sample = take_sample(&proc, process_tree(&proc, 1, false));
  TreeSnapshot snapshot(&proc, &sample, {});
  Judgement judgement = judge(sample, &snapshot);
  judgement.orphaned = find_orphaned_waits(judgement, &snapshot);
  mark_orphaned(&judgement);
  EXPECT_TRUE(judgement.threads[0].live);
  EXPECT_FALSE(judgement.threads[1].live);
  EXPECT_THAT(judgement.threads[1].wait.wakers, IsEmpty());
  EXPECT_THAT(judgement.threads[1].wait.object, testing::HasSubstr("thread 30, which has ended"));
  EXPECT_FALSE(judgement.threads[2].live);
  EXPECT_THAT(judgement.threads[2].wait.wakers, ElementsAre(Waker{10, 20}));
}

}  // namespace
}  // namespace mprun
