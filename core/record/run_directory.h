// RunDirectory: the directory that holds everything a run leaves (mprun(1), FILES). Made by cli/ in mprun before
// anything is launched; owns the path and the lock.
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
  /// It is locked as long as this object lives: another mprun is refused. Unless spec.durability is none, the directory
  /// is on disk with job.json.
  [[nodiscard]] static Result<RunDirectory> create(const JobSpec& spec, const Json& merged);
  /// Makes only the directory, for shards that will fill it: spec.output_dir, which may exist, or the default.
  [[nodiscard]] static Result<std::string> create_for_shards(const JobSpec& spec);
  /// kUsage errors: it does not exist, or cannot be inspected.
  [[nodiscard]] static Result<void> find(const std::string& path);
  /// Opens and locks the directory of an earlier run, to continue it. kUsage errors: it does not exist, or is in use.
  [[nodiscard]] static Result<RunDirectory> reopen(const std::string& path);
  /// Empties the directory of a run that was killed before it began: it holds only the first files of a run, and no
  /// line of a journal. False: it is not such a directory, and stays as it is. Errors: in use, or it cannot be emptied.
  [[nodiscard]] static Result<bool> remove_unstarted(const std::string& path);
  /// Replaces job.json.
  [[nodiscard]] Result<void> put_spec(const Json& merged, OnDisk when) const;
  /// Brings the names of its entries to disk.
  [[nodiscard]] Result<void> sync() const;
  /// The descriptor that holds the lock (flock(2)), for a holder that outlives this object.
  [[nodiscard]] int lock_fd() const { return lock_.get(); }

  /// The absolute path of the directory.
  [[nodiscard]] const std::string& path() const { return path_; }
  /// The absolute path of a file in it.
  [[nodiscard]] std::string file(std::string_view name) const;
  /// Why runs/<name>/latest does not point here; the run itself is not affected.
  [[nodiscard]] const std::optional<std::string>& warning() const { return warning_; }

 private:
  RunDirectory(std::string path, Fd lock) : path_(std::move(path)), lock_(std::move(lock)) {}

  std::string path_;
  Fd lock_;
  std::optional<std::string> warning_;
};

}  // namespace mprun
