// The descendants of this process, each held so that it can be signalled. Used when a job is stopped, continued or torn
// down, and to check the processes that a host reports as forked.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "procfs/process_facts.h"
#include "procfs/process_ref.h"

namespace mprun {

/// Whether the numbers in /proc are those of our own PID namespace. Otherwise they name other processes.
[[nodiscard]] bool shows_our_numbers(ProcSource* proc);

/// One process below us.
struct Descendant {
  ProcessRef process;
  pid_t group = 0;
};

/// All living descendants of this process, parents before children. Each was seen below us while it was held, so none
/// is another process that got a number in between. One whose parent ends meanwhile may be missing: it becomes our
/// child, as we are a subreaper, and the next call finds it.
[[nodiscard]] std::vector<Descendant> hold_descendants();

/// The living processes of another tree, `root` first, each seen in it while it was held. Empty if `root` has ended.
[[nodiscard]] std::vector<ProcessRef> hold_tree(const ProcessRef& root);

/// Whether a process descends from this one; false if it is gone. Also true where that is not known because /proc is
/// missing or not ours.
[[nodiscard]] bool may_descend_from_us(const ProcessRef& process);

/// The children of the calling thread, ended ones too, in one short read; of very many the first. Empty where /proc
/// does not list them.
[[nodiscard]] std::vector<pid_t> children();

/// /proc/PID/stat of the process that has the number now.
[[nodiscard]] std::optional<StatLine> read_stat(pid_t pid);

/// The pid of a pidfd by /proc/self/fdinfo: 0 or less for a process that has none in our namespace, and for what is no
/// pidfd. nullopt: /proc does not say.
[[nodiscard]] std::optional<pid_t> pid_of_pidfd(int pidfd);

/// The arguments of a process, a NUL after each; empty if it has ended or may not be looked at.
[[nodiscard]] std::string command_line(pid_t pid, const std::string& proc_root = "/proc");

}  // namespace mprun
