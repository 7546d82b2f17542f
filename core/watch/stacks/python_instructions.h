// The instructions of a Python function, as CPython 3.11 has them in memory. Used by python_loop.cc.
#pragma once

#include <string_view>
#include <vector>

namespace mprun {

/// Include/opcode.h.
enum PythonOp : unsigned char {
  kCache = 0,
  kPopTop = 1,
  kNot = 12,
  kSubscript = 25,
  kStoreSubscript = 60,
  kReturn = 83,
  kStoreName = 90,
  kUnpackSequence = 92,
  kForIter = 93,
  kStoreAttribute = 95,
  kLoadConst = 100,
  kLoadName = 101,
  kLoadAttribute = 106,
  kCompare = 107,
  kJumpForward = 110,
  kLoadGlobal = 116,
  kContains = 118,
  kBinary = 122,
  kLoadFast = 124,
  kStoreFast = 125,
  kRaise = 130,
  kJumpBackwardNoInterrupt = 134,
  kLoadClosure = 136,
  kLoadDeref = 137,
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

/// True for instructions that change neither an object nor where the thread is: stack and jumps, tests, exceptions that
/// are caught, loops over what is there, `with`; and calls, whose functions others load.
[[nodiscard]] bool is_harmless(unsigned char op);

}  // namespace mprun
