// ProcessTable: all processes there are at one moment, from one line of /proc each, and who descends from whom. The one
// reader of process trees: for teardown, for the memory and CPU time of workers, for the watch.
#pragma once

#include <sys/types.h>

#include <utility>
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
  /// The living descendants of `root`, parents before children, after `root` itself if `with_root`. `ended`: filled
  /// with the zombies among their children.
  [[nodiscard]] std::vector<pid_t> tree(pid_t root, bool with_root, std::vector<pid_t>* ended = nullptr) const;

 private:
  struct Entry {
    StatLine stat;
    bool ended = false;  ///< a zombie, and not just the first thread of a process in which others go on
  };
  [[nodiscard]] const Entry* entry(pid_t pid) const;
  using Pairs = std::vector<std::pair<pid_t, pid_t>>;  ///< sorted

  std::vector<Entry> processes_;  ///< by pid
  Pairs children_, groups_;       ///< (parent, child), (group, member)
};

/// ProcessTable::tree() of now.
[[nodiscard]] std::vector<pid_t> process_tree(ProcSource* proc, pid_t root, bool with_root,
                                              std::vector<pid_t>* ended = nullptr);

}  // namespace mprun
