#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/log.h"

namespace mprun {
namespace {

using ::testing::HasSubstr;

TEST(LogLevels, AreInfoUnlessSet) {
  for (const LogComponent component : kLogComponents) EXPECT_EQ(LogLevels().of(component), LogLevel::kInfo);
}

TEST(LogLevels, OneLevelIsForAllComponents) {
  LogLevels levels;
  ASSERT_TRUE(levels.set("debug"));
  for (const LogComponent component : kLogComponents) EXPECT_EQ(levels.of(component), LogLevel::kDebug);
}

TEST(LogLevels, OfSomeComponentsLeaveTheOthers) {
  LogLevels levels;
  ASSERT_TRUE(levels.set("watch=trace,cluster=off"));
  EXPECT_EQ(levels.of(LogComponent::kWatch), LogLevel::kTrace);
  EXPECT_EQ(levels.of(LogComponent::kCluster), LogLevel::kOff);
  EXPECT_EQ(levels.of(LogComponent::kLaunch), LogLevel::kInfo);
}

TEST(LogLevels, WhatComesLaterCounts) {
  LogLevels levels;
  ASSERT_TRUE(levels.set("watch=trace,error,record=debug"));
  EXPECT_EQ(levels.of(LogComponent::kWatch), LogLevel::kError);
  EXPECT_EQ(levels.of(LogComponent::kRecord), LogLevel::kDebug);
}

TEST(LogLevels, AWrongTextSetsNothingAndSaysWhatIsAllowed) {
  for (const char* text : {"", "loud", "watch=loud", "debug,", "watch="}) {
    LogLevels levels;
    const auto set = levels.set(std::string("error,") + text);
    ASSERT_FALSE(set) << text;
    EXPECT_THAT(set.error().message, HasSubstr("allowed levels: trace, debug, info, warning, error, off"));
    EXPECT_EQ(levels.of(LogComponent::kWatch), LogLevel::kInfo);
  }
  const auto set = LogLevels().set("memory=debug");
  ASSERT_FALSE(set);
  EXPECT_EQ(set.error().message, "found memory=debug, allowed components: launch, schedule, watch, record, cluster");
}

}  // namespace
}  // namespace mprun
