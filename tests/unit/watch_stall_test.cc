// How long no thread has made progress.
#include "watch/stalls/stall.h"

#include <gtest/gtest.h>

#include "fake_proc.h"
#include "watch/stalls/progress.h"

namespace mprun {
namespace {

ThreadSample at_place(pid_t pid, pid_t tid, std::uint64_t counter = 0x7f0000000102) {
  ThreadSample thread;
  thread.pid = pid;
  thread.tid = tid;
  thread.state = 'S';
  thread.call.running = false;
  thread.call.number = 7;
  thread.call.stack_pointer = 0x7ffc00001000;
  thread.call.program_counter = counter;
  return thread;
}

TEST(Stall, CountsFromWhenTheLastOneCameToItsPlace) {
  StallMeter meter;
  EXPECT_EQ(meter.of_all(50), 0);
  EXPECT_EQ(meter.of_thread(10, 50), 0);
  meter.take({{at_place(10, 10)}}, 100);
  meter.take({{at_place(10, 10), at_place(10, 11)}}, 200);
  meter.take({{at_place(10, 10), at_place(10, 11)}}, 300);
  EXPECT_EQ(meter.of_all(400), 200);
  EXPECT_EQ(meter.of_thread(10, 400), 300);
  EXPECT_EQ(meter.of_thread(11, 400), 200);
  EXPECT_EQ(meter.of_thread(12, 400), 0);
}

TEST(Stall, IsNotEndedByAThreadThatWakesUpAndWaitsAgainAtTheSamePlace) {
  StallMeter meter;
  ThreadSample thread = at_place(10, 10);
  meter.take({{thread}}, 100);
  thread.runs = thread.voluntary_switches = 7;
  thread.call.arguments[0] = 9;
  meter.take({{thread}}, 200);
  EXPECT_EQ(meter.of_all(300), 200);
}

TEST(Stall, IsEndedByWhatAThreadHasDoneSinceTheLastLook) {
  StallMeter meter;
  ThreadSample thread = at_place(10, 10);
  std::uint64_t done = 0;
  const auto progress = [&](const ThreadSample&) { return done; };
  meter.take({{thread}}, 100, progress);
  ++thread.runs;
  meter.take({{thread}}, 200, progress);
  EXPECT_EQ(meter.of_all(300), 200) << "it has looked around";
  EXPECT_TRUE(meter.has_woken(10));
  ++thread.runs;
  ++done;
  meter.take({{thread}}, 300, progress);
  EXPECT_EQ(meter.of_all(400), 100);
  EXPECT_FALSE(meter.has_woken(10));
  EXPECT_FALSE(meter.has_woken(11));
}

// Objects that it makes and drops may lie at two addresses in turn.
TEST(Stall, IsNotEndedByALoopThatComesBackToWhereItWas) {
  StallMeter meter;
  ThreadSample thread = at_place(10, 10);
  std::uint64_t state = 0;
  const auto progress = [&](const ThreadSample&) { return state % 2; };
  for (Nanos now = 100; now <= 900; now += 100) {
    meter.take({{thread}}, now, progress);
    ++thread.runs;
    ++state;
  }
  EXPECT_EQ(meter.of_all(1000), 800) << "since the second state";
  EXPECT_TRUE(meter.has_woken(10));
}

/// With a file of what its threads have read and written.
class IoProc : public FakeProc {
 public:
  std::string io, maps;
  std::optional<std::string> read(const std::string& path) override {
    return path == "10/task/11/io" ? io : path == "10/maps" ? maps : FakeProc::read(path);
  }
};

TEST(Progress, IsSeenByTheBytesThatAThreadReadsAndWrites) {
  IoProc proc;
  ThreadSample thread = at_place(10, 11);
  const auto fingerprint = [&](const char* io) {
    proc.io = io;
    return Progress(&proc).of(thread);
  };
  const auto before = fingerprint("rchar: 10\nwchar: 20\nsyscr: 3\nsyscw: 4\n");
  EXPECT_EQ(fingerprint("rchar: 10\nwchar: 20\nsyscr: 5\nsyscw: 4\n"), before) << "it has read nothing, twice";
  EXPECT_NE(fingerprint("rchar: 11\nwchar: 20\nsyscr: 4\nsyscw: 4\n"), before);
  EXPECT_NE(fingerprint("rchar: 10\nwchar: 21\nsyscr: 3\nsyscw: 5\n"), before);
  thread.call.number = SYS_clock_nanosleep;
  proc.maps = "7f0000000000-7f0000001000 r-xp 00000000 08:01 60 /usr/lib/libsqlite3.so.0\n";
  const auto sleeps = fingerprint("rchar: 10\nwchar: 20\nsyscr: 3\nsyscw: 4\n");
  EXPECT_EQ(fingerprint("rchar: 26\nwchar: 20\nsyscr: 4\nsyscw: 4\n"), sleeps) << "SQLite looks at its file again";
  EXPECT_NE(fingerprint("rchar: 10\nwchar: 21\nsyscr: 3\nsyscw: 5\n"), sleeps);
}

// asyncio sleeps in one call, whichever of its timers is next.
TEST(Progress, IsSeenByAMuchLongerLimit) {
  IoProc proc;
  proc.io = "rchar: 10\nwchar: 20\nsyscr: 3\nsyscw: 4\n";
  ThreadSample thread = at_place(10, 11);
  thread.call.number = SYS_epoll_wait;
  const auto fingerprint = [&](int milliseconds) {
    thread.call.arguments[3] = static_cast<std::uint32_t>(milliseconds);
    return Progress(&proc).of(thread);
  };
  EXPECT_EQ(fingerprint(100), fingerprint(70));
  EXPECT_NE(fingerprint(100), fingerprint(1350));
  EXPECT_NE(fingerprint(1350), fingerprint(60'000));
}

TEST(Stall, EndsWithAnyStep) {
  for (const int what : {0, 1, 2, 3, 4}) {
    StallMeter meter;
    ThreadSample thread = at_place(10, 10);
    meter.take({{thread}}, 100);
    if (what == 0) ++thread.call.program_counter;
    if (what == 1) ++thread.call.stack_pointer;
    if (what == 2) ++thread.call.number;
    if (what == 3) thread.state = 'T';  // it was stopped just now
    if (what == 4) thread.pid = 12;     // another has its number
    meter.take({{thread}}, 200);
    EXPECT_EQ(meter.of_all(300), 100) << what;
  }
}

// Its place is unknown: it may rest or make progress.
TEST(Stall, OfOneThatMayNotBeLookedAtEndsWhenItRuns) {
  StallMeter meter;
  ThreadSample thread = at_place(10, 10);
  thread.hidden = true;
  meter.take({{thread}}, 100);
  meter.take({{thread}}, 200);
  EXPECT_EQ(meter.of_all(300), 200);
  ++thread.runs;
  meter.take({{thread}}, 300);
  EXPECT_EQ(meter.of_all(400), 100);
}

TEST(Stall, IsNoneWhileOneRuns) {
  StallMeter meter;
  ThreadSample runs = at_place(10, 11);
  meter.take({{at_place(10, 10), runs}}, 100);
  runs.call.running = true;
  runs.state = 'R';
  meter.take({{at_place(10, 10), runs}}, 200);
  EXPECT_EQ(meter.of_all(300), 0);
  EXPECT_EQ(meter.of_thread(10, 300), 200) << "it does not";
  EXPECT_EQ(meter.of_thread(11, 300), 0);
  meter.take({{at_place(10, 10), at_place(10, 11)}}, 300);
  EXPECT_EQ(meter.of_all(400), 100) << "it has come back to its place from somewhere";
}

// Stopped and ended threads make no progress, whatever the kernel says of their call.
TEST(Stall, HoldsForTheStoppedAndTheDead) {
  for (const char state : {'T', 't', 'Z'}) {
    StallMeter meter;
    ThreadSample thread = at_place(10, 10);
    thread.state = state;
    thread.call.running = true;
    meter.take({{thread}}, 100);
    meter.take({{thread}}, 200);
    EXPECT_EQ(meter.of_all(300), 200) << state;
  }
}

TEST(Stall, BeginsAnewWhenAThreadEnds) {
  StallMeter meter;
  meter.take({{at_place(10, 10), at_place(11, 11)}}, 100);
  meter.take({{at_place(10, 10)}}, 200);
  meter.take({{at_place(10, 10)}}, 300);
  EXPECT_EQ(meter.of_all(400), 200);
  EXPECT_EQ(meter.of_thread(10, 400), 300);
}

TEST(Stall, IsNoneOfAnEmptyTreeAndOfWhatCannotBeRead) {
  StallMeter meter;
  meter.take({}, 100);
  meter.take({}, 200);
  EXPECT_EQ(meter.of_all(300), 0);
  Sample part{{at_place(10, 10)}, false};
  meter.take(part, 100);
  meter.take(part, 200);
  EXPECT_EQ(meter.of_all(300), 0);
  part.whole = true;
  meter.take(part, 300);
  EXPECT_EQ(meter.of_all(400), 300);
}

}  // namespace
}  // namespace mprun
