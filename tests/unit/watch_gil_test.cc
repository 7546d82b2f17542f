// A thread that waits for a GIL runs repeatedly, and is stuck only as long as no thread gets the GIL: over a real
// Python whose GIL seems to change hands.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <ctime>

#include "python_program.h"
#include "watch/stacks/python_stack.h"
#include "watch/watcher.h"

namespace mprun {
namespace {

/// The live system, except for one word of memory, in which every read finds another number.
class ChangingWord : public ProcRecorder {
 public:
  ChangingWord(ProcSource* proc, std::uint64_t address) : ProcRecorder(proc), address_(address) {}
  bool memory(pid_t pid, std::uint64_t address, void* to, std::size_t size) override {
    if (!ProcRecorder::memory(pid, address, to, size)) return false;
    if (address <= address_ && address_ + sizeof number_ <= address + size) {
      ++number_;
      std::memcpy(static_cast<char*>(to) + (address_ - address), &number_, sizeof number_);
    }
    return true;
  }

 private:
  std::uint64_t address_, number_ = 0;
};

/// Watches a process until something is proved, or until that many judgements proved nothing.
std::optional<Proof> watch(ProcSource* proc, pid_t pid, int judgements) {
  const auto boundary = [&judgements] {
    --judgements;
    return TreeBoundary();
  };
  Watcher watcher(proc, {pid, true, 0}, boundary, [](pid_t, Nanos) { return WatchedTree::Deaths(); });
  std::optional<Proof> proof;
  while (!proof && judgements > 0) {
    const Nanos left = std::max<Nanos>(watcher.next_look() - monotonic_now(), 0);
    const timespec pause{left / kNanosPerSecond, left % kNanosPerSecond};
    nanosleep(&pause, nullptr);
    proof = watcher.look(monotonic_now());
  }
  return proof;
}

TEST(GilWatch, ProvesNothingWhileTheGilChangesHands) {
  PythonProgram program("gil_wanted");
  (void)program.report();
  const auto proc = live_proc();
  const auto proof = watch(proc.get(), program.pid(), 100);
  ASSERT_TRUE(proof);
  EXPECT_TRUE(proof->judgement.is_deadlock());
  ASSERT_EQ(proof->judgement.gil_switches.size(), 1U);

  // _gil_runtime_state: the number of switches precedes the condition.
  const auto stacks = read_python_stacks(proc.get(), program.pid());
  ChangingWord changing(proc.get(), stacks.gils.at(0).wait_begin - sizeof(std::uint64_t));
  EXPECT_NE(read_python_stacks(&changing, program.pid()).gils.at(0).switch_number,
            read_python_stacks(&changing, program.pid()).gils.at(0).switch_number);
  EXPECT_FALSE(watch(&changing, program.pid(), 6));
}

// One of its threads sleeps, so the process is not stuck; the two that wait for each other are.
TEST(GilWatch, ProvesACycleBesideAThreadThatRuns) {
  PythonProgram program("gil_kept_by_join");
  (void)program.report();
  const auto proc = live_proc();
  const auto proof = watch(proc.get(), program.pid(), 100);
  ASSERT_TRUE(proof);
  EXPECT_EQ(proof->verdict, HangVerdict::kOrphanedLock);
  const auto& waits = proof->judgement.orphaned;
  ASSERT_EQ(waits.size(), 2U);
  EXPECT_EQ(waits[0].tid, program.pid());
  EXPECT_EQ(waits[0].owner, waits[1].tid);
  EXPECT_EQ(waits[1].owner, waits[0].tid);

  const auto stacks = read_python_stacks(proc.get(), program.pid());
  ChangingWord changing(proc.get(), stacks.gils.at(0).wait_begin - sizeof(std::uint64_t));
  EXPECT_FALSE(watch(&changing, program.pid(), 4));
}

}  // namespace
}  // namespace mprun
