// NativeStacks: the C call stacks of one process's threads, for people, read from outside. Used by the watch in mprun's
// one thread once a tree is quiet. Owns libdw's session for the process and copies of what it read there.
//
// of_thread() neither stops nor writes to the process: the stack pointer and program counter of a blocked thread come
// from /proc, its memory by process_vm_readv(2). Frames whose caller is found only by a register we do not know (rbp in
// libffi and libgomp) end such a stack: it is then approximate.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace mprun {

struct NativeStack {
  std::vector<std::string> frames;  ///< innermost first: "pthread_cond_wait (libc.so.6)", "libfoo.so+0x1234"
  bool approximate = true;          ///< outer frames may be missing
};

/// Deeper stacks are cut.
inline constexpr std::size_t kMostNativeFrames = 64;

class NativeStacks {
 public:
  /// Lists the modules of a process, as they are now; without permission, or without the process, no stack has frames.
  explicit NativeStacks(pid_t pid);
  ~NativeStacks();
  NativeStacks(const NativeStacks&) = delete;
  NativeStacks& operator=(const NativeStacks&) = delete;

  /// The stack of a thread that was blocked with these registers (SyscallLine). If it moves meanwhile, what comes is
  /// wrong but harmless.
  [[nodiscard]] NativeStack of_thread(pid_t tid, std::uint64_t stack_pointer, std::uint64_t program_counter);

  /// The stack again, with all registers, if `known` is approximate: stops the thread for as long as reading them takes
  /// (some 100 us) and lets it go. Waits in futex, read, recv and waitpid go on as they were; epoll_wait, sigwait,
  /// semop and timed sleeps are disturbed: only after a proof, and the caller decides. Returns `known` where the thread
  /// may not be stopped, is not in an interruptible wait, or where nothing is won.
  [[nodiscard]] NativeStack complete_with_ptrace(pid_t tid, NativeStack known);

  /// The stack of a thread that runs: stops it for as long as reading its registers takes (some 100 us) and lets it go.
  /// No frames where it may not be stopped.
  [[nodiscard]] NativeStack of_running(pid_t tid);

  /// As a frame there would be called; "" without permission.
  [[nodiscard]] std::string function_at(std::uint64_t address);

 private:
  struct Session;
  std::unique_ptr<Session> session_;
};

/// A symbol as its author wrote it; as it is where it is not C++ or would grow without bounds.
[[nodiscard]] std::string demangled(const std::string& symbol);

}  // namespace mprun
