// MergedTensors: the tensors of all shards in one folder. Used by merge.cc. Gathered files are copied row by row, as
// results name them. A task's own file gets a second name where the file system can do that, else it is copied.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "json/json.h"
#include "os/fd.h"
#include "record/atomic_file.h"
#include "record/shard_runs.h"
#include "record/tensor_files.h"

namespace mprun {

class MergedTensors {
 public:
  /// Replaces what an earlier merge left in `run_dir`. `shards` must outlive this object.
  [[nodiscard]] static Result<MergedTensors> begin(const std::string& run_dir, const std::vector<ShardRun>& shards);

  /// Copies what a result names (its field "tensors"). Errors: it does not exist; tensors of one name differ.
  [[nodiscard]] Result<void> take(std::size_t shard, TaskId task, const Json& tensors);
  /// Ends the files; returns human-readable warnings. kNow: the files are on disk when this returns.
  [[nodiscard]] Result<std::vector<std::string>> finish(OnDisk when);
  /// As TensorFiles::to_json().
  [[nodiscard]] Json to_json() const { return files_.to_json(); }

 private:
  /// One NAME.npy: where it goes, and the rows still to be copied from one shard.
  struct Gathered {
    Fd to;
    std::uint64_t data_offset = 0, row_bytes = 0;
    std::map<std::size_t, Fd> from;  ///< by shard; the last one only
    std::size_t shard = 0;
    std::uint64_t begin = 0, end = 0;
  };
  MergedTensors(const std::string& run_dir, const std::vector<ShardRun>* shards);
  [[nodiscard]] Result<Gathered*> gathered(const std::string& name);
  [[nodiscard]] Result<void> copy_pending(const std::string& name, Gathered* file);
  [[nodiscard]] Result<void> take_own_file(std::size_t shard, TaskId task) const;

  std::string folder_;
  const std::vector<ShardRun>* shards_;
  TensorFiles files_;
  std::map<std::string, Gathered> gathered_;
};

}  // namespace mprun
