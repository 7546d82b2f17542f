// Pools whose result thread has ended, in real programs, and stacks that change while they are read.
#include "watch/stalls/lost_helper.h"

#include <gtest/gtest.h>

#include "python_program.h"

namespace mprun {
namespace {

/// Looks at a program once a second, by its own clock.
class Looks {
 public:
  explicit Looks(const char* mode) : program_(mode) { (void)program_.report(); }

  /// The number of looks until it is named; 0: not within as many. `pause`: for main, which may still be on its way.
  int until_named(int most, std::chrono::milliseconds pause = {}) {
    for (int i = 1; i <= most; ++i) {
      now_ += kNanosPerSecond;
      if (look() != 0) return i;
      std::this_thread::sleep_for(pause);
    }
    return 0;
  }
  pid_t look() { return watch_.look({program_.pid()}, now_); }
  void forget() { (void)watch_.look({}, now_); }

 private:
  PythonProgram program_;
  std::unique_ptr<ProcSource> proc_ = live_proc();
  LostHelperWatch watch_{proc_.get()};
  Nanos now_ = 0;
};

TEST(LostHelperWatch, NamesAPoolWithoutItsThreadForResults) {
  Looks looks("pool_without_results");
  EXPECT_GE(looks.until_named(6000, std::chrono::milliseconds(5)), 3);
  EXPECT_EQ(looks.until_named(5), 0) << "it was named already";
  looks.forget();
  EXPECT_EQ(looks.until_named(5), 3);
}

TEST(LostHelperWatch, CountsOneLookASecond) {
  Looks looks("pool_without_results");
  EXPECT_GE(looks.until_named(6000, std::chrono::milliseconds(5)), 3);
  looks.forget();
  for (int i = 0; i < 5; ++i) EXPECT_EQ(looks.look(), 0);
  EXPECT_EQ(looks.until_named(5), 2);
}

TEST(LostHelperWatch, NamesNoPoolThatWaitsForATask) {
  Looks looks("pool_with_results");
  EXPECT_EQ(looks.until_named(50, std::chrono::milliseconds(5)), 0);
}

constexpr pid_t kPool = 10;

PythonThread in_pool(pid_t tid, const char* function) {
  PythonThread thread;
  thread.tid = tid;
  thread.whole = true;
  thread.frames = {{"/usr/lib/python3.11/multiprocessing/pool.py", 1, function}};
  return thread;
}

PythonStacks without_results() {
  PythonStacks stacks;
  stacks.threads = {in_pool(kPool, "ApplyResult.get"), in_pool(kPool + 1, "Pool._handle_workers")};
  return stacks;
}

PythonStacks torn() {
  PythonStacks stacks = without_results();
  stacks.threads.back().whole = false;
  return stacks;
}

/// A watch that reads `first` so often, then `rest`; looks three times, a second apart.
bool is_named(int times, const PythonStacks& first, const PythonStacks& rest) {
  int readings = 0;
  LostHelperWatch watch(nullptr, [&](pid_t) { return readings++ % (times + 1) < times ? first : rest; });
  pid_t named = 0;
  for (int i = 1; i <= 3; ++i) named = watch.look({kPool}, i * kNanosPerSecond);
  return named == kPool;
}

TEST(LostHelperWatch, ReadsTornStacksAgain) {
  EXPECT_TRUE(is_named(0, torn(), without_results()));
  EXPECT_TRUE(is_named(1, torn(), without_results()));
  EXPECT_TRUE(is_named(19, torn(), without_results()));
  EXPECT_FALSE(is_named(20, torn(), without_results())) << "it may go on for ever";
}

TEST(LostHelperWatch, CountsNoPoolThatIsReadWholeInTheEnd) {
  PythonStacks with_results = without_results();
  with_results.threads.push_back(in_pool(kPool + 2, "Pool._handle_results"));
  EXPECT_FALSE(is_named(1, torn(), with_results));
  PythonStacks of_user = torn();
  of_user.threads.front().frames.front().file = "/home/user/program.py";
  EXPECT_FALSE(is_named(1, torn(), of_user)) << "main no longer waits for it";
}

}  // namespace
}  // namespace mprun
