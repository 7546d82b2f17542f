// core/record/line_offsets.h: tasks far apart, in any order.
#include "record/line_offsets.h"

#include <gmock/gmock.h>

namespace mprun {
namespace {

TEST(LineOffsets, AreGivenInTheOrderOfTasksWhateverLiesBetween) {
  constexpr std::uint64_t kFar = 1'000'000'000'000;
  LineOffsets offsets;
  EXPECT_EQ(offsets.size(), 0U);
  EXPECT_EQ(offsets.at(0), LineOffsets::kAbsent);
  offsets.set(kFar, 0);
  offsets.set(3, 10);
  offsets.set(4096, 20);
  offsets.set(3, 30);  // again
  EXPECT_EQ(offsets.size(), kFar + 1);
  EXPECT_EQ(offsets.at(3), 30U);
  EXPECT_EQ(offsets.at(4), LineOffsets::kAbsent);
  EXPECT_EQ(offsets.at(kFar - 1), LineOffsets::kAbsent);
  std::vector<std::uint64_t> given;
  offsets.for_each([&given](std::uint64_t offset) {
    given.push_back(offset);
    return true;
  });
  EXPECT_THAT(given, testing::ElementsAre(30, 20, 0));
  given.clear();
  offsets.for_each([&given](std::uint64_t offset) {
    given.push_back(offset);
    return given.size() < 2;
  });
  EXPECT_THAT(given, testing::ElementsAre(30, 20));
}

}  // namespace
}  // namespace mprun
