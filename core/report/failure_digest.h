// FailureDigest: failed tasks grouped by the type of their error, each with its first example. Used by TextReport and
// the reports of runs; owns one small record a type, however many tasks fail.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "events/job_event.h"

namespace mprun {

/// The useful parts of an error object {type, message, traceback}; printable single lines.
struct FailureText {
  std::string type;     ///< "Error" if the object names none
  std::string message;  ///< may be empty
  std::string where;    ///< the innermost `File "x.py", line 3, in f` of the traceback, or empty

  /// "ZeroDivisionError: division by zero".
  [[nodiscard]] std::string headline() const { return message.empty() ? type : type + ": " + message; }
};

/// Reads the JSON text of an error; anything but such an object becomes the message itself.
[[nodiscard]] FailureText read_failure(std::string_view error);

/// Its traceback, else the end of a command's log or standard error; the whole text if it is not an error object.
[[nodiscard]] std::string traceback_of(std::string_view error);

struct FailureGroup {
  std::uint64_t count = 0;
  TaskId example_task = 0;
  FailureText example;
};

/// "  3 x ValueError: no (task 5, File "x.py", line 3, in f)".
[[nodiscard]] std::string group_text(const FailureGroup& group);

class FailureDigest {
 public:
  /// Counts a failed task; parses its error only if its type is new.
  void add(const TaskEnded& ended);
  /// The largest groups, the largest first.
  [[nodiscard]] std::vector<FailureGroup> largest(std::size_t most) const;

 private:
  std::map<std::string, FailureGroup, std::less<>> groups_;  ///< by type as it stands in the JSON text
};

}  // namespace mprun
