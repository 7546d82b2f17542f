// core/record/rendezvous_files.h: two shards that meet by files in a folder.
#include "record/rendezvous_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace mprun {
namespace {

namespace fs = std::filesystem;

constexpr Nanos kAfter = 10 * kNanosPerSecond;

class RendezvousFilesTest : public testing::Test {
 protected:
  void SetUp() override {
    for (const char* shard : {"1", "2"}) fs::create_directories(folder_ + "/shards/" + shard);
  }
  void TearDown() override { fs::remove_all(folder_); }

  /// A look of the leader, then one of the other shard.
  const GroupDecision* meet(RankState leading, RankState following, int attempt = 1) {
    now_ += kNanosPerSecond;
    leads_ = leader_.meet(leading, attempt, "broken", now_);
    return follower_.meet(following, attempt, "", now_);
  }
  [[nodiscard]] std::string text(const std::string& name) const {
    std::ifstream file(folder_ + "/" + name);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  std::string folder_ = testing::TempDir() + "rendezvous_" + std::to_string(getpid());
  Nanos now_ = 1000 * kNanosPerSecond;
  RendezvousFiles leader_{folder_, {0, 2}, kAfter, now_};
  RendezvousFiles follower_{folder_, {1, 2}, kAfter, now_};
  const GroupDecision* leads_ = nullptr;
};

TEST_F(RendezvousFilesTest, AllDecideAlike) {
  EXPECT_EQ(leader_.waits_for(), "shards 1, 2");
  EXPECT_EQ(meet(RankState::kReady, RankState::kReady), nullptr) << "it is not named yet";
  EXPECT_EQ(leader_.waits_for(), "shard 2");
  const GroupDecision* follows = meet(RankState::kReady, RankState::kReady);
  ASSERT_NE(follows, nullptr);
  EXPECT_EQ(follows->phase, GroupPhase::kRun);
  EXPECT_EQ(leads_->phase, GroupPhase::kRun);
  EXPECT_EQ(meet(RankState::kFailed, RankState::kRunning)->phase, GroupPhase::kGather);
  EXPECT_EQ(follower_.meet(RankState::kRunning, 1, "", now_)->reason, "shard 1: broken");
  meet(RankState::kReady, RankState::kReady, 2);
  EXPECT_EQ(meet(RankState::kReady, RankState::kReady, 2)->phase, GroupPhase::kRun);
  meet(RankState::kWell, RankState::kWell, 2);
  EXPECT_EQ(meet(RankState::kWell, RankState::kWell, 2)->phase, GroupPhase::kFinished);
  EXPECT_EQ(leads_->phase, GroupPhase::kFinished);
}

TEST_F(RendezvousFilesTest, WritesWhatIsNewAtOnceAndElseAHeartbeat) {
  meet(RankState::kReady, RankState::kReady);
  const std::string report = text("shards/2/rendezvous");
  (void)follower_.meet(RankState::kReady, 1, "", now_ + kAfter / 20);
  EXPECT_EQ(text("shards/2/rendezvous"), report);
  (void)follower_.meet(RankState::kStopped, 1, "", now_ + kAfter / 20);
  EXPECT_THAT(text("shards/2/rendezvous"), testing::HasSubstr(" stopped 1 "));
  const std::string decision = text("rendezvous");
  (void)leader_.meet(RankState::kReady, 1, "", now_ + kAfter / 10);
  EXPECT_NE(text("rendezvous"), decision);
}

TEST_F(RendezvousFilesTest, WhatALeaderCannotWriteDoesNotCount) {
  meet(RankState::kReady, RankState::kReady);
  meet(RankState::kReady, RankState::kReady);
  fs::remove_all(folder_);
  for (int second = 1; second < 10; ++second) {
    meet(RankState::kStopped, RankState::kRunning);
    EXPECT_EQ(leads_->phase, GroupPhase::kRun);
  }
  EXPECT_EQ(meet(RankState::kStopped, RankState::kRunning)->phase, GroupPhase::kStopped) << "it hears nothing";
  EXPECT_EQ(leads_->phase, GroupPhase::kStopped);
  EXPECT_THAT(leads_->reason, testing::HasSubstr(folder_));
}

}  // namespace
}  // namespace mprun
