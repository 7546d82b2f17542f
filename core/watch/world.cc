#include "watch/world.h"

#include <fcntl.h>

#include <algorithm>
#include <csignal>
#include <initializer_list>

namespace mprun {
namespace {

constexpr std::uint64_t bit_of(int signal) { return std::uint64_t{1} << (signal - 1); }

// Signals whose handlers do not make a blocked process one that wakes up by itself: requests to end, which nobody
// sends by a clock; the end of a child, which counts as one who can wake it; faults; those of glibc (32, 33).
constexpr std::uint64_t expected_signals() {
  std::uint64_t set = bit_of(32) | bit_of(33);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGCHLD, SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP,
                           SIGSYS, SIGPIPE}) {
    set |= bit_of(signal);
  }
  return set;
}

int lowest_signal(std::uint64_t set) {
  int signal = 1;
  while ((set & 1) == 0) {
    set >>= 1;
    ++signal;
  }
  return signal;
}

bool has_end(const Descriptor& descriptor, World::End end) {
  const auto mode = descriptor.flags & O_ACCMODE;
  return mode == O_RDWR || mode == (end == World::End::kRead ? O_RDONLY : O_WRONLY);
}

template <typename Matches>
std::vector<pid_t> holders(const std::map<pid_t, World::Process>& processes, const Matches& matches) {
  std::vector<pid_t> found;
  for (const auto& [pid, process] : processes) {
    if (std::any_of(process.descriptors.begin(), process.descriptors.end(), matches)) found.push_back(pid);
  }
  return found;
}

}  // namespace

std::set<std::uint64_t> inodes_held_by(ProcSource* proc, const std::vector<pid_t>& processes) {
  std::set<std::uint64_t> inodes;
  for (const pid_t pid : processes) {
    for (const Descriptor& descriptor : read_descriptors(proc, pid).value_or(std::vector<Descriptor>())) {
      if (descriptor.inode != 0) inodes.insert(descriptor.inode);
    }
  }
  return inodes;
}

World::World(ProcSource* proc, const Sample* sample, Outside around) : proc_(proc), around_(std::move(around)) {
  for (const ThreadSample& thread : sample->threads) {
    auto [it, is_new] = processes_.try_emplace(thread.pid);
    if (is_new) it->second.pid = thread.pid;
    if (thread.state != 'Z') it->second.threads.push_back(thread.tid);
  }
  for (auto& [pid, process] : processes_) read_process(pid);
  for (auto& [pid, process] : processes_) {
    const auto parent = processes_.find(process.parent);
    if (parent != processes_.end()) parent->second.children.push_back(pid);
  }
}

void World::read_process(pid_t pid) {
  Process& process = processes_[pid];
  const std::string folder = std::to_string(pid);
  const auto stat_text = proc_->read(folder + "/stat");
  const auto status_text = proc_->read(folder + "/status");
  const auto stat = stat_text ? parse_stat(*stat_text) : std::nullopt;
  const auto status = status_text ? parse_status(*status_text) : std::nullopt;
  auto descriptors = read_descriptors(proc_, pid);
  if (!stat || !status || !descriptors) {
    process.acts_alone = "mprun may not look at it";
    return;
  }
  process.parent = stat->parent;
  process.name = stat->name;
  process.forked = stat->forked;
  process.caught_signals = status->caught;
  process.descriptors = std::move(*descriptors);
  process.acts_alone = why_it_acts_alone(process, *status);
}

std::string World::why_it_acts_alone(const Process& process, const StatusFile& status) const {
  if (status.tracer != 0) return "is traced by process " + std::to_string(status.tracer);
  if (around_.alarms.count(process.pid) != 0) return "has asked for an alarm";
  const std::uint64_t unexpected = status.caught & ~expected_signals();
  if (unexpected != 0) return "catches signal " + std::to_string(lowest_signal(unexpected));
  const auto timer = has_posix_timer(proc_, process.pid);
  if (!timer) return "may have a POSIX timer";
  if (*timer) return "has a POSIX timer";
  for (const Descriptor& descriptor : process.descriptors) {
    if (descriptor.kind == Descriptor::Kind::kIoUring) return "uses io_uring";
    if (descriptor.kind == Descriptor::Kind::kUserfaultfd) return "uses userfaultfd";
  }
  return {};
}

const World::Process* World::process(pid_t pid) const {
  const auto it = processes_.find(pid);
  return it == processes_.end() ? nullptr : &it->second;
}

const Descriptor* World::descriptor(pid_t pid, std::int64_t number) const {
  const Process* owner = process(pid);
  if (owner == nullptr) return nullptr;
  for (const Descriptor& descriptor : owner->descriptors) {
    if (descriptor.number == number) return &descriptor;
  }
  return nullptr;
}

std::vector<pid_t> World::pipe_holders(std::uint64_t inode, End end) const {
  return holders(processes_, [&](const Descriptor& descriptor) {
    return descriptor.kind == Descriptor::Kind::kPipe && descriptor.inode == inode && has_end(descriptor, end);
  });
}

std::vector<pid_t> World::socket_holders(std::uint64_t inode) const {
  return holders(processes_, [&](const Descriptor& descriptor) {
    return descriptor.kind == Descriptor::Kind::kSocket && descriptor.inode == inode;
  });
}

const UnixSocket* World::unix_socket(std::uint64_t inode) {
  if (!sockets_) {
    sockets_.emplace();
    for (UnixSocket& socket : proc_->unix_sockets().value_or(std::vector<UnixSocket>())) {
      sockets_->emplace(socket.inode, std::move(socket));
    }
  }
  const auto it = sockets_->find(inode);
  return it == sockets_->end() ? nullptr : &it->second;
}

const std::vector<Mapping>& World::maps(pid_t pid) {
  const auto [it, is_new] = maps_.try_emplace(pid);
  if (is_new) {
    if (const auto text = proc_->read(std::to_string(pid) + "/maps")) it->second = parse_maps(*text);
  }
  return it->second;
}

std::vector<pid_t> World::sharing_memory(pid_t pid) {
  std::vector<pid_t> found;
  for (const auto& [other, process] : processes_) {
    // Asked only of parent and child: others could share memory only by way of them.
    const Process* self = this->process(pid);
    const bool related = self != nullptr && (process.parent == pid || self->parent == other);
    if (other == pid || (related && proc_->same_memory(pid, other).value_or(true))) found.push_back(other);
  }
  return found;
}

const std::vector<PythonGil>& World::gils(pid_t pid) {
  const auto [it, is_new] = gils_.try_emplace(pid);
  if (is_new) it->second = read_python_stacks(proc_, pid).gils;
  return it->second;
}

const std::vector<FileLock>& World::file_locks() {
  if (!locks_) locks_ = parse_locks(proc_->read("locks").value_or(""));
  return *locks_;
}

}  // namespace mprun
