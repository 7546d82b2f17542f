// Does a loop in Python look at nothing but objects that only threads of its own process change, such as futures? Then
// it ends when one of them acts, and the time for which it sleeps between its looks makes no difference. Used by
// python_stack.cc. All it reads may be garbage. CPython 3.11 only: the instructions of other versions are not known.
#pragma once

#include "watch/stacks/python_code.h"
#include "watch/stacks/python_locals.h"

namespace mprun {

/// What the innermost loop around the instruction that the frame executes waits for ("a future"), if it has no end of
/// its own and neither calls anything but methods of such objects and a sleep, nor changes anything but variables.
/// nullptr: it may look at more, or waits for nothing of that kind.
[[nodiscard]] const char* awaited_in_loop(const PythonFrameWords& frame, const PythonCode& code,
                                          const PythonLayout& layout, PythonCodeReader* codes, ProcessMemory* memory);

}  // namespace mprun
