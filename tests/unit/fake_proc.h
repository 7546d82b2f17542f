// FakeProc: a ProcSource with a made-up tree of processes. FakeProc::process() and thread() make processes and
// threads; chained calls say what these do:
//
//   FakeProc proc;
//   proc.process(10).thread(10).waits_for_child(11);
//   proc.process(11, 10).pipe(3, 77, O_RDONLY).thread(11).reads(3);
//   EXPECT_TRUE(judged(&proc).is_deadlock);
//
// Everything not set is harmless: no descriptors, no handlers, no timers. Everything is in memory; nothing is cached,
// so that a test may change it between two samples.
#pragma once

#include <fcntl.h>
#include <linux/futex.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstring>
#include <map>
#include <set>

#include "procfs/process_table.h"
#include "watch/judge/judge.h"
#include "watch/sample/architecture.h"
#include "watch/sample/syscall_numbers.h"

namespace mprun {

/// The mappings of a process that runs Python, which shows whether a poll gets nowhere.
inline constexpr const char* kMapsOfPython = "400000-500000 r-xp 00000000 fe:00 42 /usr/bin/python3.11\n";

/// Where all threads are, unless set otherwise.
inline constexpr std::uint64_t kProgramCounter = 0x7f0000000102;

/// One thread: blocked in pause() unless set otherwise.
class TreeThread {
 public:
  pid_t tid = 0;
  char state = 'S';
  std::int64_t number = SYS_pause;
  std::array<std::uint64_t, 6> arguments{};
  std::uint64_t blocked = 0;  ///< signals; bit N-1: signal N
  bool running = false, own_descriptors = false;
  bool garbled = false;  ///< what /proc says of its call makes no sense
  pid_t tracer = 0;
  Nanos cpu = 1;  ///< the time that it has had a CPU
  std::uint64_t runs = 5, stack_pointer = 0x7ffc00001000, program_counter = kProgramCounter;
  std::string wchan = "0", name = "x";

  TreeThread& call(std::int64_t call_number, std::initializer_list<std::uint64_t> values) {
    number = call_number;
    arguments = {};
    std::copy(values.begin(), values.end(), arguments.begin());
    return *this;
  }
  TreeThread& reads(std::uint64_t fd) { return call(SYS_read, {fd, 0x1000, 1}); }
  TreeThread& writes(std::uint64_t fd) { return call(SYS_write, {fd, 0x1000, 1}); }
  TreeThread& blocks(int signal) {
    blocked |= std::uint64_t{1} << (signal - 1);
    return *this;
  }
  TreeThread& sleeps() { return call(SYS_clock_nanosleep, {0, 0, 0x1000}); }
  TreeThread& waits_for_child(std::int64_t pid) { return call(SYS_wait4, {static_cast<std::uint64_t>(pid)}); }
  /// A Python lock, a condition, a semaphore.
  TreeThread& waits_on(std::uint64_t address, bool is_private = true) {
    const unsigned operation = FUTEX_WAIT_BITSET | FUTEX_CLOCK_REALTIME | (is_private ? FUTEX_PRIVATE_FLAG : 0U);
    return call(SYS_futex, {address, operation, 0, 0});
  }
  TreeThread& runs_once() {
    ++runs;
    return *this;
  }
};

class TreeProcess {
 public:
  struct Opened {
    std::string target, info;
  };
  pid_t pid = 0, parent = 1;
  std::map<pid_t, TreeThread> threads;
  std::map<int, Opened> descriptors;
  std::map<std::uint64_t, char> bytes;
  std::uint64_t caught = 0, ignored = 0;
  bool readable = true, hidden_descriptors = false, forked = false;
  std::optional<std::string> command;
  std::uint64_t group = 0, started = 0;  ///< its process group; when it started, in clock ticks
  bool of_another = false;               ///< belongs to another user: see FakeProc::hides_others
  std::string namespace_ids;             ///< of the line NSpid, if it has one
  std::string maps = "7ffc00000000-7ffc00010000 rw-p 00000000 00:00 0 [stack]\n", timers, statm = "100 5 1 1 0 1 0",
              environ;
  std::string exe = "/usr/bin/program", cwd = "/", ipc_namespace = "ipc:[1]", pid_namespace = "pid:[1]";
  std::optional<std::string> io = "rchar: 0\n";
  int memory_of = 0;                 ///< processes with the same number, not 0, have one address space
  std::map<int, Nanos> time_limits;  ///< of sockets that have one

  TreeThread& thread(pid_t tid) {
    TreeThread& made = threads[tid];
    made.tid = tid;
    return made;
  }
  TreeProcess& open(int fd, const std::string& target, std::uint64_t flags = O_RDONLY, const std::string& info = "") {
    std::array<char, 32> octal{};
    std::snprintf(octal.data(), octal.size(), "%llo", static_cast<unsigned long long>(flags));
    descriptors[fd] = {target, "pos:\t0\nflags:\t0" + std::string(octal.data()) + "\nmnt_id:\t9\n" + info};
    return *this;
  }
  TreeProcess& pipe(int fd, int inode, std::uint64_t flags) {
    return open(fd, "pipe:[" + std::to_string(inode) + "]", flags, "ino:\t" + std::to_string(inode) + "\n");
  }
  TreeProcess& socket(int fd, int inode) {
    return open(fd, "socket:[" + std::to_string(inode) + "]", O_RDWR, "ino:\t" + std::to_string(inode) + "\n");
  }
  /// One side of the pseudo-terminal whose slave is /dev/pts/N.
  TreeProcess& terminal_master(int fd, int number) {
    return open(fd, "/dev/ptmx", O_RDWR, "ino:\t86\ntty-index:\t" + std::to_string(number) + "\n");
  }
  TreeProcess& terminal_slave(int fd, int number) {
    return open(fd, "/dev/pts/" + std::to_string(number), O_RDWR, "ino:\t" + std::to_string(number + 3) + "\n");
  }
  TreeProcess& eventfd(int fd, int id) {
    return open(fd, "anon_inode:[eventfd]", O_RDWR,
                "ino:\t2\neventfd-count: 0\neventfd-id: " + std::to_string(id) + "\n");
  }
  /// An io_uring that has taken and completed so many requests; all completions have been fetched.
  TreeProcess& ring(int fd, int inode, int taken = 0, int completed = 0) {
    const std::string begun = std::to_string(taken);
    const std::string ended = std::to_string(completed);
    return open(fd, "anon_inode:[io_uring]", O_RDWR,
                "ino:\t" + std::to_string(inode) + "\nSqTail:\t" + begun + "\nCachedSqHead:\t" + begun + "\nCqHead:\t" +
                    ended + "\nCachedCqTail:\t" + ended + "\nSqThread:\t-1\nPollList:\nCqOverflowList:\n");
  }
  TreeProcess& catches(int signal) {
    caught |= std::uint64_t{1} << (signal - 1);
    return *this;
  }
  TreeProcess& is_python() {
    exe = "/usr/bin/python3.11";
    return catches(SIGINT);
  }
  /// At 0x7e..., as "rw-s" or "rw-p".
  TreeProcess& map(const std::string& rights, int inode, const std::string& path, const std::string& device = "00:01") {
    maps +=
        "7e0000000000-7e0000001000 " + rights + " 00000000 " + device + ' ' + std::to_string(inode) + ' ' + path + '\n';
    return *this;
  }
  /// The code before a program counter: these instructions, and that of a system call.
  TreeProcess& put_code(const std::string& instructions = "", std::uint64_t program_counter = kProgramCounter) {
    const std::string code = instructions + std::string(architecture::kSystemCall);
    for (std::size_t i = 0; i < code.size(); ++i) bytes[program_counter - code.size() + i] = code[i];
    return *this;
  }
  /// Thread `tid` waits in glibc's code for a mutex at `address` owned by thread `owner`.
  TreeThread& waits_for_mutex(pid_t tid, std::uint64_t address, pid_t owner, std::int32_t kind = 0);
  template <typename T>
  TreeProcess& put(std::uint64_t address, const T& value) {
    std::array<char, sizeof(T)> raw{};
    std::memcpy(raw.data(), &value, sizeof value);
    for (std::size_t i = 0; i < raw.size(); ++i) bytes[address + i] = raw[i];
    return *this;
  }
  /// Followed by zeros up to the end of its page.
  TreeProcess& put_text(std::uint64_t address, const std::string& text) {
    constexpr std::uint64_t kPage = 4096;
    const std::uint64_t end = address + text.size() + 1;
    for (std::uint64_t at = end - 1; at < (end + kPage - 1) / kPage * kPage; ++at) bytes[at] = '\0';
    for (std::size_t i = 0; i < text.size(); ++i) bytes[address + i] = text[i];
    return *this;
  }
};

inline TreeThread& TreeProcess::waits_for_mutex(pid_t tid, std::uint64_t address, pid_t owner, std::int32_t kind) {
  if (maps.find("libc.so.6") == std::string::npos) {
    maps += "7f0000000000-7f0000001000 r-xp 00000000 00:01 33 /usr/lib/x86_64-linux-gnu/libc.so.6\n";
  }
  put_code(std::string(architecture::kLockWaitSize, '\0') + std::string(architecture::kSetFutex));
  const std::int32_t count = (kind & 3) == 1 ? 1 : 0;
  put(address, std::array<std::int32_t, 10>{2, count, owner, 1, kind});
  return thread(tid).call(SYS_futex, {address, FUTEX_WAIT_PRIVATE, 2, 0});
}

class FakeProc : public ProcSource {
 public:
  static constexpr std::uint64_t kMapped = 0x7e0000000000;  ///< where TreeProcess::map() puts memory
  std::map<pid_t, TreeProcess> processes;
  std::vector<UnixSocket> sockets;
  std::map<std::uint64_t, std::vector<std::string>> names;  ///< in /dev/shm, by inode
  std::set<std::string> private_folders;
  std::map<std::string, NamedPipe> fifos;  ///< by path
  std::string locks, tcp, tcp6;
  std::string sysv_semaphores, sysv_queues;                   ///< the tables of /proc/sysvipc
  std::map<std::pair<int, unsigned>, pid_t> semaphore_users;  ///< by set and number
  bool knows_names = true, knows_kcmp = true;
  /// As the option hidepid does. Process 1 is both mprun, whose threads and children we may see, and init.
  bool hides_others = false;
  bool tells_children = true;  ///< in the file "children" of a thread

  FakeProc() { process(1, 0).thread(1).running = true; }

  /// `parent`: 1 is mprun, which does not belong to the tree.
  TreeProcess& process(pid_t pid, pid_t parent = 1) {
    TreeProcess& made = processes[pid];
    made.pid = pid;
    made.parent = parent;
    made.put_code();
    return made;
  }

  std::optional<std::string> read(const std::string& path) override;
  std::optional<std::string> link(const std::string& path) override;
  std::optional<std::vector<std::string>> list(const std::string& path) override;
  bool memory(pid_t pid, std::uint64_t address, void* to, std::size_t size) override;
  std::optional<std::vector<UnixSocket>> unix_sockets() override { return sockets; }
  std::optional<Nanos> time_limit(pid_t pid, int fd) override {
    const auto& limits = processes.at(pid).time_limits;
    const auto limit = limits.find(fd);
    return limit == limits.end() ? 0 : limit->second;
  }
  std::optional<bool> same_memory(pid_t one, pid_t other) override {
    if (!knows_kcmp) return std::nullopt;
    const int memory_of = owner_of(one)->memory_of;
    return memory_of != 0 && memory_of == owner_of(other)->memory_of;
  }
  std::optional<bool> same_files(pid_t one, pid_t other) override {
    if (!knows_kcmp) return std::nullopt;
    return one == other || !owner_of(other)->threads.at(other).own_descriptors;
  }
  std::optional<std::vector<std::string>> names_of(pid_t, const std::string& folder, std::uint64_t inode) override {
    if (!knows_names || folder != "/dev/shm") return std::nullopt;
    return names[inode];
  }
  std::optional<pid_t> semaphore_user(int set, unsigned number) override {
    const auto user = semaphore_users.find({set, number});
    return user == semaphore_users.end() ? std::nullopt : std::optional(user->second);
  }
  std::optional<bool> is_private_folder(pid_t, const std::string& folder) override {
    return private_folders.count(folder) != 0;
  }
  std::optional<NamedPipe> named_pipe(pid_t, const std::string& path) override {
    const auto fifo = fifos.find(path);
    return fifo == fifos.end() ? std::nullopt : std::optional(fifo->second);
  }

 private:
  [[nodiscard]] bool is_hidden(const TreeProcess& process) const { return hides_others && process.of_another; }
  [[nodiscard]] std::optional<std::string> children_text(pid_t parent) const;
  struct Place {
    TreeProcess* process = nullptr;
    TreeThread* thread = nullptr;  ///< not nullptr if the process is not: the first one, unless another is named
    std::string rest;
  };
  [[nodiscard]] TreeProcess* owner_of(pid_t tid);
  [[nodiscard]] Place find(const std::string& path);
};

inline TreeProcess* FakeProc::owner_of(pid_t tid) {
  for (auto& [pid, process] : processes) {
    if (pid == tid || process.threads.count(tid) != 0) return &process;
  }
  return nullptr;
}

// "10/fd/3", "11/fd/3" of a second thread 11, "10/task/11/fd/3".
inline FakeProc::Place FakeProc::find(const std::string& path) {
  Place place;
  std::size_t slash = std::min(path.find('/'), path.size());
  if (path.empty() || path[0] < '0' || path[0] > '9') return place;
  const pid_t named = std::stoi(path.substr(0, slash));
  place.process = owner_of(named);
  if (place.process == nullptr) return {};
  auto& threads = place.process->threads;
  const auto it = threads.find(named);
  place.thread = it != threads.end() ? &it->second : &threads.begin()->second;
  place.rest = path.substr(std::min(slash + 1, path.size()));
  if (place.rest.rfind("task/", 0) != 0) return place;
  place.rest = place.rest.substr(5);
  slash = std::min(place.rest.find('/'), place.rest.size());
  const auto own = threads.find(std::stoi(place.rest.substr(0, slash)));
  if (own == threads.end()) return {};
  place.thread = &own->second;
  place.rest = place.rest.substr(std::min(slash + 1, place.rest.size()));
  return place;
}

inline std::optional<std::string> FakeProc::children_text(pid_t parent) const {
  if (!tells_children) return std::nullopt;
  std::string text;
  for (const auto& [pid, process] : processes) {
    if (process.parent == parent) text += std::to_string(pid) + " ";
  }
  return text;
}

inline std::string status_text(const TreeProcess& process, const TreeThread& thread) {
  std::array<char, 512> text{};
  std::snprintf(text.data(), text.size(),
                "Name:\t%s\n%sState:\t%c (x)\nTracerPid:\t%d\nUid:\t0\t0\t0\t0\nThreads:\t%zu\n"
                "SigPnd:\t0000000000000000\nShdPnd:\t0000000000000000\nSigBlk:\t%016llx\n"
                "SigIgn:\t%016llx\nSigCgt:\t%016llx\n"
                "voluntary_ctxt_switches:\t%llu\nnonvoluntary_ctxt_switches:\t0\n",
                thread.name.c_str(), process.namespace_ids.c_str(), thread.state, thread.tracer, process.threads.size(),
                static_cast<unsigned long long>(thread.blocked), static_cast<unsigned long long>(process.ignored),
                static_cast<unsigned long long>(process.caught), static_cast<unsigned long long>(thread.runs));
  return text.data();
}

inline std::string syscall_text(const TreeThread& thread) {
  if (thread.garbled) return "7 7\n";
  if (thread.running) return "running\n";
  std::array<char, 256> text{};
  const auto& a = thread.arguments;
  const auto wide = [](std::uint64_t value) { return static_cast<unsigned long long>(value); };
  std::snprintf(text.data(), text.size(), "%lld 0x%llx 0x%llx 0x%llx 0x%llx 0x%llx 0x%llx 0x%llx 0x%llx\n",
                static_cast<long long>(thread.number), wide(a[0]), wide(a[1]), wide(a[2]), wide(a[3]), wide(a[4]),
                wide(a[5]), wide(thread.stack_pointer), wide(thread.program_counter));
  return text.data();
}

inline std::optional<std::string> FakeProc::read(const std::string& path) {
  if (path == "locks") return locks;
  if (path == "sysvipc/sem") return sysv_semaphores;
  if (path == "sysvipc/msg") return sysv_queues;
  const Place place = find(path);
  if (place.process == nullptr || is_hidden(*place.process)) return std::nullopt;
  if (hides_others && place.process->pid == 1 && place.rest == "stat") return std::nullopt;
  const TreeProcess& process = *place.process;
  const TreeThread& thread = *place.thread;
  if (place.rest == "stat") {
    std::string text =
        std::to_string(process.pid) + " (program) " + thread.state + ' ' + std::to_string(process.parent);
    const std::map<int, std::uint64_t> fields{{5, process.group}, {9, process.forked ? 64 : 0}, {22, process.started}};
    for (int field = 5; field <= 52; ++field) {
      const auto set = fields.find(field);
      text += ' ' + std::to_string(set == fields.end() ? 0 : set->second);
    }
    return text + '\n';
  }
  if (place.rest == "status") return status_text(process, thread);
  if (place.rest == "statm") return process.statm;
  if (place.rest == "schedstat") return std::to_string(thread.cpu) + " 2 " + std::to_string(thread.runs) + '\n';
  if (place.rest == "net/tcp") return tcp;
  if (place.rest == "net/tcp6") return tcp6;
  if (place.rest == "children") return children_text(process.pid);
  if (!process.readable) return std::nullopt;  // any process may read what is above
  if (place.rest == "syscall") return syscall_text(thread);
  if (place.rest == "wchan") return thread.wchan;
  if (place.rest == "comm") return thread.name + '\n';
  if (thread.state == 'Z') return "";  // its memory and descriptors no longer exist
  if (place.rest == "maps") return process.maps;
  if (place.rest == "timers") return process.timers;
  if (place.rest == "cmdline") return process.command;
  if (place.rest == "io") return process.io;
  if (place.rest == "environ") return process.environ;
  if (place.rest.rfind("fdinfo/", 0) == 0) {
    const auto opened = process.descriptors.find(std::stoi(place.rest.substr(7)));
    if (opened != process.descriptors.end()) return opened->second.info;
  }
  return std::nullopt;
}

inline std::optional<std::string> FakeProc::link(const std::string& path) {
  if (path == "self/ns/ipc") return "ipc:[1]";
  if (path == "self/ns/pid") return "pid:[1]";
  const Place place = find(path);
  if (place.process == nullptr || !place.process->readable) return std::nullopt;
  if (place.rest == "exe") return place.process->exe;
  if (place.rest == "cwd") return place.process->cwd;
  if (place.rest == "ns/ipc") return place.process->ipc_namespace;
  if (place.rest == "ns/pid") return place.process->pid_namespace;
  if (place.rest.rfind("fd/", 0) != 0) return std::nullopt;
  const int fd = std::stoi(place.rest.substr(3));
  const auto opened = place.process->descriptors.find(fd);
  if (opened == place.process->descriptors.end()) return std::nullopt;
  return place.thread->own_descriptors ? "/its/own" : opened->second.target;
}

inline std::optional<std::vector<std::string>> FakeProc::list(const std::string& path) {
  std::vector<std::string> found;
  if (path == ".") {
    for (const auto& [pid, process] : processes) {
      if (!is_hidden(process)) found.push_back(std::to_string(pid));
    }
    found.emplace_back("self");
    return found;
  }
  const Place place = find(path);
  if (place.process != nullptr && is_hidden(*place.process)) return std::nullopt;
  if (path.size() > 5 && path.substr(path.size() - 5) == "/task" && place.process != nullptr) {
    for (const auto& [tid, thread] : place.process->threads) found.push_back(std::to_string(tid));
    return found;
  }
  if (place.process == nullptr || place.rest != "fd" || !place.process->readable) return std::nullopt;
  if (place.process->hidden_descriptors) return std::nullopt;
  if (place.thread->state == 'Z') return found;
  for (const auto& [fd, opened] : place.process->descriptors) found.push_back(std::to_string(fd));
  return found;
}

inline bool FakeProc::memory(pid_t pid, std::uint64_t address, void* to, std::size_t size) {
  const Place place = find(std::to_string(pid));
  if (place.process == nullptr || place.thread->state == 'Z') return false;
  for (std::size_t i = 0; i < size; ++i) {
    const auto byte = place.process->bytes.find(address + i);
    if (byte == place.process->bytes.end()) return false;
    static_cast<char*>(to)[i] = byte->second;
  }
  return true;
}

// A line of /proc/net/tcp, for FakeProc::tcp.
inline const std::string kServer = "0100007F:1F90", kClient = "0100007F:A001";
constexpr int kEstablished = 1, kFinWait = 4, kListening = 10;

inline std::string tcp_line(const std::string& local, const std::string& remote, int state, int inode, int unsent = 0,
                            int unread = 0) {
  std::array<char, 256> text{};
  std::snprintf(text.data(), text.size(), "   0: %s %s %02X %08X:%08X 00:00000000 00000000  1000        0 %d 1 0000\n",
                local.c_str(), remote.c_str(), static_cast<unsigned>(state), static_cast<unsigned>(unsent),
                static_cast<unsigned>(unread), inode);
  return text.data();
}

/// The result for processes, judged once.
struct Judged {
  std::map<pid_t, Wait> waits;  ///< by thread
  std::set<pid_t> stuck, live;
  bool is_deadlock = false;
  std::vector<std::string> assumed;  ///< TreeSnapshot::assumed()
  [[nodiscard]] bool is_stuck(pid_t pid) const { return stuck.count(pid) != 0; }
};

inline Judged judged(FakeProc* proc, const std::vector<pid_t>& processes, const TreeBoundary& boundary,
                     std::vector<pid_t> ended = {}) {
  Sample sample = take_sample(proc, processes);
  sample.ended = std::move(ended);
  TreeSnapshot snapshot(proc, &sample, boundary);
  Judgement judgement = judge(sample, &snapshot);
  Judged all{{}, judgement.stuck, judgement.live, judgement.is_deadlock(), snapshot.assumed()};
  for (JudgedThread& thread : judgement.threads) all.waits[thread.sample->tid] = std::move(thread.wait);
  return all;
}

/// The tree below process 1.
inline Judged judged(FakeProc* proc, const TreeBoundary& boundary = {}) {
  std::vector<pid_t> ended;
  const auto processes = process_tree(proc, 1, false, &ended);
  return judged(proc, processes, boundary, std::move(ended));
}

/// What a judgement of a suspicion assumes: no process outside uses what it could.
inline TreeBoundary none_outside_acts() {
  TreeBoundary boundary;
  boundary.assumptions.no_outside_peers = true;
  return boundary;
}

}  // namespace mprun
