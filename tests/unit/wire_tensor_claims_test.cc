#include <cstring>
#include <string>

#include <gtest/gtest.h>

#include "wire/tensor_claims.h"

namespace mprun {
namespace {

std::string record(std::uint32_t kind, std::uint64_t begin, std::uint64_t end, const std::string& name,
                   std::uint32_t name_bytes) {
  const mprun_tensor head{begin, end, kind, name_bytes};
  return std::string(reinterpret_cast<const char*>(&head), sizeof head) + name;
}

TEST(WireTensorClaimsTest, RecordsFollowEachOther) {
  const std::string bytes =
      record(MPRUN_TENSOR_ROWS, 3, 9, "logits", 6) + record(MPRUN_TENSOR_SAFETENSORS, 0, 0, "x", 1);
  const auto claims = parse_tensor_claims(bytes);
  ASSERT_TRUE(claims);
  ASSERT_EQ(claims->size(), 2U);
  EXPECT_EQ(claims->at(0).name, "logits");
  EXPECT_EQ(claims->at(0).begin, 3U);
  EXPECT_EQ(claims->at(0).end, 9U);
  EXPECT_EQ(claims->at(1).kind, MPRUN_TENSOR_SAFETENSORS);
  EXPECT_EQ(claims->at(1).name, "x");
}

TEST(WireTensorClaimsTest, WhatIsCutOffOrUnknownIsRefused) {
  const std::string good = record(MPRUN_TENSOR_ROWS, 0, 1, "name", 4);
  for (std::size_t size = 1; size < good.size(); ++size) {
    EXPECT_FALSE(parse_tensor_claims(good.substr(0, size))) << size;
  }
  EXPECT_FALSE(parse_tensor_claims(record(7, 0, 1, "name", 4)));
  EXPECT_FALSE(parse_tensor_claims(record(MPRUN_TENSOR_ROWS, 0, 1, "name", 0xFFFFFFFFU)));
}

TEST(WireTensorClaimsTest, TheirNumberHasALimit) {
  std::string bytes;
  for (std::size_t i = 0; i < kMostTensors; ++i) bytes += record(MPRUN_TENSOR_ROWS, 0, 1, "n", 1);
  EXPECT_TRUE(parse_tensor_claims(bytes));
  bytes += record(MPRUN_TENSOR_ROWS, 0, 1, "n", 1);
  EXPECT_FALSE(parse_tensor_claims(bytes));
}

}  // namespace
}  // namespace mprun
