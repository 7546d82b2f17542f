// Partners: the processes of a tree that may connect to a process, or send messages to it, if that takes a library:
// those that use the library, those of the same program, and those that may yet load it or start a process that does:
// young ones, shells, and the process's ancestors.
#pragma once

#include "watch/judge/tree_snapshot.h"

namespace mprun {

/// By the mappings of a process.
using UsesLibrary = bool(const std::vector<Mapping>&);
[[nodiscard]] UsesLibrary uses_torch, uses_zeromq;

[[nodiscard]] std::vector<pid_t> possible_partners(pid_t pid, UsesLibrary* uses, TreeSnapshot* snapshot);

}  // namespace mprun
