#include "watch/stacks/python_wait_call.h"

namespace mprun {
namespace {

// Functions in C that may wait with a limit.
constexpr std::array<std::string_view, 14> kLimitedCalls = {"acquire", "wait",         "select",   "poll",     "recv",
                                                            "accept",  "read",         "readline", "sleep",    "get",
                                                            "join",    "sigtimedwait", "connect",  "recv_into"};
// Exceptions that waits raise when their time is up.
constexpr std::array<std::string_view, 8> kTimeUp = {"Empty",   "Full",           "TimeoutError",       "Timeout",
                                                     "timeout", "TimeoutExpired", "BrokenBarrierError", "Exception"};
// Iterators that run no Python code.
constexpr std::array<std::string_view, 10> kIterators = {
    "list_iterator",      "tuple_iterator",    "range_iterator", "longrange_iterator",   "dict_keyiterator",
    "dict_valueiterator", "dict_itemiterator", "set_iterator",   "list_reverseiterator", "str_iterator"};
constexpr std::uint64_t kStackSize = 12;  // from the count of arguments in a PyCodeObject
constexpr std::size_t kMostOnStack = 512;

}  // namespace

bool is_no_wait(const std::vector<PythonInstruction>& instructions, std::size_t call, const PythonNames& names,
                TimeUp end) {
  if (end != TimeUp::kInC) return false;
  for (std::size_t i = call; i-- > 0;) {
    const PythonInstruction& one = instructions[i];
    if (one.op == kPopTop || one.op == kStoreFast || one.op == kStoreName || jumps_on_condition(one.op)) return true;
    if (is_among(kLimitedCalls, names.name_loaded(one))) return false;
  }
  return true;
}

std::optional<std::size_t> call_of_frame(const PythonFrameWords& frame, const PythonCode& code,
                                         const PythonLayout& layout, const PythonNames& names,
                                         const std::vector<PythonInstruction>& instructions) {
  const std::size_t now = (names.word(frame.address + layout.frame.instruction) - code.begin) / 2;
  const auto after = std::upper_bound(instructions.begin(), instructions.end(), now,
                                      [](std::size_t at, const PythonInstruction& one) { return at < one.at; });
  if (after == instructions.begin()) return std::nullopt;
  return static_cast<std::size_t>(after - instructions.begin()) - 1;
}

PythonWays ways_from_wait(const std::vector<PythonInstruction>& instructions, std::size_t call,
                          const PythonNames& names, TimeUp end, bool with_exceptions) {
  const std::string table = names.exception_table();
  const auto is_time_up = [&names](const PythonInstruction& load) {
    return load.op != kLoadMethod && is_among(kTimeUp, names.name_loaded(load));
  };
  return ways_after(instructions, call, table, end, is_time_up, with_exceptions);
}

bool WaysOfCall::leads(std::size_t from, const MayTake& may_take, bool to_call) const {
  std::vector<bool> seen(instructions_.size());
  std::vector<std::size_t> open = {from};
  while (!open.empty()) {
    const std::size_t one = open.back();
    open.pop_back();
    if (!to_call && (instructions_[one].op == kReturn || instructions_[one].op == kRaise)) return true;
    for (const std::size_t next : ways_.next[one]) {
      if (!may_take(one, next)) continue;
      if (next == call_ && to_call) return true;
      if (next != call_ && !seen[next]) open.push_back(next);
      seen[next] = true;
    }
  }
  return false;
}

bool WaysOfCall::comes_back_without(std::size_t other) const {
  return leads(
      call_, [other](std::size_t, std::size_t to) { return to != other; }, true);
}

bool WaysOfCall::comes_back_from(std::size_t from) const {
  return from == call_ || leads(
                              from, [](std::size_t, std::size_t) { return true; }, true);
}

bool runs_code_to_iterate(const PythonFrameWords& frame, const PythonCode& code, const PythonLayout& layout,
                          const PythonNames& names) {
  // The iterators lie on the stack after the variables.
  const std::uint64_t begin = frame.address + layout.frame.locals;
  const std::uint64_t size_at = names.code() + layout.code.argument_count + kStackSize;
  std::uint64_t count = code.local_count + static_cast<std::uint32_t>(names.word(size_at));
  if (layout.stack_top_is_pointer) {
    if (frame.stack_top > begin) count = (frame.stack_top - begin) / PythonNames::kWord;
  } else if (const auto top = static_cast<std::int32_t>(frame.stack_top); top >= 0) {  // below 0: it has called C
    count = static_cast<std::uint32_t>(top);
  }
  for (std::uint64_t i = code.local_count; i < std::min<std::uint64_t>(count, kMostOnStack); ++i) {
    const std::string type = names.type_name(names.slot(static_cast<unsigned>(i)));
    const bool is_iterator = type.ends_with("iterator") || type.starts_with("itertools.") || type == "generator" ||
                             type == "map" || type == "filter" || type == "zip" || type == "enumerate";
    if (is_iterator && !is_among(kIterators, type)) return true;
  }
  return false;
}

}  // namespace mprun
