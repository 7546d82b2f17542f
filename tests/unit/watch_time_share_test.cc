#include "watch/time_share.h"

#include <gtest/gtest.h>

namespace mprun {
namespace {

constexpr Nanos kSecond = kNanosPerSecond, kMilli = kNanosPerMilli;
constexpr Nanos kStart = 1000 * kSecond;

TEST(TimeShare, AllowsWhatWasSavedUpAtOnce) {
  TimeShare share({500, 2 * kSecond, 10 * kSecond});
  EXPECT_TRUE(share.allows(kStart));
  share.spend(kStart, 2 * kMilli);
  EXPECT_TRUE(share.allows(kStart)) << "2 ms of 1 s; 1 s is left";
  share.spend(kStart, 2 * kMilli);
  EXPECT_TRUE(share.allows(kStart));
  share.spend(kStart, 2 * kMilli);
  EXPECT_FALSE(share.allows(kStart + kSecond - 1));
  EXPECT_TRUE(share.allows(kStart + kSecond));
}

TEST(TimeShare, IsKeptOverALongTime) {
  TimeShare share({500, 2 * kSecond, 10 * kSecond});
  Nanos spent = 0;
  for (Nanos now = kStart; now < kStart + 100 * kSecond; now += 100 * kMilli) {
    if (!share.allows(now)) continue;
    share.spend(now, kMilli);
    spent += kMilli;
  }
  EXPECT_GE(spent, 200 * kMilli);
  EXPECT_LE(spent, 205 * kMilli) << "1/500 of 100 s, and of the 2 s before";
}

TEST(TimeShare, NeverWaitsForTooLong) {
  TimeShare share({500, 2 * kSecond, 10 * kSecond});
  share.spend(kStart, kSecond);
  EXPECT_EQ(share.next(), kStart + 10 * kSecond);
}

}  // namespace
}  // namespace mprun
