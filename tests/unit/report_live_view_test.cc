// The bottom of a terminal: the table of workers, and how it is redrawn.
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "report/live_view.h"
#include "report/plain_progress.h"
#include "report/worker_table.h"

namespace mprun {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

[[nodiscard]] WorkerView busy(int number, double seconds, TaskId task = 1234) {
  return {number, 100 + number, WorkerState::kBusy, task, seconds, 5, 0.984, std::uint64_t{340} << 20U};
}

[[nodiscard]] std::vector<WorkerView> some() {
  return {busy(0, 0.9),
          busy(12, 3725, 98765),
          {2, 0, WorkerState::kStarting, {}, 0, 0, 0, 0},
          {3, 103, WorkerState::kIdle, {}, 0, 0, 0, std::uint64_t{5} << 30U}};
}

TEST(WorkerTable, EightyColumnsShowEverything) {
  EXPECT_THAT(
      worker_table(some(), {80, 20, false}),
      ElementsAre("worker  state      task     age    CPU  memory", "     0  busy       1234      0s    98%    340M",
                  "    12  busy      98765   1h02m    98%    340M", "     2  starting",
                  "     3  idle                        0%    5.0G"));
}

TEST(WorkerTable, FewerColumnsLeaveTheLessImportantOnesOut) {
  EXPECT_THAT(worker_table(some(), {40, 20, false}),
              ElementsAre("worker  state      task     age    CPU", "     0  busy       1234      0s    98%",
                          "    12  busy      98765   1h02m    98%", "     2  starting",
                          "     3  idle                        0%"));
  EXPECT_THAT(worker_table(some(), {20, 20, false}),
              ElementsAre("worker  state", "     0  busy", "    12  busy", "     2  starting", "     3  idle"));
  EXPECT_THAT(worker_table(some(), {6, 20, false}), IsEmpty());
}

TEST(WorkerTable, NoLineIsTooLong) {
  for (int columns = 0; columns < 100; ++columns) {
    for (const std::string& line : worker_table(some(), {columns, 3, false})) {
      EXPECT_LT(static_cast<int>(line.size()), columns) << line;
    }
  }
}

TEST(WorkerTable, OfTooManyTheLongestRunningAreShown) {
  std::vector<WorkerView> workers;
  workers.reserve(10);
  for (int number = 0; number < 10; ++number) workers.push_back(busy(number, number == 7 ? 100 : 0.1 * number));
  workers[9].state = WorkerState::kStopped;
  workers[1].state = WorkerState::kIdle;
  workers[1].task.reset();
  const auto lines = worker_table(workers, {33, 6, false});
  EXPECT_THAT(lines, ElementsAre("worker  state      task     age", "     0  busy       1234      0s",
                                 "     2  busy       1234      0s", "     7  busy       1234   1m40s",
                                 "     9  stopped    1234      0s", "and 6 more"));
  EXPECT_THAT(worker_table(workers, {30, 2, false}), SizeIs(2));
  EXPECT_THAT(worker_table(workers, {30, 1, false}), IsEmpty());
  EXPECT_THAT(worker_table({}, {30, 20, false}), IsEmpty());
}

TEST(WorkerTable, ColorSaysNothingOfItsOwn) {
  WorkerView stopped = busy(0, 1);
  stopped.state = WorkerState::kStopped;
  const auto lines = worker_table(std::vector<WorkerView>{stopped}, {33, 20, true});
  EXPECT_THAT(lines, ElementsAre("\x1b[2mworker  state      task     age\x1b[0m",
                                 "\x1b[33m     0  stopped    1234      1s\x1b[0m"));
}

TEST(WorkerTable, SizesAreShort) {
  EXPECT_EQ(short_size(0), "0K");
  EXPECT_EQ(short_size(900 << 10U), "900K");
  EXPECT_EQ(short_size(std::uint64_t{999} << 20U), "999M");
  EXPECT_EQ(short_size(std::uint64_t{1'250} << 20U), "1.2G");
  EXPECT_EQ(short_size(std::uint64_t{64} << 30U), "64G");
  EXPECT_EQ(short_size(~std::uint64_t{0}), "16E");
}

// --- drawing ---

class LiveViewTest : public ::testing::Test {
 protected:
  [[nodiscard]] static LiveView view(ViewMode mode, bool breaks_lines = true) {
    LiveView made({"digits", 0, false, false}, mode, breaks_lines);
    const std::vector<WorkerView> workers{busy(0, 1), busy(1, 2)};
    made.see(WorkersSeen{workers, 1});
    return made;
  }
  [[nodiscard]] static std::string draw(LiveView* view, ScreenSize size) {
    Pulse pulse;
    pulse.done = 3;
    pulse.phase = "running";
    return view->draw(pulse, {}, size);
  }
  static constexpr const char* kHead = "worker  state      task     age    CPU  memory\x1b[K\n";
  static constexpr const char* kFirst = "     0  busy       1234      1s    98%    340M\x1b[K\n";
  static constexpr const char* kSecond = "     1  busy       1234      2s    98%    340M\x1b[K\n";
  static constexpr const char* kLine = "digits  3 done";
  static constexpr const char* kBlank = "\x1b[3A\r\x1b[K\x1b[B\x1b[K\x1b[B\x1b[K\x1b[B\x1b[K\x1b[3A";
  const std::string table_ = std::string(kHead) + kFirst + kSecond + kLine;
};

TEST_F(LiveViewTest, APictureGoesOverTheOneBefore) {
  LiveView made = view(ViewMode::kWorkers);
  EXPECT_EQ(draw(&made, {80, 24}), "\r" + table_ + "\x1b[K");
  EXPECT_EQ(draw(&made, {80, 24}), "\x1b[3A\r" + table_ + "\x1b[K");
  EXPECT_EQ(made.erase({80, 24}), kBlank);
  EXPECT_EQ(made.erase({80, 24}), "");
}

TEST_F(LiveViewTest, TheSummaryIsOneLine) {
  LiveView made = view(ViewMode::kSummary);
  EXPECT_EQ(draw(&made, {80, 24}), std::string("\r") + kLine + "\x1b[K");
  EXPECT_EQ(draw(&made, {80, 24}), std::string("\r") + kLine + "\x1b[K");
  EXPECT_EQ(made.erase({80, 24}), "\r\x1b[K");
}

TEST_F(LiveViewTest, MessagesStandAboveItInTheSamePiece) {
  LiveView made = view(ViewMode::kWorkers);
  EXPECT_EQ(made.above("before\n", {80, 24}), "before\n");
  (void)draw(&made, {80, 24});
  EXPECT_EQ(made.above("task 3 failed\n", {80, 24}), kBlank + std::string("task 3 failed\n\r") + table_ + "\x1b[K");
}

TEST_F(LiveViewTest, FewerLinesLeaveNothingBehind) {
  LiveView made = view(ViewMode::kWorkers);
  (void)draw(&made, {80, 24});
  made.see(WorkersSeen{});
  EXPECT_EQ(draw(&made, {80, 24}), std::string("\x1b[3A\r") + kLine + "\x1b[J");
  EXPECT_EQ(draw(&made, {80, 24}), std::string("\r") + kLine + "\x1b[K");
}

TEST_F(LiveViewTest, LinesThatANarrowerTerminalHasBrokenAreOverwritten) {
  LiveView made = view(ViewMode::kWorkers);
  (void)draw(&made, {80, 24});  // three lines of 46 columns, one of 14
  EXPECT_EQ(draw(&made, {30, 24}).substr(0, 5), "\x1b[6A\r");
  LiveView cut = view(ViewMode::kWorkers, false);
  (void)draw(&cut, {80, 24});
  EXPECT_EQ(draw(&cut, {30, 24}).substr(0, 5), "\x1b[3A\r");
}

TEST_F(LiveViewTest, NothingIsDrawnAboveTheScreen) {
  LiveView made = view(ViewMode::kWorkers);
  EXPECT_EQ(draw(&made, {80, 3}), std::string("\r") + kLine + "\x1b[K") << "no room for a worker";
  (void)draw(&made, {80, 24});
  EXPECT_EQ(draw(&made, {80, 2}), std::string("\x1b[1A\r") + kLine + "\x1b[J");
}

TEST_F(LiveViewTest, OtherCharactersAreLeftOutWhereTheyCannotBeShown) {
  LiveView made({"gr\xC3\xBC\xC3\x9F", 0, false, false}, ViewMode::kSummary, true);
  EXPECT_EQ(draw(&made, {80, 24}), "\rgr??  3 done\x1b[K");
}

TEST_F(LiveViewTest, ColumnsAreThoseOfTheScreen) {
  EXPECT_EQ(columns_of("\x1b[31m3 failed\x1b[0m"), 8);
  EXPECT_EQ(columns_of("\xE2\x96\x95\xE2\x96\x88\xE2\x96\x91\xE2\x96\x8F gr\xC3\xBC\xC3\x9F"), 9);
  EXPECT_EQ(columns_of("\xE6\x95\xB0\xE5\xAD\x97"), 4);
}

// --- without a terminal ---

class PlainProgressTest : public ::testing::Test {
 protected:
  /// The seconds at which a line is printed while `doing` continues.
  [[nodiscard]] std::vector<int> spoken(const std::string& doing, int until) {
    std::vector<int> found;
    for (int second = 0; second <= until; ++second) {
      Pulse pulse;
      pulse.elapsed = begun_ + second;
      pulse.phase = "starting";
      pulse.doing = doing;
      if (const auto line = plain_.next(pulse, {})) found.push_back(second);
    }
    begun_ += until;
    return found;
  }
  PlainProgress plain_{"digits", 4};
  int begun_ = 0;
};

TEST_F(PlainProgressTest, SilenceIsBrokenEverMoreRarely) {
  EXPECT_THAT(spoken("setup()", 1300), ElementsAre(0, 10, 30, 70, 150, 310, 610, 910, 1210));
}

TEST_F(PlainProgressTest, AnotherSilenceBeginsAnew) {
  (void)spoken("setup()", 200);
  (void)spoken("", 5);
  EXPECT_THAT(spoken("waiting for input", 35), ElementsAre(10, 30));
}

TEST_F(PlainProgressTest, ChangingWordsAreNoEndOfSilence) {
  (void)spoken("waiting for 3 workers to start", 6);
  EXPECT_THAT(spoken("waiting for 2 workers to start", 6), ElementsAre(4));
}

TEST(WorkerTable, ShowsTheProcessorsOfThoseThatAreBound) {
  std::vector<WorkerView> workers{busy(0, 1), busy(1, 2)};
  EXPECT_THAT(worker_table(workers, {80, 20, false}).front(), testing::Not(testing::HasSubstr("CPUs")));
  workers[0].cpus = "0-3,8-11";
  workers[1].cpus = "4-7,12-15";
  const auto lines = worker_table(workers, {80, 20, false});
  EXPECT_THAT(lines[0], testing::EndsWith("  CPUs"));
  EXPECT_THAT(lines[1], testing::EndsWith("  0-3,8-11"));
  EXPECT_THAT(lines[2], testing::EndsWith("  4-7,12-15"));
  EXPECT_THAT(worker_table(workers, {40, 20, false}).front(), testing::Not(testing::HasSubstr("CPUs")));
  workers[0].cpus = "0,2,4,6,8,10,12,14,16,18,20";
  EXPECT_THAT(worker_table(workers, {80, 20, false}).front(), testing::Not(testing::HasSubstr("CPUs")));
}

}  // namespace
}  // namespace mprun
