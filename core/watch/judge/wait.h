// Wait: what a blocked thread waits for and what could end that, decoded from its system call. The wait table of the
// watch. A wait that is not understood could end by itself: unknown means live.
#pragma once

#include "watch/judge/tree_snapshot.h"

namespace mprun {

enum class WaitKind {
  kRunning,
  kEnded,        ///< a thread that has ended, in a process that has not
  kStopped,      ///< SIGSTOP, or a debugger
  kTimer,        ///< sleeps, or waits with a time limit
  kFutex,        ///< a lock, condition or semaphore of one process
  kMutex,        ///< a pthread mutex, whose owner is known
  kSharedFutex,  ///< a lock in shared memory
  kThreadEnd,    ///< pthread_join
  kGil,
  kChild,  ///< wait, waitpid
  kPipeRead,
  kPipeWrite,
  kSocket,
  kEventfd,
  kPoll,  ///< poll, select, epoll
  kVfork,
  kFileLock,      ///< flock, fcntl
  kSemaphore,     ///< of System V
  kMessageRead,   ///< of a message queue, System V's or POSIX's
  kMessageWrite,  ///< the same
  kSignal,
  kOther,  ///< the outside, or unknown
};
/// "pipe-read", ...
[[nodiscard]] const char* to_string(WaitKind kind);

/// What could end a wait: a process, or one thread of it.
struct Waker {
  pid_t pid = 0;
  pid_t tid = 0;  ///< 0: any thread of the process
  bool operator==(const Waker&) const = default;
};

struct Wait {
  WaitKind kind = WaitKind::kOther;
  std::string object;    ///< human-readable: "pipe 4711", "mutex 0x7f.. of thread 12"; may be empty
  std::string why_live;  ///< it may end by itself or from outside: "a timer"; empty: only by `wakers`
  std::vector<Waker> wakers;
  pid_t owner = 0;                        ///< kMutex: the thread that has it, as the mutex says
  std::uint64_t address = 0;              ///< of the futex
  std::vector<std::int64_t> polled = {};  ///< kPoll: the descriptors, by number
  bool timed = false;
  bool closed = false;      ///< of a descriptor that its process has closed since the wait began
  bool semaphore = false;   ///< kFutex, kSharedFutex: of glibc's sem_t, which the locks of Python are made of
  bool urgent = false;      ///< of what processes share by a name: an idle server does not wait like this
  pid_t last_user = 0;      ///< kSemaphore: the process that changed it last, perhaps ended since; 0: not known
  bool of_command = false;  ///< kChild: of a shell, which waits for the command that it runs
  bool of_sync = false;     ///< kSharedFutex: of what a job shares by name, where dead processes leave nothing locked
};

[[nodiscard]] Wait decode_wait(const ThreadSample& thread, TreeSnapshot* snapshot);

/// What its system call waits for, as decode_wait() returns it.
[[nodiscard]] Wait decode_call(const ThreadSample& thread, const TreeSnapshot::Process& process,
                               TreeSnapshot* snapshot);
/// A wait for the end of that child of `parent`.
[[nodiscard]] Wait wait_for_child(pid_t child, const TreeSnapshot& snapshot, pid_t parent);
/// A wait with a time limit as one without, if it may be judged so; nullopt: its limit counts. wait_timed.cc.
[[nodiscard]] std::optional<Wait> decode_as_endless(const ThreadSample& thread, const TreeSnapshot::Process& process,
                                                    TreeSnapshot* snapshot);
/// A sleep between two looks at something, as a wait for that; nullopt: it only sleeps. wait_timed.cc.
[[nodiscard]] std::optional<Wait> decode_sleep_loop(const ThreadSample& thread, TreeSnapshot* snapshot);
/// A futex wait, as decode_wait() returns it. wait_futex.cc.
[[nodiscard]] Wait decode_futex(const ThreadSample& thread, TreeSnapshot* snapshot);
/// A wait for one descriptor of `thread`'s process, to be read or written. wait_descriptor.cc.
[[nodiscard]] Wait decode_descriptor(const ThreadSample& thread, std::int64_t number, TreeSnapshot::End end,
                                     TreeSnapshot* snapshot);
/// One of several descriptors that are polled, for any event. wait_descriptor.cc.
[[nodiscard]] Wait decode_polled(const ThreadSample& thread, std::int64_t number, TreeSnapshot* snapshot);
/// Whether `pid` serves the store of torch.distributed at a port (":1F90", as in an address). wait_descriptor.cc.
[[nodiscard]] bool serves_store(pid_t pid, std::string_view port, TreeSnapshot* snapshot);
/// Whether CPython's handler of signals may write to the other end of a descriptor. wait_wakeup.cc.
inline constexpr const char* kHandlerMayWrite = "the handler of a signal may write to it";
[[nodiscard]] bool may_be_wakeup(pid_t pid, const Descriptor& descriptor, TreeSnapshot* snapshot);
/// flock and fcntl. wait_file_lock.cc.
[[nodiscard]] Wait decode_file_lock(const ThreadSample& thread, TreeSnapshot* snapshot);
/// Semaphores and message queues of System V, and message queues of POSIX. wait_ipc.cc.
[[nodiscard]] Wait decode_semaphore(const ThreadSample& thread, TreeSnapshot* snapshot);
[[nodiscard]] Wait decode_message_queue(const ThreadSample& thread, TreeSnapshot* snapshot);
[[nodiscard]] Wait decode_posix_queue(const ThreadSample& thread, TreeSnapshot* snapshot);
/// A FIFO that is being opened, or is open: `end` of it. `flags`: with which it is open. nullopt: the path is not a
/// FIFO. wait_fifo.cc.
[[nodiscard]] std::optional<Wait> decode_fifo(pid_t pid, const std::string& path, TreeSnapshot::End end,
                                              std::uint64_t flags, TreeSnapshot* snapshot);
/// An open(2) that blocks: of a FIFO whose other end no process has open. wait_fifo.cc.
[[nodiscard]] Wait decode_open(const ThreadSample& thread, TreeSnapshot* snapshot);
/// One side of a pseudo-terminal; nullopt: it is none, or the tree does not have both sides. wait_terminal.cc.
[[nodiscard]] std::optional<Wait> decode_terminal(const Descriptor& descriptor, TreeSnapshot::End end,
                                                  TreeSnapshot* snapshot);
/// The terminal of which a descriptor is the slave. wait_terminal.cc.
[[nodiscard]] std::optional<std::uint32_t> slave_of_terminal(const Descriptor& descriptor);
/// poll, select and epoll: the union of their descriptors. wait_poll.cc.
[[nodiscard]] Wait decode_poll(const ThreadSample& thread, TreeSnapshot* snapshot);
/// A thread that waits for the monitor of a Java object, or that the Java virtual machine runs for itself, under
/// assumptions; nullopt: it is none. wait_jvm.cc.
[[nodiscard]] std::optional<Wait> decode_jvm_thread(const ThreadSample& thread, TreeSnapshot* snapshot);
/// True of bash and dash. wait_shell.cc.
[[nodiscard]] bool is_known_shell(const TreeSnapshot::Process& process, TreeSnapshot* snapshot);
/// The child that such a shell waits for if it has several and waits for any; nullopt: that is not known.
[[nodiscard]] std::optional<pid_t> command_of_shell(const ThreadSample& thread, const TreeSnapshot::Process& process,
                                                    TreeSnapshot* snapshot);
/// A thread of the CUDA driver that polls its devices; nullopt: it is none. wait_cuda.cc.
[[nodiscard]] std::optional<Wait> decode_cuda_helper(const ThreadSample& thread, TreeSnapshot* snapshot);
/// True if `thread`, which is no such helper, waits in the CUDA driver, or may: the GPU could end that. wait_cuda.cc.
[[nodiscard]] bool may_wait_for_gpu(const ThreadSample& thread, TreeSnapshot* snapshot);
/// The prefix of the object of a wait in a call that spins; the call's name follows.
inline constexpr std::string_view kMessagesOf = "messages, in ";
/// Why a wait for no descriptor at all is live.
inline constexpr const char* kOnlyASignal = "it waits for a signal";

[[nodiscard]] Wait live_wait(WaitKind kind, std::string why);
/// Adds each once.
void add_wakers(const std::vector<Waker>& wakers, Wait* wait);
void add_processes(const std::vector<pid_t>& processes, Wait* wait);

}  // namespace mprun
