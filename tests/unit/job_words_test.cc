// How core/job reads single texts.
#include "json/json.h"
#include "json/words.h"

#include <gtest/gtest.h>

namespace mprun::job {
namespace {

TEST(Words, DurationsAreSumsOfNumbersWithUnits) {
  EXPECT_EQ(duration_seconds(Json("1h30m")), 5400);
  EXPECT_EQ(duration_seconds(Json("250ms")), 0.25);
  EXPECT_EQ(duration_seconds(Json(7)), 7);
}

TEST(Words, WhatIsNoNumberIsNoDuration) {
  for (const char* text : {"", "s", "nans", "infs", "infinitys", "-5s", "9s-3s", "5", "5x", "1e3s"}) {
    EXPECT_EQ(duration_seconds(Json(text)), std::nullopt) << text;
  }
  EXPECT_EQ(duration_seconds(Json::array()), std::nullopt);
}

}  // namespace
}  // namespace mprun::job
