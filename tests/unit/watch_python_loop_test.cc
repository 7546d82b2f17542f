// What loops of a real Python program wait for, in instructions that the interpreter has specialised.
#include "watch/stacks/python_loop.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "procfs/proc_source.h"
#include "python_program.h"
#include "watch/stacks/python_stack.h"

namespace mprun {
namespace {

TEST(PythonLoop, WaitsForFuturesItemsAndCountersUnlessItLooksAtMore) {
  PythonProgram program("loops");
  const Json awaited = program.report().at("awaited");
  const auto proc = live_proc();
  const bool is_known = reads_instructions(read_python_stacks(proc.get(), program.pid()).version);
  std::map<std::string, std::string> expected;
  for (const auto& [tid, loop] : awaited.items()) {
    if (is_known && !loop.at(1).get<std::string>().empty()) expected[tid] = loop.at(1);
  }
  std::map<std::string, std::string> found;
  // While a thread runs, what is read of it may not fit together. A slow machine need not read so often.
  const auto enough = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  int rounds = 0;
  EXPECT_TRUE(eventually([&] {
    for (const PythonThread& thread : read_python_progress(proc.get(), program.pid()).threads) {
      const std::string tid = std::to_string(thread.tid);
      if (!thread.awaited || !awaited.contains(tid)) continue;
      found[tid] = thread.awaited->what;
      EXPECT_EQ(thread.awaited->what, awaited.at(tid).at(1)) << awaited.at(tid).at(0);
      const std::string loop = awaited.at(tid).at(0);
      const bool reads_shared = found[tid].ends_with("shared memory") || loop == "a_future_or_a_shared_flag" ||
                                loop == "an_item_of_processes";
      EXPECT_EQ(thread.awaited->is_shared, reads_shared) << awaited.at(tid).at(0);
    }
    return (++rounds >= 50 || std::chrono::steady_clock::now() > enough) && found == expected;
  })) << found.size()
      << " of " << expected.size();
  for (const auto& [tid, what] : expected) EXPECT_TRUE(found.contains(tid)) << awaited.at(tid).at(0);
}

TEST(PythonLoop, MayDecideByMoreThanItWaitsFor) {
  PythonProgram program("waits");
  const Json decides = program.report().at("decides");
  const auto proc = live_proc();
  const bool is_known = reads_instructions(read_python_stacks(proc.get(), program.pid()).version);
  // Of a thread that has just woken up, what is read may be of the next thing that it does.
  std::map<std::string, std::pair<int, int>> found;  // how often it was seen to decide, and in all
  EXPECT_TRUE(eventually([&] {
    for (const PythonThread& thread : read_python_progress(proc.get(), program.pid()).threads) {
      const std::string tid = std::to_string(thread.tid);
      if (!decides.contains(tid) || thread.frames.empty() || !is_library_file(thread.frames.front().file)) continue;
      auto& [times, all] = found[tid];
      times += thread.may_decide ? 1 : 0;
      ++all;
    }
    return found.size() == decides.size() &&
           std::all_of(found.begin(), found.end(), [](const auto& one) { return one.second.second >= 20; });
  }));
  for (const auto& [tid, times] : found) {
    const bool expected = !is_known || decides.at(tid).at(1).get<bool>();
    const int right = expected ? times.first : times.second - times.first;
    EXPECT_GE(right * 10, times.second * 9) << decides.at(tid).at(0) << ": " << right << " of " << times.second;
  }
}

// while event.wait(1): pass, and what may come after it.
class PythonWaysTest : public testing::Test {
 protected:
  /// Instructions and arguments, of jumps their targets.
  static std::vector<PythonInstruction> code(const std::vector<std::pair<PythonOp, unsigned>>& all) {
    std::vector<PythonInstruction> instructions;
    for (const auto& [op, argument] : all) instructions.push_back({instructions.size(), op, argument, argument});
    return instructions;
  }
  static PythonWays ways(const std::vector<PythonInstruction>& instructions, TimeUp end, std::string_view table = "") {
    return ways_after(instructions, 1, table, end,
                      [](const PythonInstruction& load) { return load.op == kLoadGlobal && load.argument == 7; });
  }
};

TEST_F(PythonWaysTest, AfterAWaitThatReturnsFalse) {
  const auto loop = code({{kLoadFast, 0}, {kCall, 0}, {kJumpIfTrue, 4}, {kJump, 0}, {kReturn, 0}});
  EXPECT_EQ(ways(loop, TimeUp::kReturnsFalse).reached, (std::vector<std::size_t>{0, 2, 3}));
  EXPECT_TRUE(ways(loop, TimeUp::kReturnsFalse).come_back);
  EXPECT_EQ(ways(loop, TimeUp::kNotKnown).reached, (std::vector<std::size_t>{0, 2, 3, 4}));
  const auto once = code({{kLoadFast, 0}, {kCall, 0}, {kJumpIfFalse, 4}, {kJump, 0}, {kReturn, 0}});
  EXPECT_EQ(ways(once, TimeUp::kReturnsFalse).reached, (std::vector<std::size_t>{2, 4}));
  EXPECT_FALSE(ways(once, TimeUp::kReturnsFalse).come_back);
}

TEST_F(PythonWaysTest, InTheHandlerOfItsException) {
  // Instructions 0 to 2 are handled at 4.
  const std::string table = {static_cast<char>(0x80), 3, 4, 0};
  const auto loop = code({{kLoadFast, 0},
                          {kCall, 0},
                          {kStoreSubscript, 0},
                          {kJump, 0},
                          {kLoadGlobal, 7},
                          {kMatchException, 0},
                          {kJumpIfFalse, 8},
                          {kJump, 0},
                          {kReraise, 0}});
  const PythonWays ended = ways(loop, TimeUp::kRaises, table);
  EXPECT_EQ(ended.reached, (std::vector<std::size_t>{0, 4, 5, 6, 7}));
  EXPECT_TRUE(ended.come_back);
  EXPECT_TRUE(ways(loop, TimeUp::kRaises).reached.empty()) << "nothing handles it";
  auto other = loop;
  other[4].argument = 8;
  EXPECT_EQ(ways(other, TimeUp::kRaises, table).reached, (std::vector<std::size_t>{0, 4, 5, 6, 7, 8}));
  // The numbers of a table have six bits a byte: from 0, 64 instructions, handled at 4.
  const std::string longer = {static_cast<char>(0x80), static_cast<char>(0x41), 0, 4, 0};
  EXPECT_EQ(ways(loop, TimeUp::kRaises, longer).reached, ended.reached);
}

TEST_F(PythonWaysTest, LeadPastWhatRaises) {
  // while True: sleep(1); try: stat() except: continue; set()
  const auto loop = code({{kLoadFast, 0},
                          {kCall, 0},
                          {kLoadFast, 1},
                          {kCall, 1},
                          {kLoadFast, 2},
                          {kJump, 0},
                          {kPopTop, 0},
                          {kJump, 0},
                          {kReturn, 0}});
  const std::string table = {static_cast<char>(0x82), 2, 6, 0};  // instructions 2 and 3 are handled at 6
  const auto no_end = [](const PythonInstruction&) { return false; };
  const PythonWays plain = ways_after(loop, 1, table, TimeUp::kReturnsFalse, no_end);
  EXPECT_FALSE(WaysOfCall(loop, 1, plain).comes_back_without(4));
  const PythonWays all = ways_after(loop, 1, table, TimeUp::kReturnsFalse, no_end, true);
  EXPECT_TRUE(WaysOfCall(loop, 1, all).comes_back_without(4)) << "what comes after an exception is not done each time";
  EXPECT_FALSE(WaysOfCall(loop, 1, all).comes_back_without(2));
  const auto any = [](std::size_t, std::size_t) { return true; };
  EXPECT_FALSE(WaysOfCall(loop, 1, all).leaves(any));
  EXPECT_TRUE(WaysOfCall(loop, 1, all).comes_back_from(6));
  EXPECT_FALSE(WaysOfCall(loop, 1, all).comes_back_from(8));
}

}  // namespace
}  // namespace mprun
