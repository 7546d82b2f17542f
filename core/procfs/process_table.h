// ProcessTable: all processes at one moment, from one line of /proc each, and how they descend from each other. The
// only reader of process trees: for teardown, for the memory and CPU time of workers, for the watch.
#pragma once

#include <sys/types.h>

#include <utility>
#include <vector>

#include "procfs/proc_source.h"
#include "procfs/process_facts.h"

namespace mprun {

class ProcessTable {
 public:
  /// Lists them again; zombies are among them.
  void look(ProcSource* proc);
  /// nullptr: there is none.
  [[nodiscard]] const StatLine* find(pid_t pid) const;
  /// The worker, then its descendants and the processes of its group: one whose parent has ended descends from it no
  /// more. Empty if the worker does not exist.
  [[nodiscard]] std::vector<pid_t> family(pid_t worker) const;
  /// The living descendants of `root`, parents before children, after `root` itself if `with_root`. `ended`: filled
  /// with the zombies among their children.
  [[nodiscard]] std::vector<pid_t> tree(pid_t root, bool with_root, std::vector<pid_t>* ended = nullptr) const;
  /// The living processes, sorted.
  [[nodiscard]] std::vector<pid_t> all() const;

 private:
  struct Entry {
    StatLine stat;
    bool ended = false;  ///< a zombie, and not just the first thread of a process whose other threads go on
  };
  [[nodiscard]] const Entry* entry(pid_t pid) const;
  using Pairs = std::vector<std::pair<pid_t, pid_t>>;  ///< sorted

  std::vector<Entry> processes_;  ///< by pid
  Pairs children_, groups_;       ///< (parent, child), (group, member)
};

/// ProcessTable::tree() of now.
[[nodiscard]] std::vector<pid_t> process_tree(ProcSource* proc, pid_t root, bool with_root,
                                              std::vector<pid_t>* ended = nullptr);

/// The roots of the trees of this machine: living processes that we may look into, none of them an init or a service
/// manager (by its name), whose parent is one, or may not be looked into, or is not there. Sorted by pid.
[[nodiscard]] std::vector<pid_t> tree_roots(ProcSource* proc);

}  // namespace mprun
