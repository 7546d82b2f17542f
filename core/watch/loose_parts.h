// LooseParts: tells whether a loose part of a tree (proof.h) is news. Who waits for it may change later, so what is
// loose must not count as reported in any other way. Lives in those who look for stalls.
#pragma once

#include <utility>

#include "watch/proof.h"

namespace mprun {

class LooseParts {
 public:
  /// False of a loose part with the same stuck processes as the last one.
  [[nodiscard]] bool is_news(const Judgement& judgement) {
    return !is_loose_part(judgement) || std::exchange(last_, judgement.stuck) != judgement.stuck;
  }

 private:
  std::set<pid_t> last_;
};

}  // namespace mprun
