// Lines of results are split without parsing values.
#include <string>

#include <gtest/gtest.h>

#include "record/result_line.h"

namespace mprun {
namespace {

const std::string kTail = R"(,"worker":3,"attempt":2,"start":1795333952.387685,"seconds":0.010641})";

TEST(ResultLine, IsTakenApart) {
  const std::string text = R"({"task":7,"status":"ok","value":{"a":",\"worker\":9"})" + kTail;
  const auto line = split_result_line(text);
  ASSERT_TRUE(line);
  EXPECT_EQ(line->task, 7U);
  EXPECT_EQ(line->status, TaskStatus::kOk);
  EXPECT_EQ(line->payload, R"({"a":",\"worker\":9"})");
  EXPECT_EQ(line->worker, 3);
  EXPECT_EQ(line->attempt, 2);
  EXPECT_DOUBLE_EQ(line->start, 1795333952.387685);
  EXPECT_DOUBLE_EQ(line->seconds, 0.010641);
}

TEST(ResultLine, HasTheStatusItSays) {
  for (const auto& [head, status] :
       {std::pair{R"("failed","error":)", TaskStatus::kFailed}, {R"("cancelled","error":)", TaskStatus::kCancelled}}) {
    const std::string text = std::string(R"({"task":0,"status":)") + head + "{}" + kTail;
    const auto line = split_result_line(text);
    ASSERT_TRUE(line) << text;
    EXPECT_EQ(line->status, status);
    EXPECT_EQ(line->payload, "{}");
  }
}

TEST(ResultLine, TornOrForeignIsNone) {
  const std::string whole = R"({"task":7,"status":"ok","value":1)" + kTail;
  for (std::size_t size = 0; size < whole.size(); ++size) {
    EXPECT_FALSE(split_result_line(std::string_view(whole).substr(0, size))) << size;
  }
  EXPECT_FALSE(split_result_line(whole + "}"));
  EXPECT_FALSE(split_result_line(R"({"task":-1,"status":"ok","value":1)" + kTail));
  EXPECT_FALSE(split_result_line(R"({"task":1,"status":"fine","value":1)" + kTail));
  EXPECT_FALSE(split_result_line(std::string(100, '\0')));
}

}  // namespace
}  // namespace mprun
