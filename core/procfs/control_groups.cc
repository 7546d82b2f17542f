#include "procfs/control_groups.h"

#include <algorithm>
#include <fstream>
#include <sstream>

#include "procfs/text_scan.h"

namespace mprun {
namespace {

constexpr std::size_t kDeepest = 64;

}  // namespace

std::string file_contents(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

std::optional<std::uint64_t> number_after(const std::string& text, std::string_view key) {
  for (TextScan scan(text); !scan.at_end();) {
    TextScan line(scan.line());
    std::uint64_t value = 0;
    if (line.word() == key && line.number(&value)) return value;
  }
  return std::nullopt;
}

std::vector<ControlGroup> control_groups(const std::string& root, std::string_view controller) {
  std::vector<ControlGroup> found;
  const std::string groups = file_contents(root + "/proc/self/cgroup");
  for (TextScan scan(groups); !scan.at_end();) {  // "4:memory:/a/b", "0::/a/b"
    const std::string line(scan.line());
    const std::size_t first = line.find(':');
    const std::size_t second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = "," + line.substr(first + 1, second - first - 1) + ",";
    std::string group = line.substr(second + 1);
    if (group == "/") group.clear();
    if (controllers == ",,") {
      for (const char* folder : {"/sys/fs/cgroup", "/sys/fs/cgroup/unified"}) {
        found.push_back({root + folder, group, true});
      }
    } else if (controllers.find("," + std::string(controller) + ",") != std::string::npos) {
      found.push_back({root + "/sys/fs/cgroup/" + std::string(controller), group, false});
    }
  }
  return found;
}

std::vector<std::string> group_and_those_around(const ControlGroup& group) {
  std::vector<std::string> names;
  for (std::string name = group.name; names.size() < kDeepest; name.erase(std::min(name.rfind('/'), name.size()))) {
    names.push_back(name);
    if (name.empty()) break;
  }
  return names;
}

std::string group_text(const std::string& name) { return name.empty() ? "/" : name; }

}  // namespace mprun
