#include "procfs/memory_use.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <set>
#include <string>

#include "procfs/text_scan.h"

namespace mprun {
namespace {

constexpr std::size_t kMostProcesses = 65536;  // of one worker

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
  return true;
}

void MemoryUse::list_processes() {
  processes_.clear();
  children_.clear();
  groups_.clear();
  const auto names = proc_->list(".");
  if (!names) return;
  for (const std::string& name : *names) {
    pid_t pid = 0;
    const auto [end, fault] = std::from_chars(name.data(), name.data() + name.size(), pid);
    if (fault != std::errc() || end != name.data() + name.size()) continue;
    const auto text = proc_->read(name + "/stat");
    auto stat = text ? parse_stat(*text) : std::nullopt;
    if (!stat || stat->id != pid || stat->state == 'Z') continue;
    children_.emplace(stat->parent, pid);
    groups_.emplace(stat->group, pid);
    processes_.emplace(pid, std::move(*stat));
  }
}

// Whoever descends from it, and whoever is in its group: one whose parent has ended descends from it no more.
std::vector<pid_t> MemoryUse::family(pid_t worker) const {
  std::set<pid_t> known;
  std::vector<pid_t> found;
  const auto add = [&](pid_t pid) {
    if (processes_.count(pid) != 0 && found.size() < kMostProcesses && known.insert(pid).second) found.push_back(pid);
  };
  add(worker);
  if (found.empty()) return found;
  for (auto [at, end] = groups_.equal_range(worker); at != end; ++at) add(at->second);
  for (std::size_t i = 0; i < found.size(); ++i) {
    for (auto [at, end] = children_.equal_range(found[i]); at != end; ++at) add(at->second);
  }
  return found;
}

const MemoryUse::Seen* MemoryUse::walked(const StatLine& process, bool afresh) {
  const auto before = seen_.find(process.id);
  if (!afresh && before != seen_.end() && before->second.start_ticks == process.start_ticks) return &before->second;
  const auto text = proc_->read(std::to_string(process.id) + "/smaps_rollup");
  Seen seen{process.start_ticks, process.resident_pages, process.minor_faults, {}};
  if (!text || !parse_memory_rollup(*text, &seen.rollup)) return nullptr;  // it has ended, or we may not look
  return &(seen_[process.id] = seen);
}

// Not afresh: the most that it can be by what was seen when the pages were last walked through.
std::uint64_t MemoryUse::own_bytes(const std::vector<pid_t>& family, bool afresh) {
  std::uint64_t bytes = 0, shared_files = 0;
  for (const pid_t pid : family) {
    const StatLine& process = processes_.at(pid);
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

std::vector<MemoryUse::Excess> MemoryUse::look(const std::vector<pid_t>& workers) {
  std::vector<Excess> found;
  if (workers.empty()) return found;
  list_processes();
  for (const pid_t worker : workers) {
    const std::vector<pid_t> members = family(worker);
    std::uint64_t pages = 0;
    for (const pid_t pid : members) pages = sum(pages, processes_.at(pid).resident_pages);
    if (pages <= limit_ / page_ || own_bytes(members, false) <= limit_) continue;
    const std::uint64_t bytes = own_bytes(members, true);
    if (bytes > limit_) found.push_back({worker, bytes});
  }
  std::erase_if(seen_, [this](const auto& entry) { return processes_.count(entry.first) == 0; });
  return found;
}

}  // namespace mprun
