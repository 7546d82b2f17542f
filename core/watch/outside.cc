#include "watch/outside.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <utility>

namespace mprun {
namespace {

std::optional<pid_t> parse_pid(std::string_view text) {
  pid_t pid = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), pid);
  return error == std::errc() && stop == text.data() + text.size() ? std::optional(pid) : std::nullopt;
}

/// What a process has open, but for what fdinfo says; nullopt: it may not be looked into.
std::optional<std::vector<Descriptor>> open_descriptors(ProcSource* proc, pid_t pid) {
  const std::string folder = std::to_string(pid) + "/fd/";
  const auto names = proc->list(std::to_string(pid) + "/fd");
  if (!names) return std::nullopt;
  std::vector<Descriptor> descriptors;
  for (const std::string& name : *names) {
    const auto number = parse_pid(name);
    std::string path = folder;
    path += name;
    const auto target = number ? proc->link(path) : std::nullopt;
    if (target) descriptors.push_back(parse_descriptor(*number, *target));
  }
  return descriptors;
}

void add_foreign(const Descriptor& descriptor, Outside* found) {
  if (descriptor.inode != 0) found->foreign.insert(descriptor.inode);
  if (descriptor.kind == Descriptor::Kind::kFile) found->foreign_files.insert(descriptor.target);
}

bool begins_with(std::string_view text, std::string_view begin) { return text.substr(0, begin.size()) == begin; }

/// Answers whether memory of the tree may be somebody else's too. Reads the maps of the machine when it is first asked.
class SharedMemory {
 public:
  SharedMemory(ProcSource* proc, pid_t root, std::vector<pid_t> others)
      : proc_(proc), root_(root), others_(std::move(others)) {}

  bool is_shared(const Mapping& mapping) {
    const std::string_view path = mapping.path;
    // By its descriptor, or its number, somebody could map it any time.
    if (begins_with(path, "/memfd:") || begins_with(path, "/SYSV")) return true;
    // A semaphore is mapped before it gets its name, so that the mapping does not tell whether it still has one.
    if (path.find("/sem.") != std::string_view::npos && has_named_semaphores()) return true;
    return mapped_by_others().count({mapping.device, mapping.inode}) != 0;
  }

 private:
  bool has_named_semaphores() {
    if (!named_) {
      const auto names = proc_->list(std::to_string(root_) + "/root/dev/shm");
      named_ = !names || std::any_of(names->begin(), names->end(),
                                     [](const std::string& name) { return begins_with(name, "sem."); });
    }
    return *named_;
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
  std::optional<bool> named_;
  std::optional<std::set<std::pair<std::uint64_t, std::uint64_t>>> files_;
};

}  // namespace

Outside rest_of_the_machine(ProcSource* proc, pid_t root, const std::vector<pid_t>& tree) {
  Outside found;
  found.closed = false;
  const std::set<pid_t> inside(tree.begin(), tree.end());
  const auto text = proc->read(std::to_string(root) + "/stat");
  const auto stat = text ? parse_stat(*text) : std::nullopt;
  bool parent_read = false;
  std::vector<pid_t> others;
  for (const std::string& name : proc->list(".").value_or(std::vector<std::string>())) {
    const auto pid = parse_pid(name);
    const auto held = pid && inside.count(*pid) == 0 ? open_descriptors(proc, *pid) : std::nullopt;
    if (!held) continue;
    others.push_back(*pid);
    if (stat && stat->parent == *pid) parent_read = true;
    for (const Descriptor& descriptor : *held) add_foreign(descriptor, &found);
  }
  for (const Descriptor& descriptor : open_descriptors(proc, root).value_or(std::vector<Descriptor>())) {
    if (descriptor.number <= STDERR_FILENO || !parent_read) add_foreign(descriptor, &found);
  }
  // A process that has executed its program keeps no memory of its parent's.
  if (parent_read || (stat && !stat->forked)) {
    found.shares_memory = [memory = std::make_shared<SharedMemory>(proc, root, std::move(others))](
                              const Mapping& mapping) { return memory->is_shared(mapping); };
  }
  return found;
}

}  // namespace mprun
