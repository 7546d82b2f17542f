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
  for (const char* text :
       {"", "s", "nans", "infs", "infinitys", "-5s", "9s-3s", "5", "5x", "1e3s", ".s", ".5s", "1.2.3s", "0x1s"}) {
    EXPECT_EQ(duration_seconds(Json(text)), std::nullopt) << text;
  }
  EXPECT_EQ(duration_seconds(Json::array()), std::nullopt);
}

TEST(Words, Sizes) {
  EXPECT_EQ(size_bytes(Json("1.5KiB")), 1536);
  EXPECT_EQ(size_bytes(Json(7U)), 7);
  for (const char* text : {"", "MiB", "-1MiB", "nanMiB", "infMiB", "1e3MiB", "1.2.3MiB", "0x1MiB", "99999999EiB"}) {
    EXPECT_EQ(size_bytes(Json(text)), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace mprun::job
