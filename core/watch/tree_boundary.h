// What a tree of processes that mprun did not start shares with the rest of the machine, as far as that can be read.
// Called by the inspection of a tree, once for every judgement, while the tree stands still.
#pragma once

#include "watch/tree_snapshot.h"

namespace mprun {

/// `tree`: `root` and all below it. Pipes and sockets are foreign that any other process has open, that `root` has as
/// its standard streams, or that it may have inherited from a parent that cannot be read. Memory is shared outside
/// where another process maps it too, or could yet find it by a name. The answer refers to `proc`.
[[nodiscard]] TreeBoundary boundary_of_tree(ProcSource* proc, pid_t root, const std::vector<pid_t>& tree);

}  // namespace mprun
