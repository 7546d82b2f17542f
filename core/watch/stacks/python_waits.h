// Which frames of a Python stack wait with a limit of time and then look around? The program's own code that calls the
// standard library to wait, and what has called that code. Used by python_stack.cc, for one thread.
#pragma once

#include <functional>

#include "watch/hang.h"
#include "watch/stacks/python_beat.h"
#include "watch/stacks/python_loop.h"

namespace mprun {

class PythonWaits {
 public:
  using Look = std::function<BetweenWaits(const LimitedCall& called)>;
  using LookAfter = std::function<AfterWait(const LimitedCall& called, PythonBeat* beat)>;

  /// The next frame, innermost first, and its code object. `look`, `look_after`: between_waits() and after_wait() of
  /// it; empty: the instructions of this Python are not known.
  void add(const PythonFrame& frame, std::uint64_t code, const Look& look, const LookAfter& look_after);
  /// Whether the program may go on by what is not seen when the wait ends.
  [[nodiscard]] bool may_decide() const { return may_decide_; }
  /// What the thread does between its waits, if it only beats.
  [[nodiscard]] const std::optional<PythonBeat>& beat() const { return beat_; }

 private:
  void add_own(std::uint64_t code, const Look& look);
  void add_to_beat(const PythonFrame& frame, std::uint64_t code, const LookAfter& look_after);

  bool is_over_ = false;   ///< no frame further out matters
  std::uint64_t own_ = 0;  ///< the code object of the last frame of the program's own code; 0: none was added
  std::string library_;    ///< the function of the standard library that the program has called to wait
  bool may_decide_ = false;
  bool beat_is_over_ = false;   ///< no frame further out matters to `beat_`
  std::uint64_t returned_ = 0;  ///< the code object of the last frame of the program's own, which may return
  std::string called_;          ///< as `library_`, for `beat_`
  std::optional<PythonBeat> beat_;
};

}  // namespace mprun
