// RunDirectory: the place of everything a run leaves (DESIGN, "What a run leaves"). Made by cli/ in mprun
// before anything is launched; owns no fd, only the path.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/result.h"
#include "job/spec.h"

namespace mprun {

class RunDirectory {
 public:
  /// Creates the directory (mode 0700) with job.json, holding `merged`, and logs/.
  /// Without spec.output_dir it is runs/<name>/<local time> below the current directory, made unique by a
  /// suffix, and runs/<name>/latest points to it. Any failure is a kUsage error that names the cure.
  [[nodiscard]] static Result<RunDirectory> create(const JobSpec& spec, const Json& merged);

  /// The absolute path of the directory.
  [[nodiscard]] const std::string& path() const { return path_; }
  /// The absolute path of a file in it.
  [[nodiscard]] std::string file(std::string_view name) const;
  /// Where a worker's output goes; `stream` is "out" or "err".
  [[nodiscard]] std::string log_path(int worker, std::string_view stream) const;
  /// Why runs/<name>/latest does not point here; the run is not harmed.
  [[nodiscard]] const std::optional<std::string>& warning() const { return warning_; }

 private:
  explicit RunDirectory(std::string path) : path_(std::move(path)) {}

  std::string path_;
  std::optional<std::string> warning_;
};

}  // namespace mprun
