// Which threads wake up repeatedly without getting anywhere. How their Python decides is in watch_python_image_test.cc.
#include "watch/stalls/polls.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fake_proc.h"
#include "procfs/proc_source.h"
#include "python_program.h"

namespace mprun {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

/// In a wait for a lock, with a limit.
ThreadSample polling_thread(std::uint64_t runs, pid_t tid = 10) {
  ThreadSample thread;
  thread.pid = 10;
  thread.tid = tid;
  thread.state = 'S';
  thread.runs = runs;
  thread.call.running = false;
  thread.call.number = SYS_futex;
  thread.call.arguments = {0x5000, FUTEX_WAIT_PRIVATE, 0, 0x4000};
  thread.call.stack_pointer = 0x7ffc00001000;
  thread.call.program_counter = 0x7f0000000102;
  return thread;
}

/// Of process 10.
FakeProc proc_with_python() {
  FakeProc proc;
  proc.process(10).maps = kMapsOfPython;
  return proc;
}

/// Four looks, in each of which `change` modifies a thread that ran `runs_between` times since the last.
template <typename Change>
std::set<pid_t> polls_after_four_looks(std::uint64_t runs_between, const Change& change) {
  FakeProc proc = proc_with_python();
  PollMeter meter(&proc);
  for (int look = 0; look < 4; ++look) {
    ThreadSample thread = polling_thread(7 + static_cast<std::uint64_t>(look) * runs_between);
    change(look, &thread);
    meter.take({{thread}}, 100 + look);
  }
  return meter.polls();
}

TEST(PollMeter, KnowsAPollAfterThreeWakeUps) {
  FakeProc proc = proc_with_python();
  PollMeter meter(&proc);
  meter.take({{polling_thread(7)}}, 100);
  EXPECT_THAT(meter.polls(), IsEmpty());
  meter.take({{polling_thread(8)}}, 200);
  EXPECT_THAT(meter.polls(), IsEmpty());
  meter.take({{polling_thread(9)}}, 300);
  EXPECT_THAT(meter.polls(), IsEmpty()) << "it has run too little since";
  meter.take({{polling_thread(10)}}, 400);
  EXPECT_THAT(meter.polls(), ElementsAre(10));
  meter.take({{polling_thread(10)}}, 500);
  EXPECT_THAT(meter.polls(), ElementsAre(10)) << "it stays one while it rests";
}

TEST(PollMeter, KnowsNoPollOfAThreadThatRests) {
  EXPECT_THAT(polls_after_four_looks(3, [](int, ThreadSample*) {}), ElementsAre(10));
  EXPECT_THAT(polls_after_four_looks(1, [](int, ThreadSample*) {}), ElementsAre(10));
  EXPECT_THAT(polls_after_four_looks(0, [](int, ThreadSample*) {}), IsEmpty());
}

// A loop in C may count its looks.
TEST(PollMeter, KnowsNoPollWithoutPython) {
  FakeProc proc;
  proc.process(10).maps = "400000-500000 r-xp 00000000 fe:00 42 /usr/bin/program\n";
  PollMeter meter(&proc);
  for (int look = 0; look < 9; ++look) {
    meter.take({{polling_thread(7 + 3 * static_cast<std::uint64_t>(look))}}, 100 + look);
  }
  EXPECT_THAT(meter.polls(), IsEmpty());
}

TEST(PollMeter, KnowsNoPollOfSemaphoresAndMessageQueues) {
  for (const std::int64_t number : {SYS_semtimedop, SYS_mq_timedreceive}) {
    const auto polls = polls_after_four_looks(3, [number](int, ThreadSample* thread) {
      thread->call.number = number;
      thread->call.arguments = {0, 0x5000, 1, 0x4000, 0x4000, 0};
    });
    EXPECT_THAT(polls, IsEmpty()) << number;
  }
}

TEST(PollMeter, KnowsNoPollOfAThreadThatDoesSomethingElse) {
  const auto with = [](const auto& change) {
    return polls_after_four_looks(9, [&change](int look, ThreadSample* thread) {
      if (look == 3) change(thread);
    });
  };
  EXPECT_THAT(with([](ThreadSample*) {}), ElementsAre(10));
  EXPECT_THAT(with([](ThreadSample* thread) { ++thread->call.stack_pointer; }), IsEmpty());
  EXPECT_THAT(with([](ThreadSample* thread) { ++thread->call.program_counter; }), IsEmpty());
  EXPECT_THAT(with([](ThreadSample* thread) { thread->call.running = true; }), IsEmpty());
  EXPECT_THAT(with([](ThreadSample* thread) { thread->hidden = true; }), IsEmpty());
  EXPECT_THAT(with([](ThreadSample* thread) { thread->state = 'Z'; }), IsEmpty());
  EXPECT_THAT(with([](ThreadSample* thread) { thread->tid = 11; }), IsEmpty());
}

// It returns to its earlier place: the count starts again.
TEST(PollMeter, ForgetsThreadsThatWereElsewhere) {
  EXPECT_THAT(polls_after_four_looks(9,
                                     [](int look, ThreadSample* thread) {
                                       if (look == 1) thread->call.running = true;
                                     }),
              IsEmpty());
}

// Something has woken it up: it may continue with what it received. The same holds for one that slept.
TEST(PollMeter, KnowsNoPollOfAThreadThatWaitsWithoutALimitOrForNothing) {
  const std::uint64_t for_ever = ~std::uint64_t{0};
  const auto in_call = [](std::int64_t number, std::array<std::uint64_t, 6> arguments) {
    return polls_after_four_looks(9, [&](int, ThreadSample* thread) {
      thread->call.number = number;
      thread->call.arguments = arguments;
    });
  };
  EXPECT_THAT(in_call(SYS_futex, {0x5000, FUTEX_WAIT_PRIVATE, 0, 0}), IsEmpty());
  EXPECT_THAT(in_call(SYS_poll, {0x9000, 1, for_ever}), IsEmpty());
  EXPECT_THAT(in_call(SYS_poll, {0x9000, 1, 0xffffffff}), IsEmpty());
  EXPECT_THAT(in_call(SYS_poll, {0x9000, 1, 100}), ElementsAre(10));
  EXPECT_THAT(in_call(SYS_epoll_wait, {3, 0x9000, 1, for_ever}), IsEmpty());
  EXPECT_THAT(in_call(SYS_epoll_wait, {3, 0x9000, 1, 100}), ElementsAre(10));
  EXPECT_THAT(in_call(SYS_ppoll, {0x9000, 1, 0}), IsEmpty());
  EXPECT_THAT(in_call(SYS_ppoll, {0x9000, 1, 0x4000}), ElementsAre(10));
  EXPECT_THAT(in_call(SYS_pselect6, {4, 0x9000, 0, 0, 0}), IsEmpty());
  EXPECT_THAT(in_call(SYS_pselect6, {4, 0x9000, 0, 0, 0x4000}), ElementsAre(10));
  EXPECT_THAT(in_call(SYS_read, {0, 0x9000, 1}), IsEmpty());
  EXPECT_THAT(in_call(SYS_clock_nanosleep, {0, 0, 0x4000}), IsEmpty());
  // For nothing: it sleeps.
  EXPECT_THAT(in_call(SYS_poll, {0, 0, 100}), IsEmpty());
  EXPECT_THAT(in_call(SYS_ppoll, {0, 0, 0x4000}), IsEmpty());
  EXPECT_THAT(in_call(SYS_pselect6, {0, 0, 0, 0, 0x4000}), IsEmpty());
}

TEST(PollMeter, ShowsSinceWhenAllAreWhereTheyAre) {
  FakeProc proc = proc_with_python();
  PollMeter meter(&proc);
  EXPECT_EQ(meter.since(50), 0);
  meter.take({{polling_thread(7)}}, 100);
  meter.take({{polling_thread(10), polling_thread(4, 11)}}, 200);
  meter.take({{polling_thread(20), polling_thread(4, 11)}}, 300);
  EXPECT_EQ(meter.since(400), 200);
  ThreadSample runs = polling_thread(5, 11);
  runs.call.running = true;
  meter.take({{polling_thread(20), runs}}, 400);
  EXPECT_EQ(meter.since(500), 0);
}

// A process may count and end: who sleeps meanwhile will find that at the next look.
TEST(PollMeter, OfMemoryKnowsThoseThatHaveLookedSinceAnotherEnded) {
  PythonProgram program("counting");
  const pid_t waits = program.report().at("waits");
  const auto proc = live_proc();
  if (!reads_instructions(read_python_stacks(proc.get(), program.pid()).version))
    GTEST_SKIP() << "not read in this version";
  PollMeter meter(proc.get());
  ThreadSample other = polling_thread(7, 5'000'001);
  other.call.arguments[3] = 0;
  bool is_there = true;
  Nanos now = 0;
  const auto knows_poll = [&] {
    Sample sample = take_sample(proc.get(), {program.pid()});
    if (is_there) sample.threads.push_back(other);
    meter.take(sample, now += kNanosPerMilli);
    return meter.own_polls().count(waits) != 0;
  };
  EXPECT_TRUE(eventually(knows_poll));
  is_there = false;
  EXPECT_FALSE(knows_poll());
  EXPECT_TRUE(eventually(knows_poll));
  is_there = true;
  EXPECT_FALSE(knows_poll()) << "it may be a child of that process";
  EXPECT_TRUE(eventually(knows_poll));
  ++other.runs;
  EXPECT_FALSE(knows_poll());
  EXPECT_TRUE(eventually(knows_poll));
  EXPECT_TRUE(meter.own_polls().at(waits).is_shared);
}

}  // namespace
}  // namespace mprun
