// core/cluster/rendezvous.h: how the ranks of several shards start, start again and end together.
#include "cluster/rendezvous.h"

#include <gtest/gtest.h>

namespace mprun {
namespace {

constexpr Nanos kLongSilence = 10 * kNanosPerSecond;

std::string report(const std::string& token, RankState state, int attempt, std::uint64_t beat = 0,
                   const std::string& reason = "") {
  return to_string(RankReport{token, "L", state, attempt, beat, reason});
}

TEST(Rendezvous, TextsAreReadBack) {
  const RankReport report{"12.7", "", RankState::kFailed, 3, 99, "rank 1 failed\nbadly"};
  EXPECT_EQ(to_string(report), "12.7 - failed 3 99\nrank 1 failed badly\n");
  const auto read = parse_report(to_string(report));
  ASSERT_TRUE(read);
  EXPECT_EQ(to_string(*read), to_string(report));
  const GroupDecision decision{"12.7", GroupPhase::kStopped, 2, 5, {"12.7", "", "3"}, "shard 2 has stopped"};
  EXPECT_EQ(to_string(decision), "12.7 stopped 2 5\nshard 2 has stopped\n12.7\n-\n3\n");
  const auto again = parse_decision(to_string(decision));
  ASSERT_TRUE(again);
  EXPECT_EQ(to_string(*again), to_string(decision));
  for (const char* text : {"", "1", "1 - well 1 2", "1 - well 1 2\nreason", "1 - good 1 2\n\n", "1 - well x 2\n\n"}) {
    EXPECT_FALSE(parse_report(text)) << text;
    EXPECT_FALSE(parse_decision(text)) << text;
  }
}

class LeaderTest : public testing::Test {
 protected:
  const GroupDecision& decide(const std::string& own, const std::string& other) {
    return leader_.decide({own, other}, now_);
  }
  void begin() { decide(report("L", RankState::kReady, 1), report("B", RankState::kReady, 1)); }

  Nanos now_ = kNanosPerSecond;
  Leader leader_{"L", 2, kLongSilence, now_};
};

TEST_F(LeaderTest, BeginsWhenAllAreReady) {
  const std::string own = report("L", RankState::kReady, 1);
  EXPECT_EQ(decide(own, "").phase, GroupPhase::kGather);
  EXPECT_EQ(leader_.waits_for(), "shard 2");
  EXPECT_EQ(decide(own, to_string(RankReport{"B", "before", RankState::kReady, 1, 0, ""})).phase, GroupPhase::kGather)
      << "it has not seen our decisions";
  const GroupDecision& decision = decide(own, report("B", RankState::kReady, 1));
  EXPECT_EQ(decision.phase, GroupPhase::kRun);
  EXPECT_EQ(decision.attempt, 1);
  EXPECT_EQ(decision.shards, (std::vector<std::string>{"L", "B"}));
  EXPECT_EQ(leader_.waits_for(), "shards 1, 2");
}

TEST_F(LeaderTest, GathersAllAfterAFailure) {
  begin();
  const std::string failed = report("B", RankState::kFailed, 1, 1, "rank 1 failed");
  const GroupDecision& decision = decide(report("L", RankState::kWell, 1), failed);
  EXPECT_EQ(decision.phase, GroupPhase::kGather);
  EXPECT_EQ(decision.attempt, 2);
  EXPECT_EQ(decision.reason, "shard 2: rank 1 failed");
  EXPECT_EQ(decide(report("L", RankState::kReady, 2), failed).phase, GroupPhase::kGather)
      << "ranks of shard 2 still run";
  EXPECT_EQ(decide(report("L", RankState::kReady, 2), report("B", RankState::kReady, 2, 2)).phase, GroupPhase::kRun);
  EXPECT_EQ(decide(report("L", RankState::kRunning, 2), failed).phase, GroupPhase::kRun) << "an old report";
}

TEST_F(LeaderTest, SeesAFailureAfterItsRanksHaveEnded) {
  begin();
  const std::string ready = report("B", RankState::kReady, 2, 1, "rank 1 failed");
  EXPECT_EQ(decide(report("L", RankState::kWell, 1), ready).phase, GroupPhase::kGather);
  EXPECT_EQ(decide(report("L", RankState::kReady, 2), ready).phase, GroupPhase::kRun);
}

TEST_F(LeaderTest, FinishesWhenAllHaveEndedWell) {
  begin();
  EXPECT_EQ(decide(report("L", RankState::kWell, 1), report("B", RankState::kRunning, 1)).phase, GroupPhase::kRun);
  EXPECT_EQ(leader_.waits_for(), "shard 2");
  EXPECT_EQ(decide(report("L", RankState::kWell, 1), report("B", RankState::kWell, 1)).phase, GroupPhase::kFinished);
  const std::string stopped = report("B", RankState::kStopped, 1);
  EXPECT_EQ(decide(report("L", RankState::kWell, 1), stopped).phase, GroupPhase::kFinished) << "others rely on it";
}

TEST_F(LeaderTest, StopsAllWithOne) {
  begin();
  const GroupDecision& decision = decide(report("L", RankState::kStopped, 1, 0, "a signal"), "");
  EXPECT_EQ(decision.phase, GroupPhase::kStopped);
  EXPECT_EQ(decision.reason, "shard 1 has stopped: a signal");
}

TEST_F(LeaderTest, StopsWhenAShardBeginsAnew) {
  begin();
  EXPECT_EQ(decide(report("L", RankState::kRunning, 1), report("C", RankState::kReady, 1)).phase, GroupPhase::kStopped);
}

TEST_F(LeaderTest, StopsWhenAShardIsSilent) {
  begin();
  std::uint64_t beat = 0;
  const auto pass = [&](double seconds, const std::string& other) {
    now_ += from_seconds(seconds);
    return decide(report("L", RankState::kRunning, 1, ++beat), other).phase;
  };
  const std::string other = report("B", RankState::kRunning, 1, 1);
  for (const double seconds : {1.0, 4.0, 4.9}) EXPECT_EQ(pass(seconds, other), GroupPhase::kRun);
  EXPECT_EQ(pass(1, report("B", RankState::kRunning, 1, 2)), GroupPhase::kRun) << "it beats";
  EXPECT_EQ(pass(60, report("B", RankState::kRunning, 1, 2)), GroupPhase::kRun) << "we were suspended";
  for (const double seconds : {4.0, 4.0}) EXPECT_EQ(pass(seconds, ""), GroupPhase::kRun);
  EXPECT_EQ(pass(2, ""), GroupPhase::kStopped) << "what cannot be read does not beat";
}

TEST_F(LeaderTest, StopsWhenAShardDoesNotCome) {
  for (std::uint64_t beat = 0; beat < 599; ++beat) {
    EXPECT_EQ(decide(report("L", RankState::kReady, 1, beat), "").phase, GroupPhase::kGather);
    now_ += kNanosPerSecond;
  }
  now_ += kNanosPerSecond;
  EXPECT_EQ(decide(report("L", RankState::kReady, 1, 1000), "").phase, GroupPhase::kStopped);
  EXPECT_EQ(decide("", "").reason, "shard 2 did not begin within ten minutes, or has another run directory");
}

class FollowerTest : public testing::Test {
 protected:
  std::optional<GroupDecision> follow(const GroupDecision& decision) {
    return follower_.follow(to_string(decision), now_);
  }
  [[nodiscard]] std::optional<GroupDecision> follow_nothing() { return follower_.follow("", now_); }

  Nanos now_ = kNanosPerSecond;
  Follower follower_{"B", 1, kLongSilence, now_};
  GroupDecision decision_{"L", GroupPhase::kRun, 1, 0, {"L", "B"}, ""};
};

TEST_F(FollowerTest, FollowsWhatNamesIt) {
  EXPECT_FALSE(follow_nothing());
  EXPECT_EQ(follower_.leader(), "");
  EXPECT_FALSE(follow({"before", GroupPhase::kStopped, 3, 0, {"before", "A"}, ""}));
  EXPECT_EQ(follower_.leader(), "before");
  EXPECT_FALSE(follow({"L", GroupPhase::kGather, 1, 0, {"L", ""}, ""}));
  EXPECT_EQ(follower_.leader(), "L");
  ASSERT_TRUE(follow(decision_));
  EXPECT_EQ(follow_nothing()->phase, GroupPhase::kRun) << "a file that cannot be read changes nothing";
}

TEST_F(FollowerTest, StopsWhenTheLeaderBeginsAnew) {
  (void)follow(decision_);
  const auto stopped = follow({"M", GroupPhase::kGather, 1, 0, {"M", ""}, ""});
  EXPECT_EQ(stopped->phase, GroupPhase::kStopped);
  EXPECT_EQ(follow(decision_)->phase, GroupPhase::kStopped);
}

TEST_F(FollowerTest, StopsWhenTheLeaderIsSilent) {
  (void)follow(decision_);
  for (int second = 0; second < 9; ++second) {
    now_ += kNanosPerSecond;
    EXPECT_EQ(follow(decision_)->phase, GroupPhase::kRun);
  }
  now_ += kNanosPerSecond;
  EXPECT_EQ(follow(decision_)->phase, GroupPhase::kStopped);
}

TEST_F(FollowerTest, ADecisionThatIsFinalOutlivesTheLeader) {
  decision_.phase = GroupPhase::kFinished;
  (void)follow(decision_);
  now_ += 100 * kLongSilence;
  EXPECT_EQ(follow_nothing()->phase, GroupPhase::kFinished);
}

TEST_F(FollowerTest, StopsWhenThereIsNoLeader) {
  now_ += 599 * kNanosPerSecond;
  EXPECT_FALSE(follow_nothing());
  now_ += kNanosPerSecond;
  EXPECT_EQ(follow_nothing()->reason, "shard 1 did not begin within ten minutes, or has another run directory");
}

}  // namespace
}  // namespace mprun
