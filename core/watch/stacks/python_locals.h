// What a loop in the user's own Python may count by: local variables, the iterators on its stack, a module's globals.
// While all of it stays the same, the loop has visibly decided nothing. Used by python_stack.cc. All it reads may be
// garbage.
#pragma once

#include <vector>

#include "watch/stacks/python_code.h"

namespace mprun {

struct PythonLocals {
  std::uint64_t fingerprint = 0;  ///< of all the values, by identity, and of what the first words of each hold
  std::vector<double> floats;     ///< among the values: perhaps times at which a loop ends
};

/// A frame of a Python function, as it is in memory.
struct PythonFrameWords {
  std::uint64_t address = 0, globals = 0, stack_top = 0;
  bool is_module = false;  ///< its variables are globals
};

/// Adds the values of one frame.
void add_locals(const PythonFrameWords& frame, const PythonCode& code, const PythonLayout& layout,
                const PythonTypes& types, ProcessMemory* memory, PythonLocals* locals);

}  // namespace mprun
