// Waits at pseudo-terminals: which process has the other side?
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>

#include "fake_proc.h"

namespace mprun {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

constexpr const char* kMayBeLimited = "a terminal, which may limit the time that a read takes";
constexpr std::uint64_t kForEver = ~std::uint64_t{0};

/// 10, which has the master, waits for its child 11, which writes to the slave.
FakeProc terminal_between() {
  FakeProc proc;
  proc.process(10).terminal_master(3, 5).thread(10).waits_for_child(11);
  proc.process(11, 10).terminal_slave(0, 5).terminal_slave(1, 5).thread(11).writes(1);
  return proc;
}

TreeBoundary no_limits() {
  TreeBoundary boundary;
  boundary.assumptions.no_limit_from = 60 * kNanosPerSecond;
  return boundary;
}

TreeBoundary somebody_has_master(std::uint32_t terminal) {
  Descriptor master = parse_descriptor(3, "/dev/ptmx");
  master.terminal = terminal;
  TreeBoundary boundary;
  boundary.foreign = {identity_of(master)};
  return boundary;
}

TEST(TerminalWait, IsEndedByAProcessThatHasOneOfItsSides) {
  FakeProc proc = terminal_between();
  const Judged all = judged(&proc);
  EXPECT_EQ(all.waits.at(11).kind, WaitKind::kPipeWrite);
  EXPECT_EQ(all.waits.at(11).object, "/dev/pts/5");
  EXPECT_THAT(all.waits.at(11).wakers, UnorderedElementsAre(Waker{10, 0}, Waker{11, 0}));
  EXPECT_TRUE(all.is_deadlock);
  proc.process(12).terminal_master(7, 6).thread(12).sleeps();
  EXPECT_TRUE(judged(&proc).is_stuck(11)) << "of another terminal";
  proc.processes[12].terminal_slave(7, 5);
  EXPECT_FALSE(judged(&proc).is_stuck(11)) << "it may flush the terminal";
  proc.processes[12].terminal_master(7, 5);
  EXPECT_FALSE(judged(&proc).is_stuck(11)) << "it may read what is written";
}

TEST(TerminalWait, AtTheMasterIsEndedByTheSameOnes) {
  FakeProc proc = terminal_between();
  proc.processes[10].threads[10].reads(3);
  proc.processes[11].threads[11].waits_on(0x5000);
  const Judged all = judged(&proc);
  EXPECT_EQ(all.waits.at(10).kind, WaitKind::kPipeRead);
  EXPECT_EQ(all.waits.at(10).object, "/dev/pts/5");
  EXPECT_THAT(all.waits.at(10).wakers, UnorderedElementsAre(Waker{10, 0}, Waker{11, 0}));
  EXPECT_TRUE(all.is_deadlock) << "VTIME is for the slave";
  proc.processes[10].threads[10].writes(3);
  EXPECT_EQ(judged(&proc).waits.at(10).kind, WaitKind::kPipeWrite);
}

TEST(TerminalWait, IsLiveIfAProcessOffersBothSides) {
  FakeProc proc;
  proc.process(10).terminal_master(3, 5).terminal_slave(4, 5).thread(10).reads(3);
  EXPECT_EQ(judged(&proc).waits.at(10).why_live, "a process outside may open /dev/pts/5");
  proc.process(11, 10).thread(11).state = 'Z';
  EXPECT_TRUE(judged(&proc).is_deadlock) << "it was for the child";
}

TEST(TerminalWait, IsLiveIfOneSideIsOutside) {
  FakeProc proc = terminal_between();
  EXPECT_EQ(judged(&proc, somebody_has_master(5)).waits.at(11).why_live, "/dev/pts/5");
  EXPECT_TRUE(judged(&proc, somebody_has_master(6)).is_stuck(11));
  proc.processes[10].descriptors.clear();
  EXPECT_EQ(judged(&proc).waits.at(11).why_live, "/dev/pts/5");
  FakeProc no_slave = terminal_between();
  no_slave.processes[10].threads[10].reads(3);
  no_slave.processes[11].descriptors.clear();
  EXPECT_EQ(judged(&no_slave).waits.at(10).why_live, "/dev/ptmx");
}

TEST(TerminalWait, ToReadTheSlaveMayHaveALimit) {
  FakeProc proc = terminal_between();
  proc.processes[11].threads[11].reads(0);
  EXPECT_EQ(judged(&proc).waits.at(11).kind, WaitKind::kPipeRead);
  EXPECT_TRUE(judged(&proc).is_deadlock) << "it has none";
  proc.processes[11].time_limits[0] = kNanosPerSecond;
  const Judged all = judged(&proc);
  EXPECT_EQ(all.waits.at(11).why_live, kMayBeLimited);
  EXPECT_THAT(all.assumed, IsEmpty());
  const Judged assumed = judged(&proc, no_limits());
  EXPECT_TRUE(assumed.is_deadlock);
  EXPECT_THAT(assumed.assumed, ElementsAre(std::string("thread 11 reads ") + kMayBeLimited));
}

TEST(TerminalWait, ToReadTheSlaveIsLiveIfTheMasterIsOutside) {
  FakeProc proc = terminal_between();
  proc.processes[11].threads[11].reads(0);
  TreeBoundary boundary = somebody_has_master(5);
  boundary.assumptions.no_limit_from = 1;
  const Judged all = judged(&proc, boundary);
  EXPECT_EQ(all.waits.at(11).why_live, "/dev/pts/5");
  EXPECT_THAT(all.assumed, IsEmpty());
}

TEST(TerminalWait, ToWriteAndToPollHasNoLimit) {
  FakeProc proc = terminal_between();
  proc.processes[11].put(0x9000, pollfd{0, POLLIN, 0});
  for (const bool polls : {false, true}) {
    if (polls) proc.processes[11].threads[11].call(SYS_poll, {0x9000, 1, kForEver});
    EXPECT_TRUE(judged(&proc).is_deadlock) << polls;
    const Judged assumed = judged(&proc, no_limits());
    EXPECT_TRUE(assumed.is_deadlock) << polls;
    EXPECT_THAT(assumed.assumed, IsEmpty()) << polls;
  }
}

TEST(TerminalWait, KnowsSlavesByTheirNames) {
  const auto slave = [](const char* target) { return slave_of_terminal(parse_descriptor(0, target)); };
  EXPECT_EQ(slave("/dev/pts/0"), 0U);
  EXPECT_EQ(slave("/dev/pts/17"), 17U);
  for (const char* target :
       {"/dev/pts/", "/dev/pts/ptmx", "/dev/pts/1/2", "/dev/pts/1 (deleted)", "/dev/tty1", "/tmp/1", "pipe:[9]"}) {
    EXPECT_EQ(slave(target), std::nullopt) << target;
  }
}

TEST(TreeSnapshot, KnowsTheMastersOfATerminal) {
  FakeProc proc = terminal_between();
  proc.process(12).terminal_master(3, 5).terminal_master(4, 5).terminal_master(5, 6).thread(12);
  const Sample sample = take_sample(&proc, process_tree(&proc, 1, false));
  TreeSnapshot snapshot(&proc, &sample, {});
  EXPECT_THAT(snapshot.terminal_masters(5), UnorderedElementsAre(10, 12));
  EXPECT_THAT(snapshot.terminal_masters(6), UnorderedElementsAre(12));
  EXPECT_THAT(snapshot.terminal_masters(7), IsEmpty());
  TreeSnapshot shared(&proc, &sample, somebody_has_master(5));
  EXPECT_THAT(shared.terminal_masters(5), IsEmpty());
  EXPECT_THAT(shared.terminal_masters(6), UnorderedElementsAre(12));
}

}  // namespace
}  // namespace mprun
