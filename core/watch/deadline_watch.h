// DeadlineWatch: the deadlines that watched threads have set themselves (wire/deadlines.h), and which of them have
// passed. Called at every look of the watch. Checks the board against /proc: a line may be left over from a process
// that died or ran exec.
#pragma once

#include <map>
#include <optional>

#include "procfs/proc_source.h"
#include "wire/deadline_board.h"

namespace mprun {

class DeadlineWatch {
 public:
  [[nodiscard]] static Result<DeadlineWatch> create(ProcSource* proc);

  /// The value of MPRUN_DEADLINES for the processes below.
  [[nodiscard]] std::string path() const { return board_.path(); }
  /// Returns a deadline that has passed, each one once. `now`: monotonic.
  [[nodiscard]] std::optional<Deadline> look(Nanos now);

 private:
  struct Gap {
    Nanos end = 0, length = 0;
  };
  DeadlineWatch(ProcSource* proc, DeadlineBoard board) : proc_(proc), board_(std::move(board)) {}
  [[nodiscard]] Nanos lost_since(Nanos begin) const;
  [[nodiscard]] bool is_real(const Deadline& deadline) const;

  ProcSource* proc_;
  DeadlineBoard board_;
  std::map<unsigned, Nanos> done_with_;  ///< by line: the due time of a deadline that is already handled
  std::vector<Gap> gaps_;                ///< when mprun did not look because it was stopped, perhaps with all below it
  Nanos last_look_ = 0;
};

}  // namespace mprun
