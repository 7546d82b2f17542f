// Stacks of real Python programs, read from outside and compared with what they report themselves; of recorded ones;
// and of programs with corrupt memory.
#include "json/json.h"
#include "watch/stacks/python_stack.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <random>
#include <sstream>

#include "python_program.h"

namespace mprun {
namespace {

/// "FILE:LINE FUNCTION" of every frame of every thread; those of the interpreter's own library are the same for it.
using Stacks = std::map<pid_t, std::vector<std::string>>;

std::string frame_text(const std::string& file, int line, const std::string& function) {
  return std::filesystem::path(file).filename().string() + ":" + std::to_string(line) + " " + function;
}

Stacks reported(const Json& report) {
  Stacks stacks;
  for (const auto& [tid, frames] : report.at("threads").items()) {
    auto& stack = stacks[std::stoi(tid)];
    for (const auto& frame : frames) stack.push_back(frame_text(frame.at(0), frame.at(1), frame.at(2)));
  }
  return stacks;
}

Stacks found(const PythonStacks& python) {
  Stacks stacks;
  for (const PythonThread& thread : python.threads) {
    EXPECT_TRUE(thread.whole) << thread.tid;
    auto& stack = stacks[thread.tid];
    for (const PythonFrame& frame : thread.frames) stack.push_back(frame_text(frame.file, frame.line, frame.function));
  }
  return stacks;
}

/// The stacks of a process once they are as it reported; the last ones read if they never are.
PythonStacks stacks_as_reported(pid_t pid, const Stacks& expected) {
  const auto proc = live_proc();
  PythonStacks stacks;
  (void)eventually([&] {
    stacks = read_python_stacks(proc.get(), pid);
    return found(stacks) == expected;
  });
  return stacks;
}

TEST(PythonStack, OfManyThreadsIsWhatTheInterpreterSays) {
  PythonProgram program("threads");
  const Stacks expected = reported(program.report());
  EXPECT_EQ(expected.size(), 11U);
  const PythonStacks stacks = stacks_as_reported(program.pid(), expected);
  EXPECT_EQ(found(stacks), expected);
  EXPECT_EQ(stacks.reason, "");
  EXPECT_EQ(stacks.version.substr(0, 2), "3.");
  EXPECT_FALSE(stacks.finalizing);
  ASSERT_EQ(stacks.gils.size(), 1U);
  EXPECT_TRUE(eventually([&] { return !read_python_stacks(live_proc().get(), program.pid()).gils.at(0).locked; }));
  EXPECT_EQ(expected.count(stacks.gils[0].last_holder), 1U);
  EXPECT_GE(stacks.gils[0].wait_begin, stacks.runtime_begin);
  EXPECT_LE(stacks.gils[0].wait_end, stacks.runtime_end);
}

TEST(PythonStack, OfAChildForkedByOneOfManyThreads) {
  PythonProgram program("fork_in_thread");
  const auto report = program.report();
  const pid_t child = report.at("pid");
  EXPECT_NE(child, program.pid());
  EXPECT_EQ(found(stacks_as_reported(child, reported(report))), reported(report));
}

TEST(PythonStack, OfAChildTheInterpreterDoesNotKnowToBeOne) {
  PythonProgram program("fork_in_c");
  const auto report = program.report();
  const pid_t child = report.at("pid");
  EXPECT_NE(child, program.pid());
  EXPECT_EQ(reported(report).count(child), 1U);
  EXPECT_EQ(found(stacks_as_reported(child, reported(report))), reported(report));
}

TEST(PythonStack, OfAnExitHandler) {
  PythonProgram program("exit_handler");
  const Stacks expected = reported(program.report());
  EXPECT_EQ(found(stacks_as_reported(program.pid(), expected)), expected);
}

TEST(PythonStack, ShowsThatTheInterpreterShutsDown) {
  PythonProgram program("finalizing");
  (void)program.report();
  const PythonStacks stacks = read_python_stacks(live_proc().get(), program.pid());
  EXPECT_TRUE(stacks.finalizing);
  EXPECT_EQ(stacks.finalizing_tid, program.pid());
  ASSERT_EQ(stacks.threads.size(), 1U);
  ASSERT_GE(stacks.threads[0].frames.size(), 1U);
  EXPECT_EQ(stacks.threads[0].frames[0].function, "Last.__del__");
}

TEST(PythonStack, ShowsWhichThreadHoldsTheGil) {
  PythonProgram program("gil_held");
  (void)program.report();
  const auto proc = live_proc();
  PythonStacks stacks;
  EXPECT_TRUE(eventually([&] {
    stacks = read_python_stacks(proc.get(), program.pid());
    const auto main = std::find_if(stacks.threads.begin(), stacks.threads.end(),
                                   [&](const PythonThread& thread) { return thread.tid == program.pid(); });
    return main != stacks.threads.end() && !main->frames.empty() && main->frames[0].function == "hold_gil" &&
           stacks.gils.size() == 1 && stacks.gils[0].locked && stacks.gils[0].last_holder == program.pid();
  }));
  EXPECT_GT(stacks.gils.at(0).switch_number, 0U);
  EXPECT_EQ(read_python_stacks(proc.get(), program.pid()).gils.at(0).switch_number, stacks.gils[0].switch_number);
}

TEST(PythonStack, OfASubinterpreterLiesOnThatOfItsCreator) {
  PythonProgram program("subinterpreter");
  if (program.report().contains("missing")) GTEST_SKIP() << "no such module in this Python";
  const auto proc = live_proc();
  EXPECT_TRUE(eventually([&] {
    const PythonStacks stacks = read_python_stacks(proc.get(), program.pid());
    const std::vector<std::string> functions = [&] {
      std::vector<std::string> names;
      for (const PythonThread& thread : stacks.threads) {
        for (const PythonFrame& frame : thread.frames) names.push_back(frame.function);
      }
      return names;
    }();
    return functions == std::vector<std::string>{"<module>", "subinterpreter", "<module>"};
  }));
}

TEST(PythonStack, OfRunningThreadsIsNeverMadeUp) {
  PythonProgram program("hurrying");
  (void)program.report();
  const auto proc = live_proc();
  std::size_t seen = 0;
  for (int round = 0; round < 500; ++round) {
    for (const PythonThread& thread : read_python_stacks(proc.get(), program.pid()).threads) {
      for (const PythonFrame& frame : thread.frames) {
        ++seen;
        EXPECT_THAT(frame.file, testing::EndsWith(".py"));
        EXPECT_THAT(frame.function, testing::AnyOf(testing::StartsWith("hurry"), testing::StartsWith("Thread."),
                                                   testing::StartsWith("report"), "park", "stack_of", "<module>"));
        EXPECT_GE(frame.line, 0) << frame.function;  // 0: what the compiler adds may belong to no line
      }
    }
  }
  EXPECT_GT(seen, 500U);
}

TEST(PythonStack, OfWhatIsNoPythonIsEmpty) {
  const auto proc = live_proc();
  for (const pid_t pid : {getpid(), 0}) {
    const PythonStacks none = read_python_stacks(proc.get(), pid);
    EXPECT_EQ(none.reason, "");
    EXPECT_TRUE(none.threads.empty());
  }
}

/// Passes on another source's answers, with some of the memory changed.
class LyingProc : public ProcSource {
 public:
  LyingProc(ProcSource* asked, unsigned seed) : asked_(asked), random_(seed) {}
  std::optional<std::string> read(const std::string& path) override { return asked_->read(path); }
  std::optional<std::string> link(const std::string& path) override { return asked_->link(path); }
  std::optional<std::vector<std::string>> list(const std::string& path) override { return asked_->list(path); }
  bool memory(pid_t pid, std::uint64_t address, void* to, std::size_t size) override {
    if (!asked_->memory(pid, address, to, size)) return false;
    if (random_() % 16 != 0 || size < 4) return true;
    auto* bytes = static_cast<unsigned char*>(to);
    const std::size_t at = random_() % (size / 4) * 4;
    bytes[at + random_() % 4] = static_cast<unsigned char>(random_());
    return true;
  }
  std::optional<std::vector<UnixSocket>> unix_sockets() override { return std::nullopt; }
  std::optional<Nanos> time_limit(pid_t, int) override { return std::nullopt; }
  std::optional<bool> same_memory(pid_t, pid_t) override { return std::nullopt; }

 private:
  ProcSource* asked_;
  std::mt19937 random_;
};

/// How many frames of a process are believed, over many different corruptions.
std::size_t frames_of_lies(ProcSource* proc, pid_t pid) {
  std::size_t frames = 0;
  for (unsigned seed = 0; seed < 300; ++seed) {
    LyingProc liar(proc, seed);
    for (const PythonThread& thread : read_python_stacks(&liar, pid).threads) {
      EXPECT_LE(thread.frames.size(), 256U);
      frames += thread.frames.size();
    }
  }
  return frames;
}

TEST(PythonStack, MayBeFullOfFalseData) {
  PythonProgram program("threads");
  (void)program.report();
  EXPECT_GT(frames_of_lies(live_proc().get(), program.pid()), 0U);  // the corruptions went deep
}

std::string fixture(const std::string& name) {
  std::ifstream file(std::string(MPRUN_SOURCE_DIR) + "/tests/unit/watch/fixtures/" + name);
  EXPECT_TRUE(file) << name;
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

/// A recording and the report of the recorded program.
struct RecordedStack {
  std::unique_ptr<ProcSource> proc;
  Json report;
};

RecordedStack recorded_stack(const std::string& version) {
  auto proc = recorded_proc(fixture("python-" + version + ".recording"));
  EXPECT_TRUE(proc) << proc.error().message;
  return {std::move(*proc), parse_json(fixture("python-" + version + ".json"))};
}

class RecordedPython : public testing::TestWithParam<const char*> {};

// Makes the fixtures: MPRUN_RECORD_PYTHON=FOLDER MPRUN_PYTHON=PYTHON mprun_unit_tests --gtest_filter='*IsRecorded'.
// They name the places of Python and of this source: use places that any machine may have.
TEST(PythonStack, IsRecorded) {
  const char* folder = std::getenv("MPRUN_RECORD_PYTHON");
  PythonProgram program("threads");
  const auto report = program.report();
  (void)stacks_as_reported(program.pid(), reported(report));
  const auto proc = live_proc();
  ProcRecorder recorder(proc.get());
  const PythonStacks stacks = read_python_stacks(&recorder, program.pid());
  EXPECT_EQ(found(stacks), reported(report));
  const std::string recording = recorder.recording();
  const auto replayed = recorded_proc(recording);
  ASSERT_TRUE(replayed);
  EXPECT_EQ(found(read_python_stacks(replayed->get(), program.pid())), reported(report));
  if (folder == nullptr) return;
  const std::string name = std::string(folder) + "/python-" + stacks.version.substr(0, 4);
  std::ofstream(name + ".recording") << recording;
  std::ofstream(name + ".json") << report.dump() << '\n';
}

TEST_P(RecordedPython, HasTheStacksItHad) {
  const RecordedStack was = recorded_stack(GetParam());
  const PythonStacks stacks = read_python_stacks(was.proc.get(), was.report.at("pid"));
  EXPECT_EQ(found(stacks), reported(was.report));
  EXPECT_EQ(stacks.version.substr(0, 4), GetParam());
  EXPECT_EQ(stacks.gils.size(), 1U);
}

TEST_P(RecordedPython, MayHoldFalseData) {
  const RecordedStack was = recorded_stack(GetParam());
  EXPECT_GT(frames_of_lies(was.proc.get(), was.report.at("pid")), 0U);
}

INSTANTIATE_TEST_SUITE_P(Version, RecordedPython, testing::Values("3.11", "3.12", "3.13"),
                         [](const auto& test) { return "of_3_" + std::string(test.param).substr(2); });

}  // namespace
}  // namespace mprun
