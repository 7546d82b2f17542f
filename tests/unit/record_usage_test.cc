#include <cmath>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include <sys/resource.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "json/json.h"
#include "record/usage_writer.h"

namespace mprun {
namespace {

using testing::HasSubstr;

constexpr Nanos kStart = 1'732'182'610'123'456'789;

class RecordUsageTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = testing::TempDir() + "record_usage_XXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    dir_ = pattern;
  }
  void TearDown() override { std::filesystem::remove_all(dir_); }
  [[nodiscard]] std::string path() const { return dir_ + "/usage.jsonl"; }
  [[nodiscard]] std::string text() const {
    std::ostringstream text;
    text << std::ifstream(path()).rdbuf();
    return text.str();
  }
  /// The times of the lines, in seconds since the first look.
  [[nodiscard]] std::vector<long> times() const {
    std::vector<long> found;
    std::ifstream file(path());
    for (std::string line; std::getline(file, line);) {
      found.push_back(std::lround(Json::parse(line).at("at").get<double>() - to_seconds(kStart)));
    }
    return found;
  }
  static void see(UsageWriter* writer, int second, const std::vector<WorkerView>& workers = {}) {
    writer->on_event(WorkersSeen{workers, kStart + second * kNanosPerSecond});
  }
  std::string dir_;
};

[[nodiscard]] WorkerView worker(int number, double cpu, std::uint64_t memory) {
  return {number, 100 + number, WorkerState::kBusy, {}, 0, cpu, 0, memory};
}

TEST_F(RecordUsageTest, ALineHoldsTheWorkersThatHaveAProcess) {
  UsageWriter writer(path());
  EXPECT_FALSE(std::filesystem::exists(path()));
  WorkerView absent = worker(1, 7, 0);
  absent.pid = 0;
  see(&writer, 0, {worker(0, 12.345, 104'857'600), absent, worker(2, 0, 5)});
  see(&writer, 1);
  EXPECT_EQ(text(),
            "{\"at\":1732182610.123,\"workers\":[[0,12.35,104857600],[2,0.00,5]]}\n"
            "{\"at\":1732182611.123,\"workers\":[]}\n");
}

TEST_F(RecordUsageTest, WhatIsUnchangedIsNotWrittenAgain) {
  UsageWriter writer(path());
  see(&writer, 0);
  see(&writer, 0);
  writer.on_event(Pulse{});
  EXPECT_EQ(times(), std::vector<long>{0});
}

TEST_F(RecordUsageTest, LooksGetRarer) {
  UsageWriter writer(path());
  for (int second = 0; second < 8000; ++second) see(&writer, second);
  const std::vector<long> found = times();
  ASSERT_GT(found.size(), 3000U);
  EXPECT_EQ(found[1] - found[0], 1);
  EXPECT_EQ(found[1500] - found[1499], 2);
  EXPECT_EQ(found[2500] - found[2499], 4);
  EXPECT_EQ(found[3100] - found[3099], 8);
}

TEST_F(RecordUsageTest, ManyWorkersFillNoDisk) {
  UsageWriter writer(path());
  std::vector<WorkerView> workers;
  workers.reserve(4000);
  for (int number = 0; number < 4000; ++number) workers.push_back(worker(number, 1e5, 1U << 30U));
  constexpr int kMonth = 30 * 86400;
  for (int second = 0; second < kMonth; second += 50) see(&writer, second, workers);
  const std::uintmax_t size = std::filesystem::file_size(path());
  EXPECT_LT(size, std::uintmax_t{20} << 20U);
  EXPECT_GT(size, std::uintmax_t{10} << 20U);
}

TEST_F(RecordUsageTest, AnotherSessionGoesOnAsRarely) {
  {
    UsageWriter writer(path());
    for (int second = 0; second < 1500; ++second) see(&writer, second);
  }
  std::ofstream(path(), std::ios::app) << R"({"at":17)";  // mprun was killed
  UsageWriter writer(path());
  for (int second = 2000; second < 2010; ++second) see(&writer, second);
  const std::vector<long> found = times();
  ASSERT_EQ(found.size(), 1255U);
  EXPECT_EQ(found[1250], 2000);
  EXPECT_EQ(found[1251], 2002);
}

TEST_F(RecordUsageTest, AClockThatIsSetBackStopsNothing) {
  UsageWriter writer(path());
  see(&writer, 1000);
  see(&writer, 10);
  EXPECT_EQ(times(), (std::vector<long>{1000, 10}));
}

TEST_F(RecordUsageTest, AFileThatCannotBeWrittenIsReportedOnce) {
  std::filesystem::create_directory(path());
  UsageWriter writer(path());
  see(&writer, 0);
  ASSERT_TRUE(writer.failure());
  EXPECT_THAT(writer.failure()->message, HasSubstr("usage.jsonl"));
  see(&writer, 1);
}

TEST_F(RecordUsageTest, AFullDiskLeavesWholeLines) {
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit few{100, before.rlim_max};
  setrlimit(RLIMIT_FSIZE, &few);
  UsageWriter writer(path());
  for (int second = 0; second < 5; ++second) see(&writer, second, {worker(0, 1, 1)});
  setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  ASSERT_TRUE(writer.failure());
  EXPECT_THAT(writer.failure()->message, HasSubstr("cannot write " + path()));
  EXPECT_EQ(times(), (std::vector<long>{0, 1}));
}

}  // namespace
}  // namespace mprun
