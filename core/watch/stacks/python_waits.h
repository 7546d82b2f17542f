// Which frames of a Python stack wait with a limit of time and then look around? The program's own code that calls the
// standard library to wait, and what has called that code. Used by python_stack.cc, for one thread.
#pragma once

#include <functional>

#include "watch/hang.h"
#include "watch/stacks/python_loop.h"

namespace mprun {

class PythonWaits {
 public:
  using Look = std::function<BetweenWaits(const LimitedCall& called)>;

  /// The next frame, innermost first, and its code object. `look`: between_waits() of it; empty: the instructions of
  /// this Python are not known.
  void add(const PythonFrame& frame, std::uint64_t code, const Look& look);
  /// Whether the program may go on by what is not seen when the wait ends.
  [[nodiscard]] bool may_decide() const { return may_decide_; }

 private:
  void add_own(std::uint64_t code, const Look& look);

  bool is_over_ = false;   ///< no frame further out matters
  std::uint64_t own_ = 0;  ///< the code object of the last frame of the program's own code; 0: none was added
  std::string library_;    ///< the function of the standard library that the program has called to wait
  bool may_decide_ = false;
};

}  // namespace mprun
