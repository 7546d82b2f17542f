// What a tree of processes that mprun did not start shares with the rest of the machine, as far as it can be read.
// Called by the inspection of a tree, once for every judgement, while the tree stands still.
#pragma once

#include "watch/judge/tree_snapshot.h"

namespace mprun {

/// `tree`: `root` and all below it. A pipe or socket is foreign if another process has it open, if it is a standard
/// stream of `root` (but for a pipe of which the tree has both ends, as a shell's coprocess has), or if `root` may have
/// inherited it from a parent that cannot be read. Memory is shared outside if another process maps it too, or could
/// yet find it by a name. The answer refers to `proc`.
[[nodiscard]] TreeBoundary boundary_of_tree(ProcSource* proc, pid_t root, const std::vector<pid_t>& tree);

}  // namespace mprun
