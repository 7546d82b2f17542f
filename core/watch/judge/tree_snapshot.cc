#include "watch/judge/tree_snapshot.h"

#include <fcntl.h>

#include <algorithm>
#include <iterator>
#include <string_view>

#include "watch/sample/syscall_table.h"
#include "watch/stacks/native_stack.h"
#include "watch/stacks/python_processes.h"

namespace mprun {
namespace {

bool has_end(std::uint64_t flags, TreeSnapshot::End end) {
  if ((flags & O_PATH) != 0) return false;  // it names the pipe, and keeps no end of it open
  const auto mode = flags & O_ACCMODE;
  return mode == O_RDWR || mode == (end == TreeSnapshot::End::kRead ? O_RDONLY : O_WRONLY);
}

void add(pid_t pid, std::vector<pid_t>* processes) {
  if (std::find(processes->begin(), processes->end(), pid) == processes->end()) processes->push_back(pid);
}

// Eventfds, files and the masters of terminals, which share one file, are numbered apart from pipes and sockets.
constexpr std::uint64_t kEventIdentity = std::uint64_t{1} << 63, kFileIdentity = std::uint64_t{1} << 62,
                        kTerminalIdentity = std::uint64_t{1} << 61;

// libuv asks its rings for nothing that is completed more than once (src/unix/linux.c of versions 1.45 to 1.51).
bool has_libuv(const std::vector<Mapping>& maps) {
  return std::any_of(maps.begin(), maps.end(), [](const Mapping& mapping) {
    const std::string_view name = std::string_view(mapping.path).substr(mapping.path.rfind('/') + 1);
    return name == "node" || name.starts_with("libnode.so.") || name.starts_with("libuv.so.");
  });
}

}  // namespace

std::uint64_t identity_of(const Descriptor& descriptor) {
  switch (descriptor.kind) {
    case Descriptor::Kind::kPipe:
    case Descriptor::Kind::kSocket:
      return descriptor.inode;
    case Descriptor::Kind::kEventfd:
      return descriptor.event_id ? kEventIdentity | *descriptor.event_id : 0;
    case Descriptor::Kind::kIoUring:
      return descriptor.info_inode != 0 ? kFileIdentity | descriptor.info_inode : 0;
    case Descriptor::Kind::kFile:
      if (descriptor.terminal) return kTerminalIdentity | *descriptor.terminal;
      return descriptor.info_inode != 0 ? kFileIdentity | descriptor.info_inode : 0;
    default:
      return 0;
  }
}

std::set<std::uint64_t> inodes_held_by(ProcSource* proc, const std::vector<pid_t>& processes) {
  std::set<std::uint64_t> identities;
  for (const pid_t pid : processes) {
    for (const Descriptor& descriptor : read_descriptors(proc, pid).value_or(std::vector<Descriptor>())) {
      if (const std::uint64_t identity = identity_of(descriptor); identity != 0) identities.insert(identity);
    }
  }
  return identities;
}

TreeSnapshot::TreeSnapshot(ProcSource* proc, const Sample* sample, TreeBoundary boundary)
    : proc_(proc), sample_(sample), boundary_(std::move(boundary)) {
  for (const ThreadSample& thread : sample->threads) {
    Process& process = processes_.try_emplace(thread.pid).first->second;
    process.pid = thread.pid;
    if (thread.state == 'Z') continue;
    process.threads.push_back(thread.tid);
    process.uses_cuda = process.uses_cuda || thread.ticks;
    process.moved = process.moved || thread.moved;
    if (process.speaker == 0 || thread.tid == thread.pid) process.speaker = thread.tid;
    if (thread.tracer != 0) process.acts_alone = "is traced by process " + std::to_string(thread.tracer);
  }
  for (auto& [pid, process] : processes_) read_process(&process);
  for (auto& [pid, process] : processes_) {
    const auto parent = processes_.find(process.parent);
    if (parent != processes_.end()) parent->second.children.push_back(pid);
    index_descriptors(process);
  }
  for (const pid_t ended : sample->ended) {
    const auto text = proc_->read(std::to_string(ended) + "/stat");
    const auto stat = text ? parse_stat(*text) : std::nullopt;
    const auto parent = stat ? processes_.find(stat->parent) : processes_.end();
    if (parent != processes_.end()) parent->second.ended_children.push_back(ended);
  }
  find_blind_spot();
}

void TreeSnapshot::read_process(Process* process) {
  if (process->threads.empty()) return;  // it has ended
  const std::string folder = std::to_string(process->speaker);
  const auto stat_text = proc_->read(folder + "/stat");
  const auto status_text = proc_->read(folder + "/status");
  const auto stat = stat_text ? parse_stat(*stat_text) : std::nullopt;
  const auto status = status_text ? parse_status(*status_text) : std::nullopt;
  auto descriptors = read_descriptors(proc_, process->speaker);
  if (!stat) {
    process->acts_alone = "has just ended";
    blind_spot_ = "process " + std::to_string(process->pid) + " has just ended";
    return;
  }
  process->parent = stat->parent;
  process->name = stat->name;
  process->forked = stat->forked;
  process->start_ticks = stat->start_ticks;
  if (!status || !descriptors) {
    process->acts_alone = "may not be looked at";
    process->hidden = true;
    blind_spot_ = "mprun may not look at process " + std::to_string(process->pid);
    return;
  }
  process->caught_signals = status->caught;
  process->ignored_signals = status->ignored;
  process->descriptors = std::move(*descriptors);
  std::sort(process->descriptors.begin(), process->descriptors.end(),
            [](const Descriptor& a, const Descriptor& b) { return a.number < b.number; });
  for (Descriptor& descriptor : process->descriptors) {
    // If unknown code has used a ring, its counters may hide a request that is not completed.
    if (descriptor.requests != 0 && !has_libuv(maps(process->pid))) descriptor.armed = true;
  }
  if (process->acts_alone.empty()) process->acts_alone = why_it_acts_alone(process, *status);
}

void TreeSnapshot::index_descriptors(const Process& process) {
  for (const Descriptor& descriptor : process.descriptors) {
    if (const std::uint64_t identity = identity_of(descriptor); identity != 0) {
      holders_[identity].push_back({process.pid, descriptor.flags});
    }
  }
}

// After unshare(CLONE_FILES), /proc/PID/fd shows only the speaker's descriptors.
bool TreeSnapshot::has_own_descriptors(const Process& process, pid_t tid) const {
  if (const auto same = proc_->same_files(process.speaker, tid)) return !*same;
  const std::string theirs = std::to_string(process.speaker) + "/fd";
  const std::string own = std::to_string(process.pid) + "/task/" + std::to_string(tid) + "/fd";
  const auto names = proc_->list(own);
  if (!names || names != proc_->list(theirs)) return true;
  return std::any_of(names->begin(), names->end(), [&](const std::string& name) {
    return proc_->link(own + "/" + name) != proc_->link(theirs + "/" + name);
  });
}

void TreeSnapshot::find_blind_spot() {
  // With the option hidepid of /proc, there may be processes in the tree that we do not see.
  if (blind_spot_.empty() && !proc_->read("1/stat")) blind_spot_ = why_tree_is_not_whole();
  for (const auto& [pid, process] : processes_) {
    for (const Descriptor& descriptor : process.descriptors) {
      // The receiver will hold what no process holds now.
      if (descriptor.on_their_way != 0) blind_spot_ = "a descriptor is on its way to process " + std::to_string(pid);
      if (descriptor.keeps_files) blind_spot_ = "process " + std::to_string(pid) + " has files open for io_uring alone";
    }
    for (const pid_t tid : process.threads) {
      if (!blind_spot_.empty()) return;
      if (tid != process.speaker && has_own_descriptors(process, tid)) {
        blind_spot_ = "thread " + std::to_string(tid) + " has descriptors of its own";
      }
    }
  }
}

void TreeSnapshot::assume(std::string what) {
  if (std::find(assumed_.begin(), assumed_.end(), what) == assumed_.end()) assumed_.push_back(std::move(what));
}

void TreeSnapshot::assume_idle_runtime(std::string what) {
  const std::size_t before = assumed_.size();
  assume(std::move(what));
  idle_runtimes_ += assumed_.size() - before;
}

const TreeSnapshot::Process* TreeSnapshot::process(pid_t pid) const {
  const auto it = processes_.find(pid);
  return it == processes_.end() ? nullptr : &it->second;
}

const Descriptor* TreeSnapshot::descriptor(pid_t pid, std::int64_t number) const {
  const Process* owner = process(pid);
  if (owner == nullptr) return nullptr;
  const auto& all = owner->descriptors;
  const auto at =
      std::lower_bound(all.begin(), all.end(), number,
                       [](const Descriptor& descriptor, std::int64_t wanted) { return descriptor.number < wanted; });
  return at != all.end() && at->number == number ? &*at : nullptr;
}

std::vector<pid_t> TreeSnapshot::pipe_holders(std::uint64_t inode, End end) const {
  std::vector<pid_t> found;
  const auto it = holders_.find(inode);
  if (it == holders_.end()) return found;
  for (const Holder& holder : it->second) {
    if (has_end(holder.flags, end)) add(holder.pid, &found);
  }
  return found;
}

std::vector<pid_t> TreeSnapshot::socket_holders(std::uint64_t inode) const {
  std::vector<pid_t> found;
  const auto it = holders_.find(inode);
  if (it == holders_.end()) return found;
  for (const Holder& holder : it->second) {
    if ((holder.flags & O_PATH) == 0) add(holder.pid, &found);
  }
  return found;
}

std::vector<pid_t> TreeSnapshot::eventfd_holders(std::optional<std::uint64_t> id) const {
  std::vector<pid_t> found;
  for (const auto& [identity, all] : holders_) {
    if ((identity & kEventIdentity) == 0 || (id && identity != (kEventIdentity | *id))) continue;
    for (const Holder& holder : all) add(holder.pid, &found);
  }
  return found;
}

std::vector<pid_t> TreeSnapshot::terminal_masters(std::uint32_t terminal) const {
  std::vector<pid_t> found;
  const auto it = holders_.find(kTerminalIdentity | terminal);
  if (it == holders_.end() || is_foreign(it->first)) return found;
  for (const Holder& holder : it->second) add(holder.pid, &found);
  return found;
}

std::vector<pid_t> TreeSnapshot::everybody() const {
  std::vector<pid_t> all;
  for (const auto& [pid, process] : processes_) all.push_back(pid);
  return all;
}

std::vector<pid_t> TreeSnapshot::all_but_hosts() const {
  std::vector<pid_t> found;
  for (const auto& [pid, process] : processes_) {
    const bool only_forks = boundary_.hosts.count(pid) != 0 && process.threads.size() == 1;
    if (!only_forks) found.push_back(pid);
  }
  return found;
}

// Forked, or started by multiprocessing: python -c "from multiprocessing.spawn import ...".
bool TreeSnapshot::may_be_worker(const Process& process) const {
  if (process.forked) return true;
  const auto command = proc_->read(std::to_string(process.speaker) + "/cmdline");
  return !command || command->find("multiprocessing") != std::string::npos;
}

// The first process of its program; 0: not known, as one above it has ended. Parents are read one after the other, so
// they could lead in a cycle.
pid_t TreeSnapshot::program_of(pid_t pid) const {
  const Process* found = process(pid);
  for (std::size_t steps = 0; steps < processes_.size() && found != nullptr; ++steps) {
    if (!may_be_worker(*found)) return found->pid;
    found = process(found->parent);
  }
  return 0;
}

std::vector<pid_t> TreeSnapshot::relatives_of(pid_t pid) const {
  const pid_t own = program_of(pid);
  std::vector<pid_t> relatives;
  for (const pid_t other : everybody()) {
    const pid_t program = program_of(other);
    if (own == 0 || program == 0 || program == own) relatives.push_back(other);
  }
  return relatives;
}

bool TreeSnapshot::is_forkserver(const Process& process) {
  if (process.forked || process.speaker == 0) return false;
  const auto [known, is_new] = forkservers_.try_emplace(process.pid);
  if (is_new) known->second = mprun::is_forkserver(proc_, process.speaker);
  return known->second;
}

pid_t TreeSnapshot::starter_of(const Process& started) {
  const Process* parent = process(started.parent);
  return parent != nullptr && started.forked && is_forkserver(*parent) ? parent->parent : started.parent;
}

std::vector<pid_t> TreeSnapshot::started_by(pid_t pid) {
  std::vector<pid_t> found;
  for (const auto& [other, process] : processes_) {
    if (starter_of(process) == pid) found.push_back(other);
  }
  return found;
}

std::vector<pid_t> TreeSnapshot::parent_and_younger(pid_t pid) const {
  const Process& own = processes_.at(pid);
  std::vector<pid_t> found;
  for (const auto& [other, process] : processes_) {
    const bool is_older = process.start_ticks != 0 && process.start_ticks < own.start_ticks;
    if (!is_older || other == own.parent || other == pid) found.push_back(other);
  }
  return found;
}

const UnixSocket* TreeSnapshot::unix_socket(std::uint64_t inode) {
  if (!sockets_) {
    sockets_.emplace();
    for (UnixSocket& socket : proc_->unix_sockets().value_or(std::vector<UnixSocket>())) {
      sockets_->emplace(socket.inode, std::move(socket));
    }
  }
  const auto it = sockets_->find(inode);
  return it == sockets_->end() ? nullptr : &it->second;
}

const std::vector<TcpSocket>& TreeSnapshot::tcp_sockets(pid_t pid) {
  const Process* owner = process(pid);
  const std::string folder = std::to_string(owner != nullptr ? owner->speaker : pid);
  const auto [it, is_new] = tcp_.try_emplace(proc_->link(folder + "/ns/net").value_or(folder));
  if (is_new) {
    for (const char* table : {"/net/tcp", "/net/tcp6"}) {
      auto sockets = parse_tcp(proc_->read(folder + table).value_or(""));
      it->second.insert(it->second.end(), std::move_iterator(sockets.begin()), std::move_iterator(sockets.end()));
    }
  }
  return it->second;
}

const std::vector<Mapping>& TreeSnapshot::maps(pid_t pid) {
  const auto [it, is_new] = maps_.try_emplace(pid);
  if (is_new) {
    const Process* owner = process(pid);
    const auto text = owner != nullptr ? proc_->read(std::to_string(owner->speaker) + "/maps") : std::nullopt;
    if (text) it->second = parse_maps(*text);
  }
  return it->second;
}

bool TreeSnapshot::memory(pid_t pid, std::uint64_t address, void* to, std::size_t size) {
  const Process* owner = process(pid);
  return owner != nullptr && proc_->memory(owner->speaker, address, to, size);
}

// Any two processes may share memory, whatever their parents: clone(CLONE_VM) allows CLONE_PARENT, and orphans get new
// parents. Their address spaces then have the same size while no thread runs: others are not compared.
void TreeSnapshot::find_shared_memory() {
  std::map<pid_t, std::string> sizes;
  for (const auto& [pid, process] : processes_) {
    sharing_memory_[pid] = {pid};
    const std::string statm = proc_->read(std::to_string(process.speaker) + "/statm").value_or("");
    if (!process.moved) sizes[pid] = statm.substr(0, statm.find(' '));
  }
  for (const auto& [one, process] : processes_) {
    for (const auto& [other, second] : processes_) {
      if (other <= one) continue;
      const std::string& size = sizes[one];
      if (!size.empty() && !sizes[other].empty() && size != sizes[other]) continue;
      if (!proc_->same_memory(process.speaker, second.speaker).value_or(true)) continue;
      add(other, &sharing_memory_[one]);
      add(one, &sharing_memory_[other]);
    }
  }
}

std::vector<pid_t> TreeSnapshot::sharing_memory(pid_t pid) {
  if (sharing_memory_.empty()) find_shared_memory();
  return sharing_memory_[pid];
}

const PythonStacks& TreeSnapshot::python(pid_t pid) {
  const auto [it, is_new] = python_.try_emplace(pid);
  if (is_new) it->second = read_python_stacks(proc_, pid);
  return it->second;
}

const PythonThread* TreeSnapshot::python_thread(pid_t pid, pid_t tid) {
  const auto& threads = python(pid).threads;
  const auto found =
      std::find_if(threads.begin(), threads.end(), [tid](const PythonThread& one) { return one.tid == tid; });
  return found == threads.end() ? nullptr : &*found;
}

std::vector<std::string> TreeSnapshot::native_frames(const ThreadSample& thread) {
  auto& stacks = native_[thread.pid];
  if (!stacks) stacks = std::make_shared<NativeStacks>(thread.pid);
  return stacks->of_thread(thread.tid, thread.call.stack_pointer, thread.call.program_counter).frames;
}

bool TreeSnapshot::waits_for_work_of_ranks(pid_t pid) {
  const auto& mapped = maps(pid);
  const bool has_torch = std::any_of(mapped.begin(), mapped.end(), [](const Mapping& mapping) {
    return mapping.path.find("/libtorch_cpu.so") != std::string::npos;
  });
  if (!has_torch) return false;
  return std::any_of(sample_->threads.begin(), sample_->threads.end(), [&](const ThreadSample& thread) {
    if (thread.pid != pid || thread.call.running || call_of(thread.call.number) != Call::kFutex) return false;
    if (python_thread(pid, thread.tid) == nullptr) return false;
    const auto frames = native_frames(thread);
    return std::any_of(frames.begin(), frames.end(),
                       [](const std::string& frame) { return is_wait_for_work_of_ranks(frame); });
  });
}

RankPhase TreeSnapshot::rank_phase(pid_t pid) {
  const auto [it, is_new] = rank_phases_.try_emplace(pid, RankPhase::kNone);
  if (!is_new) return it->second;
  RankPhase phase = mprun::rank_phase(python(pid).threads);
  if (phase == RankPhase::kNone && waits_for_work_of_ranks(pid)) phase = RankPhase::kMet;
  return it->second = phase;
}

const Jvm* TreeSnapshot::jvm(pid_t pid) {
  const auto [it, is_new] = jvms_.try_emplace(pid);
  if (is_new) it->second = read_jvm(proc_, pid, maps(pid));
  return it->second ? &*it->second : nullptr;
}

const GoRuntime* TreeSnapshot::go(pid_t pid) {
  const auto [it, is_new] = go_.try_emplace(pid);
  const Process* owner = is_new ? process(pid) : nullptr;
  if (owner != nullptr && may_be_go(owner->caught_signals)) {
    it->second = read_go_runtime(
        pid, [this, pid](std::uint64_t address, void* to, std::size_t size) { return memory(pid, address, to, size); });
  }
  return it->second ? &*it->second : nullptr;
}

const std::vector<PythonGil>& TreeSnapshot::gils(pid_t pid) {
  const auto [it, is_new] = gils_.try_emplace(pid);
  if (is_new) it->second = python(pid).gils;
  return it->second;
}

const std::vector<FileLock>& TreeSnapshot::file_locks() {
  if (!locks_) locks_ = parse_locks(proc_->read("locks").value_or(""));
  return *locks_;
}

}  // namespace mprun
