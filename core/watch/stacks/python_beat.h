// Threads that only beat: they sleep or wait again and again, and in between report that the program is alive, show its
// progress or measure what it uses. Whatever other threads wait for, such a thread will not bring it about, although it
// keeps moving. Follows its instructions; all it reads may be garbage. Used by python_waits.cc.
#pragma once

#include "watch/stacks/python_wait_call.h"

namespace mprun {

struct PythonBeat {
  bool changes_variables = false;  ///< of its own or the program's: the loop of another thread may read them
  bool prints_at_times = false;    ///< writes, but not each time
  bool asks_child = false;         ///< it goes on when a child has ended
  bool operator==(const PythonBeat&) const = default;
};

/// What a frame does from the end of the wait that it is in.
enum class AfterWait {
  kBeats,    ///< it always waits again
  kReturns,  ///< it may return to its caller, and does not wait again
  kMore,     ///< what lets another thread go on, or what is not known
};

/// What it does each time when it waits again may be anything for which other threads wait: if it lets
/// one go on, that one is seen to move. Not what lets one go on only after many times, as task_done() of a queue does.
/// What it does at times must be known to let none go on. `beat` collects what it may do all the same.
[[nodiscard]] AfterWait after_wait(const PythonFrameWords& frame, const PythonCode& code, const PythonLayout& layout,
                                   PythonCodeReader* codes, ProcessMemory* memory, const LimitedCall& called,
                                   PythonBeat* beat);

}  // namespace mprun
