// Partners: the processes of a tree that may come to one which waits for partners: for connections of its library, or
// for their messages. Besides those that use the library, these are all of the same program, all that may yet start a
// process or load the library: shells, those above, and young ones. A program that runs beside it is none.
#pragma once

#include "watch/judge/tree_snapshot.h"

namespace mprun {

/// By the mappings of a process.
using UsesLibrary = bool(const std::vector<Mapping>&);
[[nodiscard]] UsesLibrary uses_torch, uses_zeromq;

[[nodiscard]] std::vector<pid_t> possible_partners(pid_t pid, UsesLibrary* uses, TreeSnapshot* snapshot);

}  // namespace mprun
