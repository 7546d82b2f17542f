// What the bytes of instructions mean in each version of CPython. Used by python_instructions.cc only.
#pragma once

#include <array>

#include "watch/stacks/python_instructions.h"

namespace mprun {

struct PythonOpcode {
  /// How an instruction of CPython becomes ours.
  enum class How : unsigned char {
    kSame,
    kDropped,  ///< what it does is part of the next one: TO_BOOL before a jump
    kExtendsArgument,
    kJumpsBack,       ///< the target lies before it
    kCalls,           ///< kPrecall, kCall
    kLoadsAttribute,  ///< or a method
    kLoadsTwo,        ///< two times kLoadFast, with four bits of the argument each
    kStoresAndLoads,  ///< likewise: kStoreFast, kLoadFast
    kStoresTwo,       ///< likewise
    kReturnsConst,    ///< kLoadConst, kReturn
    kIntrinsic,       ///< CALL_INTRINSIC_1
    kIsReplaced,      ///< it stands for one that a tool or a JIT has replaced
  };

  PythonOp op = kOtherOp;
  How how = How::kSame;
  unsigned char caches = 0;  ///< units that follow it
};

struct PythonOpcodes {
  std::array<PythonOpcode, 256> by_number;
  unsigned comparison_shift;  ///< of the argument of COMPARE_OP
  bool null_is_pushed_last;   ///< PUSH_NULL comes after what is called is loaded
};

/// What the numbers from `first` to `last` mean. In memory, an instruction may have the number of one of its
/// specialised forms.
struct PythonOpcodeRow {
  unsigned char first, last;
  PythonOp op;
  unsigned char caches = 0;
  PythonOpcode::How how = PythonOpcode::How::kSame;
};

template <std::size_t kCount>
constexpr PythonOpcodes make_python_opcodes(const std::array<PythonOpcodeRow, kCount>& rows, unsigned comparison_shift,
                                            bool null_is_pushed_last) {
  PythonOpcodes opcodes{{}, comparison_shift, null_is_pushed_last};
  for (const PythonOpcodeRow& row : rows) {
    for (unsigned number = row.first; number <= row.last; ++number) {
      opcodes.by_number.at(number) = {row.op, row.how, row.caches};
    }
  }
  return opcodes;
}

/// One file each.
extern const PythonOpcodes kPythonOpcodes311, kPythonOpcodes312, kPythonOpcodes313, kPythonOpcodes314,
    kPythonOpcodes315;

/// nullptr: another version than 3.11 to 3.15.
[[nodiscard]] const PythonOpcodes* python_opcodes(unsigned minor);

}  // namespace mprun
