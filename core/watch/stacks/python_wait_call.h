// The call in which a frame of Python waits, and where it goes on when the time of that is up. Reads the memory
// of a watched process, so all of it may be garbage. Used by python_loop.cc and python_beat.cc.
#pragma once

#include <algorithm>
#include <array>
#include <functional>
#include <optional>

#include "watch/stacks/python_names.h"
#include "watch/stacks/python_ways.h"

namespace mprun {

template <std::size_t kCount>
bool is_among(const std::array<std::string_view, kCount>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

/// The call that a frame is in.
struct LimitedCall {
  TimeUp end = TimeUp::kNotKnown;
  std::uint64_t code = 0;  ///< the code object of the function of the program's own that is called; 0: another
};

/// True if a function in C is called directly, and the statement names none that may wait with a limit.
[[nodiscard]] bool is_no_wait(const std::vector<PythonInstruction>& instructions, std::size_t call,
                              const PythonNames& names, TimeUp end);

/// The call that the frame is in, by its index; nullopt: not known.
[[nodiscard]] std::optional<std::size_t> call_of_frame(const PythonFrameWords& frame, const PythonCode& code,
                                                       const PythonLayout& layout, const PythonNames& names,
                                                       const std::vector<PythonInstruction>& instructions);

/// ways_after() of that call.
[[nodiscard]] PythonWays ways_from_wait(const std::vector<PythonInstruction>& instructions, std::size_t call,
                                        const PythonNames& names, TimeUp end, bool with_exceptions = false);

/// Where those ways lead. All that it is made of must outlive it.
class WaysOfCall {
 public:
  using MayTake = std::function<bool(std::size_t from, std::size_t to)>;
  WaysOfCall(const std::vector<PythonInstruction>& instructions, std::size_t call, const PythonWays& ways)
      : instructions_(instructions), call_(call), ways_(ways) {}

  /// Whether the call can be reached again on a way without `other`, or from `from` on.
  [[nodiscard]] bool comes_back_without(std::size_t other) const;
  [[nodiscard]] bool comes_back_from(std::size_t from) const;
  /// Whether the function may end by steps that count. An exception that it does not raise itself is no such end.
  [[nodiscard]] bool leaves(const MayTake& may_take) const { return leads(call_, may_take, false); }

 private:
  [[nodiscard]] bool leads(std::size_t from, const MayTake& may_take, bool to_call) const;

  const std::vector<PythonInstruction>& instructions_;
  std::size_t call_;
  const PythonWays& ways_;
};

/// Whether one of the `for` loops that the frame is in runs Python code to find its next item.
[[nodiscard]] bool runs_code_to_iterate(const PythonFrameWords& frame, const PythonCode& code,
                                        const PythonLayout& layout, const PythonNames& names);

}  // namespace mprun
