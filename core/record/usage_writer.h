// UsageWriter: usage.jsonl, what the workers of a run used over time, for `mprun report`. A Sink in mprun's one thread;
// owns the file, which is created when there is something to write.
//
//   {"at":1732182610.123,"workers":[[0,12.34,104857600],[1,11.9,104857600]]}
//
// A line for each look: the wall clock, and for every worker that has a process its number, the seconds of CPU time
// used in this session in its place, descendants included, and bytes of memory (PSS). The larger the file, the rarer
// the lines: the time between them doubles with every 1,000 lines and with every MiB, so that 20 MiB hold a month. A
// file that cannot be written does not harm the run.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/result.h"
#include "events/job_event.h"
#include "record/append_file.h"

namespace mprun {

class UsageWriter : public Sink {
 public:
  /// Continues after the whole lines of `path`, if there are any.
  explicit UsageWriter(std::string path) : path_(std::move(path)) {}

  /// Writes a line for each WorkersSeen with a new look; ignores the rest.
  void on_event(const JobEvent& event) override;
  /// Why lines are missing; the first failure.
  [[nodiscard]] const std::optional<Error>& failure() const { return failure_; }

 private:
  [[nodiscard]] bool is_due(Nanos measured) const;
  [[nodiscard]] Result<AppendFile> open();

  std::string path_;
  std::optional<AppendFile> file_;
  std::optional<Error> failure_;
  std::uint64_t lines_ = 0;
  Nanos last_ = 0;  ///< when the last written look was
};

}  // namespace mprun
