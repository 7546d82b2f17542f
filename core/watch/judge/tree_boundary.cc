#include "watch/judge/tree_boundary.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "procfs/text_scan.h"
#include "watch/sample/alarm.h"

namespace mprun {
namespace {

/// What a process has open, by identity_of(); nullopt: it may not be read.
std::optional<std::map<int, std::uint64_t>> open_identities(ProcSource* proc, pid_t pid) {
  const auto descriptors = read_descriptors(proc, pid);
  if (!descriptors) return std::nullopt;
  std::map<int, std::uint64_t> identities;
  for (const Descriptor& descriptor : *descriptors) {
    if (const std::uint64_t identity = identity_of(descriptor); identity != 0) {
      identities.emplace(descriptor.number, identity);
    }
  }
  return identities;
}

/// Pipes of which the tree has both ends: one of its processes has made them.
std::set<std::uint64_t> own_pipes(ProcSource* proc, const std::vector<pid_t>& tree) {
  std::set<std::uint64_t> read, written, both;
  for (const pid_t pid : tree) {
    for (const Descriptor& descriptor : read_descriptors(proc, pid).value_or(std::vector<Descriptor>())) {
      if (descriptor.kind != Descriptor::Kind::kPipe) continue;
      const auto mode = descriptor.flags & O_ACCMODE;
      if (mode == O_RDONLY) read.insert(descriptor.inode);
      if (mode == O_WRONLY) written.insert(descriptor.inode);
    }
  }
  std::set_intersection(read.begin(), read.end(), written.begin(), written.end(), std::inserter(both, both.end()));
  return both;
}

bool begins_with(std::string_view text, std::string_view begin) { return text.substr(0, begin.size()) == begin; }

/// Decides whether other processes may have memory of the tree too. Reads the maps of the machine on first use.
class FilesInMemory {
 public:
  FilesInMemory(ProcSource* proc, pid_t root, std::vector<pid_t> others)
      : proc_(proc), root_(root), others_(std::move(others)) {}

  bool is_shared(const Mapping& mapping) {
    const std::string_view path = mapping.path;
    // Another process could map it at any time, by its descriptor or its number.
    if (begins_with(path, "/memfd:") || begins_with(path, "/SYSV")) return true;
    // A semaphore is mapped before it gets its name, so the mapping does not show whether it still has one.
    if (path.find("/sem.") != std::string_view::npos && has_name(mapping)) return true;
    return mapped_by_others().count({mapping.device, mapping.inode}) != 0;
  }

 private:
  bool has_name(const Mapping& mapping) {
    const auto names = proc_->names_of(root_, "/dev/shm", mapping.inode);
    return !names || !names->empty();
  }

  const std::set<std::pair<std::uint64_t, std::uint64_t>>& mapped_by_others() {
    if (!files_) {
      files_.emplace();
      for (const pid_t pid : others_) {
        for (const Mapping& mapping : parse_maps(proc_->read(std::to_string(pid) + "/maps").value_or(""))) {
          if (mapping.shared && mapping.inode != 0) files_->emplace(mapping.device, mapping.inode);
        }
      }
    }
    return *files_;
  }

  ProcSource* proc_;
  pid_t root_;
  std::vector<pid_t> others_;
  std::optional<std::set<std::pair<std::uint64_t, std::uint64_t>>> files_;
};

}  // namespace

TreeBoundary boundary_of_tree(ProcSource* proc, pid_t root, const std::vector<pid_t>& tree) {
  TreeBoundary found;
  found.why_alarm_may_come = [proc](pid_t pid, pid_t tid) {
    return why_alarm_may_come(proc, pid, tid, monotonic_now());
  };
  found.closed = false;
  const std::set<pid_t> inside(tree.begin(), tree.end());
  const auto text = proc->read(std::to_string(root) + "/stat");
  const auto stat = text ? parse_stat(*text) : std::nullopt;
  bool parent_read = false;
  std::vector<pid_t> others;
  for (const std::string& name : proc->list(".").value_or(std::vector<std::string>())) {
    const auto pid = parse_id(name);
    const auto identities = pid && inside.count(*pid) == 0 ? open_identities(proc, *pid) : std::nullopt;
    if (!identities) continue;
    others.push_back(*pid);
    if (stat && stat->parent == *pid) parent_read = true;
    for (const auto& [number, identity] : *identities) found.foreign.insert(identity);
  }
  const std::set<std::uint64_t> own = own_pipes(proc, tree);
  for (const auto& [number, identity] : open_identities(proc, root).value_or(std::map<int, std::uint64_t>())) {
    const bool is_stream = number <= STDERR_FILENO && own.count(identity) == 0;
    if (is_stream || !parent_read) found.foreign.insert(identity);
  }
  // After an exec, a process keeps no memory of its parent.
  if (parent_read || (stat && !stat->forked)) {
    found.shares_memory = [memory = std::make_shared<FilesInMemory>(proc, root, std::move(others))](
                              const Mapping& mapping) { return memory->is_shared(mapping); };
  }
  return found;
}

}  // namespace mprun
