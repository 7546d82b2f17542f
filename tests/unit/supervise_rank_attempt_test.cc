// What the ranks of an attempt share, and what is read from the files into which they write why they failed.
#include "supervise/rank_attempt.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace mprun {
namespace {

TEST(RankAttempt, ReadsErrorFilesOfTorch) {
  const auto whole = parse_error_file(
      R"({"message": {"message": "ValueError: no", "extraInfo": {"py_callstack": "Traceback", "timestamp": "1"}}})");
  ASSERT_TRUE(whole);
  EXPECT_EQ(whole->message, "ValueError: no");
  EXPECT_EQ(whole->traceback, "Traceback");
  const auto brief = parse_error_file(R"({"message": "killed", "errorCode": 3})");
  ASSERT_TRUE(brief);
  EXPECT_EQ(brief->message, "killed");
  EXPECT_EQ(brief->traceback, "");
  EXPECT_EQ(parse_error_file(R"({"message": {"message": "x", "extraInfo": [1]}})")->traceback, "");
}

TEST(RankAttempt, IgnoresWhatIsNoError) {
  for (const char* text : {"", "{", "7", "[]", "{}", R"({"message": 7})", R"({"message": ""})", R"({"message": {}})",
                           R"({"message": {"message": null}})", "{\"message\": \"\xff\"}"}) {
    EXPECT_FALSE(parse_error_file(text)) << text;
  }
}

TEST(RankAttempt, EachAttemptHasAPortAndNoOldErrors) {
  const std::string dir = testing::TempDir() + "rank_attempt_" + std::to_string(getpid());
  std::filesystem::create_directories(dir + "/logs");
  JobSpec spec;
  spec.processes = 2;
  spec.retries.on_death = 3;
  RankAttempt attempt(&spec, dir);
  EXPECT_TRUE(attempt.begin(1));
  EXPECT_FALSE(attempt.begin(1));
  const Environment first = attempt.prepare(1);
  EXPECT_EQ(first.at("MASTER_PORT"), attempt.prepare(0).at("MASTER_PORT"));
  EXPECT_EQ(first.at("TORCHELASTIC_RESTART_COUNT"), "0");
  EXPECT_EQ(first.at("TORCHELASTIC_MAX_RESTARTS"), "3");
  std::ofstream(first.at("TORCHELASTIC_ERROR_FILE")) << R"({"message": "broken"})";
  ASSERT_TRUE(attempt.error_of(1));
  EXPECT_EQ(attempt.error_of(1)->message, "broken");
  EXPECT_FALSE(attempt.error_of(0));
  EXPECT_TRUE(attempt.begin(2));
  const Environment second = attempt.prepare(1);
  EXPECT_NE(second.at("MASTER_PORT"), first.at("MASTER_PORT"));
  EXPECT_EQ(second.at("TORCHELASTIC_RESTART_COUNT"), "1");
  EXPECT_FALSE(attempt.error_of(1));
  std::filesystem::remove_all(dir);
}

TEST(RankAttempt, ShardsAgreeOnThePort) {
  JobSpec spec;
  spec.processes = 2;
  spec.shard = Shard{1, 3};
  spec.allocation.first_host = "n1";
  RankAttempt attempt(&spec, testing::TempDir());
  for (const auto& [first, third] : {std::pair(29500, "29502"), std::pair(65534, "65532")}) {
    spec.allocation.master_port = first;
    attempt.begin(1);
    EXPECT_EQ(attempt.prepare(1).at("MASTER_PORT"), std::to_string(first));
    attempt.begin(3);
    EXPECT_EQ(attempt.prepare(1).at("MASTER_PORT"), third);
  }
}

}  // namespace
}  // namespace mprun
