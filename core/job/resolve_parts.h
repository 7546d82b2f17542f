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

/// The state that the steps share; borrows everything.
struct Resolving {
  Layers& layers;
  const Surroundings& around;
  JobSpec& spec;
  Placing& placing;                    ///< of Resolved
  std::vector<std::string>& warnings;  ///< of Resolved

  /// The text at a pointer, "" if there is none.
  [[nodiscard]] std::string text(const std::string& pointer) const;
  /// A variable of mprun's own environment; null if it is not set.
  [[nodiscard]] const std::string* variable(const std::string& name) const;
  /// `path`, taken relative to the directory of the document that set `pointer`.
  [[nodiscard]] std::string path_from_owner(const std::string& pointer, const std::string& path) const;
};

/// `path` made absolute below `base`; symbolic links and ".." stay as they are.
[[nodiscard]] std::string absolute_path(const std::string& base, const std::string& path);

/// The seconds at a pointer, a number or a text such as "90s".
[[nodiscard]] Result<double> read_seconds(const Layers& layers, const std::string& pointer, bool zero_allowed);

/// A pattern that matches only `path`.
[[nodiscard]] std::string escape_pattern(const std::string& path);

/// A pattern of file names, made absolute as by Resolving::path_from_owner.
[[nodiscard]] std::string pattern_from_owner(const Resolving& job, const std::string& pointer,
                                             const std::string& pattern);

/// script, function, command and related fields; drops fields of lower layers that do not fit the kind of job.
[[nodiscard]] Result<void> resolve_program(Resolving& job);
/// retries. For ranks only what a document sets counts, as for torchrun: without it they do not start again.
[[nodiscard]] Result<void> resolve_retries(Resolving& job);
/// hyperthreads, needs, processes, threads_per_worker, binding, membind and interleave. Needs the plain fields and the
/// device.
[[nodiscard]] Result<void> resolve_processors(Resolving& job);
/// allocator: the path of its library.
[[nodiscard]] Result<void> resolve_allocator(Resolving& job);
/// inputs: exactly one kind, absolute paths.
[[nodiscard]] Result<void> resolve_inputs(Resolving& job);
/// inputs of the kind "npy" or "safetensors": the named arrays, from the headers of their files; and `call`.
[[nodiscard]] Result<void> resolve_arrays(Resolving& job, const std::string& kind);
/// A human-readable description of the arrays: files, names, rows.
[[nodiscard]] std::string describe_arrays(const ArraysInput& inputs);
/// shared: dtype, shape and place of each tensor; their sum must fit into the available memory, or, by huge_pages, into
/// the kernel's reserved pool.
[[nodiscard]] Result<void> resolve_shared(Resolving& job);
/// A human-readable description of the shared tensors: names, dtypes, shapes, size.
[[nodiscard]] std::string describe_shared(const std::vector<SharedTensor>& tensors);
/// device: the indices that exist; needs start_method. Where the job needs GPUs and names no device, CUDA's.
[[nodiscard]] Result<void> resolve_device(Resolving& job);
/// shard: the requested one, else the one that the batch system or MPI launcher assigns; its run directory. Needs the
/// name.
[[nodiscard]] Result<void> resolve_shard(Resolving& job);
/// The interpreter, as an absolute path; errors are kLaunch.
[[nodiscard]] Result<void> resolve_python(Resolving& job);

}  // namespace mprun::job
