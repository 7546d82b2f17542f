// Lists of hosts as Slurm writes them ("n[1-3,7],login"). Used by allocation.cc; pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace mprun {

/// The names, in the list's order, at most `most` of them; of a malformed list, those that could be read.
[[nodiscard]] std::vector<std::string> expand_hosts(std::string_view list, std::size_t most);

}  // namespace mprun
