// DeadlineWatch: the deadlines that threads below have set themselves (wire/deadlines.h), and which of them has passed.
// Asked at every look of the watch. What the board says is checked against /proc: a line may be left over from a
// process that died, or ran exec.
#pragma once

#include <map>
#include <optional>

#include "procfs/proc_source.h"
#include "wire/deadline_board.h"

namespace mprun {

class DeadlineWatch {
 public:
  [[nodiscard]] static Result<DeadlineWatch> create(ProcSource* proc);

  /// For MPRUN_DEADLINES of the processes below.
  [[nodiscard]] std::string path() const { return board_.path(); }
  /// One that has passed, each once. `now`: monotonic.
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
  std::map<unsigned, Nanos> done_with_;  ///< by line: when the deadline was due that need not be looked at again
  std::vector<Gap> gaps_;                ///< when nobody looked, because mprun was stopped, perhaps with all below it
  Nanos last_look_ = 0;
};

}  // namespace mprun
