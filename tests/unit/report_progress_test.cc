#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "report/progress.h"
#include "report/safe_text.h"

namespace mprun {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

[[nodiscard]] Pulse digits_pulse() {
  Pulse pulse;
  pulse.done = 1234;
  pulse.failed = 3;
  pulse.total = 1797;
  pulse.busy = 4;
  pulse.workers = 4;
  pulse.phase = "running";
  return pulse;
}

[[nodiscard]] std::string at_columns(const Pulse& pulse, int columns) {
  return format_progress(pulse, {281.5}, {"digits", columns, false, false});
}

TEST(ReportProgressTest, EightyColumnsShowEverything) {
  const std::string line = at_columns(digits_pulse(), 80);
  EXPECT_THAT(line, StartsWith("digits  [===="));
  EXPECT_THAT(line, HasSubstr("]  1234/1797  68%  3 failed  282/s  ETA 2s  4/4 busy"));
  EXPECT_LE(line.size(), 79U);
}

TEST(ReportProgressTest, FewerColumnsDropTheLessImportantParts) {
  EXPECT_EQ(at_columns(digits_pulse(), 42), "digits  1234/1797  68%  3 failed  ETA 2s");
  EXPECT_EQ(at_columns(digits_pulse(), 40), "1234/1797  68%  3 failed  ETA 2s");
  EXPECT_EQ(at_columns(digits_pulse(), 20), "1234/1797  3 failed");
  EXPECT_EQ(at_columns(digits_pulse(), 6), "1234/");
  EXPECT_EQ(at_columns(digits_pulse(), 1), "");
  EXPECT_EQ(at_columns(digits_pulse(), 0), "");
}

TEST(ReportProgressTest, NeverLongerThanTheColumnsAllow) {
  Pulse pulse = digits_pulse();
  for (const std::uint64_t done : {std::uint64_t{0}, std::uint64_t{1797}, UINT64_MAX}) {
    pulse.done = done;
    for (int columns = 1; columns <= 200; ++columns) {
      for (const std::string& line :
           {format_progress(pulse, {1e9}, {"täglich", columns, false, false}), at_columns(pulse, columns)}) {
        EXPECT_LE(columns_at_most(line) - (line.find("ä") != line.npos ? 1 : 0), columns - 1) << line;
      }
    }
  }
}

TEST(ReportProgressTest, AnUnknownTotalHasNoBarAndNoTimeLeft) {
  Pulse pulse = digits_pulse();
  pulse.total.reset();
  EXPECT_EQ(at_columns(pulse, 80), "digits  1234 done  3 failed  282/s  4/4 busy");
}

TEST(ReportProgressTest, APhaseTakesThePlaceOfTheTimeLeft) {
  Pulse pulse = digits_pulse();
  pulse.phase = "stopping";
  EXPECT_THAT(at_columns(pulse, 80), HasSubstr("3 failed  stopping  282/s  4/4 busy"));
}

TEST(ReportProgressTest, WhatIsWaitedForComesBeforeTheRest) {
  Pulse pulse = digits_pulse();
  pulse.done = pulse.failed = 0;
  pulse.busy = 0;
  pulse.phase = "starting";
  pulse.doing = "importing digits.py";
  EXPECT_EQ(format_progress(pulse, {0, 1.9}, {"digits", 40, false, false}), "0/1797  starting: importing digits.py");
  EXPECT_EQ(format_progress(pulse, {0, 75.9}, {"digits", 60, false, false}),
            "digits  0/1797  0%  starting: importing digits.py 1m15s");
  EXPECT_EQ(format_progress(pulse, {0, 0}, {"digits", 30, false, false}), "digits  0/1797  0%  starting");
  pulse.phase = "running";
  pulse.doing = "waiting for input on stdin";
  EXPECT_EQ(format_progress(pulse, {2, 3}, {"digits", 60, false, false}),
            "digits  0/1797  0%  waiting for input on stdin 3s");
  EXPECT_EQ(format_progress_line(pulse, {0, 12}, "digits"),
            "digits: 0/1797 (0%), waiting for input on stdin 12s, 0/4 busy");
}

TEST(ReportProgressTest, RetriesAndBytesAreShown) {
  Pulse pulse = digits_pulse();
  pulse.retried = 2;
  pulse.bytes = 1'300'000;
  EXPECT_THAT(at_columns(pulse, 100), HasSubstr("3 failed  2 retried  282/s  ETA 2s  1.2 MiB  4/4 busy"));
  EXPECT_EQ(at_columns(pulse, 60), "digits  1234/1797  68%  3 failed  2 retried  ETA 2s");
  EXPECT_EQ(format_progress_line(pulse, {281.5}, "digits"),
            "digits: 1234/1797 (68%), 3 failed, 2 retried, 282/s, ETA 2s, 1.2 MiB, 4/4 busy");
}

TEST(ReportProgressTest, ControlSequencesOnlyWithColor) {
  EXPECT_THAT(at_columns(digits_pulse(), 80), Not(HasSubstr("\x1b")));
  const std::string colored = format_progress(digits_pulse(), {}, {"digits", 80, true, true});
  EXPECT_THAT(colored, HasSubstr("\x1b[31m3 failed\x1b[0m"));
  EXPECT_THAT(colored, HasSubstr("█"));
}

TEST(ReportProgressTest, ThePlainLineSaysTheSame) {
  EXPECT_EQ(format_progress_line(digits_pulse(), {281.5}, "digits"),
            "digits: 1234/1797 (68%), 3 failed, 282/s, ETA 2s, 4/4 busy");
}

TEST(ReportProgressTest, DurationsAndRates) {
  EXPECT_EQ(format_duration(0.2), "0s");
  EXPECT_EQ(format_duration(59.4), "59s");
  EXPECT_EQ(format_duration(200), "3m20s");
  EXPECT_EQ(format_duration(3900), "1h05m");
  EXPECT_EQ(format_duration(183600), "2d03h");
  EXPECT_EQ(format_duration(-1), "0s");
  EXPECT_EQ(format_rate(0.25), "0.25/s");
  EXPECT_EQ(format_rate(3.42), "3.4/s");
  EXPECT_EQ(format_rate(512), "512/s");
  EXPECT_EQ(format_rate(12345), "12.3k/s");
  EXPECT_EQ(format_rate(1.2e6), "1.2M/s");
}

TEST(ReportProgressTest, TheRateIsThatOfTheLastSeconds) {
  RateWindow window;
  EXPECT_EQ(window.per_second(), 0);
  for (int tenth = 0; tenth <= 600; ++tenth) {
    const double elapsed = tenth / 10.0;
    window.add(elapsed, static_cast<std::uint64_t>(elapsed < 30 ? elapsed * 100 : 3000 + (elapsed - 30) * 10));
  }
  EXPECT_NEAR(window.per_second(), 10, 0.5);
}

TEST(ReportProgressTest, SlowTasksAreMeasuredOverTheWholeJob) {
  RateWindow window;
  for (int second = 0; second <= 100; ++second) window.add(second, static_cast<std::uint64_t>(second / 20));
  EXPECT_NEAR(window.per_second(), 0.05, 1e-9);
}

TEST(ReportProgressTest, APhaseBeginsWhenItsWordsChange) {
  PhaseClock clock;
  Pulse pulse;
  pulse.doing = "setup()";
  EXPECT_EQ(clock.see(pulse), 0);
  pulse.elapsed = 5;
  EXPECT_EQ(clock.see(pulse), 5);
  pulse.doing = "waiting for worker 1 to start";
  EXPECT_EQ(clock.see(pulse), 0);
}

TEST(ReportSafeTextTest, OtherCharactersForTerminalsThatShowAsciiOnly) {
  EXPECT_EQ(ascii("gr\xC3\xBC\xC3\x9F \xE2\x96\x88!"), "gr?? ?!");
}

TEST(ReportSafeTextTest, ControlCharactersDoNotReachTheTerminal) {
  EXPECT_EQ(printable("a\x1b[31mb\x07\tc\r\nd\x7f"), "a?[31mb? c?\nd?");
  EXPECT_EQ(printable("\xC2\x9B"
                      "31m gr\xC3\xBC\xC3\x9F"),
            "?31m gr\xC3\xBC\xC3\x9F");
  EXPECT_EQ(one_line("\n  first \nsecond"), "first");
  EXPECT_EQ(one_line(" \n"), "");
  EXPECT_EQ(one_line("abcdefgh", 6), "abc...");
  EXPECT_EQ(one_line("\xC3\xBC\xC3\xBC\xC3\xBC\xC3\xBC", 6), "\xC3\xBC...");
}

}  // namespace
}  // namespace mprun
