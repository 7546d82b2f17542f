#include "watch/stacks/python_instructions.h"

#include <algorithm>
#include <array>

namespace mprun {
namespace {

/// Numbers of instructions.
struct OpRange {
  unsigned char first, last;
};
constexpr std::array kConditionalJumpsForward = {
    OpRange{111, 112},  // JUMP_IF_FALSE_OR_POP, JUMP_IF_TRUE_OR_POP
    OpRange{114, 115},  // POP_JUMP_FORWARD_IF_FALSE, POP_JUMP_FORWARD_IF_TRUE
    OpRange{128, 129},  // POP_JUMP_FORWARD_IF_NOT_NONE, POP_JUMP_FORWARD_IF_NONE
};
constexpr std::array kConditionalJumpsBackward = {
    OpRange{173, 176},  // POP_JUMP_BACKWARD_IF_ NOT_NONE, NONE, FALSE, TRUE
};

// Include/internal/pycore_opcode.h: in memory, an instruction may have the number of one of its specialised forms.
struct Form {
  PythonOp op;
  unsigned caches;  ///< units that follow it
  std::array<unsigned char, 17> specialised;
};
constexpr std::array kForms = {
    Form{kLoadFast, 0, {45, 46}},
    Form{kLoadConst, 0, {44}},
    Form{kStoreFast, 0, {161, 167}},
    Form{kLoadGlobal, 5, {47, 48, 55}},
    Form{kLoadAttribute, 4, {39, 40, 41, 42, 43}},
    Form{kLoadMethod, 10, {56, 57, 58, 59, 62, 63}},
    Form{kCall, 4, {22, 23, 24}},
    Form{kPrecall, 1, {64, 65, 66, 67, 72, 73, 76, 77, 78, 79, 80, 81, 113, 121, 127, 141, 143}},
    Form{kCompare, 2, {26, 27, 28, 29}},
    Form{kBinary, 1, {3, 4, 5, 6, 7, 8, 13, 14, 16}},
    Form{kSubscript, 4, {17, 18, 19, 20, 21}},
    Form{kUnpackSequence, 1, {177, 178, 179, 180}},
    Form{kStoreAttribute, 4, {153, 154, 158, 159}},
    Form{kStoreSubscript, 1, {168, 169, 170}},
    Form{kExtendedArgument, 0, {34}},
    Form{kJumpBackward, 0, {38}},
    Form{kResume, 0, {150}},
};

constexpr std::array kHarmless = {
    OpRange{1, 2},      // POP_TOP, PUSH_NULL
    OpRange{9, 12},     // NOP, UNARY_POSITIVE, UNARY_NEGATIVE, UNARY_NOT
    OpRange{15, 15},    // UNARY_INVERT
    OpRange{25, 25},    // BINARY_SUBSCR
    OpRange{30, 30},    // GET_LEN
    OpRange{35, 36},    // PUSH_EXC_INFO, CHECK_EXC_MATCH
    OpRange{49, 49},    // WITH_EXCEPT_START
    OpRange{53, 53},    // BEFORE_WITH
    OpRange{68, 68},    // GET_ITER
    OpRange{82, 83},    // LIST_TO_TUPLE, RETURN_VALUE
    OpRange{89, 89},    // POP_EXCEPT
    OpRange{92, 93},    // UNPACK_SEQUENCE, FOR_ITER
    OpRange{99, 99},    // SWAP
    OpRange{102, 103},  // BUILD_TUPLE, BUILD_LIST
    OpRange{107, 107},  // COMPARE_OP
    OpRange{110, 112},  // JUMP_FORWARD, JUMP_IF_FALSE_OR_POP, JUMP_IF_TRUE_OR_POP
    OpRange{114, 115},  // POP_JUMP_FORWARD_IF_FALSE, POP_JUMP_FORWARD_IF_TRUE
    OpRange{117, 120},  // IS_OP, CONTAINS_OP, RERAISE, COPY
    OpRange{122, 122},  // BINARY_OP
    OpRange{125, 126},  // STORE_FAST, DELETE_FAST
    OpRange{128, 130},  // POP_JUMP_FORWARD_IF_NOT_NONE, POP_JUMP_FORWARD_IF_NONE, RAISE_VARARGS
    OpRange{132, 134},  // MAKE_FUNCTION, BUILD_SLICE, JUMP_BACKWARD_NO_INTERRUPT
    OpRange{140, 140},  // JUMP_BACKWARD
    OpRange{144, 144},  // EXTENDED_ARG
    OpRange{151, 151},  // RESUME
    OpRange{155, 155},  // FORMAT_VALUE
    OpRange{157, 157},  // BUILD_STRING
    OpRange{166, 166},  // PRECALL
    OpRange{171, 176},  // CALL, KW_NAMES, POP_JUMP_BACKWARD_IF_NOT_NONE, POP_JUMP_BACKWARD_IF_NONE,
                        // POP_JUMP_BACKWARD_IF_FALSE, POP_JUMP_BACKWARD_IF_TRUE
};

constexpr std::array<unsigned char, 256> make_plain_forms() {
  std::array<unsigned char, 256> plain{};
  for (unsigned i = 0; i < plain.size(); ++i) plain[i] = static_cast<unsigned char>(i);
  for (const Form& form : kForms) {
    for (const unsigned char special : form.specialised) {
      if (special != 0) plain[special] = form.op;
    }
  }
  return plain;
}
constexpr std::array<unsigned char, 256> kPlainForms = make_plain_forms();

unsigned caches_of(unsigned char op) {
  const auto form = std::find_if(kForms.begin(), kForms.end(), [op](const Form& one) { return one.op == op; });
  return form == kForms.end() ? 0 : form->caches;
}

template <std::size_t kCount>
bool is_in(const std::array<OpRange, kCount>& ranges, unsigned char op) {
  return std::any_of(ranges.begin(), ranges.end(),
                     [op](const OpRange& range) { return op >= range.first && op <= range.last; });
}

}  // namespace

std::vector<PythonInstruction> decode_instructions(std::string_view bytes) {
  std::vector<PythonInstruction> instructions;
  unsigned extended = 0;
  for (std::size_t i = 0; i < bytes.size() / 2;) {
    const auto number = static_cast<unsigned char>(bytes[2 * i]);
    const auto low = static_cast<unsigned char>(bytes[2 * i + 1]);
    const PythonInstruction one{i, kPlainForms[number], extended << 8U | low};
    extended = one.op == kExtendedArgument ? one.argument : 0;
    instructions.push_back(one);
    i += 1 + caches_of(one.op);
  }
  return instructions;
}

bool jumps_on_condition_forward(unsigned char op) { return is_in(kConditionalJumpsForward, op); }

bool jumps_on_condition_backward(unsigned char op) { return is_in(kConditionalJumpsBackward, op); }

bool jumps_back(unsigned char op) {
  return op == kJumpBackward || op == kJumpBackwardNoInterrupt || jumps_on_condition_backward(op);
}

bool is_harmless(unsigned char op) { return is_in(kHarmless, op); }

}  // namespace mprun
