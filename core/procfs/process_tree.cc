#include "procfs/process_tree.h"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <memory>
#include <unordered_map>

#include "os/fd.h"
#include "os/uninterrupted.h"
#include "procfs/process_facts.h"

namespace mprun {
namespace {

std::optional<StatLine> read_stat(int root, pid_t pid) {
  const std::string name = std::to_string(pid) + "/stat";
  const Fd file = open_fd_at(root, name, O_RDONLY);
  if (!file) return std::nullopt;
  std::array<char, 2048> text{};  // 52 numbers of at most 20 digits, and a name
  const ssize_t n = uninterrupted([&] { return read(file.get(), text.data(), text.size()); });
  return n > 0 ? parse_stat({text.data(), static_cast<std::size_t>(n)}) : std::nullopt;
}

// Not so where /proc is that of another PID namespace: its numbers are those of strangers.
bool shows_us(const std::string& proc_root) {
  std::array<char, 16> pid{};
  const ssize_t size = readlink((proc_root + "/self").c_str(), pid.data(), pid.size());
  return size > 0 && std::string_view(pid.data(), static_cast<std::size_t>(size)) == std::to_string(getpid());
}

}  // namespace

std::vector<pid_t> descendants(pid_t ancestor, const std::string& proc_root) {
  if (ancestor == getpid() && !shows_us(proc_root)) return {};
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(opendir(proc_root.c_str()), closedir);
  if (!folder) return {};
  std::unordered_map<pid_t, std::vector<pid_t>> children;
  while (const dirent* entry = readdir(folder.get())) {
    const std::string_view name = entry->d_name;
    pid_t pid = 0;
    if (std::from_chars(name.data(), name.data() + name.size(), pid).ptr != name.data() + name.size()) continue;
    const auto stat = read_stat(dirfd(folder.get()), pid);
    // A zombie has no living children: they were reparented when it died.
    if (stat && stat->state != 'Z') children[stat->parent].push_back(pid);
  }
  std::vector<pid_t> found = children[ancestor];
  for (std::size_t i = 0; i < found.size(); ++i) {
    const auto it = children.find(found[i]);
    if (it != children.end()) found.insert(found.end(), it->second.begin(), it->second.end());
  }
  return found;
}

std::vector<pid_t> children() {
  const std::string name = "/proc/self/task/" + std::to_string(gettid()) + "/children";
  const Fd file = open_fd(name, O_RDONLY);
  std::vector<pid_t> found;
  std::array<char, 4096> text{};  // of more children the others come later
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
  const Fd file = open_fd(proc_root + "/" + std::to_string(pid) + "/cmdline", O_RDONLY);
  std::array<char, 4096> text{};
  const ssize_t n = file ? uninterrupted([&] { return read(file.get(), text.data(), text.size()); }) : 0;
  return {text.data(), n > 0 ? static_cast<std::size_t>(n) : 0};
}

}  // namespace mprun
