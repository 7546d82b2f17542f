// Lists of processors as the kernel and taskset(1) write them: "0-3,8". Used by placement, job and launch; pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace mprun {

/// The kernel's numbers of logical processors, ascending.
using CpuList = std::vector<int>;

/// "0-3,8"; empty for an empty list.
[[nodiscard]] std::string to_string(const CpuList& cpus);
/// Numbers below 2^16 in any order, ranges too; nullopt for anything else, and for an empty list.
[[nodiscard]] std::optional<CpuList> parse_cpu_list(std::string_view text);

}  // namespace mprun
