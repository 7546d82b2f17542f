#include "watch/stacks/python_instructions.h"

#include <algorithm>

#include "watch/stacks/python_opcodes.h"

namespace mprun {
namespace {

constexpr bool is_jump(PythonOp op) { return op >= kJump && op <= kJumpIfTrueOrPop; }

class InstructionDecoder {
  using How = PythonOpcode::How;

 public:
  InstructionDecoder(const PythonOpcodes& opcodes, std::string_view bytes) : opcodes_(opcodes), bytes_(bytes) {}

  std::vector<PythonInstruction> decode() {
    const std::size_t count = bytes_.size() / 2;
    for (std::size_t unit = 0; unit < count; unit += 1 + opcode_.caches) {
      opcode_ = opcodes_.by_number[static_cast<unsigned char>(bytes_[2 * unit])];
      if (opcode_.how == How::kIsReplaced) return {};
      at_ = unit;
      argument_ = extended_ << 8U | static_cast<unsigned char>(bytes_[2 * unit + 1]);
      extended_ = 0;
      convert();
    }
    return std::move(found_);
  }

 private:
  void add(PythonOp op, unsigned argument) { found_.push_back({at_, op, argument, 0}); }

  void convert() {
    const unsigned first = argument_ >> 4U, second = argument_ & 15U;
    switch (opcode_.how) {
      case How::kExtendsArgument:
        extended_ = argument_;
        break;
      case How::kDropped:
      case How::kIsReplaced:
        break;
      case How::kCalls:
        add(kPrecall, argument_);
        add(kCall, argument_);
        break;
      case How::kLoadsAttribute:
        add((argument_ & 1U) != 0 ? kLoadMethod : kLoadAttribute, argument_ >> 1U);
        break;
      case How::kLoadsTwo:
        add(kLoadFast, first);
        add(kLoadFast, second);
        break;
      case How::kStoresAndLoads:
        add(kStoreFast, first);
        add(kLoadFast, second);
        break;
      case How::kStoresTwo:
        add(kStoreFast, first);
        add(kStoreFast, second);
        break;
      case How::kReturnsConst:
        add(kLoadConst, argument_);
        add(kReturn, 0);
        break;
      case How::kIntrinsic:
        add(is_harmless_intrinsic() ? kHarmless : kOtherOp, argument_);
        break;
      case How::kSame:
      case How::kJumpsBack:
        convert_one();
    }
  }

  void convert_one() {
    constexpr unsigned kOfSubscript = 26;  // NB_SUBSCR, since 3.14
    if (opcode_.op == kPushNull && opcodes_.null_is_pushed_last) {
      push_null_first();
    } else if (opcode_.op == kBinary && argument_ == kOfSubscript) {
      add(kSubscript, 0);
    } else {
      add(opcode_.op, opcode_.op == kCompare ? argument_ >> opcodes_.comparison_shift : argument_);
    }
    if (opcode_.op == kForIter) take_null_for_index();
    const std::size_t next = at_ + 1 + opcode_.caches;
    if (!is_jump(opcode_.op) && opcode_.op != kForIter) return;
    found_.back().target = opcode_.how == How::kJumpsBack ? next - argument_ : next + argument_;
    if (compares_builtin()) calls_builtin_at_ = found_.back().target;
  }

  // Since 3.14, a loop replaces `all(... for ...)` and `any(... for ...)`, if the name means the built-in function.
  [[nodiscard]] bool compares_builtin() const {
    constexpr std::array kComparison = {kLoadGlobal, kCopy, kHarmless, kHarmless, kJumpIfFalse};
    return found_.size() >= kComparison.size() &&
           std::equal(kComparison.rbegin(), kComparison.rend(), found_.rbegin(),
                      [](PythonOp op, const PythonInstruction& one) { return one.op == op; });
  }

  // Before the load of what is called: a variable, and perhaps attributes of it. What is computed counts as not known.
  void push_null_first() {
    if (at_ == calls_builtin_at_) {
      add(kHarmless, 0);
      return;
    }
    auto load = found_.end();
    while (load != found_.begin() && (load - 1)->op == kLoadAttribute) --load;
    const bool is_load = load != found_.begin() && loads_variable((load - 1)->op);
    if (is_load) {
      --load;
      found_.insert(load, {load->at, kPushNull, 0, 0});
    } else {
      add(kOtherOp, 0);
      null_at_ = at_;
    }
  }

  // Since 3.15, kForIter finds an index on the stack, or nothing if it has an iterator.
  void take_null_for_index() {
    if (found_.size() < 2) return;
    PythonInstruction& before = *(found_.end() - 2);
    if (before.op == kOtherOp && before.at == null_at_ && before.at + 1 == at_) before.op = kHarmless;
  }

  static bool loads_variable(PythonOp op) {
    return op == kLoadFast || op == kLoadName || op == kLoadDeref || op == kLoadGlobal;
  }

  [[nodiscard]] bool is_harmless_intrinsic() const {
    constexpr unsigned kStopIterationError = 3, kUnaryPositive = 5, kListToTuple = 6;
    return argument_ == kStopIterationError || argument_ == kUnaryPositive || argument_ == kListToTuple;
  }

  const PythonOpcodes& opcodes_;
  std::string_view bytes_;
  std::vector<PythonInstruction> found_;
  PythonOpcode opcode_;
  std::size_t at_ = 0;
  std::size_t null_at_ = 0;           ///< of the last PUSH_NULL that came after what is computed
  std::size_t calls_builtin_at_ = 0;  ///< where the name means something else; 0: nowhere
  unsigned argument_ = 0, extended_ = 0;
};

}  // namespace

bool knows_instructions(unsigned minor) { return python_opcodes(minor) != nullptr; }

std::vector<PythonInstruction> decode_instructions(std::string_view bytes, unsigned minor) {
  const PythonOpcodes* const opcodes = python_opcodes(minor);
  return opcodes == nullptr ? std::vector<PythonInstruction>() : InstructionDecoder(*opcodes, bytes).decode();
}

bool jumps_on_condition(PythonOp op) { return is_jump(op) && op != kJump && op != kJumpNoInterrupt; }

bool jumps_back(const PythonInstruction& one) { return is_jump(one.op) && one.target <= one.at; }

bool is_harmless(PythonOp op) {
  constexpr std::array kOthers = {kHarmless,  kBinary,         kCall,      kCompare, kContains,     kCopy,     kForIter,
                                  kSubscript, kMatchException, kNot,       kPopTop,  kPrecall,      kPushNull, kRaise,
                                  kReraise,   kReturn,         kStoreFast, kSwap,    kWithException};
  return is_jump(op) || std::find(kOthers.begin(), kOthers.end(), op) != kOthers.end();
}

}  // namespace mprun
