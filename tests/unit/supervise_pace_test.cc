#include "supervise/pace.h"

#include <gtest/gtest.h>

namespace mprun {
namespace {

constexpr double kLong = 1, kShort = 1e-6;

TEST(Pace, ResultsOfShortTasksGather) {
  EXPECT_EQ(write_results_every(1, false, kShort, 100), kPulseEvery);
  EXPECT_LT(write_results_every(1, false, kShort, 1), kPulseEvery) << "the first ones";
  EXPECT_LT(write_results_every(1, false, kLong, 100), kPulseEvery);
}

TEST(Pace, ManyShardsWriteSeldom) {
  EXPECT_GT(write_results_every(4, false, kLong, 100), write_results_every(1, false, kLong, 100));
  EXPECT_EQ(write_results_every(1000, false, kLong, 100), kPulseEvery);
}

TEST(Pace, AProgramThatMayWaitForAResultGetsItAtOnce) {
  EXPECT_EQ(write_results_every(1, true, kShort, 100), 0);
  EXPECT_EQ(write_results_every(1000, true, kLong, 100), 0);
}

}  // namespace
}  // namespace mprun
