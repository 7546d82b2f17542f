// The part of TreeSnapshot that looks at processes outside the tree. It reads the mappings of all processes that may be
// read: once per TreeSnapshot, and only on demand.
#include <unistd.h>

#include <algorithm>
#include <array>

#include "procfs/text_scan.h"
#include "watch/judge/tree_snapshot.h"

namespace mprun {
namespace {

constexpr std::string_view kSharedMemory = "/dev/shm";

// Prefixes of the random names that Python's multiprocessing and joblib's loky give their semaphores and share only
// with their own workers. Any other name may be known outside. (glibc's sem_open() puts "sem." before it.)
bool is_private_name(std::string_view name) {
  constexpr std::array<std::string_view, 2> kPrefixes{"sem.mp-", "sem.loky-"};
  return std::any_of(kPrefixes.begin(), kPrefixes.end(),
                     [name](std::string_view prefix) { return name.substr(0, prefix.size()) == prefix; });
}

// A mapping's rights are its second word: "7f00-7f01 rw-s ...".
bool is_shared_line(std::string_view line) {
  constexpr std::size_t kSharedAt = 4;
  const std::size_t blank = line.find(' ');
  return blank != std::string_view::npos && line.size() > blank + kSharedAt && line[blank + kSharedAt] == 's';
}

std::vector<pid_t> all_processes(ProcSource* proc) {
  std::vector<pid_t> all;
  for (const std::string& name : proc->list(".").value_or(std::vector<std::string>())) {
    pid_t pid = 0;
    TextScan scan(name);
    if (scan.number(&pid) && scan.at_end()) all.push_back(pid);
  }
  return all;
}

// Files have names, by which they are looked for.
bool may_be_passed_on(const Descriptor& descriptor) {
  const bool is_file = descriptor.kind == Descriptor::Kind::kFile && !descriptor.terminal;
  return !is_file && identity_of(descriptor) != 0;
}

}  // namespace

bool TreeSnapshot::is_mapped_outside(const Mapping& mapping) {
  if (!mapped_outside_) {
    mapped_outside_.emplace();
    for (const pid_t pid : all_processes(proc_)) {
      if (processes_.count(pid) != 0) continue;
      const std::string maps = proc_->read(std::to_string(pid) + "/maps").value_or("");
      for (TextScan scan(maps); !scan.at_end();) {
        const std::string_view line = scan.line();
        if (!is_shared_line(line)) continue;
        for (const Mapping& shared : parse_maps(line)) mapped_outside_->insert({shared.device, shared.inode});
      }
    }
  }
  return mapped_outside_->count({mapping.device, mapping.inode}) != 0;
}

bool TreeSnapshot::is_open_outside(const Descriptor& descriptor) {
  const auto [known, is_new] = open_outside_.try_emplace(identity_of(descriptor), false);
  if (!is_new) return known->second;
  for (const pid_t pid : all_processes(proc_)) {
    if (processes_.count(pid) != 0) continue;
    const std::string links = std::to_string(pid) + "/fd/";
    const std::string infos = std::to_string(pid) + "/fdinfo/";
    for (const std::string& name : proc_->list(std::to_string(pid) + "/fd").value_or(std::vector<std::string>())) {
      if (proc_->link(links + name) != descriptor.target) continue;
      Descriptor other;
      parse_descriptor_info(proc_->read(infos + name).value_or(""), &other);
      known->second = known->second || other.info_inode == descriptor.info_inode;
    }
  }
  return known->second;
}

// Timerfds have no number by which they could be recognised.
bool TreeSnapshot::is_timer_of_tree(pid_t holder, int number) {
  for (const auto& [pid, process] : processes_) {
    for (const Descriptor& descriptor : process.descriptors) {
      const bool is_timer = descriptor.kind == Descriptor::Kind::kTimerfd;
      if (is_timer && proc_->same_file(process.speaker, descriptor.number, holder, number).value_or(true)) return true;
    }
  }
  return false;
}

// The boundary of a tree that mprun has not started knows them already.
bool TreeSnapshot::find_holders_outside() {
  if (knows_holders_outside_ || !boundary_.closed) return false;
  knows_holders_outside_ = true;
  std::set<std::string_view> targets;
  for (const auto& [pid, process] : processes_) {
    for (const Descriptor& descriptor : process.descriptors) {
      const bool is_timer = descriptor.kind == Descriptor::Kind::kTimerfd;
      if (is_timer || may_be_passed_on(descriptor)) targets.insert(descriptor.target);
    }
  }
  bool found = false;
  for (const pid_t pid : all_processes(proc_)) {
    if (processes_.count(pid) != 0) continue;
    const std::string links = std::to_string(pid) + "/fd/";
    const std::string infos = std::to_string(pid) + "/fdinfo/";
    for (const std::string& name : proc_->list(std::to_string(pid) + "/fd").value_or(std::vector<std::string>())) {
      const auto target = proc_->link(links + name);
      if (!target || targets.count(*target) == 0) continue;
      Descriptor held = parse_descriptor(parse_id(name).value_or(-1), *target);
      if (held.kind == Descriptor::Kind::kTimerfd) {
        if (!has_timer_outside_ && is_timer_of_tree(pid, held.number)) found = has_timer_outside_ = true;
        continue;
      }
      if (held.inode == 0) parse_descriptor_info(proc_->read(infos + name).value_or(""), &held);
      const std::uint64_t identity = identity_of(held);
      if (holders_.count(identity) != 0) found = boundary_.foreign.insert(identity).second || found;
    }
  }
  return found;
}

bool TreeSnapshot::lives_outside(pid_t pid) const {
  return pid != 0 && process(pid) == nullptr && proc_->read(std::to_string(pid) + "/stat").has_value();
}

// A file that still has a name may be opened by any process of the tree that gets the name, as spawned workers do.
TreeSnapshot::Sharers TreeSnapshot::sharers_of(pid_t pid, const Mapping& mapping) {
  bool has_name = false;
  Sharers sharers;
  find_sharers_outside(pid, mapping, &has_name, &sharers);
  if (!sharers.why_live.empty()) return sharers;
  for (const auto& [other, process] : processes_) {
    const auto& mapped = maps(other);
    if (mapped.empty()) sharers.why_live = "the memory of process " + std::to_string(other) + " cannot be read";
    const bool maps_it = std::any_of(mapped.begin(), mapped.end(), [&mapping](const Mapping& one) {
      return one.inode == mapping.inode && one.device == mapping.device;
    });
    const bool has_it_open =
        std::any_of(process.descriptors.begin(), process.descriptors.end(), [&mapping](const Descriptor& descriptor) {
          return descriptor.kind == Descriptor::Kind::kFile && descriptor.info_inode == mapping.inode;
        });
    if (has_name || maps_it || has_it_open) sharers.processes.push_back(other);
  }
  return sharers;
}

bool TreeSnapshot::may_share_with_outside(pid_t pid) {
  if (boundary_.closed) return false;
  const Process* const one = process(pid);
  if (one == nullptr || !boundary_.shares_memory) return true;
  const auto& mapped = maps(pid);
  return std::any_of(mapped.begin(), mapped.end(),
                     [&](const Mapping& mapping) {
                       return mapping.shared && mapping.writable && boundary_.shares_memory(mapping);
                     }) ||
         std::any_of(one->descriptors.begin(), one->descriptors.end(), [&](const Descriptor& descriptor) {
           return descriptor.number > STDERR_FILENO && descriptor.kind == Descriptor::Kind::kPipe &&
                  is_foreign(descriptor);
         });
}

std::optional<SyncWord> TreeSnapshot::sync_word(const Mapping& mapping, std::uint64_t address) const {
  if (boundary_.sync == nullptr || !boundary_.sync->is_mapping(mapping.device, mapping.inode)) return std::nullopt;
  return boundary_.sync->find_word(address - mapping.begin + mapping.offset);
}

// Any process of the job finds that memory, whether it has mapped it already or not. mprun changes nothing there, and a
// thread that it wakes goes to sleep again.
TreeSnapshot::Sharers TreeSnapshot::sharers_of_sync() const {
  Sharers sharers;
  sharers.why_live = blind_spot_;
  if (boundary_.may_start) sharers.why_live = "mprun will start another process";
  sharers.processes = all_but_hosts();
  return sharers;
}

pid_t TreeSnapshot::process_of_thread(pid_t tid) const {
  for (const auto& [pid, process] : processes_) {
    if (std::find(process.threads.begin(), process.threads.end(), tid) != process.threads.end()) return pid;
  }
  return 0;
}

void TreeSnapshot::find_sharers_outside(pid_t pid, const Mapping& mapping, bool* has_name, Sharers* sharers) {
  if (!boundary_.closed && (!boundary_.shares_memory || boundary_.shares_memory(mapping))) {
    sharers->why_live = "others may share the memory of the lock";
  } else if (!blind_spot_.empty()) {
    sharers->why_live = blind_spot_;
  } else if (mapping.inode == 0) {
    sharers->why_live = "the memory of the lock is of no file";
  }
  std::string_view path = mapping.path;
  const bool deleted = path.size() > kDeleted.size() && path.substr(path.size() - kDeleted.size()) == kDeleted;
  if (deleted) path.remove_suffix(kDeleted.size());
  // Memory without a file: no descriptor leads to it, so only fork() can share it.
  if (!sharers->why_live.empty() || (deleted && path == "/dev/zero")) return;
  if (is_mapped_outside(mapping)) sharers->why_live = "a process outside has the lock too";
  // For files elsewhere, memfds and System V memory, it is not known which others were given them, or know their names.
  *has_name = true;
  sharers->why_reachable = "others may know the memory of the lock";
  const std::size_t slash = path.rfind('/');
  if (slash == std::string_view::npos || path.substr(0, slash) != kSharedMemory) return;
  // "(deleted)" refers to the name by which it was mapped. sem_open() maps a new semaphore by a name that it removes
  // again, after it has given it the final one.
  const Process* owner = process(pid);
  const auto names =
      owner != nullptr ? proc_->names_of(owner->speaker, std::string(kSharedMemory), mapping.inode) : std::nullopt;
  if (!names) {
    sharers->why_live = "the names of the lock are not known";
    return;
  }
  *has_name = !deleted || !names->empty();
  const bool is_private = std::all_of(names->begin(), names->end(), is_private_name) &&
                          (deleted || is_private_name(path.substr(slash + 1)));
  sharers->why_reachable = is_private ? "" : "the lock has a name that others may know";
}

// If /proc hides the processes of others, a thread's list of its children still names them. A process that loses its
// parent becomes a child of one of the tree, or of mprun, whose children are the roots of the tree.
std::string TreeSnapshot::why_tree_is_not_whole() {
  std::set<pid_t> parents;
  for (const auto& [pid, process] : processes_) parents.insert({process.parent, pid});
  for (const pid_t parent : parents) {
    const std::string tasks = std::to_string(parent) + "/task";
    const auto tids = proc_->list(tasks);
    if (!tids) return "the processes of others are hidden";
    for (const std::string& tid : *tids) {
      std::string file = tasks;
      file.append("/").append(tid).append("/children");
      const auto children = proc_->read(file);
      if (!children) return "the processes of others are hidden";
      TextScan scan(*children);
      for (pid_t child = 0; scan.number(&child);) {
        if (processes_.count(child) == 0 && !proc_->read(std::to_string(child) + "/stat")) {
          return "process " + std::to_string(child) + " is hidden (another user's)";
        }
      }
    }
  }
  return {};
}

bool TreeSnapshot::is_tracer(pid_t pid) {
  if (!tracers_) {
    tracers_.emplace();
    for (const pid_t traced : all_processes(proc_)) {
      const auto text = proc_->read(std::to_string(traced) + "/status");
      const auto status = text ? parse_status(*text) : std::nullopt;
      if (status && status->tracer != 0) tracers_->insert(status->tracer);
    }
  }
  const Process* tracer = process(pid);
  return tracer != nullptr && std::any_of(tracer->threads.begin(), tracer->threads.end(),
                                          [this](pid_t tid) { return tracers_->count(tid) != 0; });
}

// The start time of a process is known to a tick, and what a script makes just before it starts mprun is hardly older:
// it must not seem younger.
Nanos TreeSnapshot::age() const {
  if (boundary_.begun != 0) return wall_now() - boundary_.begun;
  const Nanos tick = kNanosPerSecond / sysconf(_SC_CLK_TCK);
  Nanos oldest = 0;
  for (const auto& [pid, process] : processes_) {
    const auto text = proc_->read(std::to_string(pid) + "/stat");
    const auto stat = text ? parse_stat(*text) : std::nullopt;
    if (stat) oldest = std::max(oldest, age_of(*stat));
  }
  return std::max<Nanos>(oldest - tick, 0);
}

}  // namespace mprun
