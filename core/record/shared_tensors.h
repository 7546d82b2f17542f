// SharedTensors: the tensors that all processes of a job share, and how they are saved. Made by cli/ before anything is
// launched; owns one sealed memory file that holds all of them. mprun maps it only to fill it: what the processes do to
// it cannot harm mprun. They find it by MPRUN_SHARED, through /proc.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "job/spec.h"
#include "json/json.h"
#include "os/fd.h"
#include "record/atomic_file.h"

namespace mprun {

/// The variable by which processes find the tensors: JSON, {"NAME": {"path", "offset", "dtype", "shape",
/// "fortran_order"}}; `path` is the same for all.
inline constexpr const char* kSharedVariable = "MPRUN_SHARED";

/// Where the memory of the tensors comes from.
struct SharedPlacement {
  std::vector<int> nodes;  ///< over which its pages are spread; empty: as they come
  bool hugetlb = false;    ///< from the kernel's reserved pool of huge pages
};

class SharedTensors {
 public:
  /// Fills a memory file with the initial values of the tensors. `output_dir` is where they will be saved, and need not
  /// exist yet. kUsage errors: a file that became shorter, no space to save them, more than one variable can hold, too
  /// few huge pages.
  [[nodiscard]] static Result<SharedTensors> create(const std::vector<SharedTensor>& tensors,
                                                    const SharedPlacement& placement, const std::string& output_dir);

  /// The value of MPRUN_SHARED; empty if there are no tensors.
  [[nodiscard]] std::string variable() const;
  /// Writes them as shared/NAME.npy (bfloat16: NAME.safetensors) below `run_dir`, each whole or not at all. Called when
  /// no process is left that could write to them. Continues after a failure, and returns the first one.
  [[nodiscard]] Result<void> save(const std::string& run_dir, OnDisk when);
  /// The saved tensors: [{name, path, dtype, shape}], `path` relative to the run directory.
  [[nodiscard]] const Json& to_json() const { return saved_; }

 private:
  SharedTensors() = default;
  [[nodiscard]] int save_one(const SharedTensor& tensor, int folder, const std::string& file, OnDisk when) const;

  std::vector<SharedTensor> tensors_;
  Fd memory_;
  Json saved_ = Json::array();
};

}  // namespace mprun
