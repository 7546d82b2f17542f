// What the runtime of a Go program shows. This program looks like one: it has variables of these names.
#include "watch/stacks/go_runtime.h"

#include <gtest/gtest.h>
#include <sys/personality.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstring>

#ifdef __clang__
#define WITHOUT_REDZONE __attribute__((no_sanitize("address")))  // which would change its size
#else
#define WITHOUT_REDZONE
#endif

namespace mprun {

struct FakeSig {
  std::uint64_t note;
  std::uint32_t mask[3], wanted[3], ignored[3], received[3], state, delivering;
  bool inuse;
};
extern FakeSig fake_sig asm("runtime.sig");
extern char fake_sched[128] asm("runtime.sched");
WITHOUT_REDZONE FakeSig fake_sig = {};
WITHOUT_REDZONE char fake_sched[128] = {};

namespace {

constexpr std::uint64_t bit_of(int signal) { return std::uint64_t{1} << (signal - 1); }

bool read_own(std::uint64_t address, void* to, std::size_t size) {
  std::memcpy(to, reinterpret_cast<const void*>(address), size);  // NOLINT(performance-no-int-to-ptr)
  return true;
}

TEST(GoRuntime, IsKnownByTheSignalsThatItCatches) {
  const std::uint64_t real_time = ~std::uint64_t{0} << 34U;
  EXPECT_TRUE(may_be_go(real_time | bit_of(SIGURG) | bit_of(SIGTERM)));
  EXPECT_FALSE(may_be_go(real_time | bit_of(SIGTERM)));
  EXPECT_FALSE(may_be_go(bit_of(SIGURG) | bit_of(40)));
}

TEST(GoRuntime, ShowsWhichSignalsTheProgramAskedFor) {
  const auto nothing_asked = read_go_runtime(getpid(), read_own);
  ASSERT_TRUE(nothing_asked);
  EXPECT_EQ(nothing_asked->awaited, 0U);
  fake_sig.wanted[0] = 1U << SIGTERM;
  fake_sig.wanted[1] = 1U << (40 - 32);
  fake_sig.wanted[2] = 1;  // 64
  const auto asked = read_go_runtime(getpid(), read_own);
  fake_sig = {};
  ASSERT_TRUE(asked);
  EXPECT_EQ(asked->awaited, bit_of(SIGTERM) | bit_of(40) | bit_of(64));
}

TEST(GoRuntime, WaitsAtItsScheduler) {
  const auto go = read_go_runtime(getpid(), read_own);
  ASSERT_TRUE(go);
  const auto scheduler = reinterpret_cast<std::uint64_t>(fake_sched);
  EXPECT_TRUE(go->is_own_wait(scheduler + 8));
  EXPECT_FALSE(go->is_own_wait(scheduler + sizeof fake_sched));
  EXPECT_FALSE(go->is_own_wait(scheduler - 1));
}

#ifndef __SANITIZE_THREAD__  // its memory is where the libraries would be
// As with `ulimit -s unlimited`.
TEST(GoRuntime, IsFoundInAProgramWithLibrariesBelowIt) {
  const pid_t child = fork();
  if (child == 0) {
    const int kind = personality(0xffffffff);  // asks, and changes nothing
    personality(static_cast<unsigned long>(kind) | ADDR_COMPAT_LAYOUT);
    execl("/proc/self/exe", "", "--gtest_brief=1", "--gtest_filter=GoRuntime.WaitsAtItsScheduler", nullptr);
    _exit(127);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}
#endif

TEST(GoRuntime, ShowsNothingIfItsMemoryCannotBeRead) {
  EXPECT_FALSE(read_go_runtime(getpid(), [](std::uint64_t, void*, std::size_t) { return false; }));
  EXPECT_FALSE(read_go_runtime(-1, read_own));
}

}  // namespace
}  // namespace mprun
