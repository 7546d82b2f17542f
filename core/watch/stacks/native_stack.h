// NativeStacks: human-readable C call stacks of the threads of one process, read from outside. Used by the watch, in
// mprun's only thread, once a tree is quiet. Owns libdw's session for the process and copies of what it read there.
//
// of_thread() neither stops the process nor writes to it: the stack pointer and program counter of a blocked thread
// come from /proc, its memory from process_vm_readv(2). If the caller of a frame can be found only by a register that
// is not known (rbp, unless frame_pointer.h finds it; the link register of arm64 in leaf functions), the stack ends
// there and is approximate.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <optional>
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
  /// Lists the current modules of a process. Without permission, or without the process, no stack has frames.
  explicit NativeStacks(pid_t pid);
  ~NativeStacks();
  NativeStacks(const NativeStacks&) = delete;
  NativeStacks& operator=(const NativeStacks&) = delete;

  /// The stack of a thread that was blocked with these registers (SyscallLine). If it moves meanwhile, the result is
  /// wrong but harmless.
  [[nodiscard]] NativeStack of_thread(pid_t tid, std::uint64_t stack_pointer, std::uint64_t program_counter);

  /// The stack again, with all registers, if `known` is approximate: stops the thread while it reads them (some 100 us)
  /// and lets it go. Waits in futex, read, recv and waitpid go on as before; writes, epoll_wait, sigwait, semop and
  /// timed sleeps are disturbed. The caller decides, and calls this only after a proof. Returns `known` if the thread
  /// may not be stopped, is not in an interruptible wait, or if nothing is gained.
  [[nodiscard]] NativeStack complete_with_ptrace(pid_t tid, NativeStack known);

  /// The stack of a running thread: stops it while its registers are read (some 100 us) and lets it go. No frames if it
  /// may not be stopped.
  [[nodiscard]] NativeStack of_running(pid_t tid);

  /// The name that a frame there would get; "" without permission.
  [[nodiscard]] std::string function_at(std::uint64_t address);
  /// A variable of its program that has this name in the file's table of symbols, which may be missing.
  struct Variable {
    std::uint64_t address = 0, size = 0;
  };
  [[nodiscard]] std::optional<Variable> variable(const std::string& name);

 private:
  struct Session;
  std::unique_ptr<Session> session_;
};

/// A symbol as its author wrote it; unchanged if it is not C++ or would grow without bounds.
[[nodiscard]] std::string demangled(const std::string& symbol);

}  // namespace mprun
