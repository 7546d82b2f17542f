// What `mprun report` reads of a run: the starts of its workers, from the journal.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "record/earlier_run.h"
#include "record/journal.h"
#include "record/run_record.h"

namespace mprun {

// NOLINTNEXTLINE(misc-use-internal-linkage): googletest finds it by argument-dependent lookup
void PrintTo(const RunRecord::Phase& phase, std::ostream* out) {
  *out << phase.worker << ": " << phase.text << " at " << phase.start << " for " << phase.seconds;
}

namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::ElementsAre;
using testing::Field;
using testing::IsEmpty;
using testing::SizeIs;

constexpr Nanos kBegin = 1'700'000'000 * kNanosPerSecond;

[[nodiscard]] Nanos at(int second) { return kBegin + second * kNanosPerSecond; }

/// `start`: seconds since kBegin.
[[nodiscard]] auto phase_is(int worker, const char* text, double start, double seconds) {
  using Phase = RunRecord::Phase;
  return AllOf(Field("worker", &Phase::worker, worker), Field("text", &Phase::text, text),
               Field("start", &Phase::start, testing::DoubleNear(to_seconds(kBegin) + start, 1e-5)),
               Field("seconds", &Phase::seconds, testing::DoubleNear(seconds, 1e-5)));
}

class RecordRunTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = testing::TempDir() + "record_run_XXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    dir_ = pattern;
    std::ofstream(dir_ + "/job.json") << "{}";
    std::ofstream(dir_ + "/results.jsonl").flush();
    auto journal = Journal::create(journal_path(), {});
    ASSERT_TRUE(journal) << journal.error().message;
    journal_ = std::move(*journal);
  }
  void TearDown() override { fs::remove_all(dir_); }

  [[nodiscard]] std::string journal_path() const { return dir_ + "/" + kJournalName; }
  void happens(const std::vector<JobEvent>& events) const {
    for (const JobEvent& event : events) journal_->on_event(event);
    journal_->on_event(Pulse{});
  }
  [[nodiscard]] std::vector<RunRecord::Phase> phases() const {
    const auto run = read_run(dir_);
    EXPECT_TRUE(run) << run.error().message;
    return run ? run->phases : std::vector<RunRecord::Phase>();
  }

  std::string dir_;
  std::unique_ptr<Journal> journal_;
};

TEST_F(RecordRunTest, AStageLastsUntilTheNext) {
  happens({WorkerStage{-1, "starting Python", at(0), true}, WorkerStage{-1, "importing job.py", at(1)},
           WorkerStage{-1, "", at(4)}, WorkerStage{0, "forking", at(4), true}, WorkerStage{1, "forking", at(5), true},
           WorkerStage{0, "", at(6)}, WorkerStarted{0, 44}, WorkerStage{1, "", at(7)},
           WorkerEnded{0, 44, "worker", {}, true, at(9)}});
  EXPECT_THAT(phases(), ElementsAre(phase_is(-1, "starting Python", 0, 1), phase_is(-1, "importing job.py", 1, 3),
                                    phase_is(0, "forking", 4, 2), phase_is(1, "forking", 5, 2)));
}

TEST_F(RecordRunTest, ADeathEndsAStart) {
  happens({WorkerStage{3, "starting Python", at(0), true}, WorkerStage{3, "setup()", at(1)},
           WorkerEnded{3, 44, "worker", {0, 9}, false, at(3)}});
  EXPECT_THAT(phases(), ElementsAre(phase_is(3, "starting Python", 0, 1), phase_is(3, "setup()", 1, 2)));
}

TEST_F(RecordRunTest, AStageWithoutARecordedEndIsLeftOut) {
  happens({WorkerStage{3, "setup()", at(0), true}, WorkerStage{3, "forking", at(100), true}});  // mprun was killed
  EXPECT_THAT(phases(), IsEmpty());
}

TEST_F(RecordRunTest, StagesOfNoStartAreNotRecorded) {
  happens({WorkerStage{0, "", at(0)}, WorkerStage{0, "setup()", at(1)}, WorkerStage{0, "", at(2)}});  // commands, ranks
  EXPECT_THAT(phases(), IsEmpty());
}

TEST_F(RecordRunTest, AFloodOfStagesIsCutAndItsStartStillEnds) {
  for (int start = 0; start < 2; ++start) {
    happens({WorkerStage{0, "forking", at(0), true}});
    for (int i = 0; i < 10'000; ++i) happens({WorkerStage{0, std::string_view("flood"), at(1)}});
    for (int i = 0; i < 10'000; ++i) happens({WorkerStage{0, "", at(5)}});
  }
  std::ifstream journal(journal_path());
  EXPECT_EQ(std::count(std::istreambuf_iterator<char>(journal), {}, '\n'), 1 + 2 * kMostStages);
  const auto found = phases();
  EXPECT_THAT(found, SizeIs(2 * (kMostStages - 1)));
  EXPECT_THAT(found.back(), phase_is(0, "flood", 1, 4));
}

TEST_F(RecordRunTest, AJournalWithoutStagesOrTimesIsRead) {
  std::ofstream(journal_path(), std::ios::app)
      << R"({"process":{"pid":44,"worker":0,"role":"worker","exit_code":0,"signal":9,"expected":false}})"
      << "\n";
  const auto run = read_run(dir_);
  ASSERT_TRUE(run) << run.error().message;
  EXPECT_THAT(run->processes, SizeIs(1));
  EXPECT_THAT(run->phases, IsEmpty());
}

TEST_F(RecordRunTest, TheProcessorsOfAWorkerAreKept) {
  happens(
      {WorkerEnded{1, 44, "worker", {0, 0}, true, at(1), "4-7"}, WorkerEnded{2, 45, "worker", {0, 0}, true, at(1)}});
  const auto run = read_run(dir_);
  ASSERT_TRUE(run) << run.error().message;
  ASSERT_THAT(run->processes, SizeIs(2));
  EXPECT_EQ(run->processes[0].cpus, "4-7");
  EXPECT_EQ(run->processes[1].cpus, "");
}

}  // namespace
}  // namespace mprun
