// Reads the registers of a thread by stopping it for a moment with ptrace(2). Private to native_stack.cc; owns nothing
// that outlives the call.
#pragma once

#include <sys/types.h>

#include <array>
#include <cstdint>
#include <optional>

#include "watch/sample/architecture.h"

namespace mprun {

/// In DWARF's order, which is that of architecture::kDwarfRegisters.
using DwarfRegisters = std::array<std::uint64_t, architecture::kDwarfRegisters.size()>;

/// Stops the thread, reads its registers, lets it go. nullopt if it could not be stopped within a fifth of a second. In
/// any case the thread is not traced afterwards, and a signal that came meanwhile is delivered.
[[nodiscard]] std::optional<DwarfRegisters> registers_by_ptrace(pid_t tid);

}  // namespace mprun
