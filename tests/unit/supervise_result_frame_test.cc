// What counts as the result of a worker or rank.
#include "supervise/result_frame.h"

#include <gtest/gtest.h>

#include <string>

namespace mprun {
namespace {

std::string payload(std::uint32_t tensors, const std::string& rest) {
  mprun_result head{};
  head.position = 7;
  head.tensors = tensors;
  return std::string(reinterpret_cast<const char*>(&head), sizeof head) + rest;
}

TEST(ResultFrame, IsTakenApart) {
  const std::string bytes = payload(3, R"(abc{"a": 1})");
  const auto frame = parse_result(bytes);
  ASSERT_TRUE(frame);
  EXPECT_EQ(frame->head.position, 7U);
  EXPECT_EQ(frame->tensors, "abc");
  EXPECT_EQ(frame->json, R"({"a": 1})");
}

TEST(ResultFrame, AllElseIsNone) {
  const std::string whole = payload(0, "1");
  for (std::size_t size = 0; size < whole.size(); ++size) EXPECT_FALSE(parse_result(whole.substr(0, size))) << size;
  EXPECT_TRUE(parse_result(whole));
  for (const std::uint32_t tensors : {1U, 2U, UINT32_MAX}) EXPECT_FALSE(parse_result(payload(tensors, "1"))) << tensors;
  for (const char* text : {"", "1 2", "nothing", "\"\xff\"", "[1"})
    EXPECT_FALSE(parse_result(payload(0, text))) << text;
}

}  // namespace
}  // namespace mprun
