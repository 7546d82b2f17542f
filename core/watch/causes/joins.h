// Names a call that waits as a user would: from Python frames, the call that the innermost line of the user's own code
// made. Pure.
#pragma once

#include <string_view>

#include "watch/hang.h"

namespace mprun {

struct NamedCall {
  std::string call;  ///< "multiprocessing.pool.Pool.join"; empty: the line waits by itself (a lock, a system call)
  std::string file;  ///< of the user's line; of the library's if no user code is on the stack
  int line = 0;
};

/// `frames`: innermost first. nullopt: there are none.
[[nodiscard]] std::optional<NamedCall> name_call(const std::vector<PythonFrame>& frames);

}  // namespace mprun
