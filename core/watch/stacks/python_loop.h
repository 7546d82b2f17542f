// Does a loop in Python look at nothing but objects that only threads of its own process change, such as futures and
// lists, or memory that it shares with other processes? Then it ends when one of them acts, and the time for which it
// sleeps between its looks makes no difference. Used by python_stack.cc. All it reads may be garbage.
#pragma once

#include <optional>

#include "watch/stacks/python_wait_call.h"

namespace mprun {

struct AwaitedInLoop {
  const char* what = nullptr;  ///< "a future"
  bool is_shared = false;      ///< other processes may bring it about too
  bool is_flag = false;  ///< a variable of any kind: idle programs look so whether a handler of a signal has set it
};

/// What the innermost loop around the instruction that the frame executes waits for, if it has no end of its own and
/// neither calls anything but methods of such objects and a sleep, nor changes anything but variables. nullopt: it may
/// look at more, or ends by nothing of that kind.
[[nodiscard]] std::optional<AwaitedInLoop> awaited_in_loop(const PythonFrameWords& frame, const PythonCode& code,
                                                           const PythonLayout& layout, PythonCodeReader* codes,
                                                           ProcessMemory* memory);

/// What a frame does from the end of the wait that it is in to its next wait.
enum class BetweenWaits {
  kLooksOn,    ///< it waits again, and in between asks nothing but objects for which threads wait, and changes nothing
               ///< but its own variables
  kLeaves,     ///< it does not wait again, and does no more than that before it returns or raises
  kMayDecide,  ///< it may go on by something else: a clock, a file, a count that is kept elsewhere
};

/// Follows the instructions of the frame from that call on. What cannot be read counts as kMayDecide.
[[nodiscard]] BetweenWaits between_waits(const PythonFrameWords& frame, const PythonCode& code,
                                         const PythonLayout& layout, PythonCodeReader* codes, ProcessMemory* memory,
                                         const LimitedCall& called);

}  // namespace mprun
