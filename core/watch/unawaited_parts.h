// UnawaitedParts: tells whether an unawaited part of a tree (proof.h) is news. A main thread may come to wait for it
// later, so it must not count as reported in any other way. Lives in those who look for stalls.
#pragma once

#include <utility>

#include "watch/proof.h"

namespace mprun {

class UnawaitedParts {
 public:
  /// False of an unawaited part with the same stuck processes as the last one.
  [[nodiscard]] bool is_news(const Judgement& judgement) {
    return !is_unawaited_part(judgement) || std::exchange(last_, judgement.stuck) != judgement.stuck;
  }

 private:
  std::set<pid_t> last_;
};

}  // namespace mprun
