// ThreadIds: translates the thread numbers of a watched process into ours. The process may live in another PID
// namespace, or its numbers may date from before a fork. Used by python_stack.cc.
#pragma once

#include <map>

#include "procfs/process_memory.h"

namespace mprun {

class ThreadIds {
 public:
  ThreadIds(ProcSource* proc, pid_t pid);

  /// The living thread that calls itself `own_id`; 0: none does.
  [[nodiscard]] pid_t of_own_id(std::uint64_t own_id) const;
  /// The living thread whose pthread_t this is, by what glibc keeps there; 0: not known.
  [[nodiscard]] pid_t of_pthread(std::uint64_t pthread, ProcessMemory* memory) const;

 private:
  std::map<std::uint64_t, pid_t> by_own_id_;
};

}  // namespace mprun
