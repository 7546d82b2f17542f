#include "procfs/worker_use.h"

#include <algorithm>
#include <string>
#include <utility>

#include "procfs/memory_use.h"

namespace mprun {
namespace {

// Pages of 4 KiB that a look may walk through: 10 ms. Opening the file costs as much as some pages.
constexpr std::uint64_t kMostPages = std::uint64_t{1} << 17U;
constexpr std::uint64_t kPagesOfOpening = 256;

}  // namespace

std::map<pid_t, WorkerUse::Use> WorkerUse::look(const ProcessTable& table, const std::vector<pid_t>& workers) {
  ++looks_;
  std::erase_if(pages_, [&table](const auto& entry) { return table.find(entry.first) == nullptr; });
  std::vector<std::vector<pid_t>> families;
  std::vector<pid_t> all;
  for (const pid_t worker : workers) {
    families.push_back(table.family(worker));
    all.insert(all.end(), families.back().begin(), families.back().end());
  }
  walk(table, all);
  std::map<pid_t, Use> found;
  for (const std::vector<pid_t>& family : families) {
    if (family.empty()) continue;
    Use& use = found[family.front()];
    use.cpu = cpu_of(table, family);
    const char state = table.find(family.front())->state;
    use.stopped = state == 'T' || state == 't';
    for (const pid_t pid : family) use.memory += memory_of(*table.find(pid));
  }
  return found;
}

double WorkerUse::cpu_at_end(pid_t worker) {
  const auto text = proc_->read(std::to_string(worker) + "/stat");
  const auto stat = text ? parse_stat(*text) : std::nullopt;
  const auto before = times_.extract(worker);
  const Time time = before.empty() ? Time{} : before.mapped();
  return seconds(std::max(time.reported, stat ? stat->cpu_ticks + time.lost : 0));
}

double WorkerUse::cpu_of(const ProcessTable& table, const std::vector<pid_t>& family) {
  Time& time = times_[family.front()];
  std::uint64_t ticks = time.lost;
  for (const pid_t pid : family) ticks += table.find(pid)->cpu_ticks;
  if (ticks < time.reported && time.fell) {  // twice: it will not come back
    time.lost += time.reported - ticks;
    ticks = time.reported;
  }
  time.fell = ticks < time.reported;
  time.reported = std::max(time.reported, ticks);
  return seconds(time.reported);
}

void WorkerUse::walk(const ProcessTable& table, const std::vector<pid_t>& processes) {
  std::vector<std::pair<std::uint64_t, pid_t>> order;
  for (const pid_t pid : processes) {
    const StatLine& process = *table.find(pid);
    const auto before = pages_.find(pid);
    const bool known = before != pages_.end() && before->second.start_ticks == process.start_ticks;
    if (process.state != 'Z') order.emplace_back(known ? before->second.look : 0, pid);
  }
  std::sort(order.begin(), order.end());
  std::uint64_t walked = 0;
  for (const auto& [last, pid] : order) {
    if (walked >= kMostPages) return;
    const StatLine& process = *table.find(pid);
    walked += kPagesOfOpening + process.resident_pages;
    const auto text = proc_->read(std::to_string(pid) + "/smaps_rollup");
    MemoryRollup rollup;
    const bool good = text && parse_memory_rollup(*text, &rollup);
    const std::uint64_t bytes = good ? rollup.resident : process.resident_pages * page_;
    pages_[pid] = {process.start_ticks, process.resident_pages, bytes, looks_};
  }
}

std::uint64_t WorkerUse::memory_of(const StatLine& process) const {
  const std::uint64_t resident = process.resident_pages * page_;
  const auto then = pages_.find(process.id);
  if (process.state == 'Z') return 0;
  if (then == pages_.end() || then->second.start_ticks != process.start_ticks) return resident;
  const std::uint64_t resident_then = then->second.resident_pages * page_;
  if (resident >= resident_then) return then->second.bytes + (resident - resident_then);
  return then->second.bytes - std::min(then->second.bytes, resident_then - resident);
}

double WorkerUse::seconds(std::uint64_t ticks) const {
  return static_cast<double>(ticks) / static_cast<double>(ticks_per_second_);
}

}  // namespace mprun
