#include "procfs/process_tree.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <unordered_map>
#include <utility>

#include "os/fd.h"
#include "os/uninterrupted.h"
#include "procfs/process_table.h"
#include "procfs/text_scan.h"

namespace mprun {
namespace {

// Deeper than any tree of processes; a bound for one that changes all the time.
constexpr int kMostSteps = 1000;

std::string read_small(const std::string& path) {
  const Fd file = open_fd(path, O_RDONLY);
  std::array<char, 4096> text{};
  const ssize_t n = file ? uninterrupted([&] { return read(file.get(), text.data(), text.size()); }) : 0;
  return {text.data(), n > 0 ? static_cast<std::size_t>(n) : 0};
}

}  // namespace

bool shows_our_numbers(ProcSource* proc) {
  if (proc->link("self") != std::to_string(getpid())) return false;
  // The number alone may be the same by chance: a process of an inner namespace has one for each that contains it.
  const auto text = proc->read("self/status");
  const auto status = text ? parse_status(*text) : std::nullopt;
  return status && status->namespaces == 1;
}

std::optional<StatLine> read_stat(pid_t pid) {
  return parse_stat(read_small("/proc/" + std::to_string(pid) + "/stat"));
}

namespace {

std::vector<Descendant> hold_below(pid_t root) {
  const auto proc = live_proc();
  if (!shows_our_numbers(proc.get())) return {};
  ProcessTable table;
  table.look(proc.get());
  std::unordered_map<pid_t, ProcessRef> held;
  std::vector<Descendant> found;
  for (const pid_t pid : table.tree(root, false)) {
    auto process = ProcessRef::open(pid);
    const auto stat = process ? read_stat(pid) : std::nullopt;
    if (!stat || !process->exists()) continue;  // what was read is its own, if it still has the number
    if (stat->parent != root) {
      const auto parent = held.find(stat->parent);
      if (parent == held.end() || parent->second.has_ended()) continue;
    }
    held.emplace(pid, *process);
    found.push_back({std::move(*process), stat->group});
  }
  return found;
}

}  // namespace

std::vector<Descendant> hold_descendants() { return hold_below(getpid()); }

std::vector<ProcessRef> hold_tree(const ProcessRef& root) {
  std::vector<ProcessRef> found{root};
  for (Descendant& one : hold_below(root.pid())) found.push_back(std::move(one.process));
  if (root.has_ended()) found.clear();  // its number may have been another process's
  return found;
}

// A parent's number is trusted if the child names it before and after it was opened: no process gets a parent that is
// younger than itself, so it was one process all the time.
bool may_descend_from_us(const ProcessRef& process) {
  if (const auto proc = live_proc(); !shows_our_numbers(proc.get())) return true;
  ProcessRef at = process;
  for (int step = 0; step < kMostSteps; ++step) {
    const auto before = read_stat(at.pid());
    if (!before || !at.exists()) {
      if (at == process) return false;
      at = process;  // an ancestor has ended: its children have another parent now
      continue;
    }
    if (before->parent == getpid()) return true;
    if (before->parent <= 1) return false;
    const auto parent = ProcessRef::open(before->parent);
    const auto after = read_stat(at.pid());
    if (parent && after && after->parent == before->parent) at = *parent;  // else it has got another parent
  }
  return false;
}

std::optional<pid_t> pid_of_pidfd(int pidfd) {
  if (const auto proc = live_proc(); !shows_our_numbers(proc.get())) return std::nullopt;
  const std::string text = read_small("/proc/self/fdinfo/" + std::to_string(pidfd));
  if (text.empty()) return std::nullopt;
  for (TextScan lines(text); !lines.at_end();) {
    TextScan line(lines.line());
    pid_t pid = 0;
    if (line.literal("Pid:") && line.number(&pid)) return pid;
  }
  return 0;
}

std::vector<pid_t> children() {
  if (const auto proc = live_proc(); !shows_our_numbers(proc.get())) return {};
  const Fd file = open_fd("/proc/thread-self/children", O_RDONLY);
  std::vector<pid_t> found;
  std::array<char, 4096> text{};  // further children come later
  const ssize_t n = file ? uninterrupted([&] { return read(file.get(), text.data(), text.size()); }) : 0;
  const char* at = text.data();
  const char* end = at + std::max<ssize_t>(n, 0);
  while (at < end) {
    pid_t pid = 0;
    const auto [stop, error] = std::from_chars(at, end, pid);
    if (error != std::errc() || stop == end) break;  // the last number may have been cut
    found.push_back(pid);
    at = stop + 1;
  }
  return found;
}

std::string command_line(pid_t pid, const std::string& proc_root) {
  return read_small(proc_root + "/" + std::to_string(pid) + "/cmdline");
}

}  // namespace mprun
