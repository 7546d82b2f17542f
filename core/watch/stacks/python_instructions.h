// The instructions of a Python function, read from memory, in one form for all versions of CPython: that of 3.11. Used
// by python_loop.cc and python_beat.cc.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

namespace mprun {

/// What an instruction does, by CPython's names for it unless noted otherwise.
enum PythonOp : unsigned char {
  kOtherOp,      ///< whatever is not named here
  kHarmless,     ///< see is_harmless()
  kMakesObject,  ///< it makes an object or adds to one that was just made, or imports what has long been imported
  kBinary,
  kCall,
  kCompare,  ///< the argument: the index in <, <=, ==, !=, >, >=
  kContains,
  kCopy,
  kForIter,
  kJump,             ///< always
  kJumpNoInterrupt,  ///< always, back: out of a handler, or in an `await`
  kJumpIfFalse,
  kJumpIfNone,
  kJumpIfNotNone,
  kJumpIfTrue,
  kJumpIfFalseOrPop,
  kJumpIfTrueOrPop,
  kLoadAttribute,
  kLoadClosure,
  kLoadConst,
  kLoadDeref,
  kLoadFast,
  kLoadGlobal,
  kLoadMethod,  ///< LOAD_ATTR with the bit that says so since 3.12
  kLoadName,
  kLoadSmallInt,
  kMatchException,  ///< CHECK_EXC_MATCH
  kNot,
  kPopTop,
  kPrecall,   ///< before each kCall, with the number of arguments
  kPushNull,  ///< before what is called is loaded, unless the load itself pushes one
  kRaise,
  kReraise,
  kReturn,
  kReturnGenerator,
  kStoreAttribute,
  kStoreDeref,
  kStoreFast,
  kStoreGlobal,
  kStoreName,
  kStoreSubscript,
  kSubscript,
  kSwap,
  kWithException,  ///< WITH_EXCEPT_START
  kYield,
};

struct PythonInstruction {
  std::size_t at = 0;  ///< in units of two bytes; some instructions of CPython are two here, at the same place
  PythonOp op = kOtherOp;
  unsigned argument = 0;
  std::size_t target = 0;  ///< of a jump, and of kForIter when there are no more items; in units
};

/// Whether the instructions of Python 3.MINOR can be read.
[[nodiscard]] bool knows_instructions(unsigned minor);

/// The instructions in the bytes of a code object; none if a debugger or a profiler has changed them, or a JIT.
[[nodiscard]] std::vector<PythonInstruction> decode_instructions(std::string_view bytes, unsigned minor);

[[nodiscard]] bool jumps_on_condition(PythonOp op);
[[nodiscard]] bool jumps_back(const PythonInstruction& one);

/// True for instructions that change neither an object nor where the thread is: stack and jumps, tests, exceptions that
/// are caught, loops over what is there, `with`; and calls, whose functions others load.
[[nodiscard]] bool is_harmless(PythonOp op);

}  // namespace mprun
