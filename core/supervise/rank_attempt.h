// RankAttempt: what the ranks of one attempt share, the port where they meet, and what they learn of the attempt. Used
// by RankPool and CommandPool. Ranks may write why they failed into files (TORCHELASTIC_ERROR_FILE), as below torchrun.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "launch/environment.h"

namespace mprun {

/// What a rank wrote into its error file.
struct RankError {
  std::string message;
  std::string traceback;  ///< empty: it wrote none
};

/// From the content of an error file, as torch.distributed.elastic and others write it: {"message": "..."}, or
/// {"message": {"message": "...", "extraInfo": {"py_callstack": "..."}}}. nullopt: it is something else.
[[nodiscard]] std::optional<RankError> parse_error_file(std::string_view text);

class RankAttempt {
 public:
  /// `spec` must outlive this.
  RankAttempt(const JobSpec* spec, std::string run_dir) : spec_(spec), run_dir_(std::move(run_dir)) {}

  /// Called before each rank is launched. True for the first one of an attempt, which gets a new port.
  bool begin(int attempt);
  /// A rank's variables. Removes the error that the rank left in an earlier attempt.
  [[nodiscard]] Environment prepare(int slot) const;
  /// What the rank has left in its error file; nullopt: nothing that can be read.
  [[nodiscard]] std::optional<RankError> error_of(int slot) const;

 private:
  [[nodiscard]] int port_of_shards() const;

  const JobSpec* spec_;
  std::string run_dir_;
  int attempt_ = 0, port_ = 0;
};

}  // namespace mprun
