#include "cluster/host_list.h"

#include <charconv>
#include <cstdint>

namespace mprun {
namespace {

/// Where the first entry of the list ends: at the next comma outside of brackets.
std::size_t entry_end(std::string_view list) {
  int depth = 0;
  for (std::size_t i = 0; i < list.size(); ++i) {
    if (list[i] == '[') ++depth;
    if (list[i] == ']') --depth;
    if (list[i] == ',' && depth == 0) return i;
  }
  return list.size();
}

/// "08" is 8 with a width of 2.
bool read_number(std::string_view text, std::uint64_t* number) {
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), *number);
  return error == std::errc() && stop == text.data() + text.size();
}

void expand_entry(const std::string& before, std::string_view entry, std::size_t most, std::vector<std::string>* hosts);

void expand_range(const std::string& before, std::string_view range, std::string_view rest, std::size_t most,
                  std::vector<std::string>* hosts) {
  const auto dash = range.find('-');
  const std::string_view from = range.substr(0, dash);
  const std::string_view to = dash == range.npos ? from : range.substr(dash + 1);
  std::uint64_t number = 0;
  std::uint64_t last = 0;
  if (!read_number(from, &number) || !read_number(to, &last)) return;
  for (; number <= last && hosts->size() < most; ++number) {
    std::string digits = std::to_string(number);
    if (digits.size() < from.size()) digits.insert(0, from.size() - digits.size(), '0');
    expand_entry(before + digits, rest, most, hosts);
  }
}

// A name may have several brackets: "rack[1-2]n[1-4]".
void expand_entry(const std::string& before, std::string_view entry, std::size_t most,
                  std::vector<std::string>* hosts) {
  const auto open = entry.find('[');
  const auto close = entry.find(']', open == entry.npos ? entry.size() : open);
  if (open == entry.npos || close == entry.npos) {
    if (hosts->size() < most && !(before.empty() && entry.empty())) hosts->push_back(before + std::string(entry));
    return;
  }
  const std::string prefix = before + std::string(entry.substr(0, open));
  std::string_view ranges = entry.substr(open + 1, close - open - 1);
  while (!ranges.empty() && hosts->size() < most) {
    const auto comma = ranges.find(',');
    expand_range(prefix, ranges.substr(0, comma), entry.substr(close + 1), most, hosts);
    ranges = comma == ranges.npos ? std::string_view() : ranges.substr(comma + 1);
  }
}

}  // namespace

std::vector<std::string> expand_hosts(std::string_view list, std::size_t most) {
  std::vector<std::string> hosts;
  while (!list.empty() && hosts.size() < most) {
    const std::size_t end = entry_end(list);
    expand_entry("", list.substr(0, end), most, &hosts);
    list = end == list.size() ? std::string_view() : list.substr(end + 1);
  }
  return hosts;
}

}  // namespace mprun
