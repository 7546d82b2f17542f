#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "record/usage_record.h"

namespace mprun {
namespace {

class UsageRecordTest : public testing::Test {
 protected:
  UsageRecordTest() {
    std::string pattern = testing::TempDir() + "usage-XXXXXX";
    folder_ = mkdtemp(pattern.data());
  }
  ~UsageRecordTest() override { std::filesystem::remove_all(folder_); }

  void write(const std::string& text) { std::ofstream(folder_ + "/usage.jsonl") << text; }
  [[nodiscard]] std::optional<UsageRecord> read(const std::vector<double>& sessions = {1}) const {
    return read_usage(folder_, sessions);
  }

  std::string folder_;
};

TEST_F(UsageRecordTest, NothingRecorded) {
  EXPECT_FALSE(read());
  write("");
  EXPECT_FALSE(read());
  write("{\"at\":2,\"workers\":[]");  // torn
  EXPECT_FALSE(read());
}

TEST_F(UsageRecordTest, WhatWorkersUsedBetweenLooks) {
  write(R"({"at":2,"workers":[[0,5.0,100],[1,1.0,200]]}
{"at":4,"workers":[[0,6.5,110],[1,2.0,190]]}
)");
  const auto usage = read();
  ASSERT_TRUE(usage);
  ASSERT_EQ(usage->steps.size(), 2U);
  const UsageRecord::Step& first = usage->steps[0];
  EXPECT_TRUE(first.first);
  EXPECT_EQ(first.begin, 1);  // the session's
  EXPECT_EQ(first.end, 2);
  EXPECT_EQ(first.workers.at(0).cpu_seconds, 5);
  EXPECT_EQ(first.bytes, 300);
  const UsageRecord::Step& second = usage->steps[1];
  EXPECT_EQ(second.begin, 2);
  EXPECT_EQ(second.end, 4);
  EXPECT_EQ(second.workers.at(0).cpu_seconds, 1.5);
  EXPECT_EQ(second.workers.at(1).cpu_seconds, 1);
  EXPECT_EQ(second.workers.at(1).bytes, 190);
}

TEST_F(UsageRecordTest, AReplacementCountsFromZero) {
  write(R"({"at":2,"workers":[[0,5.0,100]]}
{"at":3,"workers":[]}
{"at":4,"workers":[[0,0.5,110]]}
)");
  const auto usage = read();
  ASSERT_TRUE(usage);
  ASSERT_EQ(usage->steps.size(), 3U);
  EXPECT_TRUE(usage->steps[1].workers.empty());
  EXPECT_EQ(usage->steps[2].workers.at(0).cpu_seconds, 0.5);
}

TEST_F(UsageRecordTest, NothingIsUsedBetweenSessions) {
  write(R"({"at":2,"workers":[[0,5.0,100]]}
{"at":3,"workers":[[0,6.0,100]]}
{"at":103,"workers":[[0,7.0,100]]}
{"at":104,"workers":[[0,8.0,100]]}
)");
  const auto usage = read({1, 102});
  ASSERT_TRUE(usage);
  ASSERT_EQ(usage->steps.size(), 4U);
  EXPECT_TRUE(usage->steps[2].first);
  EXPECT_EQ(usage->steps[2].begin, 102);
  EXPECT_EQ(usage->steps[2].workers.at(0).cpu_seconds, 7);
  EXPECT_EQ(usage->steps[3].workers.at(0).cpu_seconds, 1);
}

TEST_F(UsageRecordTest, NonsenseIsPassedOver) {
  write(R"(torn {"at":1,"work
{"at":"x","workers":[[0,1,1]]}
{"at":2}
{"at":2,"workers":[[0,5.0],[0,-1,1],["0",1,1],[99999999999,1,1],[3,1,7]]}
{"at":1,"workers":[[4,1,1]]}
)");
  const auto usage = read();
  ASSERT_TRUE(usage);
  ASSERT_EQ(usage->steps.size(), 1U);  // the clock of the last line went backwards
  ASSERT_EQ(usage->steps[0].workers.size(), 1U);
  EXPECT_EQ(usage->steps[0].workers.at(3).bytes, 7);
}

TEST_F(UsageRecordTest, ManyLooksAreFewSteps) {
  std::string text;
  const int looks = 10'001;
  for (int i = 0; i < looks; ++i) {
    const int bytes = i == 7'777 ? 5'000 : 100;
    text += "{\"at\":" + std::to_string(2 + i) + ",\"workers\":[[0," + std::to_string(i * 2) + "," +
            std::to_string(bytes) + "]]}\n";
  }
  write(text);
  const auto usage = read();
  ASSERT_TRUE(usage);
  EXPECT_LE(usage->steps.size(), UsageRecord::kMostSteps);
  EXPECT_GT(usage->steps.size(), UsageRecord::kMostSteps / 4);
  double cpu = 0, most = 0, end = 1;
  for (const UsageRecord::Step& step : usage->steps) {
    EXPECT_EQ(step.begin, end);  // there is no gap between them
    end = step.end;
    cpu += step.workers.at(0).cpu_seconds;
    most = std::max(most, step.bytes);
  }
  EXPECT_EQ(end, 1 + looks);
  EXPECT_EQ(cpu, 2 * (looks - 1));
  EXPECT_EQ(most, 5'000);
}

}  // namespace
}  // namespace mprun
