#include "procfs/memory_room.h"

#include <algorithm>
#include <array>
#include <fstream>
#include <limits>
#include <optional>
#include <sstream>

#include "procfs/text_scan.h"

namespace mprun {
namespace {

constexpr std::size_t kDeepest = 64;                                                // of control groups
constexpr std::uint64_t kUnlimited = std::numeric_limits<std::int64_t>::max() / 2;  // version 1 says so by its size

std::string contents(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

std::optional<std::uint64_t> number_in(const std::string& path) {
  const std::string text = contents(path);
  std::uint64_t value = 0;
  TextScan scan(text);
  return scan.number(&value) ? std::optional(value) : std::nullopt;  // "max" is none
}

/// The number behind `key` at the beginning of a line.
std::optional<std::uint64_t> number_of(const std::string& text, std::string_view key) {
  for (TextScan scan(text); !scan.at_end();) {
    TextScan line(scan.line());
    std::uint64_t value = 0;
    if (line.word() == key && line.number(&value)) return value;
  }
  return std::nullopt;
}

/// The names of one version's files in a control group's folder.
struct Hierarchy {
  std::string folder, group;
  const char *limit, *used, *cache;
};

/// What a control group leaves; the page cache, which the kernel can take back, counts as free.
void look_at(const Hierarchy& hierarchy, const std::string& group, MemoryRoom* room) {
  const std::string folder = hierarchy.folder + group;
  const auto limit = number_in(folder + "/" + hierarchy.limit);
  const auto used = number_in(folder + "/" + hierarchy.used);
  if (!limit || !used || *limit >= kUnlimited) return;
  const std::uint64_t cache = number_of(contents(folder + "/memory.stat"), hierarchy.cache).value_or(0);
  const std::uint64_t kept = *used - std::min(*used, cache);
  const std::uint64_t left = *limit - std::min(*limit, kept);
  if (left >= room->bytes) return;
  room->bytes = left;
  room->source = "the memory limit of the control group " + (group.empty() ? std::string("/") : group);
}

/// The group and those around it; in a container its own folder may be the hierarchy's root.
void look_upwards(const Hierarchy& hierarchy, MemoryRoom* room) {
  std::string group = hierarchy.group == "/" ? "" : hierarchy.group;
  for (std::size_t i = 0; i < kDeepest; ++i) {
    look_at(hierarchy, group, room);
    if (group.empty()) return;
    group.erase(std::min(group.rfind('/'), group.size()));
  }
}

}  // namespace

MemoryRoom memory_room(const std::string& root) {
  MemoryRoom room{std::numeric_limits<std::uint64_t>::max(), ""};
  const auto available = number_of(contents(root + "/proc/meminfo"), "MemAvailable:");
  if (available && *available < room.bytes / 1024) room = {*available * 1024, "MemAvailable in /proc/meminfo"};
  const std::string groups = contents(root + "/proc/self/cgroup");
  for (TextScan scan(groups); !scan.at_end();) {  // "4:memory:/a/b", "0::/a/b"
    const std::string line(scan.line());
    const std::size_t first = line.find(':');
    const std::size_t second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = "," + line.substr(first + 1, second - first - 1) + ",";
    const std::string group = line.substr(second + 1);
    if (controllers == ",,") {
      for (const char* folder : {"/sys/fs/cgroup", "/sys/fs/cgroup/unified"}) {
        look_upwards({root + folder, group, "memory.max", "memory.current", "inactive_file"}, &room);
      }
    } else if (controllers.find(",memory,") != std::string::npos) {
      look_upwards({root + "/sys/fs/cgroup/memory", group, "memory.limit_in_bytes", "memory.usage_in_bytes",
                    "total_inactive_file"},
                   &room);
    }
  }
  return room;
}

}  // namespace mprun
