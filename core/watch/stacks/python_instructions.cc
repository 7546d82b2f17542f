#include "watch/stacks/python_instructions.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

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

// Objects/exception_handling_notes.txt of CPython: numbers of six bits a byte, the highest first; bit 6: more follow.
class ExceptionTable {
 public:
  explicit ExceptionTable(std::string_view bytes) : bytes_(bytes) {}

  /// Where an exception at `unit` is handled; nullopt: it leaves the function.
  std::optional<std::size_t> handler_of(std::size_t unit) {
    at_ = 0;
    while (at_ < bytes_.size()) {
      const std::size_t begin = number(), length = number(), handler = number();
      number();  // the depth of the stack there
      if (unit >= begin && unit < begin + length) return handler;
    }
    return std::nullopt;
  }

 private:
  std::size_t number() {
    std::size_t value = 0;
    for (bool more = true; more && at_ < bytes_.size(); ++at_) {
      const auto byte = static_cast<unsigned char>(bytes_[at_]);
      value = value << 6U | (byte & 63U);
      more = (byte & 64U) != 0;
    }
    return value;
  }

  std::string_view bytes_;
  std::size_t at_ = 0;
};

enum PythonJump : unsigned char {
  kJumpIfFalseOrPop = 111,
  kJumpIfTrueOrPop = 112,
  kPopJumpIfFalse = 114,
  kPopJumpIfTrue = 115,
  kPopJumpBackIfFalse = 175,
  kPopJumpBackIfTrue = 176,
};

class WayFinder {
 public:
  using IsTimeUp = std::function<bool(const PythonInstruction&)>;
  WayFinder(const std::vector<PythonInstruction>& instructions, std::string_view table, const IsTimeUp& is_time_up,
            bool with_exceptions)
      : instructions_(instructions),
        table_(table),
        is_time_up_(is_time_up),
        with_exceptions_(with_exceptions),
        reached_(instructions.size()) {
    ways_.next.resize(instructions.size());
  }

  PythonWays from(std::size_t call, TimeUp end) {
    call_ = from_ = call;
    if (end != TimeUp::kReturnsFalse) go_to_handler(call);
    if (end != TimeUp::kRaises) {
      note_step(call + 1);
      follow(call + 1, end == TimeUp::kReturnsFalse);
    }
    while (!next_.empty()) {
      const std::size_t one = next_.back();
      next_.pop_back();
      follow(one, false);
    }
    for (std::size_t i = 0; i < reached_.size(); ++i) {
      if (reached_[i]) ways_.reached.push_back(i);
    }
    return std::move(ways_);
  }

 private:
  void go_to_handler(std::size_t index) {
    const auto handler = table_.handler_of(instructions_[index].at);
    if (handler) go_to(*handler);
  }
  void go_to(std::size_t unit) {
    const auto found = std::lower_bound(instructions_.begin(), instructions_.end(), unit,
                                        [](const PythonInstruction& one, std::size_t at) { return one.at < at; });
    add(static_cast<std::size_t>(found - instructions_.begin()));
  }
  void add(std::size_t index) {
    if (index == call_) ways_.come_back = true;
    note_step(index);
    if (index < instructions_.size() && index != call_ && !reached_[index]) next_.push_back(index);
  }
  void note_step(std::size_t index) {
    if (index < instructions_.size()) ways_.next[from_].push_back(index);
  }

  // `false_on_top`: the instruction finds a value on the stack that counts as false.
  void follow(std::size_t index, bool false_on_top) {
    if (index >= instructions_.size() || reached_[index]) return;
    if (index == call_) {
      ways_.come_back = true;
      return;
    }
    reached_[index] = true;
    from_ = index;
    if (with_exceptions_) go_to_handler(index);
    const PythonInstruction& one = instructions_[index];
    if (one.op == kReturn || one.op == kRaise || one.op == kReraise) return;
    const bool forward = jumps_on_condition_forward(one.op) || one.op == kForIter || one.op == kJumpForward;
    const std::size_t ahead = one.at + 1 + one.argument, behind = one.at + 1 - one.argument;
    const std::size_t target = forward ? ahead : behind;
    const bool always = one.op == kJumpForward || one.op == kJumpBackward || one.op == kJumpBackwardNoInterrupt;
    const bool jumps_if_false =
        one.op == kJumpIfFalseOrPop || one.op == kPopJumpIfFalse || one.op == kPopJumpBackIfFalse;
    const bool jumps_if_true = one.op == kJumpIfTrueOrPop || one.op == kPopJumpIfTrue || one.op == kPopJumpBackIfTrue;
    const bool handles_end = index > 1 && instructions_[index - 1].op == kMatchException && jumps_if_false &&
                             is_time_up_(instructions_[index - 2]);
    const bool swallows = with_exceptions_ && index > 0 && instructions_[index - 1].op == kWithException;
    if (always || (false_on_top && jumps_if_false)) {
      go_to(target);
    } else if (handles_end || swallows || (false_on_top && jumps_if_true)) {
      add(index + 1);
    } else {
      if (forward || jumps_back(one.op)) go_to(target);
      add(index + 1);
    }
  }

  const std::vector<PythonInstruction>& instructions_;
  ExceptionTable table_;
  const IsTimeUp& is_time_up_;
  bool with_exceptions_;
  std::vector<bool> reached_;
  std::vector<std::size_t> next_;
  std::size_t call_ = 0, from_ = 0;
  PythonWays ways_;
};

}  // namespace

PythonWays ways_after(const std::vector<PythonInstruction>& instructions, std::size_t call, std::string_view table,
                      TimeUp end, const std::function<bool(const PythonInstruction& load)>& is_time_up,
                      bool with_exceptions) {
  return WayFinder(instructions, table, is_time_up, with_exceptions).from(call, end);
}

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
