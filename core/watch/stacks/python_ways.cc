#include "watch/stacks/python_ways.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace mprun {
namespace {

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
    const bool jumps_if_false = one.op == kJumpIfFalseOrPop || one.op == kJumpIfFalse;
    const bool jumps_if_true = one.op == kJumpIfTrueOrPop || one.op == kJumpIfTrue;
    const bool handles_end = index > 1 && instructions_[index - 1].op == kMatchException && jumps_if_false &&
                             is_time_up_(instructions_[index - 2]);
    const bool swallows = with_exceptions_ && index > 0 && instructions_[index - 1].op == kWithException;
    if (one.op == kJump || one.op == kJumpNoInterrupt || (false_on_top && jumps_if_false)) {
      go_to(one.target);
    } else if (handles_end || swallows || (false_on_top && jumps_if_true)) {
      add(index + 1);
    } else {
      if (jumps_on_condition(one.op) || one.op == kForIter) go_to(one.target);
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

}  // namespace mprun
