#include "placement/cpu_list.h"

#include <algorithm>
#include <charconv>
#include <utility>

namespace mprun {
namespace {

constexpr int kMostCpus = 1 << 16;

std::optional<int> parse_cpu(std::string_view text) {
  int cpu = -1;
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), cpu);
  const bool whole = fault == std::errc() && end == text.data() + text.size();
  return whole && cpu >= 0 && cpu < kMostCpus ? std::optional(cpu) : std::nullopt;
}

/// "4" or "0-3", first and last.
std::optional<std::pair<int, int>> parse_range(std::string_view text) {
  const std::size_t dash = text.find('-');
  const auto first = parse_cpu(text.substr(0, dash));
  const auto last = dash == std::string_view::npos ? first : parse_cpu(text.substr(dash + 1));
  return first && last && *first <= *last ? std::optional(std::pair(*first, *last)) : std::nullopt;
}

}  // namespace

std::string to_string(const CpuList& cpus) {
  std::string text;
  for (std::size_t begin = 0; begin < cpus.size();) {
    std::size_t end = begin + 1;
    while (end < cpus.size() && cpus[end] == cpus[end - 1] + 1) ++end;
    text += (text.empty() ? "" : ",") + std::to_string(cpus[begin]);
    if (end - begin > 1) text += "-" + std::to_string(cpus[end - 1]);
    begin = end;
  }
  return text;
}

std::optional<CpuList> parse_cpu_list(std::string_view text) {
  CpuList cpus;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    const auto range = parse_range(text.substr(begin, end - begin));
    if (!range) return std::nullopt;
    for (int cpu = range->first; cpu <= range->second; ++cpu) cpus.push_back(cpu);
    begin = end + 1;
  }
  std::sort(cpus.begin(), cpus.end());
  cpus.erase(std::unique(cpus.begin(), cpus.end()), cpus.end());
  return cpus;
}

}  // namespace mprun
