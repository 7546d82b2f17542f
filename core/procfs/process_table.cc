#include "procfs/process_table.h"

#include <algorithm>
#include <array>
#include <set>
#include <string>
#include <string_view>

#include "procfs/text_scan.h"

namespace mprun {
namespace {

/// Programs that adopt and start what does not belong together (comm of their processes).
constexpr std::array<std::string_view, 10> kManagers = {
    "systemd",         "init",   "tini",      "dumb-init", "docker-init", "catatonit",
    "containerd-shim", "conmon", "s6-svscan", "runit"};

bool is_manager(const StatLine& process) {
  return std::find(kManagers.begin(), kManagers.end(), process.name) != kManagers.end();
}

/// Nobody may read this link of a thread of the kernel.
bool may_look_into(ProcSource* proc, pid_t pid) { return proc->link(std::to_string(pid) + "/exe").has_value(); }

constexpr std::size_t kMostProcesses = 65536;  // of one worker

// A zombie has ended, unless it is the first thread of a process whose other threads go on.
bool has_ended(ProcSource* proc, const StatLine& stat) {
  if (stat.state == 'X') return true;
  if (stat.state != 'Z') return false;
  const auto threads = proc->list(std::to_string(stat.id) + "/task");
  return !threads || threads->size() <= 1;
}

/// Calls `visit` with the second of each pair whose first is `key`.
template <typename Visit>
void each_of(const std::vector<std::pair<pid_t, pid_t>>& pairs, pid_t key, const Visit& visit) {
  const auto begin = std::lower_bound(pairs.begin(), pairs.end(), std::pair<pid_t, pid_t>{key, 0});
  for (auto at = begin; at != pairs.end() && at->first == key; ++at) visit(at->second);
}

}  // namespace

void ProcessTable::look(ProcSource* proc) {
  processes_.clear();
  children_.clear();
  groups_.clear();
  const auto names = proc->list(".");
  if (!names) return;
  for (const std::string& name : *names) {
    const auto pid = parse_id(name);
    if (!pid) continue;
    const auto text = proc->read(name + "/stat");
    auto stat = text ? parse_stat(*text) : std::nullopt;
    if (!stat || stat->id != pid) continue;
    children_.emplace_back(stat->parent, *pid);
    groups_.emplace_back(stat->group, *pid);
    const bool ended = has_ended(proc, *stat);
    processes_.push_back({std::move(*stat), ended});
  }
  std::sort(children_.begin(), children_.end());
  std::sort(groups_.begin(), groups_.end());
  std::sort(processes_.begin(), processes_.end(), [](const Entry& a, const Entry& b) { return a.stat.id < b.stat.id; });
}

const ProcessTable::Entry* ProcessTable::entry(pid_t pid) const {
  const auto found = std::lower_bound(processes_.begin(), processes_.end(), pid,
                                      [](const Entry& process, pid_t id) { return process.stat.id < id; });
  return found != processes_.end() && found->stat.id == pid ? &*found : nullptr;
}

const StatLine* ProcessTable::find(pid_t pid) const {
  const Entry* found = entry(pid);
  return found != nullptr ? &found->stat : nullptr;
}

std::vector<pid_t> ProcessTable::family(pid_t worker) const {
  std::set<pid_t> known;
  std::vector<pid_t> found;
  const auto add = [&](pid_t pid) {
    if (find(pid) != nullptr && found.size() < kMostProcesses && known.insert(pid).second) found.push_back(pid);
  };
  add(worker);
  if (found.empty()) return found;
  each_of(groups_, worker, add);
  for (std::size_t i = 0; i < found.size(); ++i) each_of(children_, found[i], add);
  return found;
}

std::vector<pid_t> ProcessTable::tree(pid_t root, bool with_root, std::vector<pid_t>* ended) const {
  std::vector<pid_t> found{root};
  if (ended != nullptr) ended->clear();
  for (std::size_t i = 0; i < found.size(); ++i) {
    each_of(children_, found[i], [&](pid_t child) {
      if (child == root) return;  // numbers reused during the look may form a cycle
      if (!entry(child)->ended) {
        found.push_back(child);
      } else if (ended != nullptr) {
        ended->push_back(child);
      }
    });
  }
  if (!with_root) found.erase(found.begin());
  return found;
}

std::vector<pid_t> ProcessTable::all() const {
  std::vector<pid_t> living;
  for (const Entry& process : processes_) {
    if (!process.ended) living.push_back(process.stat.id);
  }
  return living;
}

std::vector<pid_t> process_tree(ProcSource* proc, pid_t root, bool with_root, std::vector<pid_t>* ended) {
  ProcessTable table;
  table.look(proc);
  return table.tree(root, with_root, ended);
}

std::vector<pid_t> tree_roots(ProcSource* proc) {
  ProcessTable table;
  table.look(proc);
  const auto is_of_a_tree = [&](pid_t pid) {
    const StatLine* process = table.find(pid);
    return process != nullptr && !is_manager(*process) && may_look_into(proc, pid);
  };
  std::vector<pid_t> roots;
  for (const pid_t pid : table.all()) {
    if (is_of_a_tree(pid) && !is_of_a_tree(table.find(pid)->parent)) roots.push_back(pid);
  }
  return roots;
}

}  // namespace mprun
