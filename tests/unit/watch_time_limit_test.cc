// When waits with a time limit end, by the arguments of their system calls.
#include "watch/judge/time_limit.h"

#include <gtest/gtest.h>
#include <sys/time.h>

#include <cmath>

#include "fake_proc.h"

namespace mprun {
namespace {

constexpr std::uint64_t kLimit = 0x1000;

/// In seconds, rounded; -1: not known. The thread has waited for two of them.
double left(std::int64_t number, std::initializer_list<std::uint64_t> arguments, timespec limit = {}) {
  FakeProc proc;
  proc.process(10).put(kLimit, limit).thread(10).call(number, arguments);
  const Sample sample = take_sample(&proc, {10});
  TreeSnapshot snapshot(&proc, &sample, {});
  const auto time = time_left(sample.threads[0], 2 * kNanosPerSecond, &snapshot);
  return time ? std::round(to_seconds(*time)) : -1;
}

timespec in_seconds(clockid_t clock, int seconds) {
  timespec now{};
  clock_gettime(clock, &now);
  now.tv_sec += seconds;
  return now;
}

constexpr std::uint64_t bits(int value) { return static_cast<std::uint32_t>(value); }

TEST(TimeLimit, OfAFutexIsAnHourOrATime) {
  const std::uint64_t real = FUTEX_WAIT_BITSET | FUTEX_CLOCK_REALTIME | FUTEX_PRIVATE_FLAG;
  const std::uint64_t monotonic = FUTEX_WAIT_BITSET | FUTEX_PRIVATE_FLAG;
  EXPECT_EQ(left(SYS_futex, {0x5000, real, 0, kLimit}, in_seconds(CLOCK_REALTIME, 30)), 30);
  EXPECT_EQ(left(SYS_futex, {0x5000, monotonic, 0, kLimit}, in_seconds(CLOCK_MONOTONIC, 30)), 30);
  EXPECT_EQ(left(SYS_futex, {0x5000, FUTEX_WAIT, 0, kLimit}, {6, 0}), 4);
  EXPECT_EQ(left(SYS_futex, {0x5000, monotonic, 0, 0}), -1);
}

TEST(TimeLimit, OfPolls) {
  EXPECT_EQ(left(SYS_poll, {0x2000, 1, 6000}), 4);
  EXPECT_EQ(left(SYS_poll, {0x2000, 1, 1000}), 0);
  EXPECT_EQ(left(SYS_poll, {0x2000, 1, bits(-1)}), -1);
  EXPECT_EQ(left(SYS_epoll_wait, {3, 0x2000, 1, 6000}), 4);
  EXPECT_EQ(left(SYS_ppoll, {0x2000, 1, kLimit}, {6, 0}), 4);
  EXPECT_EQ(left(SYS_ppoll, {0x2000, 1, 0}), -1);
  EXPECT_EQ(left(SYS_pselect6, {1, 0x2000, 0, 0, kLimit}, {6, 0}), 4);
  EXPECT_EQ(left(SYS_select, {1, 0x2000, 0, 0, kLimit}, {6, 500'000}), std::round(4.5));
  EXPECT_EQ(left(SYS_epoll_pwait2, {3, 0x2000, 1, kLimit}, {6, 0}), 4);
}

TEST(TimeLimit, OfSleepsAndSignals) {
  EXPECT_EQ(left(SYS_nanosleep, {kLimit, 0}, {6, 0}), 4);
  EXPECT_EQ(left(SYS_clock_nanosleep, {CLOCK_MONOTONIC, 0, kLimit}, {6, 0}), 4);
  EXPECT_EQ(left(SYS_clock_nanosleep, {CLOCK_MONOTONIC, TIMER_ABSTIME, kLimit}, in_seconds(CLOCK_MONOTONIC, 9)), 9);
  EXPECT_EQ(left(SYS_rt_sigtimedwait, {0x2000, 0, kLimit, 8}, {6, 0}), 4);
  EXPECT_EQ(left(SYS_rt_sigtimedwait, {0x2000, 0, 0, 8}), -1);
  EXPECT_EQ(left(SYS_pause, {}), -1);
}

TEST(TimeLimit, ThatMakesNoSenseIsNone) {
  EXPECT_EQ(left(SYS_nanosleep, {0x9999, 0}), -1) << "memory that cannot be read";
  EXPECT_EQ(left(SYS_nanosleep, {kLimit, 0}, {-6, 0}), -1);
  EXPECT_EQ(left(SYS_nanosleep, {kLimit, 0}, {std::int64_t{1} << 40, 0}), -1);
  EXPECT_EQ(left(SYS_clock_nanosleep, {99, TIMER_ABSTIME, kLimit}, {6, 0}), -1) << "no such clock";
  EXPECT_EQ(left(SYS_read, {0, 0x1000, 1}), -1);
}

}  // namespace
}  // namespace mprun
