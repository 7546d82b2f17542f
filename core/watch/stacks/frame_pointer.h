// The frame pointer of a blocked thread of which only the stack pointer and the program counter are known. Private to
// native_stack.cc.
//
// The frames of code that keeps frame pointers (the packages of Ubuntu since 24.04) are described by them, so a stack
// would end at the first such frame. But the frame pointer can be found: it points to a word of the stack that is
// followed by the return address, and the instruction before that address calls the function of this frame.
#pragma once

#include <elfutils/libdwfl.h>

#include <cstdint>
#include <optional>

namespace mprun {

/// `dwfl` lists the modules of process `pid`. nullopt: none was found, no frame up to the outermost one needs it, or
/// this is not x86-64.
[[nodiscard]] std::optional<std::uint64_t> find_frame_pointer(Dwfl* dwfl, pid_t pid, std::uint64_t stack_pointer,
                                                              std::uint64_t program_counter);

}  // namespace mprun
