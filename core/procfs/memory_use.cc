#include "procfs/memory_use.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string>

#include "procfs/text_scan.h"

namespace mprun {
namespace {

std::uint64_t sum(std::uint64_t a, std::uint64_t b) {
  std::uint64_t result = 0;
  return __builtin_add_overflow(a, b, &result) ? ~std::uint64_t{0} : result;
}

}  // namespace

bool parse_memory_rollup(std::string_view text, MemoryRollup* rollup) {
  std::uint64_t all = 0, anonymous = 0, shared = 0, swap = 0, dirty = 0;
  struct Field {
    std::string_view name;
    std::uint64_t* value;
    bool found;
  };
  std::array<Field, 5> fields{{{"Pss:", &all, false},
                               {"Pss_Anon:", &anonymous, false},
                               {"Pss_Shmem:", &shared, false},
                               {"SwapPss:", &swap, false},
                               {"Private_Dirty:", &dirty, false}}};
  for (TextScan scan(text); !scan.at_end();) {
    TextScan line(scan.line());
    const std::string_view name = line.word();
    for (Field& field : fields) {
      std::uint64_t kib = 0;
      if (field.found || field.name != name || !line.number(&kib) || kib > ~std::uint64_t{0} / 4096) continue;
      *field.value = kib * 1024;
      field.found = true;
    }
  }
  if (!fields[0].found || !fields[4].found) return false;
  // Before Linux 5.2 the share in proportion comes in one number only, files and all.
  rollup->proportional = fields[1].found ? anonymous + shared + swap : all + swap;
  rollup->only_its = std::min(dirty + swap, rollup->proportional);
  rollup->shared_files = shared;
  rollup->resident = all;
  return true;
}

const MemoryUse::Seen* MemoryUse::walked(const StatLine& process, bool afresh) {
  const auto before = seen_.find(process.id);
  if (!afresh && before != seen_.end() && before->second.start_ticks == process.start_ticks) return &before->second;
  const auto text = proc_->read(std::to_string(process.id) + "/smaps_rollup");
  Seen seen{process.start_ticks, process.resident_pages, process.minor_faults, {}};
  if (!text || !parse_memory_rollup(*text, &seen.rollup)) return nullptr;  // it has ended, or we may not look
  return &(seen_[process.id] = seen);
}

// Not afresh: an upper bound, from what was seen when the pages were last walked through.
std::uint64_t MemoryUse::own_bytes(const ProcessTable& table, const std::vector<pid_t>& family, bool afresh) {
  std::uint64_t bytes = 0, shared_files = 0;
  for (const pid_t pid : family) {
    const StatLine& process = *table.find(pid);
    const Seen* seen = walked(process, afresh);
    if (seen == nullptr) continue;
    const auto grown = [](std::uint64_t now, std::uint64_t then) { return now - std::min(now, then); };
    const std::uint64_t pages =
        std::max(grown(process.resident_pages, seen->resident_pages), grown(process.minor_faults, seen->minor_faults));
    bytes = sum(bytes, family.size() == 1 ? seen->rollup.only_its : seen->rollup.proportional);
    bytes = sum(bytes, pages > ~std::uint64_t{0} / page_ ? ~std::uint64_t{0} : pages * page_);
    shared_files = sum(shared_files, seen->rollup.shared_files);
  }
  return bytes - std::min({bytes, shared_files, given_});
}

std::vector<MemoryUse::Excess> MemoryUse::look(const ProcessTable& table, const std::vector<pid_t>& workers) {
  std::vector<Excess> found;
  for (const pid_t worker : workers) {
    std::vector<pid_t> members = table.family(worker);
    std::erase_if(members, [&table](pid_t pid) { return table.find(pid)->state == 'Z'; });
    std::uint64_t pages = 0;
    for (const pid_t pid : members) pages = sum(pages, table.find(pid)->resident_pages);
    if (pages <= limit_ / page_ || own_bytes(table, members, false) <= limit_) continue;
    const std::uint64_t bytes = own_bytes(table, members, true);
    if (bytes > limit_) found.push_back({worker, bytes});
  }
  std::erase_if(seen_, [&table](const auto& entry) { return table.find(entry.first) == nullptr; });
  return found;
}

}  // namespace mprun
