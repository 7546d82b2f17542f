#include "procfs/memory_room.h"

#include <algorithm>
#include <limits>
#include <optional>

#include "procfs/control_groups.h"
#include "procfs/text_scan.h"

namespace mprun {
namespace {

constexpr std::uint64_t kUnlimited = std::numeric_limits<std::int64_t>::max() / 2;  // version 1 says so by its size

std::optional<std::uint64_t> first_number(const std::string& path) {
  const std::string text = file_contents(path);
  std::uint64_t value = 0;
  TextScan scan(text);
  return scan.number(&value) ? std::optional(value) : std::nullopt;  // "max" is none
}

/// The names of one version's files in a control group's folder.
struct Names {
  const char *limit, *used, *cache;
};

/// What a control group leaves; the page cache, which the kernel can take back, counts as free.
void look_at(const std::string& folder, const Names& names, const std::string& group, MemoryRoom* room) {
  const auto limit = first_number(folder + "/" + names.limit);
  const auto used = first_number(folder + "/" + names.used);
  if (!limit || !used || *limit >= kUnlimited) return;
  const std::uint64_t cache = number_after(file_contents(folder + "/memory.stat"), names.cache).value_or(0);
  const std::uint64_t kept = *used - std::min(*used, cache);
  const std::uint64_t left = *limit - std::min(*limit, kept);
  if (left >= room->bytes) return;
  room->bytes = left;
  room->source = "the memory limit of the control group " + group_text(group);
}

}  // namespace

MemoryRoom memory_room(const std::string& root) {
  MemoryRoom room{std::numeric_limits<std::uint64_t>::max(), ""};
  const auto available = number_after(file_contents(root + "/proc/meminfo"), "MemAvailable:");
  if (available && *available < room.bytes / 1024) room = {*available * 1024, "MemAvailable in /proc/meminfo"};
  for (const ControlGroup& group : control_groups(root, "memory")) {
    const Names names = group.unified ? Names{"memory.max", "memory.current", "inactive_file"}
                                      : Names{"memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"};
    for (const std::string& name : group_and_those_around(group)) look_at(group.folder + name, names, name, &room);
  }
  return room;
}

HugePagePool huge_page_pool(const std::string& root) {
  const std::string facts = file_contents(root + "/proc/meminfo");
  const auto number = [&facts](const char* name) { return number_after(facts, name).value_or(0); };
  const std::uint64_t free = number("HugePages_Free:"), claimed = number("HugePages_Rsvd:");
  const std::uint64_t most_added = first_number(root + "/proc/sys/vm/nr_overcommit_hugepages").value_or(0);
  const std::uint64_t added = number("HugePages_Surp:");
  return {number("Hugepagesize:") * 1024, free - std::min(free, claimed) + most_added - std::min(most_added, added)};
}

}  // namespace mprun
