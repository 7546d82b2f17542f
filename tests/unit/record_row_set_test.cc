#include <random>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "record/row_set.h"

namespace mprun {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;

TEST(RecordRowSetTest, NothingIsOneGap) {
  const RowSet rows;
  EXPECT_EQ(rows.count(), 0U);
  EXPECT_EQ(rows.end(), 0U);
  EXPECT_THAT(rows.gaps(5), ElementsAre(Pair(0, 5)));
  EXPECT_THAT(rows.gaps(0), IsEmpty());
}

TEST(RecordRowSetTest, RunsThatTouchBecomeOne) {
  RowSet rows;
  rows.add(10, 20);
  rows.add(30, 40);
  EXPECT_THAT(rows.gaps(50), ElementsAre(Pair(0, 10), Pair(20, 30), Pair(40, 50)));
  rows.add(20, 30);
  EXPECT_THAT(rows.gaps(50), ElementsAre(Pair(0, 10), Pair(40, 50)));
  EXPECT_EQ(rows.count(), 30U);
  rows.add(5, 45);
  EXPECT_EQ(rows.count(), 40U);
  rows.add(7, 7);
  EXPECT_EQ(rows.count(), 40U);
  EXPECT_THAT(rows.gaps(6), ElementsAre(Pair(0, 5)));
  EXPECT_EQ(rows.end(), 45U);
}

TEST(RecordRowSetTest, AgreesWithAPlainSetOfRows) {
  constexpr std::uint64_t kTotal = 60;
  std::mt19937 random(7);
  for (int round = 0; round < 300; ++round) {
    RowSet rows;
    std::set<std::uint64_t> plain;
    for (int i = 0; i < 15; ++i) {
      const std::uint64_t begin = random() % kTotal;
      const std::uint64_t end = std::min<std::uint64_t>(kTotal, begin + random() % 9);
      rows.add(begin, end);
      for (std::uint64_t row = begin; row < end; ++row) plain.insert(row);
    }
    ASSERT_EQ(rows.count(), plain.size());
    std::uint64_t missing = 0;
    for (const auto& [begin, end] : rows.gaps(kTotal)) {
      for (std::uint64_t row = begin; row < end; ++row) {
        ASSERT_EQ(plain.count(row), 0U);
        ++missing;
      }
    }
    ASSERT_EQ(missing + plain.size(), kTotal);
  }
}

TEST(RowSet, HasAllOfARange) {
  RowSet rows;
  EXPECT_TRUE(rows.has_all(3, 3));
  EXPECT_FALSE(rows.has_all(3, 4));
  rows.add(2, 5);
  EXPECT_TRUE(rows.has_all(2, 5));
  EXPECT_TRUE(rows.has_all(3, 4));
  EXPECT_FALSE(rows.has_all(1, 3));
  EXPECT_FALSE(rows.has_all(4, 6));
}

}  // namespace
}  // namespace mprun
