// TimeShare: lets a kind of work take only a share of the time, however much of it could be done.
#pragma once

#include <algorithm>

#include "base/clock.h"

namespace mprun {

class TimeShare {
 public:
  struct Limits {
    Nanos one_in;    ///< the work takes one part in so many of the time
    Nanos saved_up;  ///< time in which it was not done, up to this one, allows so much more of it at once
    Nanos latest;    ///< it never waits longer than this
  };
  explicit TimeShare(Limits limits) : limits_(limits) {}

  /// When it may be done next, monotonic.
  [[nodiscard]] Nanos next() const { return next_; }
  [[nodiscard]] bool allows(Nanos now) const { return now >= next_; }
  /// It was done, and took `cost`.
  void spend(Nanos now, Nanos cost) {
    next_ = std::min(std::max(next_, now - limits_.saved_up) + cost * limits_.one_in, now + limits_.latest);
  }

 private:
  Limits limits_;
  Nanos next_ = 0;
};

}  // namespace mprun
