// Reads the memory of another process, which neither stops nor disturbs it. The one place that does so.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>

namespace mprun {

/// Copies `size` bytes at `address`; false if not all of them can be read: `to` holds anything then. By
/// process_vm_readv(2), or, where that is forbidden, as in containers, by /proc/PID/mem.
[[nodiscard]] bool read_live_memory(pid_t pid, std::uint64_t address, void* to, std::size_t size);

}  // namespace mprun
