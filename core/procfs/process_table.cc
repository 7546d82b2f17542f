#include "procfs/process_table.h"

#include <charconv>
#include <set>
#include <string>

namespace mprun {
namespace {

constexpr std::size_t kMostProcesses = 65536;  // of one worker

}  // namespace

void ProcessTable::look(ProcSource* proc) {
  processes_.clear();
  children_.clear();
  groups_.clear();
  const auto names = proc->list(".");
  if (!names) return;
  for (const std::string& name : *names) {
    pid_t pid = 0;
    const auto [end, fault] = std::from_chars(name.data(), name.data() + name.size(), pid);
    if (fault != std::errc() || end != name.data() + name.size()) continue;
    const auto text = proc->read(name + "/stat");
    auto stat = text ? parse_stat(*text) : std::nullopt;
    if (!stat || stat->id != pid) continue;
    children_.emplace(stat->parent, pid);
    groups_.emplace(stat->group, pid);
    processes_.emplace(pid, std::move(*stat));
  }
}

const StatLine* ProcessTable::find(pid_t pid) const {
  const auto found = processes_.find(pid);
  return found != processes_.end() ? &found->second : nullptr;
}

std::vector<pid_t> ProcessTable::family(pid_t worker) const {
  std::set<pid_t> known;
  std::vector<pid_t> found;
  const auto add = [&](pid_t pid) {
    if (find(pid) != nullptr && found.size() < kMostProcesses && known.insert(pid).second) found.push_back(pid);
  };
  add(worker);
  if (found.empty()) return found;
  for (auto [at, end] = groups_.equal_range(worker); at != end; ++at) add(at->second);
  for (std::size_t i = 0; i < found.size(); ++i) {
    for (auto [at, end] = children_.equal_range(found[i]); at != end; ++at) add(at->second);
  }
  return found;
}

}  // namespace mprun
