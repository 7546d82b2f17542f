// Where a Python function goes on from the end of a call. Used by python_wait_call.cc.
#pragma once

#include <functional>

#include "watch/stacks/python_instructions.h"

namespace mprun {

/// Where a wait goes on when its time is up.
enum class TimeUp {
  kNotKnown,
  kInC,           ///< the same, of a function in C that was called directly
  kReturnsFalse,  ///< after the call, with something that counts as false
  kRaises,        ///< in the handler of an exception
};

/// The control flow of a function from the end of a call on, until it comes back to that call or leaves the function.
struct PythonWays {
  std::vector<std::size_t> reached;            ///< instructions by index, in their order; not the call itself
  bool come_back = false;                      ///< the call can be reached again
  std::vector<std::vector<std::size_t>> next;  ///< by index: what may follow; of the call, what follows its end
};

/// `call`: the index of the call. `table`: co_exceptiontable. `is_time_up`: whether the instruction before a
/// kMatchException loads an exception that waits raise when their time is up; the handlers after it are then left out.
/// `with_exceptions`: what is in a `try` or a `with` may raise too; no `with` swallows an exception.
[[nodiscard]] PythonWays ways_after(const std::vector<PythonInstruction>& instructions, std::size_t call,
                                    std::string_view table, TimeUp end,
                                    const std::function<bool(const PythonInstruction& load)>& is_time_up,
                                    bool with_exceptions = false);

}  // namespace mprun
