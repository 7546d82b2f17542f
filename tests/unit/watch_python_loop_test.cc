// What loops of a real Python program wait for, in instructions that the interpreter has specialised.
#include "watch/stacks/python_loop.h"

#include <gtest/gtest.h>

#include <map>
#include <string>

#include "procfs/proc_source.h"
#include "python_program.h"
#include "watch/stacks/python_stack.h"

namespace mprun {
namespace {

TEST(PythonLoop, WaitsForFuturesItemsAndCountersUnlessItLooksAtMore) {
  PythonProgram program("loops");
  const Json awaited = program.report().at("awaited");
  const auto proc = live_proc();
  const bool is_known = read_python_stacks(proc.get(), program.pid()).version.starts_with("3.11.");
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
}

}  // namespace
}  // namespace mprun
