// Samples, and what two of them prove together: the snapshot lemma.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fake_proc.h"

namespace mprun {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

Sample sample_of(FakeProc* proc) { return take_sample(proc, process_tree(proc, 1, false)); }

FakeProc two_processes() {
  FakeProc proc;
  proc.process(10).thread(10).waits_for_child(11);
  proc.process(11, 10).thread(11).waits_on(0x5000);
  proc.process(11, 10).thread(12).waits_on(0x6000);
  return proc;
}

TEST(ProcessTree, HoldsTheLivingDescendants) {
  FakeProc proc = two_processes();
  proc.process(20, 0).thread(20);  // outside the tree
  proc.process(13, 11).thread(13).state = 'Z';
  EXPECT_THAT(process_tree(&proc, 1, false), ElementsAre(10, 11));
  EXPECT_THAT(process_tree(&proc, 10, true), ElementsAre(10, 11));
  EXPECT_THAT(process_tree(&proc, 99, false), IsEmpty());
}

TEST(ProcessTree, HoldsAProcessWhoseFirstThreadHasEnded) {
  FakeProc proc = two_processes();
  proc.process(11, 10).thread(11).state = 'Z';
  EXPECT_THAT(process_tree(&proc, 1, false), ElementsAre(10, 11));
}

TEST(Sample, OfATreeThatStandsStillAgreesWithTheNext) {
  FakeProc proc = two_processes();
  const Sample before = sample_of(&proc);
  ASSERT_EQ(before.threads.size(), 3U);
  EXPECT_EQ(before.threads[1].pid, 11);
  EXPECT_EQ(before.threads[2].tid, 12);
  EXPECT_TRUE(stood_still(before, sample_of(&proc)));
}

/// A sample before and after `change` must not agree.
template <typename Change>
void expect_movement(const char* what, const Change& change) {
  FakeProc proc = two_processes();
  const Sample before = sample_of(&proc);
  change(&proc);
  const Sample after = sample_of(&proc);
  EXPECT_FALSE(stood_still(before, after)) << what;
  EXPECT_FALSE(stood_still(after, before)) << what;
}

// Each of these was once enough for a false alarm.
TEST(Sample, DiffersAfterAnyMovement) {
  const auto last = [](FakeProc* proc) -> TreeThread& { return proc->processes[11].threads[12]; };
  expect_movement("another run, and back in the same call", [&](FakeProc* proc) { last(proc).runs_once(); });
  expect_movement("another state", [&](FakeProc* proc) { last(proc).state = 'R'; });
  expect_movement("running", [&](FakeProc* proc) { last(proc).running = true; });
  expect_movement("another call", [&](FakeProc* proc) { last(proc).reads(0); });
  expect_movement("another argument", [&](FakeProc* proc) { last(proc).waits_on(0x6004); });
  expect_movement("another stack", [&](FakeProc* proc) { last(proc).stack_pointer -= 16; });
  expect_movement("another instruction", [&](FakeProc* proc) { last(proc).program_counter += 2; });
  expect_movement("traced from now on", [&](FakeProc* proc) { last(proc).tracer = 5; });
  expect_movement("a new thread", [](FakeProc* proc) { proc->processes[11].thread(14); });
  expect_movement("a thread less", [](FakeProc* proc) { proc->processes[11].threads.erase(12); });
  expect_movement("a new process", [](FakeProc* proc) { proc->process(15, 11).thread(15); });
  expect_movement("a process less", [](FakeProc* proc) { proc->processes.erase(11); });
}

// Of CUDA's driver: it wakes up every 100 ms.
TEST(Sample, AgreesWithTheNextWhereAThreadOnlyTicks) {
  FakeProc proc = two_processes();
  TreeThread& handler = proc.processes[11].threads[12].call(SYS_poll, {0x9000, 11, 100});
  const auto agrees = [&] {
    const Sample before = sample_of(&proc);
    handler.runs_once();
    const Sample after = sample_of(&proc);
    EXPECT_EQ(still_part(before, after)->threads[2].moved, !stood_still(before, after));
    return stood_still(before, after);
  };
  EXPECT_FALSE(agrees());
  handler.name = "cuda-EvtHandlr";
  EXPECT_TRUE(agrees());
  handler.arguments[2] = 99;
  EXPECT_FALSE(agrees());
  handler.arguments[2] = 100;
  EXPECT_TRUE(agrees());
  handler.call(SYS_ppoll, {0x9000, 11, 0x9100});  // as on arm64
  EXPECT_FALSE(agrees()) << "its limit cannot be read";
  proc.processes[11].put(0x9100, timespec{1, 100'000'000});
  EXPECT_FALSE(agrees());
  proc.processes[11].put(0x9100, timespec{0, 100'000'000});
  EXPECT_TRUE(agrees());
  const Sample before = sample_of(&proc);
  handler.arguments[1] = 12;
  EXPECT_FALSE(stood_still(before, sample_of(&proc))) << "it waits for something else";
}
TEST(Sample, OfRunningThreadsProvesNothingEvenIfTwoAgree) {
  FakeProc proc = two_processes();
  proc.processes[11].threads[12].running = true;
  const Sample sample = sample_of(&proc);
  EXPECT_FALSE(stood_still(sample, sample));
}

// For another user's processes /proc shows how often they ran, but not what they do.
TEST(Sample, ShowsWhetherProcessesRanThatMayNotBeInspected) {
  FakeProc proc = two_processes();
  proc.processes[11].readable = false;
  const Sample sample = sample_of(&proc);
  EXPECT_TRUE(sample.whole);
  for (const ThreadSample& thread : sample.threads) EXPECT_EQ(thread.hidden, thread.pid == 11) << thread.tid;
  EXPECT_TRUE(stood_still(sample, sample));
  proc.processes[11].threads[12].runs_once();
  const Sample after = sample_of(&proc);
  EXPECT_FALSE(stood_still(sample, after));
  const auto part = still_part(sample, after);
  ASSERT_TRUE(part);
  for (const ThreadSample& thread : part->threads) EXPECT_EQ(thread.moved, thread.tid == 12) << thread.tid;
  proc.processes[11].threads[12].state = 'R';
  const Sample running = sample_of(&proc);
  EXPECT_FALSE(stood_still(running, running));
}

TEST(Sample, IsNotWholeWithoutAThreadThatCannotBeRead) {
  FakeProc proc = two_processes();
  proc.processes[11].threads[12].garbled = true;
  const Sample sample = sample_of(&proc);
  EXPECT_FALSE(sample.whole);
  EXPECT_FALSE(stood_still(sample, sample));
  EXPECT_FALSE(still_part(sample, sample));
}

TEST(StillPart, CountsThreadsThatMovedAsRunning) {
  FakeProc proc = two_processes();
  const Sample before = sample_of(&proc);
  proc.processes[11].threads[12].runs_once();
  const auto part = still_part(before, sample_of(&proc));
  ASSERT_TRUE(part);
  EXPECT_FALSE(part->threads[0].moved);
  EXPECT_FALSE(part->threads[1].moved);
  EXPECT_TRUE(part->threads[2].moved);
}

TEST(StillPart, CountsAllThreadsWhereOneCameOrWent) {
  FakeProc proc = two_processes();
  const Sample before = sample_of(&proc);
  proc.processes[11].threads.erase(12);
  auto part = still_part(before, sample_of(&proc));
  ASSERT_TRUE(part);
  EXPECT_FALSE(part->threads[0].moved);
  EXPECT_TRUE(part->threads[1].moved);
  proc.processes[11].thread(12).waits_on(0x6000);
  proc.processes[11].thread(13);
  part = still_part(before, sample_of(&proc));
  ASSERT_TRUE(part);
  EXPECT_FALSE(part->threads[0].moved);
  EXPECT_TRUE(part->threads[1].moved && part->threads[2].moved && part->threads[3].moved);
}

}  // namespace
}  // namespace mprun
