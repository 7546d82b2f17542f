// ActivityMeter: has any known thread run since the last look? The cheap question that the watch asks while a tree is
// busy: one pread of a kept-open file a thread, and only until the first that has run. Lives in the supervisor; owns
// one descriptor for each of the first kMostOpen threads, fewer where descriptors are few.
#pragma once

#include <vector>

#include "os/fd.h"
#include "watch/sample.h"

namespace mprun {

class ActivityMeter {
 public:
  static constexpr std::size_t kMostOpen = 4096;

  explicit ActivityMeter(std::string root = "/proc");

  /// From now on the threads of `sample` are those that are looked at. Opens and closes only what has changed.
  void set_threads(const Sample& sample);
  /// True if a thread has run since it was looked at last, or has ended: which is then not looked at any more.
  [[nodiscard]] bool has_moved();
  [[nodiscard]] bool knows_none() const { return threads_.empty(); }

 private:
  struct Watched {
    std::string path;
    pid_t tid = 0;
    Fd schedstat;
    std::uint64_t runs = 0;
    bool ended = false;
  };
  [[nodiscard]] bool has_moved(Watched* thread);

  std::string root_;
  std::size_t most_open_;
  std::vector<Watched> threads_;
  std::size_t last_mover_ = 0;  ///< asked first: who ran a moment ago mostly runs again
};

}  // namespace mprun
