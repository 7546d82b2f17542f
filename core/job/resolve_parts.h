// The steps of resolve(), one file each: program, inputs, shared tensors, device, interpreter. Private to core/job.
// Each reads the merged layers, writes its fields of the JobSpec and puts resolved values back.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "job/layers.h"
#include "job/resolve.h"

namespace mprun::job {

/// What the steps share; borrows everything.
struct Resolving {
  Layers& layers;
  const Surroundings& around;
  JobSpec& spec;
  std::vector<std::string>& warnings;  ///< of Resolved

  /// The text at a pointer, "" if there is none.
  [[nodiscard]] std::string text(const std::string& pointer) const;
  /// A variable of mprun's own environment; null if it is not set.
  [[nodiscard]] const std::string* variable(const std::string& name) const;
  /// `path` from the directory of the document that has set `pointer`.
  [[nodiscard]] std::string path_from_owner(const std::string& pointer, const std::string& path) const;
};

/// `path` made absolute below `base`; symbolic links and ".." stay as they are.
[[nodiscard]] std::string absolute_path(const std::string& base, const std::string& path);

/// `path` as a pattern that only this path matches.
[[nodiscard]] std::string escape_pattern(const std::string& path);

/// A pattern of file names, absolute as Resolving::path_from_owner has it.
[[nodiscard]] std::string pattern_from_owner(const Resolving& job, const std::string& pointer,
                                             const std::string& pattern);

/// script, function, command and what goes with them; drops fields of lower layers that do not fit the kind of job.
[[nodiscard]] Result<void> resolve_program(Resolving& job);
/// inputs: exactly one kind, absolute paths.
[[nodiscard]] Result<void> resolve_inputs(Resolving& job);
/// inputs of the kind "npy" or "safetensors": the arrays behind the names, from the headers of their files; and `call`.
[[nodiscard]] Result<void> resolve_arrays(Resolving& job, const std::string& kind);
/// The arrays for people: files, names, rows.
[[nodiscard]] std::string describe_arrays(const ArraysInput& inputs);
/// shared: dtype, shape and place of each tensor, whose sum must fit into the memory there is.
[[nodiscard]] Result<void> resolve_shared(Resolving& job);
/// The shared tensors for people: names, dtypes, shapes, size.
[[nodiscard]] std::string describe_shared(const std::vector<SharedTensor>& tensors);
/// device: the indices that are there; needs start_method.
[[nodiscard]] Result<void> resolve_device(Resolving& job);
/// shard: the one asked for, else the one that the batch system or MPI launcher says; its run directory. Needs the
/// name.
[[nodiscard]] Result<void> resolve_shard(Resolving& job);
/// The interpreter, as an absolute path; its errors are kLaunch.
[[nodiscard]] Result<void> resolve_python(Resolving& job);

}  // namespace mprun::job
