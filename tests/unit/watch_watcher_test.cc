// The watcher over a made-up /proc. Its processes have numbers that no real one has, so the meter of activity, which
// reads the real /proc, knows none of them, and samples are taken at every look.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "fake_proc.h"
#include "watch/watcher.h"

namespace mprun {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::UnorderedElementsAre;

constexpr pid_t kParent = 5'000'010, kChild = 5'000'011, kFirst = 5'000'005;  // Linux numbers processes up to 4,194,304

WatchedTree::Deaths no_deaths(pid_t /*parent*/, Nanos /*when*/) { return {}; }

/// kParent waits for its child, which waits forever.
FakeProc stuck_tree() {
  FakeProc proc;
  proc.process(kParent).thread(kParent).waits_for_child(kChild);
  proc.process(kChild, kParent).thread(kChild).waits_on(0x5000);
  return proc;
}

/// Lets it look whenever it wants to, for five seconds; `before_look` receives the number of looks so far.
template <typename Action>
std::optional<Proof> watch(FakeProc* proc, const Action& before_look) {
  Watcher watcher(
      proc, {1, false, 0}, [] { return TreeBoundary(); }, no_deaths);
  Nanos now = kNanosPerSecond;
  const Nanos end = 6 * kNanosPerSecond;
  for (int look = 0; now < end; ++look) {
    before_look(look);
    if (auto proof = watcher.look(now)) return proof;
    EXPECT_GT(watcher.next_look(), now);
    now = watcher.next_look();
  }
  return std::nullopt;
}

TEST(Watcher, ProvesWhatStandsStill) {
  FakeProc proc = stuck_tree();
  const auto proof = watch(&proc, [](int) {});
  ASSERT_TRUE(proof);
  EXPECT_THAT(proof->judgement.stuck, UnorderedElementsAre(kParent, kChild));
  EXPECT_TRUE(proof->judgement.is_deadlock());
}

TEST(Watcher, SparesShortProgramsItsFirstLook) {
  FakeProc proc = stuck_tree();
  const Nanos begun = monotonic_now();
  const Watcher watcher(
      &proc, {1, false, 0}, [] { return TreeBoundary(); }, no_deaths);
  EXPECT_GE(watcher.next_look(), begun + 10 * kNanosPerMilli);
  EXPECT_LE(watcher.next_look(), monotonic_now() + 100 * kNanosPerMilli) << "a hang is proved within a second";
}

TEST(Watcher, ReportsAProofOnce) {
  FakeProc proc = stuck_tree();
  Watcher watcher(
      &proc, {1, false, 0}, [] { return TreeBoundary(); }, no_deaths);
  int proofs = 0;
  for (Nanos now = kNanosPerSecond; now < 9 * kNanosPerSecond; now = watcher.next_look()) {
    if (watcher.look(now)) ++proofs;
  }
  EXPECT_EQ(proofs, 1);
}

TEST(Watcher, SaysNothingOfProcessesThatRunBetweenAllSamples) {
  FakeProc proc = stuck_tree();
  EXPECT_FALSE(watch(&proc, [&](int) { proc.processes[kChild].threads[kChild].runs_once(); }));
}

// Each judgement alone would call the tree stuck: before the last sample it has run again.
TEST(Watcher, NeedsThreeSamplesThatAgree) {
  FakeProc proc = stuck_tree();
  EXPECT_FALSE(watch(&proc, [&](int look) {
    if (look % 3 == 2) proc.processes[kChild].threads[kChild].runs_once();
  }));
}

// No thread runs, and yet each judgement finds other threads stuck than the one before.
TEST(Watcher, NeedsTwoJudgementsThatAgree) {
  FakeProc proc;
  proc.process(kParent).thread(kParent).waits_on(0x5000);
  proc.process(kChild).thread(kChild).waits_on(0x6000);
  int asked = 0;
  const auto boundary = [&asked] {
    TreeBoundary facts;
    const bool has_alarm = asked++ % 2 == 0;
    facts.why_alarm_may_come = [has_alarm](pid_t pid, pid_t) {
      return pid == kChild && has_alarm ? "may be ended by its alarm" : "";
    };
    return facts;
  };
  Watcher watcher(&proc, {1, false, 0}, boundary, no_deaths);
  for (Nanos now = kNanosPerSecond; now < 9 * kNanosPerSecond; now = watcher.next_look()) {
    EXPECT_FALSE(watcher.look(now));
  }
  EXPECT_GE(asked, 2);
}

// A wait that only a handler could end still has a cause.
TEST(Watcher, ReportsAStallThatWouldBeProvedButForAHandler) {
  for (const bool sleeps : {false, true}) {
    FakeProc proc = stuck_tree();
    proc.processes[kChild].catches(SIGUSR1);
    if (sleeps) proc.processes[kParent].thread(kParent).sleeps();
    Watcher watcher(
        &proc, {1, false, kNanosPerSecond}, [] { return TreeBoundary(); }, no_deaths);
    std::optional<Proof> proof;
    for (Nanos now = kNanosPerSecond; now < 9 * kNanosPerSecond && !proof; now = watcher.next_look()) {
      proof = watcher.look(now);
    }
    ASSERT_TRUE(proof);
    EXPECT_EQ(proof->verdict, HangVerdict::kStalled);
    EXPECT_EQ(proof->but_for, sleeps ? "" : "process 5000011 catches signal 10, whose handler may let it go on");
  }
}

/// The early report on `proc` within half a minute, with a minute as the limit of a stall. It starts now, for the
/// time limits of the threads. Unawaited parts are left out.
template <typename Action>
std::optional<Proof> early_stall(FakeProc* proc, const Action& before_look, bool stops_last = false) {
  Watcher watcher(
      proc, {1, false, 60 * kNanosPerSecond, stops_last}, [] { return TreeBoundary(); }, no_deaths);
  const Nanos end = monotonic_now() + 30 * kNanosPerSecond;
  for (Nanos now = monotonic_now(); now < end; now = watcher.next_look()) {
    before_look();
    if (auto proof = watcher.look(now); proof && !is_unawaited_part(proof->judgement)) return proof;
  }
  return std::nullopt;
}

TEST(Watcher, ReportsAStopEarlyWhereItIsAskedTo) {
  FakeProc proc = stuck_tree();
  proc.processes[kChild].thread(kChild).state = 'T';
  EXPECT_FALSE(early_stall(&proc, [] {})) << "it may be continued soon";
  const auto proof = early_stall(
      &proc, [] {}, true);
  ASSERT_TRUE(proof);
  EXPECT_EQ(proof->but_for, "process 5000011 may be continued");
}

constexpr std::uint64_t kTimeLimit = 0x4000;

/// kParent polls for its child, which waits forever.
FakeProc polling_tree() {
  FakeProc proc = stuck_tree();
  proc.processes[kParent].maps = kMapsOfPython;
  proc.processes[kParent].put(kTimeLimit, timespec{0, 100'000'000});
  proc.processes[kParent].thread(kParent).call(SYS_futex, {0x5000, FUTEX_WAIT_PRIVATE, 0, kTimeLimit});
  return proc;
}

void wake_often(FakeProc* proc, pid_t tid) { proc->processes[tid].thread(tid).runs += 9; }

TEST(Watcher, ReportsATreeThatOnlyPollsEarly) {
  FakeProc proc = polling_tree();
  const Nanos begin = monotonic_now();
  const auto proof = early_stall(&proc, [&] { wake_often(&proc, kParent); });
  ASSERT_TRUE(proof);
  EXPECT_EQ(proof->verdict, HangVerdict::kStalled);
  EXPECT_TRUE(proof->is_early);
  EXPECT_FALSE(proof->needs_no_signal);
  EXPECT_THAT(proof->judgement.stuck, UnorderedElementsAre(kParent, kChild));
  EXPECT_GE(proof->last_moved, begin) << "when it came to where it is";
  EXPECT_LT(proof->last_moved, begin + 3 * kNanosPerSecond);
  EXPECT_EQ(proof->but_for, "thread 5000010 of process 5000010 polls, and has found nothing that would let it go on");
}

/// kParent waits for its child, which polls; a helper thread of kParent sleeps, and could do anything.
FakeProc tree_with_polling_child() {
  FakeProc proc = stuck_tree();
  proc.processes[kParent].thread(kParent + 100).sleeps();
  proc.processes[kChild].maps = kMapsOfPython;
  proc.processes[kChild].put(kTimeLimit, timespec{0, 100'000'000});
  proc.processes[kChild].thread(kChild).call(SYS_futex, {0x5000, FUTEX_WAIT_PRIVATE, 0, kTimeLimit});
  return proc;
}

TEST(Watcher, ReportsAPartThatIsWaitedForEarly) {
  FakeProc proc = tree_with_polling_child();
  const auto proof = early_stall(&proc, [&] { wake_often(&proc, kChild); });
  ASSERT_TRUE(proof);
  EXPECT_EQ(proof->verdict, HangVerdict::kStalled);
  EXPECT_TRUE(proof->is_early);
  EXPECT_FALSE(proof->judgement.is_deadlock());
  EXPECT_THAT(proof->judgement.stuck, UnorderedElementsAre(kChild));
  EXPECT_EQ(proof->but_for, "thread 5000011 of process 5000011 polls, and has found nothing that would let it go on");
}

TEST(Watcher, SaysNothingEarlyOfAPartThatNoThreadWaitsFor) {
  const auto is_reported = [](const auto& change) {
    FakeProc proc = tree_with_polling_child();
    change(&proc);
    return early_stall(&proc, [&] { wake_often(&proc, kChild); }).has_value();
  };
  EXPECT_TRUE(is_reported([](FakeProc*) {}));
  EXPECT_FALSE(is_reported([](FakeProc* proc) { proc->processes[kParent].thread(kParent).sleeps(); }));
  EXPECT_FALSE(is_reported([](FakeProc* proc) { proc->processes[kParent].thread(kParent).waits_on(0x5000); }));
  EXPECT_FALSE(is_reported([](FakeProc* proc) {
    proc->processes[kParent].pipe(3, 70, O_RDONLY).thread(kParent).reads(3);
    proc->processes[kChild].pipe(4, 70, O_WRONLY);
  })) << "it waits to hear from it, not for its end";
  EXPECT_FALSE(is_reported([](FakeProc* proc) {
    TreeProcess& parent = proc->processes[kParent];
    parent.thread(kParent + 100).waits_for_child(kChild);
    parent.thread(kParent).sleeps();
  })) << "only a helper waits for it";
  EXPECT_FALSE(is_reported([](FakeProc* proc) {
    proc->processes[kParent].thread(kParent).waits_for_child(-1);
    proc->process(kChild + 1, kParent).thread(kChild + 1).sleeps();
  })) << "another child may end";
}

TEST(Watcher, ReportsAPollEarlyBesideAProcessThatRuns) {
  const auto find = [](const auto& before_look) {
    FakeProc proc = tree_with_polling_child();
    proc.processes[kParent].threads.erase(kParent + 100);
    TreeThread& runner = proc.process(kFirst, kParent).thread(kFirst);
    runner.running = true;
    return early_stall(&proc, [&] {
      runner.runs_once();
      wake_often(&proc, kChild);
      before_look(&proc);
    });
  };
  const auto proof = find([](FakeProc*) {});
  ASSERT_TRUE(proof);
  EXPECT_THAT(proof->judgement.stuck, UnorderedElementsAre(kParent, kChild));
  EXPECT_THAT(proof->judgement.live, UnorderedElementsAre(kFirst));
  EXPECT_FALSE(find([](FakeProc* proc) { ++proc->processes[kChild].thread(kChild).stack_pointer; })) << "it moves";
  EXPECT_FALSE(find([](FakeProc* proc) {
    proc->processes[kChild].put(kTimeLimit, timespec{0, 100'000'000}).is_python();
    proc->processes[kChild].pipe(3, 70, O_RDONLY).thread(kChild).call(SYS_poll, {kTimeLimit + 64, 1, 100});
    proc->processes[kChild].put(kTimeLimit + 64, pollfd{3, POLLIN, 0});
    proc->processes[kFirst].pipe(4, 70, O_WRONLY);
  })) << "the one that runs may write";
}

// Between the sample and what is read for its judgement.
TEST(Watcher, ReportsNoStallWhenAProcessEndsWhileTheTreeIsJudged) {
  constexpr Nanos kStall = 5 * kNanosPerSecond;
  enum class Later { kSleeps, kIsZombie, kIsGone };
  for (const Later later : {Later::kSleeps, Later::kIsZombie, Later::kIsGone}) {
    FakeProc proc;
    proc.process(kParent).thread(kParent).waits_for_child(kChild);
    proc.process(kChild, kParent).thread(kChild).sleeps();
    const TreeProcess child = proc.processes[kChild];
    const Nanos begin = monotonic_now();
    Nanos now = begin;
    const auto end_child = [&] {
      if (now > begin + kStall && later == Later::kIsZombie) proc.processes[kChild].thread(kChild).state = 'Z';
      if (now > begin + kStall && later == Later::kIsGone) proc.processes.erase(kChild);
      return TreeBoundary();
    };
    Watcher watcher(&proc, {1, false, kStall}, end_child, no_deaths);
    bool reported = false;
    for (; now < begin + 10 * kNanosPerSecond; now = watcher.next_look()) {
      reported = watcher.look(now).has_value() || reported;
      proc.processes[kChild] = child;  // for the next look, it is still there
    }
    EXPECT_EQ(reported, later == Later::kSleeps);
  }
}

TEST(Watcher, SaysNothingEarlyOfAPollWhileATimeLimitIsNear) {
  FakeProc proc = polling_tree();
  proc.processes[kChild].put(kTimeLimit, timespec{50, 0});
  TreeThread& child = proc.processes[kChild].thread(kChild);
  child.call(SYS_futex, {0x5000, FUTEX_WAIT_PRIVATE, 0, kTimeLimit});
  EXPECT_FALSE(early_stall(&proc, [&] { wake_often(&proc, kParent); }));
  proc.processes[kChild].put(kTimeLimit, timespec{90, 0});
  const auto proof = early_stall(&proc, [&] { wake_often(&proc, kParent); });
  ASSERT_TRUE(proof);
  EXPECT_THAT(proof->but_for, HasSubstr("thread 5000011 of process 5000011 waits with a limit, at most 90 s longer"));
}

TEST(Watcher, SaysNothingEarlyOfAPollThatGetsSomewhere) {
  FakeProc proc = polling_tree();
  TreeThread& poller = proc.processes[kParent].thread(kParent);
  EXPECT_FALSE(early_stall(&proc, [&] {
    wake_often(&proc, kParent);
    ++poller.stack_pointer;
  }));
  EXPECT_FALSE(early_stall(&proc, [&] { poller.runs_once().running = true; }));
}

// gRPC prints a line every three seconds while it waits before a fork. With a limit as short as that, what only polls
// is reported as soon as without one, and ends the program.
TEST(Watcher, ReportsAPollThatPrintsWithAShortLimitToo) {
  for (const Nanos stall : {2 * kNanosPerSecond, 3 * kNanosPerSecond, 4 * kNanosPerSecond}) {
    FakeProc proc = polling_tree();
    Watcher watcher(
        &proc, {1, false, stall}, [] { return TreeBoundary(); }, no_deaths);
    const Nanos begin = monotonic_now();
    std::vector<Proof> proofs;
    for (Nanos now = begin; now < begin + 20 * kNanosPerSecond; now = watcher.next_look()) {
      wake_often(&proc, kParent);
      proc.processes[kParent].io = "rchar: 0\nwchar: " + std::to_string((now - begin) / kNanosPerSecond) + "\n";
      if (auto proof = watcher.look(now)) proofs.push_back(std::move(*proof));
    }
    ASSERT_EQ(proofs.size(), 1);
    EXPECT_TRUE(proofs[0].is_early);
    EXPECT_EQ(proofs[0].is_due, stall <= kEarlyStall);
    EXPECT_THAT(proofs[0].but_for, HasSubstr("polls"));
  }
}

// A loop takes another way through the interpreter now and then.
TEST(Watcher, ReportsAPollAgainOnlyAfterItWasElsewhereForLong) {
  const auto count_reports = [](Nanos away_for) {
    FakeProc proc = polling_tree();
    TreeThread& poller = proc.processes[kParent].thread(kParent);
    Watcher watcher(
        &proc, {1, false, 3600 * kNanosPerSecond}, [] { return TreeBoundary(); }, no_deaths);
    constexpr Nanos kMinute = 60 * kNanosPerSecond;  // a slow machine looks every 15 s
    const Nanos begin = monotonic_now(), leaves = begin + kMinute, returns = leaves + away_for;
    int reports = 0;
    for (Nanos now = begin; now < returns + kMinute; now = watcher.next_look()) {
      wake_often(&proc, kParent);
      if (now >= leaves && now < returns) ++poller.stack_pointer;
      if (watcher.look(now)) ++reports;
    }
    return reports;
  };
  EXPECT_EQ(count_reports(0), 1);
  EXPECT_EQ(count_reports(2 * kNanosPerSecond), 1);
  EXPECT_EQ(count_reports(20 * kNanosPerSecond), 2);
}

// It gets work repeatedly, perhaps from the thread that seems to poll.
TEST(Watcher, SaysNothingEarlyOfAPollWhileAnotherIsWoken) {
  FakeProc proc = polling_tree();
  EXPECT_FALSE(early_stall(&proc, [&] {
    wake_often(&proc, kParent);
    wake_often(&proc, kChild);
  }));
}

TEST(Watcher, ReportsWaitsWithFarLimitsEarly) {
  FakeProc proc = stuck_tree();
  proc.processes[kChild].put(kTimeLimit, timespec{59, 0});
  proc.processes[kChild].thread(kChild).call(SYS_futex, {0x5000, FUTEX_WAIT_PRIVATE, 0, kTimeLimit});
  EXPECT_FALSE(early_stall(&proc, [] {}));
  proc.processes[kChild].put(kTimeLimit, timespec{60, 0});
  const auto proof = early_stall(&proc, [] {});
  ASSERT_TRUE(proof);
  EXPECT_TRUE(proof->is_early);
  EXPECT_EQ(proof->but_for, "thread 5000011 of process 5000011 waits with a limit, at most 60 s longer");
}

TEST(Watcher, SaysEarlyThatAClientCouldHelp) {
  FakeProc proc = stuck_tree();
  proc.processes[kChild].thread(kChild).call(SYS_msgrcv, {7, 0x1000, 8, 0, 0});
  EXPECT_FALSE(early_stall(&proc, [] {})) << "there is no such queue";
  for (const int key : {0, 1}) {
    proc.sysv_queues =
        "key msqid ctime\n" + std::to_string(key) + " 7 " + std::to_string(wall_now() / kNanosPerSecond) + "\n";
    const auto proof = early_stall(&proc, [] {});
    ASSERT_TRUE(proof);
    EXPECT_TRUE(proof->is_early);
    EXPECT_EQ(proof->but_for, "a process outside may use message queue 7");
    EXPECT_EQ(proof->needs_no_client, key != 0);
  }
}

TEST(Watcher, SaysEarlyThatASignalCouldHelp) {
  FakeProc proc = polling_tree();
  proc.processes[kChild].catches(SIGUSR1);
  const auto proof = early_stall(&proc, [&] { wake_often(&proc, kParent); });
  ASSERT_TRUE(proof);
  EXPECT_TRUE(proof->needs_no_signal);
  EXPECT_THAT(proof->but_for, HasSubstr("process 5000011 catches signal 10"));
  EXPECT_THAT(proof->but_for, HasSubstr("polls"));
}

/// Its thread kChild, of kParent, has a name.
class ReactorProc : public FakeProc {
 public:
  std::string name;
  std::optional<std::string> read(const std::string& path) override {
    const bool is_asked = path == std::to_string(kParent) + "/task/" + std::to_string(kChild) + "/comm";
    return is_asked ? name + '\n' : FakeProc::read(path);
  }
};

// Of TensorPipe, which torch.distributed.rpc uses.
TEST(Watcher, ReportsAStallBesideABusyReactor) {
  for (const char* name : {"TP_SHM_reactor", "python3"}) {
    ReactorProc proc;
    proc.name = name;
    proc.process(kParent).thread(kParent).sleeps();
    proc.processes[kParent].thread(kChild).running = true;
    Watcher watcher(
        &proc, {1, false, kNanosPerSecond}, [] { return TreeBoundary(); }, no_deaths);
    std::optional<Proof> proof;
    for (Nanos now = kNanosPerSecond; now < 9 * kNanosPerSecond && !proof; now = watcher.next_look()) {
      proof = watcher.look(now);
    }
    EXPECT_EQ(proof.has_value(), proc.name == "TP_SHM_reactor");
  }
}

/// A process whose program cannot be read, as it has just ended, if its name is empty.
class EndingProc : public FakeProc {
 public:
  std::optional<std::string> link(const std::string& path) override {
    auto target = FakeProc::link(path);
    return target == "" ? std::nullopt : target;
  }
};

// Its children end badly, one after the other.
TEST(Watcher, ReportsAProgramWhoseWorkersDieAndNoShell) {
  const auto is_reported = [](const char* program) {
    EndingProc proc;
    proc.process(kParent).thread(kParent).sleeps();
    proc.processes[kParent].exe = program;
    proc.process(kChild, kParent).thread(kChild).running = true;
    Watcher watcher(
        &proc, {1, false, kNanosPerSecond}, [] { return TreeBoundary(); },
        [](pid_t parent, Nanos) {
          return parent == kParent ? WatchedTree::Deaths{9, 9} : WatchedTree::Deaths();
        });
    for (Nanos now = kNanosPerSecond; now < 9 * kNanosPerSecond; now = watcher.next_look()) {
      if (watcher.look(now)) return true;
    }
    return false;
  };
  EXPECT_TRUE(is_reported("/usr/bin/program"));
  EXPECT_FALSE(is_reported("/usr/bin/dash"));
  EXPECT_FALSE(is_reported(""));
}

TEST(Watcher, ReportsNoStallOfAThreadThatWillWakeUpBeforeLong) {
  const auto is_reported = [](std::int64_t seconds, bool wakes) {
    FakeProc proc;
    proc.process(kParent).put(kTimeLimit, timespec{seconds, 0});
    proc.processes[kParent].thread(kParent).call(SYS_clock_nanosleep, {0, 0, kTimeLimit});
    Watcher watcher(
        &proc, {1, false, kNanosPerSecond}, [] { return TreeBoundary(); }, no_deaths);
    for (Nanos now = kNanosPerSecond; now < 30 * kNanosPerSecond; now = watcher.next_look()) {
      if (wakes) wake_often(&proc, kParent);
      if (watcher.look(now)) return true;
    }
    return false;
  };
  EXPECT_FALSE(is_reported(50, false));
  EXPECT_TRUE(is_reported(500, false)) << "that is as good as for ever";
  EXPECT_TRUE(is_reported(50, true)) << "it has woken up and waits again";
}

TEST(Watcher, CountsWakeUpsOverTheWholeStall) {
  constexpr Nanos kStall = 3 * kNanosPerSecond, kLastWakeUp = 2 * kNanosPerSecond;
  FakeProc proc;
  proc.process(kParent).thread(kParent).sleeps();
  Watcher watcher(
      &proc, {1, false, kStall}, [] { return TreeBoundary(); }, no_deaths);
  std::optional<Proof> proof;
  for (Nanos now = kNanosPerSecond; now < 9 * kNanosPerSecond && !proof; now = watcher.next_look()) {
    if (now < kLastWakeUp) wake_often(&proc, kParent);
    proof = watcher.look(now);
  }
  ASSERT_TRUE(proof);
  EXPECT_GT(proof->wakeups.at(kParent), 0);
}

TEST(Watcher, ReportsNoStallOfAThreadWhoseTimeIsUpJustNow) {
  constexpr Nanos kWakesUp = 2 * kNanosPerSecond + kNanosPerSecond / 2;
  FakeProc proc;
  proc.process(kParent).put(kTimeLimit, timespec{1, 0});
  proc.processes[kParent].thread(kParent).call(SYS_clock_nanosleep, {0, 0, kTimeLimit});
  Watcher watcher(
      &proc, {1, false, kNanosPerSecond}, [] { return TreeBoundary(); }, no_deaths);
  Nanos now = kNanosPerSecond;
  for (; now < kWakesUp; now = watcher.next_look()) EXPECT_FALSE(watcher.look(now)) << now;
  bool is_reported = false;
  for (; now < 9 * kNanosPerSecond && !is_reported; now = watcher.next_look()) {
    is_reported = watcher.look(now).has_value();
  }
  EXPECT_TRUE(is_reported) << "it does not wake up";
}

// A stopped mprun finds its tree unchanged, and perhaps the tree was stopped with it.
TEST(Watcher, CountsNoStallWhileItIsStoppedItself) {
  constexpr Nanos kStall = 10 * kNanosPerSecond;
  FakeProc proc;
  proc.process(kParent).thread(kParent).sleeps();
  Watcher watcher(
      &proc, {1, false, kStall}, [] { return TreeBoundary(); }, no_deaths);
  Nanos now = kNanosPerSecond;
  const auto looks_until = [&](Nanos end) {
    std::optional<Proof> proof;
    for (; now < end && !proof; now = watcher.next_look()) proof = watcher.look(now);
    return proof;
  };
  EXPECT_FALSE(looks_until(5 * kNanosPerSecond));
  now += 60 * kNanosPerSecond;
  EXPECT_FALSE(looks_until(now + kStall - kNanosPerSecond));
  const auto proof = looks_until(now + kStall);
  ASSERT_TRUE(proof);
  EXPECT_EQ(proof->verdict, HangVerdict::kStalled);
}

TEST(Watcher, AsksAboutTheOutsideEveryTime) {
  FakeProc proc = stuck_tree();
  int asked = 0;
  Watcher watcher(
      &proc, {1, false, 0},
      [&asked] {
        TreeBoundary boundary;
        boundary.why_alarm_may_come = [](pid_t pid, pid_t) { return pid == kChild ? "may be ended by its alarm" : ""; };
        ++asked;
        return boundary;
      },
      no_deaths);
  for (Nanos now = kNanosPerSecond; now < 3 * kNanosPerSecond; now = watcher.next_look())
    EXPECT_FALSE(watcher.look(now));
  EXPECT_GE(asked, 1);
}

TEST(Watcher, ReportsEverySampleAndWhatHasEnded) {
  FakeProc proc = stuck_tree();
  constexpr pid_t kEnded = 5'000'012, kStranger = 5'000'030;
  proc.process(kEnded, kParent).thread(kEnded).state = 'Z';
  proc.process(kStranger, 2).thread(kStranger).state = 'Z';
  int samples = 0;
  Watcher watcher(
      &proc, {1, false, 0}, [] { return TreeBoundary(); }, no_deaths,
      [&samples](const Sample& sample) {
        ++samples;
        EXPECT_EQ(sample.threads.size(), 2U);
        EXPECT_EQ(sample.ended, std::vector<pid_t>{kEnded});
      });
  for (Nanos now = kNanosPerSecond; now < 3 * kNanosPerSecond; now = watcher.next_look()) (void)watcher.look(now);
  EXPECT_GE(samples, 3);
}

/// A process that rests: its number is real, so the meter of activity sees it rest.
class Resting {
 public:
  Resting() : pid_(fork()) {
    if (pid_ == 0) {
      for (;;) pause();
    }
    const auto proc = live_proc();
    const std::string path = std::to_string(pid_) + "/syscall";
    for (int tries = 0; tries < 30'000; ++tries) {
      const auto line = parse_syscall(proc->read(path).value_or(""));
      if (line && (line->number == SYS_pause || line->number == SYS_ppoll)) {  // pause(), by either
        runs_ = parse_run_count(proc->read(std::to_string(pid_) + "/schedstat").value_or("")).value_or(0);
        return;
      }
      const timespec moment{0, kNanosPerMilli};
      nanosleep(&moment, nullptr);
    }
    ADD_FAILURE() << "it does not come to rest";
  }
  Resting(const Resting&) = delete;
  Resting& operator=(const Resting&) = delete;
  ~Resting() {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  [[nodiscard]] pid_t pid() const { return pid_; }
  [[nodiscard]] std::uint64_t runs() const { return runs_; }

 private:
  pid_t pid_;
  std::uint64_t runs_ = 0;
};

/// A real process that runs whenever it is asked to.
class Running {
 public:
  Running() {
    auto asked = make_pipe();
    auto answered = make_pipe();
    EXPECT_TRUE(asked && answered);
    pid_ = fork();
    if (pid_ == 0) {
      char byte = 0;
      asked->write.reset();
      while (read(asked->read.get(), &byte, 1) == 1 && write(answered->write.get(), &byte, 1) == 1) {
      }
      _exit(0);
    }
    ask_ = std::move(asked->write);
    answer_ = std::move(answered->read);
  }
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;
  ~Running() {
    ask_.reset();
    waitpid(pid_, nullptr, 0);
  }
  [[nodiscard]] pid_t pid() const { return pid_; }
  void run() {
    char byte = 0;
    EXPECT_EQ(write(ask_.get(), &byte, 1), 1);
    EXPECT_EQ(read(answer_.get(), &byte, 1), 1);
  }

 private:
  pid_t pid_ = 0;
  Fd ask_, answer_;
};

// mprun wakes those that wait for a lock whenever a process ends. The meter of activity sees no move that is older than
// the last sample.
TEST(Watcher, JudgesAgainAfterAMoveBetweenTwoJudgements) {
  const Resting stuck;
  FakeProc proc;
  TreeThread& thread = proc.process(stuck.pid()).thread(stuck.pid()).waits_on(0x5000);
  thread.runs = stuck.runs();
  int judgements = 0;
  const auto boundary = [&] {  // called after the sample
    if (judgements++ == 0) thread.waits_on(0x6000);
    return TreeBoundary();
  };
  Watcher watcher(&proc, {1, false, 0}, boundary, no_deaths);
  std::optional<Proof> proof;
  for (Nanos now = kNanosPerSecond; now < 9 * kNanosPerSecond && !proof; now = watcher.next_look()) {
    proof = watcher.look(now);
  }
  ASSERT_TRUE(proof);
  EXPECT_EQ(proof->judgement.stuck, std::set<pid_t>{stuck.pid()});
}

/// One waits forever, while another runs all the time and has started a third since the sample, or not. What is proved
/// until `end`; samples cost nothing.
std::optional<HangVerdict> verdict_of_part(bool starts_another, Nanos end = 60 * kNanosPerSecond) {
  constexpr pid_t kNew = 5'000'021;
  const Resting stuck;
  Running runner;
  FakeProc proc;
  proc.process(stuck.pid()).thread(stuck.pid()).waits_on(0x5000).runs = stuck.runs();
  TreeThread& runs = proc.process(runner.pid()).thread(runner.pid());
  runs.running = true;
  const auto boundary = [&] {  // called after the sample
    if (starts_another) proc.process(kNew, runner.pid()).thread(kNew).waits_on(0x6000);
    return TreeBoundary();
  };
  Watcher watcher(&proc, {1, false, 0}, boundary, no_deaths);
  const Nanos begin = monotonic_now();
  for (Nanos now = begin + kNanosPerSecond; now < begin + end; now = watcher.next_look()) {
    proc.processes.erase(kNew);
    runner.run();
    runs.runs_once();
    if (const auto proof = watcher.look(now)) return proof->verdict;
  }
  return std::nullopt;
}

TEST(Watcher, ProvesAPartWithinASecondWhileOthersRun) {
  EXPECT_EQ(verdict_of_part(false, 2 * kNanosPerSecond), HangVerdict::kPartialDeadlock);
}

// What the running process passed to the new one could wake the one that seems stuck.
TEST(Watcher, ProvesNoPartWhileProcessesAreStarted) { EXPECT_EQ(verdict_of_part(true), std::nullopt); }

/// What is found of a process that rests for ever, for which an alarm may come for five seconds, and how often the
/// watcher asked about that. `beside`: another one runs all the time. `signal`: it has a handler for this one; 0: none.
struct FoundLater {
  std::optional<Proof> proof;
  int judgements = 0;
};
FoundLater found_without_a_move(Running* beside, int signal = 0, Nanos alarm = 5 * kNanosPerSecond) {
  const Resting stuck;
  FakeProc proc;
  TreeProcess& process = proc.process(stuck.pid());
  process.thread(stuck.pid()).waits_on(0x5000).runs = stuck.runs();
  if (signal != 0) process.catches(signal);
  if (beside != nullptr) proc.process(beside->pid()).thread(beside->pid()).running = true;
  const Nanos begin = monotonic_now();
  Nanos now = begin;
  FoundLater found;
  const auto boundary = [&] {
    ++found.judgements;
    TreeBoundary facts;
    facts.why_alarm_may_come = [may_come = now < begin + alarm](pid_t, pid_t) { return may_come ? "an alarm" : ""; };
    return facts;
  };
  Watcher watcher(&proc, {1, false, 300 * kNanosPerSecond}, boundary, no_deaths);
  for (; now < begin + 60 * kNanosPerSecond && !found.proof; now = watcher.next_look()) {
    if (beside != nullptr) {
      beside->run();
      proc.processes[beside->pid()].threads[beside->pid()].runs_once();
    }
    found.proof = watcher.look(now);
  }
  return found;
}

// A process outside that could have ended a wait may end, and the time of an alarm may pass, without a move in the
// tree.
TEST(Watcher, JudgesAgainWhatStandsStill) {
  const FoundLater found = found_without_a_move(nullptr);
  ASSERT_TRUE(found.proof);
  EXPECT_EQ(found.proof->verdict, HangVerdict::kDeadlock);
}

TEST(Watcher, JudgesAPartAgainThatStandsStill) {
  Running runner;
  const FoundLater found = found_without_a_move(&runner);
  ASSERT_TRUE(found.proof);
  EXPECT_EQ(found.proof->verdict, HangVerdict::kPartialDeadlock);
}

TEST(Watcher, LooksAgainForAnEarlyStallOfWhatStandsStill) {
  const FoundLater found = found_without_a_move(nullptr, SIGUSR1);
  ASSERT_TRUE(found.proof);
  EXPECT_TRUE(found.proof->is_early);
}

TEST(Watcher, JudgesAgainAtMostOnceASecondWhatStandsStill) {
  Running runner;
  for (Running* const beside : {static_cast<Running*>(nullptr), &runner}) {
    const FoundLater found = found_without_a_move(beside, 0, 300 * kNanosPerSecond);
    EXPECT_FALSE(found.proof);
    EXPECT_GE(found.judgements, 2);
    EXPECT_LE(found.judgements, 90) << "in a minute, some of them for early stalls";
  }
}

/// All that is found in a minute of a process that waits for its child, which waits for ever, while another one runs.
/// `change` may change the two.
template <typename Change>
std::vector<Proof> found_beside_runner(const Change& change) {
  const Resting parent, child;
  Running runner;
  FakeProc proc;
  TreeProcess& waits = proc.process(parent.pid());
  waits.thread(parent.pid()).waits_for_child(child.pid()).runs = parent.runs();
  TreeProcess& stuck = proc.process(child.pid(), parent.pid());
  stuck.thread(child.pid()).waits_on(0x5000).runs = child.runs();
  proc.process(runner.pid(), parent.pid()).thread(runner.pid()).running = true;
  change(&waits, &stuck);
  Watcher watcher(
      &proc, {1, false, 300 * kNanosPerSecond}, [] { return TreeBoundary(); }, no_deaths);
  std::vector<Proof> found;
  const Nanos begin = monotonic_now();
  for (Nanos now = begin; now < begin + 60 * kNanosPerSecond; now = watcher.next_look()) {
    runner.run();
    proc.processes[runner.pid()].threads[runner.pid()].runs_once();
    if (auto proof = watcher.look(now)) found.push_back(std::move(*proof));
  }
  return found;
}

TEST(Watcher, ReportsAPartThatWouldBeProvedButForAHandler) {
  const auto found = found_beside_runner([](TreeProcess*, TreeProcess* child) { child->catches(SIGUSR1); });
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].verdict, HangVerdict::kStalled);
  EXPECT_TRUE(found[0].is_early);
  EXPECT_FALSE(found[0].was_proved);
  EXPECT_EQ(found[0].judgement.stuck.size(), 2U);
  EXPECT_THAT(found[0].but_for, HasSubstr("catches signal 10"));
  const auto nobody_waits = found_beside_runner([](TreeProcess* parent, TreeProcess* child) {
    child->catches(SIGUSR1);
    parent->threads.begin()->second.waits_for_child(-1);
  });
  ASSERT_EQ(nobody_waits.size(), 1U) << "once";
  EXPECT_TRUE(is_unawaited_part(nobody_waits[0].judgement)) << "the one that runs may end";
}

// A worker that waits for its next task is proved stuck too.
TEST(Watcher, ReportsAPartBesideOneThatIsIdle) {
  const auto found = [](bool is_idle) {
    const Resting idle, parent, child;
    Running runner;
    FakeProc proc;
    proc.process(idle.pid(), runner.pid()).thread(idle.pid()).waits_on(0x5000).runs = idle.runs();
    proc.process(parent.pid()).thread(parent.pid()).waits_for_child(child.pid()).runs = parent.runs();
    TreeProcess& stuck = proc.process(child.pid(), parent.pid());
    stuck.catches(SIGUSR1).thread(child.pid()).waits_on(0x5000).runs = child.runs();
    TreeThread& runs = proc.process(runner.pid()).thread(runner.pid());
    runs.running = true;
    Watcher watcher(
        &proc, {1, false, 300 * kNanosPerSecond}, [] { return TreeBoundary(); }, no_deaths);
    std::vector<std::set<pid_t>> stalled;
    const Nanos begin = monotonic_now();
    for (Nanos now = begin; now < begin + 60 * kNanosPerSecond; now = watcher.next_look()) {
      runner.run();
      runs.runs_once();
      const auto proof = watcher.look(now);
      if (!proof) continue;
      if (proof->verdict == HangVerdict::kStalled) stalled.push_back(proof->judgement.stuck);
      if (is_proved(proof->verdict) && is_idle) watcher.note_idle();
    }
    return stalled.size();
  };
  EXPECT_EQ(found(false), 0U) << "a hang was reported";
  EXPECT_EQ(found(true), 1U);
}

TEST(Watcher, ReportsAgainAPartWhoseEndIsWaitedForLong) {
  const auto found = found_beside_runner([](TreeProcess*, TreeProcess*) {});
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0].verdict, HangVerdict::kPartialDeadlock);
  EXPECT_FALSE(found[0].was_proved);
  EXPECT_EQ(found[1].verdict, HangVerdict::kStalled);
  EXPECT_TRUE(found[1].was_proved);
  EXPECT_TRUE(found[1].is_early);
  const auto nobody_waits = found_beside_runner(
      [](TreeProcess* parent, TreeProcess*) { parent->threads.begin()->second.waits_for_child(-1); });
  EXPECT_EQ(nobody_waits.size(), 1U);
  const auto is_program = found_beside_runner([](TreeProcess* parent, TreeProcess* child) {
    parent->threads.begin()->second.sleeps();
    child->parent = 1;  // the watcher's root
  });
  EXPECT_EQ(is_program.size(), 2U);
}

/// A process whose first thread runs between all samples, and whose other thread waits for a mutex of `owner`.
FakeProc orphan(pid_t owner) {
  FakeProc proc;
  TreeProcess& process = proc.process(kParent);
  process.thread(kParent).sleeps();
  process.waits_for_mutex(kChild, 0x5000, owner);
  return proc;
}

constexpr pid_t kEnded = 4'194'000;

/// All that is proved in half a minute; `before_look` may change the tree.
template <typename Action>
std::vector<std::set<pid_t>> which_cannot_return(FakeProc* proc, const Action& before_look) {
  Watcher watcher(
      proc, {1, false, 0}, [] { return TreeBoundary(); }, no_deaths);
  std::vector<std::set<pid_t>> reported;
  for (Nanos now = kNanosPerSecond; now < 31 * kNanosPerSecond; now = watcher.next_look()) {
    before_look(now);
    const auto proof = watcher.look(now);
    if (proof && !proof->was_proved) reported.push_back(proof->judgement.cannot_return);
  }
  return reported;
}

TEST(Watcher, ReportsAgainWhenAProcessThatCopedIsStuckToo) {
  const Resting stuck;
  Running runner;
  FakeProc proc;
  proc.process(stuck.pid()).thread(stuck.pid()).waits_on(0x5000).runs = stuck.runs();
  TreeThread& main = proc.process(runner.pid()).thread(runner.pid()).sleeps();
  proc.processes[stuck.pid()].parent = runner.pid();
  const auto reported = which_cannot_return(&proc, [&](Nanos now) {
    if (now < 8 * kNanosPerSecond) {
      runner.run();
      main.runs_once();
    } else {
      main.waits_for_child(stuck.pid());
    }
  });
  EXPECT_THAT(reported,
              ElementsAre(UnorderedElementsAre(stuck.pid()), UnorderedElementsAre(runner.pid(), stuck.pid())));
}

TEST(Watcher, GivesTimeToThreadsThatMayDoSomething) {
  const Resting stuck;
  FakeProc proc;
  proc.process(kParent).thread(kParent).waits_for_child(stuck.pid());
  proc.processes[kParent].thread(kParent + 100).sleeps();
  proc.process(stuck.pid(), kParent).thread(stuck.pid()).waits_on(0x5000).runs = stuck.runs();
  std::vector<Nanos> when;
  Watcher watcher(
      &proc, {1, false, 0}, [] { return TreeBoundary(); }, no_deaths);
  for (Nanos now = kNanosPerSecond; now < 31 * kNanosPerSecond; now = watcher.next_look()) {
    const auto proof = watcher.look(now);
    if (!proof || proof->was_proved) continue;
    when.push_back(now);
    EXPECT_EQ(proof->judgement.cannot_return.count(kParent), when.size() - 1);
  }
  ASSERT_EQ(when.size(), 2U);
  EXPECT_GE(when[1] - when[0], 10 * kNanosPerSecond);
}

/// Its child is real and rests forever, while one of its threads runs all the time.
TEST(Watcher, LooksAgainWhichProcessesWaitForAPartThatIsStuck) {
  const Resting stuck;
  FakeProc proc;
  TreeThread& main = proc.process(kParent).thread(kParent).sleeps();
  TreeThread& helper = proc.processes[kParent].thread(kParent + 100);
  helper.running = true;
  proc.process(stuck.pid(), kParent).thread(stuck.pid()).waits_on(0x5000).runs = stuck.runs();
  const auto reported = which_cannot_return(&proc, [&](Nanos now) {
    helper.runs_once();
    if (now < 8 * kNanosPerSecond) main.runs_once();
    if (now >= 8 * kNanosPerSecond && main.number != SYS_wait4) main.waits_for_child(stuck.pid());
  });
  EXPECT_THAT(reported, ElementsAre(UnorderedElementsAre(stuck.pid()), UnorderedElementsAre(kParent, stuck.pid())));
}

TEST(Watcher, ReportsAnOrphanedLockAgainWhenItBlocksMore) {
  FakeProc proc = orphan(kEnded);
  proc.processes[kParent].waits_for_mutex(kParent, 0x5000, kEnded);
  proc.processes[kParent].thread(kChild).sleeps();
  TreeThread& root = proc.process(kFirst).thread(kFirst).sleeps();
  proc.processes[kParent].parent = kFirst;
  const auto reported = which_cannot_return(&proc, [&](Nanos now) {
    if (now > 8 * kNanosPerSecond && root.number != SYS_wait4) root.waits_for_child(kParent).runs_once();
  });
  EXPECT_THAT(reported, ElementsAre(UnorderedElementsAre(kParent), UnorderedElementsAre(kFirst, kParent)));
}

TEST(Watcher, SaysNothingOfAnEmptyTree) {
  FakeProc proc;
  EXPECT_FALSE(watch(&proc, [](int) {}));
}

TEST(Watcher, ReportsAnOrphanedLockBesideWhatRuns) {
  FakeProc proc = orphan(kEnded);
  const auto proof = watch(&proc, [&](int) { proc.processes[kParent].threads[kParent].runs_once(); });
  ASSERT_TRUE(proof);
  EXPECT_EQ(proof->verdict, HangVerdict::kOrphanedLock);
  ASSERT_EQ(proof->judgement.orphaned.size(), 1U);
  EXPECT_EQ(proof->judgement.orphaned[0].tid, kChild);
  EXPECT_EQ(proof->judgement.orphaned[0].owner, kEnded);
  EXPECT_TRUE(proof->judgement.threads[0].live);
  EXPECT_FALSE(proof->judgement.threads[1].live);
}

TEST(Watcher, ReportsAJoinOfAThreadThatWaitsForAMutexOfTheOther) {
  constexpr pid_t kOther = 4'193'000;
  FakeProc proc = orphan(kOther);
  TreeProcess& process = proc.processes[kParent];
  process.map("rw-p", 0, "").put(FakeProc::kMapped, std::uint32_t{kChild});
  process.thread(kOther).call(SYS_futex, {FakeProc::kMapped, FUTEX_WAIT_BITSET | FUTEX_CLOCK_REALTIME, kChild, 0});
  const auto proof = watch(&proc, [&](int) { process.threads[kParent].runs_once(); });
  ASSERT_TRUE(proof);
  EXPECT_EQ(proof->verdict, HangVerdict::kOrphanedLock);
  ASSERT_EQ(proof->judgement.orphaned.size(), 2U);
  EXPECT_EQ(proof->judgement.orphaned[0].tid, kOther);
  EXPECT_EQ(proof->judgement.orphaned[0].owner, kChild);
}

// Many a thread waits for the end of one that waits with a time limit. Most of those wait for no GIL.
TEST(Watcher, ProvesNothingOfAJoinOfAThreadThatWaitsWithALimit) {
  FakeProc proc = orphan(kEnded);
  TreeProcess& process = proc.processes[kParent];
  process.map("rw-p", 0, "").put(FakeProc::kMapped, std::uint32_t{kChild});
  process.thread(kParent).call(SYS_futex, {FakeProc::kMapped, FUTEX_WAIT_BITSET | FUTEX_CLOCK_REALTIME, kChild, 0});
  process.thread(kChild).call(SYS_futex, {0x5000, FUTEX_WAIT_BITSET | FUTEX_PRIVATE_FLAG, 0, 0x1000});
  EXPECT_FALSE(watch(&proc, [&](int) { process.threads[kChild].runs_once(); }));
}

TEST(Watcher, ReportsAnOrphanedLockBesideWhatSleeps) {
  FakeProc proc = orphan(kEnded);
  const auto proof = watch(&proc, [](int) {});
  ASSERT_TRUE(proof);
  EXPECT_EQ(proof->verdict, HangVerdict::kOrphanedLock);
}

TEST(Watcher, ReportsAnOrphanedLockWithinASecond) {
  FakeProc proc = orphan(kEnded);
  Watcher watcher(
      &proc, {1, false, 0}, [] { return TreeBoundary(); }, no_deaths);
  Nanos now = kNanosPerSecond;
  while (!watcher.look(now)) now = watcher.next_look();
  EXPECT_GE(now, 1600 * kNanosPerMilli);  // time passes between each two of three samples
  EXPECT_LE(now, 2 * kNanosPerSecond);
}

TEST(Watcher, SaysNothingOfAMutexThatChangesItsOwner) {
  FakeProc proc = orphan(kEnded);
  EXPECT_FALSE(watch(&proc, [&](int look) {
    proc.processes[kParent].put(0x5008, std::int32_t{kEnded - look % 3});  // each a thread that has ended since
  }));
}

TEST(Watcher, SaysNothingOfAWaiterThatGetsItsMutexNowAndThen) {
  FakeProc proc = orphan(kEnded);
  EXPECT_FALSE(watch(&proc, [&](int look) {
    if (look % 4 == 0) proc.processes[kParent].threads[kChild].runs_once();
  }));
}

TEST(Watcher, ReportsAnOrphanedLockOnce) {
  FakeProc proc = orphan(kEnded);
  Watcher watcher(
      &proc, {1, false, 0}, [] { return TreeBoundary(); }, no_deaths);
  int proofs = 0;
  for (Nanos now = kNanosPerSecond; now < 99 * kNanosPerSecond; now = watcher.next_look()) {
    proc.processes[kParent].threads[kParent].runs_once();
    if (watcher.look(now)) ++proofs;
  }
  EXPECT_EQ(proofs, 1);
}

/// How often a tree whose first thread runs is judged in 99 seconds.
int judgements_of(FakeProc* proc) {
  int asked = 0;
  Watcher watcher(
      proc, {1, false, 0},
      [&asked] {
        ++asked;
        return TreeBoundary();
      },
      no_deaths);
  for (Nanos now = kNanosPerSecond; now < 100 * kNanosPerSecond; now = watcher.next_look()) {
    proc->processes[kParent].threads[kParent].runs_once();
    EXPECT_FALSE(watcher.look(now));
  }
  return asked;
}

TEST(Watcher, DoesNotJudgeForMutexesOfLiveOwners) {
  FakeProc proc = orphan(kEnded);
  proc.processes[kParent].thread(kEnded).running = true;
  EXPECT_EQ(judgements_of(&proc), 0);
}

TEST(Watcher, SeldomJudgesAgainForAMutexOfWhichNothingIsProved) {
  FakeProc proc = orphan(kEnded);
  proc.processes[kParent].catches(SIGUSR1);
  const int judgements = judgements_of(&proc);
  EXPECT_GE(judgements, 2);
  EXPECT_LE(judgements, 4);
}

}  // namespace
}  // namespace mprun
