// The instructions of a Python function, as CPython 3.11 has them in memory. Used by python_loop.cc.
#pragma once

#include <functional>
#include <string_view>
#include <vector>

namespace mprun {

/// Include/opcode.h.
enum PythonOp : unsigned char {
  kCache = 0,
  kPopTop = 1,
  kPushNull = 2,
  kNot = 12,
  kSubscript = 25,
  kMatchException = 36,
  kWithException = 49,
  kStoreSubscript = 60,
  kReturnGenerator = 75,
  kReturn = 83,
  kYield = 86,
  kStoreName = 90,
  kUnpackSequence = 92,
  kForIter = 93,
  kStoreAttribute = 95,
  kStoreGlobal = 97,
  kSwap = 99,
  kLoadConst = 100,
  kLoadName = 101,
  kLoadAttribute = 106,
  kCompare = 107,
  kJumpForward = 110,
  kLoadGlobal = 116,
  kContains = 118,
  kReraise = 119,
  kCopy = 120,
  kBinary = 122,
  kLoadFast = 124,
  kStoreFast = 125,
  kRaise = 130,
  kJumpBackwardNoInterrupt = 134,
  kLoadClosure = 136,
  kLoadDeref = 137,
  kStoreDeref = 138,
  kJumpBackward = 140,
  kExtendedArgument = 144,
  kResume = 151,
  kLoadMethod = 160,
  kPrecall = 166,
  kCall = 171,
};

struct PythonInstruction {
  std::size_t at = 0;         ///< in units of two bytes
  unsigned char op = kCache;  ///< never one of the specialised forms
  unsigned argument = 0;
};

/// The instructions in the bytes of a code object.
[[nodiscard]] std::vector<PythonInstruction> decode_instructions(std::string_view bytes);

[[nodiscard]] bool jumps_on_condition_forward(unsigned char op);
[[nodiscard]] bool jumps_on_condition_backward(unsigned char op);
[[nodiscard]] inline bool jumps_on_condition(unsigned char op) {
  return jumps_on_condition_forward(op) || jumps_on_condition_backward(op);
}
[[nodiscard]] bool jumps_back(unsigned char op);

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

/// True for instructions that change neither an object nor where the thread is: stack and jumps, tests, exceptions that
/// are caught, loops over what is there, `with`; and calls, whose functions others load.
[[nodiscard]] bool is_harmless(unsigned char op);

}  // namespace mprun
