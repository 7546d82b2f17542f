// RunDirectory: the place of everything a run leaves (mprun(1), FILES). Made by cli/ in mprun before anything is
// launched; owns the path and the lock.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/result.h"
#include "job/spec.h"
#include "os/fd.h"
#include "record/atomic_file.h"

namespace mprun {

class RunDirectory {
 public:
  /// Creates the directory (mode 0700) with job.json, holding `merged`, and logs/.
  /// Without spec.output_dir it is runs/<name>/<local time> below the current directory, made unique by a
  /// suffix, and runs/<name>/latest points to it. Any failure is a kUsage error that names the cure.
  /// It is locked as long as this lives: another mprun on it is refused. Unless spec.durability is none, it is on disk
  /// with job.json.
  [[nodiscard]] static Result<RunDirectory> create(const JobSpec& spec, const Json& merged);
  /// Makes the directory only, for shards that will fill it: spec.output_dir, which may be there, or the default.
  [[nodiscard]] static Result<std::string> create_for_shards(const JobSpec& spec);
  /// kUsage errors: it is not there, or cannot be looked at.
  [[nodiscard]] static Result<void> find(const std::string& path);
  /// Takes the directory of an earlier run, locked, to go on with it. kUsage errors: not there, in use.
  [[nodiscard]] static Result<RunDirectory> reopen(const std::string& path);
  /// Empties the directory of a run that was killed before it began: nothing in it but the first files of one, and
  /// no line of a journal. False: it is none, and is left as it is. Errors: in use, or not to be emptied.
  [[nodiscard]] static Result<bool> remove_unstarted(const std::string& path);
  /// Replaces job.json.
  [[nodiscard]] Result<void> put_spec(const Json& merged, OnDisk when) const;
  /// Brings the names of what is in it to disk.
  [[nodiscard]] Result<void> sync() const;
  /// The descriptor that holds the lock (flock(2)), for who must hold it longer than this.
  [[nodiscard]] int lock_fd() const { return lock_.get(); }

  /// The absolute path of the directory.
  [[nodiscard]] const std::string& path() const { return path_; }
  /// The absolute path of a file in it.
  [[nodiscard]] std::string file(std::string_view name) const;
  /// Where a worker's output goes; `stream` is "out" or "err".
  [[nodiscard]] std::string log_path(int worker, std::string_view stream) const;
  /// Why runs/<name>/latest does not point here; the run is not harmed.
  [[nodiscard]] const std::optional<std::string>& warning() const { return warning_; }

 private:
  RunDirectory(std::string path, Fd lock) : path_(std::move(path)), lock_(std::move(lock)) {}

  std::string path_;
  Fd lock_;
  std::optional<std::string> warning_;
};

}  // namespace mprun
