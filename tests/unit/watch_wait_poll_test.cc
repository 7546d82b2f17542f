// Waits for several descriptors.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/futex.h>
#include <poll.h>

#include "fake_proc.h"

namespace mprun {
namespace {

using testing::UnorderedElementsAre;

constexpr std::uint64_t kPolled = 0x9000;
constexpr std::uint64_t kNever = ~std::uint64_t{0};

/// 10 waits in poll for a pipe of 11 and one of 12, both stuck.
FakeProc poller() {
  FakeProc proc;
  TreeProcess& process = proc.process(10).pipe(3, 70, O_RDONLY).pipe(4, 71, O_RDONLY);
  process.put(kPolled, pollfd{3, POLLIN, 0}).put(kPolled + sizeof(pollfd), pollfd{4, POLLIN, 0});
  process.thread(10).call(SYS_poll, {kPolled, 2, kNever});
  proc.process(11).pipe(5, 70, O_WRONLY).thread(11).waits_on(0x5000);
  proc.process(12).pipe(5, 71, O_WRONLY).thread(12).waits_on(0x5000);
  return proc;
}

/// All descriptors of `proc`'s process 10 in one epoll set.
TreeProcess& watch_by_epoll(FakeProc* proc, const std::string& lines) {
  TreeProcess& process = proc->process(10).open(9, "anon_inode:[eventpoll]", O_RDWR, lines);
  process.thread(10).call(SYS_epoll_wait, {9, 0x1000, 8, kNever});
  return process;
}

TEST(PollWait, IsEndedByAnyProcessAtTheOtherEnds) {
  FakeProc proc = poller();
  Judged all = judged(&proc);
  EXPECT_EQ(all.waits.at(10).kind, WaitKind::kPoll);
  EXPECT_THAT(all.waits.at(10).wakers, UnorderedElementsAre(Waker{11, 0}, Waker{12, 0}));
  EXPECT_TRUE(all.is_deadlock);
  proc.processes[12].threads[12].sleeps();
  EXPECT_FALSE(judged(&proc).is_stuck(10));
}

TEST(PollWait, WithATimeLimitIsLive) {
  const std::pair<std::int64_t, std::array<std::uint64_t, 5>> calls[] = {
      {SYS_poll, {kPolled, 2, 5000, 0, 0}},          {SYS_ppoll, {kPolled, 2, 0x1000, 0, 0}},
      {SYS_select, {4, kPolled, 0, 0, 0x1000}},      {SYS_pselect6, {4, kPolled, 0, 0, 0x1000}},
      {SYS_epoll_wait, {9, 0x1000, 8, 5000, 0}},     {SYS_epoll_pwait, {9, 0x1000, 8, 5000, 0}},
      {SYS_epoll_pwait2, {9, 0x1000, 8, 0x1000, 0}},
  };
  for (const auto& [number, arguments] : calls) {
    FakeProc proc = poller();
    watch_by_epoll(&proc, "tfd: 3 events: 19 data: 3 pos:0 ino:46 sdev:f\n");
    TreeThread& thread = proc.processes[10].threads[10];
    thread.number = number;
    std::copy(arguments.begin(), arguments.end(), thread.arguments.begin());
    EXPECT_TRUE(judged(&proc).waits.at(10).timed) << number;
    EXPECT_FALSE(judged(&proc).is_stuck(10)) << number;
  }
}

// libuv's loop has its rings in its set.
TEST(PollWait, ForAnIdleIoUringIsEndedByProcessesThatHaveIt) {
  FakeProc proc = poller();
  watch_by_epoll(&proc,
                 "tfd: 3 events: 19 data: 3 pos:0 ino:46 sdev:f\ntfd: 7 events: 19 data: 7 pos:0 ino:1f4 sdev:f\n")
      .ring(7, 500);
  proc.processes[12].ring(8, 500).pipe(9, 72, O_RDONLY);
  const Judged all = judged(&proc);
  EXPECT_THAT(all.waits.at(10).wakers, UnorderedElementsAre(Waker{10, 0}, Waker{11, 0}, Waker{12, 0}));
  EXPECT_TRUE(all.is_deadlock);
  proc.processes[12].threads[12].sleeps();
  EXPECT_FALSE(judged(&proc).is_stuck(10)) << "it may ask the ring for something";
}

// An epoll loop with nothing to do except detect changes of the clock.
TEST(PollWait, WithTheLongestBlockOfLibevHasNoLimit) {
  FakeProc proc = poller();
  TreeThread& thread = watch_by_epoll(&proc, "tfd: 3 events: 19 data: 3 pos:0 ino:46 sdev:f\n")
                           .threads[10]
                           .call(SYS_epoll_wait, {9, 0x1000, 8, 59743});
  const Judged all = judged(&proc);
  EXPECT_EQ(all.waits.at(10).kind, WaitKind::kPoll);
  EXPECT_THAT(all.waits.at(10).wakers, UnorderedElementsAre(Waker{11, 0}));
  EXPECT_FALSE(all.waits.at(10).timed);
  EXPECT_TRUE(all.is_deadlock);
  EXPECT_TRUE(all.assumed.empty());
  thread.arguments[3] = 59742;
  EXPECT_EQ(judged(&proc).waits.at(10).why_live, "a wait with a time limit");
  thread.arguments[3] = 59743;
  proc.processes[11].threads[11].sleeps();
  EXPECT_FALSE(judged(&proc).is_stuck(10));
}

// After SIGSTOP and SIGCONT. Other restarted calls have a time limit, which does not show.
TEST(PollWait, IsEndlessWhenItWasRestarted) {
  FakeProc proc = poller();
  TreeThread& thread = proc.processes[10].threads[10];
  thread.number = SYS_restart_syscall;
  EXPECT_TRUE(judged(&proc).is_deadlock);
  thread.arguments[2] = 5000;
  EXPECT_FALSE(judged(&proc).is_stuck(10));
  thread.arguments = {kPolled, 0, kNever};  // or a futex in shared memory
  EXPECT_FALSE(judged(&proc).is_stuck(10));
  thread.arguments = {kPolled, FUTEX_WAIT | FUTEX_PRIVATE_FLAG, kNever, 0x1000};
  for (std::uint64_t i = 0; i < 128; ++i) proc.processes[10].put(kPolled + i * sizeof(pollfd), pollfd{0, 0, 0});
  proc.processes[10].put(kPolled, pollfd{-1, 0, 0}).pipe(0, 72, O_RDONLY);
  EXPECT_FALSE(judged(&proc).is_stuck(10));
}

TEST(PollWait, OfArraysThatCannotBeReadIsLive) {
  FakeProc proc = poller();
  TreeThread& thread = proc.processes[10].threads[10].call(SYS_poll, {0x1, 2, kNever});
  EXPECT_FALSE(judged(&proc).is_stuck(10));
  thread.call(SYS_poll, {kPolled, std::uint64_t{1} << 60, kNever});
  EXPECT_FALSE(judged(&proc).is_stuck(10));
  thread.call(SYS_select, {64, 0x1, 0, 0, 0});
  EXPECT_FALSE(judged(&proc).is_stuck(10));
  thread.call(SYS_select, {std::uint64_t{1} << 60, kPolled, 0, 0, 0});
  EXPECT_FALSE(judged(&proc).is_stuck(10));
}

TEST(PollWait, ForNothingWaitsForASignal) {
  FakeProc proc = poller();
  TreeThread& thread = proc.processes[10].threads[10].call(SYS_poll, {0, 0, kNever});
  EXPECT_FALSE(judged(&proc).is_stuck(10));
  proc.processes[10].put(kPolled, pollfd{-1, POLLIN, 0});
  thread.call(SYS_poll, {kPolled, 1, kNever});
  EXPECT_FALSE(judged(&proc).is_stuck(10));
  thread.call(SYS_select, {0, 0, 0, 0, 0});
  EXPECT_FALSE(judged(&proc).is_stuck(10));
}

// The write end gets an event when the last reader closes, whatever events it asked for.
TEST(PollWait, NoticesHangUps) {
  for (const short events : {short{0}, short{POLLIN}, short{POLLOUT}}) {
    FakeProc proc;
    TreeProcess& process = proc.process(10).pipe(3, 70, O_WRONLY).put(kPolled, pollfd{3, events, 0});
    process.thread(10).call(SYS_poll, {kPolled, 1, kNever});
    proc.process(11).pipe(5, 70, O_RDONLY).thread(11).waits_on(0x5000);
    EXPECT_TRUE(judged(&proc).is_deadlock) << events;
    proc.processes[11].threads[11].sleeps();
    EXPECT_FALSE(judged(&proc).is_stuck(10)) << events;
  }
}

TEST(PollWait, ForAPipeOpenedForBothIsEndedByBoth) {
  for (const auto mode : {O_RDONLY, O_WRONLY}) {
    FakeProc proc;
    TreeProcess& process = proc.process(10).pipe(3, 70, O_RDWR).put(kPolled, pollfd{3, POLLIN, 0});
    process.thread(10).call(SYS_poll, {kPolled, 1, kNever});
    proc.process(11).pipe(5, 70, mode).thread(11).sleeps();
    EXPECT_FALSE(judged(&proc).is_stuck(10)) << mode;
  }
}

TEST(PollWait, IsLiveIfOneOfItsDescriptorsIs) {
  FakeProc proc = poller();
  proc.processes[12].descriptors.clear();  // one seems to have no process at its other end
  EXPECT_FALSE(judged(&proc).is_stuck(10));
  proc.processes[10].open(4, "anon_inode:[timerfd]", O_RDWR);
  EXPECT_FALSE(judged(&proc).is_stuck(10));
  proc.processes[10].descriptors.erase(4);
  EXPECT_FALSE(judged(&proc).is_stuck(10));
}

TEST(SelectWait, ReadsItsThreeSets) {
  for (const std::size_t set : {std::size_t{1}, std::size_t{2}, std::size_t{3}}) {
    FakeProc proc = poller();
    TreeThread& thread = proc.processes[10].put(kPolled, std::uint64_t{1} << 4).threads[10];
    thread.call(SYS_select, {5, 0, 0, 0, 0}).arguments[set] = kPolled;
    EXPECT_THAT(judged(&proc).waits.at(10).wakers, UnorderedElementsAre(Waker{12, 0})) << set;
    EXPECT_TRUE(judged(&proc).is_deadlock);
  }
}

TEST(EpollWait, IsForWhatIsInItsSet) {
  FakeProc proc = poller();
  watch_by_epoll(&proc,
                 "tfd: 3 events: 19 data: 3 pos:0 ino:46 sdev:f\ntfd: 4 events: 19 data: 4 pos:0 ino:47 sdev:f\n");
  EXPECT_THAT(judged(&proc).waits.at(10).wakers, UnorderedElementsAre(Waker{11, 0}, Waker{12, 0}));
  EXPECT_TRUE(judged(&proc).is_deadlock);
}

// What was added to the set as 3 lives on in another process; 3 is another pipe now.
TEST(EpollWait, IsLiveIfANumberMeansAnotherFileNow) {
  const std::pair<const char*, const char*> lines[] = {
      {"another inode", "tfd: 3 events: 19 data: 3 pos:0 ino:99 sdev:f\n"},
      {"closed", "tfd: 5 events: 19 data: 3 pos:0 ino:46 sdev:f\n"},
      {"not shown", "tfd: 3 events: 19 data: 3\n"},
      {"an empty set", ""},
  };
  for (const auto& [what, text] : lines) {
    FakeProc proc = poller();
    watch_by_epoll(&proc, text);
    EXPECT_FALSE(judged(&proc).is_stuck(10)) << what;
  }
  FakeProc no_epoll = poller();
  no_epoll.processes[10].threads[10].call(SYS_epoll_wait, {3, 0x1000, 8, kNever});
  EXPECT_FALSE(judged(&no_epoll).is_stuck(10));
}

// All eventfds share one inode: the one in the set may be any of them.
TEST(EpollWait, ForAnEventfdMayBeEndedByAnyProcessThatHasOne) {
  FakeProc proc;
  watch_by_epoll(&proc, "tfd: 3 events: 19 data: 3 pos:0 ino:2 sdev:f\n").eventfd(3, 5);
  EXPECT_TRUE(judged(&proc).is_deadlock);
  proc.process(11).eventfd(3, 6).thread(11).sleeps();
  EXPECT_FALSE(judged(&proc).is_stuck(10));
}

}  // namespace
}  // namespace mprun
