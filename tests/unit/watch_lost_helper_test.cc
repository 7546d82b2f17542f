// Pools whose result thread has ended, in real programs.
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

}  // namespace
}  // namespace mprun
