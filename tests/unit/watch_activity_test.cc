// Which threads have run since the last look, according to real files.
#include <gtest/gtest.h>
#include <sys/syscall.h>

#include <filesystem>
#include <fstream>

#include "watch/sample/activity.h"

namespace mprun {
namespace {

namespace fs = std::filesystem;

/// FUTEX_WAIT_BITSET, private, with a clock and a time limit.
const std::string kWaitForGil = std::to_string(SYS_futex) + " 0x5000 0x189 0x0 0x7f00 0x0 0xffffffff 0x7ffc 0x7f01";

/// Threads of process 10 in a folder that stands for /proc.
class ActivityTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "mprun-activity-XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    root_ = pattern;
    for (const pid_t tid : {10, 11}) ran(tid, 5);
  }
  void TearDown() override { fs::remove_all(root_); }

  void ran(pid_t tid, int times) {
    const fs::path folder = root_ / "10/task" / std::to_string(tid);
    fs::create_directories(folder);
    std::ofstream(folder / "schedstat") << "1 2 " << times << '\n';
  }
  static Sample sample() {
    Sample sample;
    for (const pid_t tid : {10, 11}) {
      ThreadSample thread;
      thread.pid = 10;
      thread.tid = tid;
      thread.runs = 5;
      sample.threads.push_back(thread);
    }
    return sample;
  }

  fs::path root_;
};

TEST_F(ActivityTest, SeesWhichThreadsHaveRun) {
  ActivityMeter meter(root_.string());
  EXPECT_TRUE(meter.knows_none());
  EXPECT_FALSE(meter.has_moved(1, true));
  meter.set_threads(sample(), 1);
  EXPECT_FALSE(meter.knows_none());
  EXPECT_FALSE(meter.has_moved(2, true));
  for (const pid_t tid : {10, 11}) {
    ran(tid, 6 + tid);
    EXPECT_TRUE(meter.has_moved(3, false)) << tid;
    EXPECT_FALSE(meter.has_moved(4, false)) << tid;
  }
}

TEST_F(ActivityTest, SeesNoMoveInAThreadThatOnlyTicks) {
  ActivityMeter meter(root_.string());
  Sample ticking = sample();
  ticking.threads[1].ticks = true;
  meter.set_threads(ticking, 1);
  EXPECT_FALSE(meter.has_moved(kNanosPerSecond, true));
  ran(11, 6);
  EXPECT_FALSE(meter.has_moved(2 * kNanosPerSecond, true));
  ticking.threads[1].ticks = false;  // seen while it was awake
  ticking.threads[1].runs = 7;
  meter.set_threads(ticking, 2 * kNanosPerSecond + 1);
  EXPECT_EQ(meter.last_moves().at(11), 1);
  ran(10, 6);
  EXPECT_TRUE(meter.has_moved(3 * kNanosPerSecond, true));
}

TEST_F(ActivityTest, SeesAMoveInAThreadThatTicksAndWorks) {
  ActivityMeter meter(root_.string());
  Sample ticking = sample();
  ticking.threads[1].ticks = true;
  meter.set_threads(ticking, 1);
  EXPECT_FALSE(meter.has_moved(kNanosPerSecond, true));
  std::ofstream(root_ / "10/task/11/schedstat") << kNanosPerSecond / 2 << " 2 9\n";
  EXPECT_TRUE(meter.has_moved(2 * kNanosPerSecond, true));
}

TEST_F(ActivityTest, KnowsWhenEachHasRun) {
  ActivityMeter meter(root_.string());
  meter.set_threads(sample(), 1);
  ran(11, 6);
  EXPECT_TRUE(meter.has_moved(3, true));
  EXPECT_FALSE(meter.has_moved(4, true));
  EXPECT_EQ(meter.last_moves(), (std::map<pid_t, Nanos>{{10, 1}, {11, 3}}));
}

TEST_F(ActivityTest, TakesAnEndForAMovement) {
  ActivityMeter meter(root_.string());
  meter.set_threads(sample(), 1);
  std::ofstream(root_ / "10/task/11/schedstat", std::ios::trunc) << "";
  EXPECT_TRUE(meter.has_moved(2, true));
  EXPECT_FALSE(meter.has_moved(3, true));  // and forgets it
}

TEST_F(ActivityTest, KnowsWhichThreadsRest) {
  ActivityMeter meter(root_.string());
  meter.set_threads(sample(), 1);
  EXPECT_EQ(meter.resting_since(1), std::set<pid_t>{10});
  ran(11, 9);
  EXPECT_TRUE(meter.has_moved(5, true));
  EXPECT_TRUE(meter.resting_since(4).empty());
  EXPECT_EQ(meter.resting_since(5), std::set<pid_t>{10});
}

TEST_F(ActivityTest, DoesNotTakeWaitingForAGilForAMovement) {
  ActivityMeter meter(root_.string());
  meter.set_threads(sample(), 1);
  ran(11, 9);
  std::ofstream(root_ / "10/task/11/syscall") << kWaitForGil << '\n';
  EXPECT_TRUE(meter.has_moved(5, true));
  EXPECT_EQ(meter.resting_since(4), std::set<pid_t>{10});
}

// Where CPUs are scarce, the thread is mostly found waiting for one.
TEST_F(ActivityTest, ForgivesAWaiterForAGilThatItRunsALittle) {
  ActivityMeter meter(root_.string());
  meter.set_threads(sample(), 1);
  const auto write = [this](const char* name, const std::string& text) {
    std::ofstream(root_ / "10/task/11" / name) << text << '\n';
  };
  write("syscall", "running");
  write("schedstat", "0 0 9");
  EXPECT_TRUE(meter.has_moved(1000, true));
  EXPECT_TRUE(meter.resting_since(999).empty());  // it has not been seen to wait for a GIL
  write("syscall", kWaitForGil);
  write("schedstat", "10 0 10");
  EXPECT_TRUE(meter.has_moved(2000, true));
  write("syscall", "running");
  write("schedstat", "20 0 11");
  EXPECT_TRUE(meter.has_moved(3000, true));
  EXPECT_EQ(meter.resting_since(1000), std::set<pid_t>{10});
  write("schedstat", "200 0 12");
  EXPECT_TRUE(meter.has_moved(4000, true));
  EXPECT_TRUE(meter.resting_since(3999).empty());
}

}  // namespace
}  // namespace mprun
