#include "procfs/oom_kills.h"

#include <algorithm>

#include "procfs/control_groups.h"

namespace mprun {

OomKills oom_kills(const std::string& root) {
  OomKills kills;
  kills.machine = number_after(file_contents(root + "/proc/vmstat"), "oom_kill").value_or(0);
  for (const ControlGroup& group : control_groups(root, "memory")) {
    const std::string file = group.folder + group.name + (group.unified ? "/memory.events" : "/memory.oom_control");
    kills.group = std::max(kills.group, number_after(file_contents(file), "oom_kill").value_or(0));
  }
  return kills;
}

}  // namespace mprun
