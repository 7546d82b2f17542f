// What a judgement may assume: waits that are endless, handlers that let no thread continue.
#include "watch/judge/assumptions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>

#include "fake_proc.h"

namespace mprun {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr std::uint64_t kLimitAt = 0x4000;

/// A wait, and what was assumed for it.
struct AssumedWait {
  Wait wait;
  std::vector<std::string> assumed;
};

/// Thread 10 of process 10. `moved`: it has run since the last look.
AssumedWait wait_of_ten(FakeProc* proc, Assumptions assumptions, bool moved = false) {
  Sample sample = take_sample(proc, process_tree(proc, 1, false));
  sample.threads.at(0).moved = moved;
  TreeBoundary boundary;
  boundary.assumptions = std::move(assumptions);
  TreeSnapshot snapshot(proc, &sample, std::move(boundary));
  Wait wait = decode_wait(sample.threads[0], &snapshot);
  return {std::move(wait), snapshot.assumed()};
}

/// Thread 10 waits for a lock, for `seconds` at most.
FakeProc waits_for_seconds(int seconds) {
  FakeProc proc;
  proc.process(10).put(kLimitAt, timespec{seconds, 0});
  proc.processes[10].thread(10).call(SYS_futex, {0x5000, FUTEX_WAIT_PRIVATE, 0, kLimitAt});
  return proc;
}

Assumptions polled_by(pid_t tid) {
  Assumptions assumptions;
  assumptions.polls = {tid};
  return assumptions;
}

TEST(Assumptions, OfAPollMakeItEndless) {
  FakeProc proc = waits_for_seconds(1);
  for (const bool moved : {false, true}) {
    const AssumedWait live = wait_of_ten(&proc, polled_by(11), moved);
    EXPECT_EQ(live.wait.why_live, moved ? "it runs" : "a wait with a time limit");
    EXPECT_THAT(live.assumed, IsEmpty());
    const AssumedWait poll = wait_of_ten(&proc, polled_by(10), moved);
    EXPECT_EQ(poll.wait.kind, WaitKind::kFutex);
    EXPECT_THAT(poll.wait.why_live, IsEmpty());
    EXPECT_TRUE(poll.wait.timed);
    EXPECT_THAT(poll.wait.wakers, ElementsAre(Waker{10, 0}));
    EXPECT_THAT(poll.assumed,
                ElementsAre("thread 10 of process 10 polls, and has found nothing that would let it go on"));
  }
}

// For example a loop that sleeps by poll().
TEST(Assumptions, OfAPollOfNothingLeaveItToItsProcess) {
  FakeProc proc;
  proc.process(10).thread(10).call(SYS_poll, {0, 0, 100});
  EXPECT_FALSE(wait_of_ten(&proc, {}).wait.why_live.empty());
  const Wait wait = wait_of_ten(&proc, polled_by(10)).wait;
  EXPECT_THAT(wait.why_live, IsEmpty());
  EXPECT_THAT(wait.wakers, ElementsAre(Waker{10, 0}));
}

TEST(Assumptions, OfAPollSayNothingOfASleepOrOfTheOutside) {
  FakeProc proc;
  TreeThread& thread = proc.process(10).open(3, "/dev/pts/0").thread(10).sleeps();
  EXPECT_FALSE(wait_of_ten(&proc, polled_by(10), true).wait.why_live.empty());
  proc.processes[10].put(0x9000, std::array<std::int32_t, 2>{3, 1});  // pollfd: for input
  thread.call(SYS_poll, {0x9000, 1, 100});
  EXPECT_FALSE(wait_of_ten(&proc, polled_by(10), true).wait.why_live.empty());
}

// A poll whose array is not there any more when it is read for the first time.
struct ExpiringPoll : FakeProc {
  bool memory(pid_t pid, std::uint64_t address, void* to, std::size_t size) override {
    if (!FakeProc::memory(pid, address, to, size)) return false;
    constexpr std::array<std::int32_t, 2> kGarbage{-1, 0};
    if (address == kArray && !std::exchange(was_read, true)) std::memcpy(to, kGarbage.data(), sizeof kGarbage);
    return true;
  }
  static constexpr std::uint64_t kArray = 0x9000;
  bool was_read = false;
};

TEST(Assumptions, OfAPollAreNoneIfItExpiresMeanwhile) {
  ExpiringPoll proc;
  proc.process(10).pipe(3, 77, O_RDONLY).put(ExpiringPoll::kArray, std::array<std::int32_t, 2>{3, 1});
  proc.processes[10].thread(10).call(SYS_poll, {ExpiringPoll::kArray, 1, 100});
  proc.process(11, 10).pipe(4, 77, O_WRONLY).thread(11).waits_on(0x5000);
  EXPECT_EQ(wait_of_ten(&proc, polled_by(10)).wait.why_live, "a wait with a time limit");
  const Wait later = wait_of_ten(&proc, polled_by(10)).wait;
  EXPECT_THAT(later.why_live, IsEmpty());
  EXPECT_THAT(later.wakers, ElementsAre(Waker{11, 0}));
}

TEST(Assumptions, OfFarLimitsMakeThemNone) {
  Assumptions assumptions;
  assumptions.no_limit_from = 20 * kNanosPerSecond;
  FakeProc far = waits_for_seconds(20);
  const AssumedWait endless = wait_of_ten(&far, assumptions);
  EXPECT_EQ(endless.wait.kind, WaitKind::kFutex);
  EXPECT_THAT(endless.wait.why_live, IsEmpty());
  EXPECT_THAT(endless.assumed, ElementsAre("thread 10 of process 10 waits with a limit, at most 20 s longer"));
  EXPECT_EQ(wait_of_ten(&far, assumptions, true).wait.why_live, "it runs");
  EXPECT_FALSE(wait_of_ten(&far, {}).wait.why_live.empty()) << "no limit is far unless the assumption says so";
  FakeProc near = waits_for_seconds(19);
  EXPECT_EQ(wait_of_ten(&near, assumptions).wait.why_live, "a wait with a time limit");
  EXPECT_THAT(wait_of_ten(&near, assumptions).assumed, IsEmpty());
}

TEST(Assumptions, OfASleepBetweenLooksAtAChildAreThatItLooksForNothingElse) {
  FakeProc proc;
  proc.process(10).pipe(3, 70, O_RDONLY).thread(10).sleeps();
  proc.process(11, 10).pipe(4, 70, O_WRONLY).thread(11).writes(4);
  for (const bool is_assumed : {false, true}) {
    const Sample sample = take_sample(&proc, {10, 11});
    TreeBoundary boundary;
    if (is_assumed) boundary.assumptions.child_polls[10] = 11;
    TreeSnapshot snapshot(&proc, &sample, std::move(boundary));
    EXPECT_EQ(judge(sample, &snapshot).is_deadlock(), is_assumed);
    EXPECT_EQ(snapshot.assumes_no_client(), is_assumed) << "it may be one that hands out work";
  }
}

TEST(Assumptions, OfAThreadThatKeepsAPoolAreThatItLetsNoOtherGoOn) {
  const auto is_stuck = [](bool is_assumed, bool worker_works) {
    FakeProc proc;
    proc.process(10).pipe(4, 70, O_WRONLY).thread(10).waits_on(0x5000);
    proc.processes[10].thread(12).running = true;
    proc.process(20, 10).pipe(3, 70, O_RDONLY).thread(20).reads(3);
    proc.processes[20].thread(20).running = worker_works;
    const Sample sample = take_sample(&proc, {10, 20});
    TreeBoundary boundary;
    if (is_assumed) boundary.assumptions.pool_keepers = {12};
    TreeSnapshot snapshot(&proc, &sample, std::move(boundary));
    return judge(sample, &snapshot).stuck.count(10) != 0;
  };
  EXPECT_FALSE(is_stuck(false, false));
  EXPECT_TRUE(is_stuck(true, false));
  EXPECT_FALSE(is_stuck(true, true)) << "the worker may end, and is replaced";
}

TEST(Assumptions, OfASleepBetweenLooksAtOwnObjectsAreThatOnlyItsProcessEndsIt) {
  FakeProc proc;
  proc.process(10).thread(10).sleeps();
  proc.processes[10].thread(12).waits_on(0x5000);
  for (const bool is_assumed : {false, true}) {
    const Sample sample = take_sample(&proc, {10});
    TreeBoundary boundary;
    if (is_assumed) boundary.assumptions.own_polls[10] = {"a future", false};
    TreeSnapshot snapshot(&proc, &sample, std::move(boundary));
    EXPECT_EQ(judge(sample, &snapshot).is_deadlock(), is_assumed);
    EXPECT_EQ(snapshot.assumed().size(), is_assumed ? 1U : 0U);
    EXPECT_FALSE(snapshot.assumes_no_client() || snapshot.assumes_no_limit());
  }
  proc.processes[10].thread(13).sleeps();
  const Sample sample = take_sample(&proc, {10});
  TreeBoundary boundary;
  boundary.assumptions.own_polls[10] = {"a future", false};
  TreeSnapshot snapshot(&proc, &sample, std::move(boundary));
  EXPECT_FALSE(judge(sample, &snapshot).is_deadlock()) << "a thread may set the future once it has slept";
}

TEST(Assumptions, OfASleepBetweenLooksAtSharedMemoryAreThatOnlyTheTreeEndsIt) {
  FakeProc proc;
  proc.process(10).thread(10).sleeps();
  proc.process(20, 10).thread(20).sleeps();
  for (const bool is_shared : {false, true}) {
    const Sample sample = take_sample(&proc, {10, 20});
    TreeBoundary boundary;
    boundary.assumptions.own_polls[10] = {"another value in shared memory", is_shared};
    TreeSnapshot snapshot(&proc, &sample, std::move(boundary));
    EXPECT_EQ(judge(sample, &snapshot).stuck.count(10), is_shared ? 0U : 1U)
        << "the child may set it once it has slept";
  }
}

TEST(Assumptions, OfASleepBetweenLooksAtSharedMemoryAreNoneIfTheOutsideHasItToo) {
  FakeProc proc;
  proc.process(10).thread(10).sleeps();
  proc.processes[10].maps = "1000-2000 rw-s 00000000 00:01 7 /dev/zero (deleted)\n";
  const auto is_deadlock = [&](bool closed, bool has_memory) {
    const Sample sample = take_sample(&proc, {10});
    TreeBoundary boundary;
    boundary.closed = closed;
    boundary.shares_memory = [has_memory](const Mapping&) { return has_memory; };
    boundary.assumptions.own_polls[10] = {"another value in shared memory", true};
    TreeSnapshot snapshot(&proc, &sample, std::move(boundary));
    return judge(sample, &snapshot).is_deadlock();
  };
  EXPECT_TRUE(is_deadlock(true, true)) << "mprun has started the tree";
  EXPECT_TRUE(is_deadlock(false, false));
  EXPECT_FALSE(is_deadlock(false, true));
}

TEST(Assumptions, OfHandlersAreThatTheyReleaseNoThread) {
  FakeProc proc;
  proc.process(10).catches(SIGUSR1).thread(10).waits_on(0x5000);
  for (const bool is_assumed : {false, true}) {
    const Sample sample = take_sample(&proc, {10});
    TreeBoundary boundary;
    boundary.assumptions.handlers_release_no_thread = is_assumed;
    TreeSnapshot snapshot(&proc, &sample, std::move(boundary));
    EXPECT_EQ(judge(sample, &snapshot).is_deadlock(), is_assumed);
    EXPECT_EQ(snapshot.assumes_no_signal(), is_assumed);
    ASSERT_EQ(snapshot.assumed().size(), is_assumed ? 1U : 0U);
    if (!is_assumed) continue;
    EXPECT_EQ(snapshot.assumed()[0], "process 10 catches signal 10, whose handler may let it go on");
  }
}

TEST(Assumptions, OfHandlersAreNoneWhereThereIsNoHandler) {
  FakeProc proc;
  proc.process(10).catches(SIGCHLD).thread(10).waits_on(0x5000);
  TreeBoundary boundary;
  boundary.assumptions.handlers_release_no_thread = true;
  const Sample sample = take_sample(&proc, {10});
  TreeSnapshot snapshot(&proc, &sample, std::move(boundary));
  EXPECT_FALSE(snapshot.assumes_no_signal());
  EXPECT_THAT(snapshot.assumed(), IsEmpty());
}

TEST(Assumptions, OfAStopAreThatNoProcessOutsideContinuesIt) {
  FakeProc proc;
  proc.process(9).thread(9).call(SYS_wait4, {static_cast<std::uint64_t>(-1)});
  proc.process(10, 9).thread(10).waits_on(0x5000).state = 'T';
  TreeBoundary boundary;
  boundary.assumptions.stopped_stay_stopped = true;
  const auto stops = [&](const TreeBoundary& around) {
    const Sample sample = take_sample(&proc, process_tree(&proc, 1, false));
    TreeSnapshot snapshot(&proc, &sample, around);
    return judge(sample, &snapshot).is_deadlock();
  };
  EXPECT_TRUE(stops(boundary));
  EXPECT_FALSE(stops({})) << "a proof assumes nothing";
  FakeProc all = proc;
  proc.process(11, 9).thread(11).sleeps();
  EXPECT_FALSE(stops(boundary)) << "another process may continue it";
  proc = all;
  proc.processes[10].threads[10].state = 't';
  EXPECT_FALSE(stops(boundary)) << "a debugger does what it likes";
  proc = all;
  proc.processes[10].parent = 1;
  EXPECT_FALSE(stops(boundary)) << "the user has stopped the program, and knows that";
}

}  // namespace
}  // namespace mprun
