// ResultLine: one line of results.jsonl, as ResultsWriter writes it, split without parsing its value. For readers of
// run directories; owns nothing.
#pragma once

#include <optional>
#include <string_view>

#include "events/job_event.h"

namespace mprun {

/// Views into the line.
struct ResultLine {
  TaskId task = 0;
  TaskStatus status = TaskStatus::kOk;
  std::string_view payload;  ///< JSON text of value or error; of tasks with tensors, also the field that names them
  int worker = 0;
  int attempt = 1;
  double start = 0;    ///< seconds since 1970
  double seconds = 0;  ///< duration
};
/// nullopt: not a line of ResultsWriter. The value of any other line may still be torn.
[[nodiscard]] std::optional<ResultLine> split_result_line(std::string_view line);

}  // namespace mprun
