// Which threads of a real Python program only beat, by instructions that the interpreter has specialised.
#include "watch/stacks/python_beat.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>

#include "procfs/proc_source.h"
#include "python_program.h"
#include "watch/stacks/python_stack.h"

namespace mprun {
namespace {

std::string text_of(const std::optional<PythonBeat>& beat) {
  if (!beat) return "decides";
  if (beat->asks_child) return "asks";
  return std::string("beats") + (beat->prints_at_times ? " and prints at times" : "") +
         (beat->changes_variables ? " and changes variables" : "");
}

TEST(PythonBeat, IsOfThreadsThatLetNoOtherGoOn) {
  PythonProgram program("", "python_beats.py");
  const Json beats = program.report().at("beats");
  const auto proc = live_proc();
  if (!reads_instructions(read_python_stacks(proc.get(), program.pid()).version))
    GTEST_SKIP() << "not read in this version";
  // Of a thread that has just woken up, what is read may be of the next thing that it does.
  std::map<std::string, std::map<std::string, int>> found;  // how often a thread was seen to do what
  EXPECT_TRUE(eventually([&] {
    for (const PythonThread& thread : read_python_progress(proc.get(), program.pid()).threads) {
      const std::string tid = std::to_string(thread.tid);
      if (beats.contains(tid) && !thread.frames.empty()) ++found[tid][text_of(thread.beat)];
    }
    return found.size() == beats.size() && std::all_of(found.begin(), found.end(), [](const auto& one) {
             int looks = 0;
             for (const auto& [what, times] : one.second) looks += times;
             return looks >= 20;
           });
  }));
  for (const auto& [tid, seen] : found) {
    const auto most = std::max_element(seen.begin(), seen.end(),
                                       [](const auto& one, const auto& other) { return one.second < other.second; });
    EXPECT_EQ(most->first, beats.at(tid).at(1).get<std::string>()) << beats.at(tid).at(0);
  }
}

}  // namespace
}  // namespace mprun
