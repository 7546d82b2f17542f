// ProcessTable: all processes there are at one moment, from one line of /proc each, and who belongs to which worker.
// Looked up by the supervisor at most some times a second, for what memory and CPU time its workers use.
#pragma once

#include <sys/types.h>

#include <map>
#include <vector>

#include "procfs/proc_source.h"
#include "procfs/process_facts.h"

namespace mprun {

class ProcessTable {
 public:
  /// Lists them anew; those that have ended and that nobody has waited for are among them.
  void look(ProcSource* proc);
  /// nullptr: there is none.
  [[nodiscard]] const StatLine* find(pid_t pid) const;
  /// A worker, first, with whoever descends from it, and whoever is in its process group: one whose parent has ended
  /// descends from it no more. Empty if it is not there.
  [[nodiscard]] std::vector<pid_t> family(pid_t worker) const;

 private:
  std::map<pid_t, StatLine> processes_;
  std::multimap<pid_t, pid_t> children_, groups_;
};

}  // namespace mprun
