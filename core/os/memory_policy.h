// Which memory nodes new pages come from, by set_mempolicy(2) and mbind(2), without libnuma. Used by os (process.cc)
// and record; adapters/python/extension has its own call for workers.
#pragma once

#include <array>
#include <cstddef>
#include <vector>

#include "base/result.h"

namespace mprun {

/// A set of memory nodes as the kernel takes it: one bit for each number.
using NodeMask = std::array<unsigned long, 16>;

/// Numbers beyond the mask are left out: the kernel has at most 1024 nodes.
[[nodiscard]] NodeMask node_mask(const std::vector<int>& nodes);

/// New pages of the calling thread, and of what it forks or executes, come from these nodes only. False: see errno.
// Context: also child between vfork and exec.
[[nodiscard]] bool bind_memory(const NodeMask& nodes);

/// Spreads the pages of a memory file over the nodes, page by page, whoever touches them first.
[[nodiscard]] Result<void> interleave_file(int fd, const std::vector<int>& nodes);

}  // namespace mprun
