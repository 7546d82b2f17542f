// What the kernel says about a process or thread, as values: parsers of the files of /proc that the watch reads, each a
// pure function of a text, and readers that fetch the text from a ProcSource. Formats: proc(5).
#pragma once

#include <array>
#include <string_view>

#include "base/clock.h"
#include "procfs/proc_source.h"

namespace mprun {

/// How /proc/PID/maps, exe and fd end the path of a file that has no name any more.
inline constexpr std::string_view kDeleted = " (deleted)";

/// From /proc/PID/task/TID/syscall. A line that is not "running" was taken, as a whole, while the thread was blocked.
struct SyscallLine {
  bool running = true;       ///< nothing else is known
  std::int64_t number = -1;  ///< -1: blocked outside of a system call (a page fault, say)
  std::array<std::uint64_t, 6> arguments{};
  std::uint64_t stack_pointer = 0, program_counter = 0;
  bool operator==(const SyscallLine&) const = default;
};
[[nodiscard]] std::optional<SyscallLine> parse_syscall(std::string_view text);

/// From /proc/PID/stat, or /proc/PID/task/TID/stat.
struct StatLine {
  pid_t id = 0;
  std::string name;  ///< may hold anything
  char state = '?';  ///< R S D Z T t X I
  pid_t parent = 0;
  bool forked = false;  ///< flag PF_FORKNOEXEC: runs what its parent ran; of threads but the first: always set
  pid_t group = 0;      ///< of processes
  std::uint64_t minor_faults = 0;    ///< each of which brought it a page, or a copy of one
  std::uint64_t cpu_ticks = 0;       ///< CPU time of it and of the children that it has waited for, in clock ticks
  unsigned threads = 0;              ///< of its process; a dead leader counts until it is reaped
  std::uint64_t start_ticks = 0;     ///< since boot, in clock ticks
  std::uint64_t resident_pages = 0;  ///< of all kinds, shared ones too
  int exit_code = 0;                 ///< as wait() gives it; of use in a zombie only; 0 if we may not trace it
};
[[nodiscard]] std::optional<StatLine> parse_stat(std::string_view text);
/// How long it has lived, time in which the machine slept included; up to a tick, of 10 ms, too much.
[[nodiscard]] Nanos age_of(const StatLine& stat);

/// From /proc/PID/status, or /proc/PID/task/TID/status. Bit N-1 of a set: signal N.
struct StatusFile {
  char state = '?';                                                 ///< as StatLine's
  std::uint64_t caught = 0, blocked = 0, ignored = 0, pending = 0;  ///< pending: of the thread or the process
  pid_t tracer = 0;
  unsigned threads = 0;
  std::uint64_t voluntary_switches = 0, involuntary_switches = 0;
  std::uint64_t uid = 0;    ///< the effective one
  unsigned namespaces = 1;  ///< in how many PID namespaces it has a number, from ours downwards
};
[[nodiscard]] std::optional<StatusFile> parse_status(std::string_view text);

/// The third number of /proc/PID/task/TID/schedstat: how often it got a CPU.
[[nodiscard]] std::optional<std::uint64_t> parse_run_count(std::string_view text);

/// One line of /proc/PID/maps.
struct Mapping {
  std::uint64_t begin = 0, end = 0, offset = 0;
  bool readable = false, writable = false, executable = false, shared = false;
  std::uint64_t device = 0;  ///< major << 32 | minor
  std::uint64_t inode = 0;   ///< 0: of no file
  std::string path;
};
[[nodiscard]] std::vector<Mapping> parse_maps(std::string_view text);
/// True if a file is mapped whose name, without its folder, starts so ("libtorch_cpu.so").
[[nodiscard]] bool maps_file(const std::vector<Mapping>& maps, std::string_view name);
/// The mapping that holds `address`; `maps` as parse_maps() gave them. nullptr: none.
[[nodiscard]] const Mapping* find_mapping(const std::vector<Mapping>& maps, std::uint64_t address);

/// One line of /proc/locks.
struct FileLock {
  enum class Kind { kFlock, kPosix, kOpenFile, kLease } kind = Kind::kFlock;
  bool waiting = false;  ///< "->": this one waits for the lock of the last line with `waiting` unset
  bool exclusive = false;
  pid_t holder = 0;  ///< -1: an open file description holds it, no single process
  std::uint64_t device = 0, inode = 0;
  std::uint64_t begin = 0,
                end = ~std::uint64_t{0};  ///< the bytes that are locked; the last one: to the end of the file
};
[[nodiscard]] std::vector<FileLock> parse_locks(std::string_view text);

/// One line of /proc/PID/net/tcp or tcp6.
struct TcpSocket {
  enum class State { kEstablished, kListening, kOther } state = State::kOther;
  std::string local, remote;  ///< "0100007F:1F90"; an IPv4 address in IPv6 is written as one of IPv4
  std::uint64_t unsent = 0;   ///< bytes that the peer has not acknowledged
  std::uint64_t unread = 0;   ///< of a listener: connections that were not accepted
  std::uint64_t inode = 0;    ///< as in "socket:[INODE]"; 0: of a connection that was not accepted
};
[[nodiscard]] std::vector<TcpSocket> parse_tcp(std::string_view text);

/// One descriptor of a process.
struct Descriptor {
  enum class Kind {
    kPipe,
    kSocket,
    kEpoll,
    kEventfd,
    kTimerfd,
    kSignalfd,
    kInotify,
    kPidfd,
    kIoUring,
    kUserfaultfd,
    kFile /* has a path: a terminal or device too */,
    kOther
  };
  int number = -1;
  Kind kind = Kind::kOther;
  std::uint64_t inode = 0;       ///< kPipe, kSocket
  std::string target;            ///< of its link
  std::uint64_t flags = 0;       ///< open(2): O_RDONLY, O_WRONLY, O_RDWR, O_NONBLOCK
  std::uint64_t info_inode = 0;  ///< of any kind; 0: not known (before Linux 5.14). Eventfds and the like share one
  std::vector<int> watched;      ///< kEpoll: the descriptors in its set ("tfd:"), by their numbers when they were added
  std::vector<std::uint64_t> watched_inodes;  ///< of each of `watched`, as info_inode; if it changed, so has the file
  std::vector<int> edge_triggered;            ///< those of `watched` with EPOLLET, and with EPOLLONESHOT after that
  pid_t process = 0;                          ///< kPidfd: of which process; -1 when that has ended
  bool armed = false;              ///< kTimerfd: it will expire, or may. kIoUring: the kernel works for it, or may
  std::uint64_t requests = 0;      ///< kIoUring: that the kernel has taken so far, modulo 2^32
  std::uint64_t completed = 0;     ///< kIoUring: completions that the program has not fetched yet
  bool keeps_files = false;        ///< kIoUring: files may be registered with it, which no descriptor shows
  std::uint64_t on_their_way = 0;  ///< kSocket, of AF_UNIX: descriptors sent to it and not received yet
  std::vector<FileLock> locks;     ///< held by its open file, or by the process through it
  std::optional<std::uint32_t> terminal;  ///< of the master of a pseudo-terminal: N of its slave, /dev/pts/N
  std::optional<std::uint64_t> event_id;  ///< kEventfd: the same in all processes that hold it; none before Linux 5.2
};
/// Fills `number`, `kind`, `inode` and `target` from a link of /proc/PID/fd.
[[nodiscard]] Descriptor parse_descriptor(int number, std::string_view target);
/// Adds what /proc/PID/fdinfo/FD says.
void parse_descriptor_info(std::string_view text, Descriptor* descriptor);
/// All of them; nullopt if they cannot be read. One that is closed while we look is left out.
[[nodiscard]] std::optional<std::vector<Descriptor>> read_descriptors(ProcSource* proc, pid_t pid);

/// A semaphore set or message queue of System V: a line of /proc/sysvipc/sem or msg. Of our IPC namespace.
struct SysvObject {
  int id = -1;
  std::int32_t key = 0;  ///< by which others find it; 0: IPC_PRIVATE
  /// Of a queue: the processes that last sent to it and received from it, perhaps ended since; 0: none.
  pid_t last_sender = 0, last_receiver = 0;
  std::int64_t changed = 0;  ///< seconds since the epoch: when it was made, or its owner, rights or values were set
  bool operator==(const SysvObject&) const = default;
};
[[nodiscard]] std::vector<SysvObject> parse_sysv_objects(std::string_view text);

/// The signals of the POSIX timers that the process has, armed or not: an entry of /proc/PID/timers each. 0: of one
/// that makes no sense. nullopt: not known.
[[nodiscard]] std::optional<std::vector<int>> signals_of_timers(ProcSource* proc, pid_t pid);

}  // namespace mprun
