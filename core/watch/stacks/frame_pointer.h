// The frame pointer of a blocked thread of which only the stack pointer and the program counter are known. Private to
// native_stack.cc.
//
// Code that keeps frame pointers (all of Ubuntu since 24.04, of Fedora since 38) has its frames described by them, so a
// stack would end at the first such frame. But the frame pointer can be found: it is the address of a word of the stack
// which the return address follows, and the instruction before that address calls the function of this frame.
#pragma once

#include <elfutils/libdwfl.h>

#include <cstdint>
#include <optional>

namespace mprun {

/// `dwfl` has the modules of the process of its number. nullopt: no frame pointer is needed where the stack pointer
/// alone leads, none was found, or this is not x86-64.
[[nodiscard]] std::optional<std::uint64_t> find_frame_pointer(Dwfl* dwfl, pid_t pid, std::uint64_t stack_pointer,
                                                              std::uint64_t program_counter);

}  // namespace mprun
