#include "record/row_set.h"

#include <algorithm>
#include <iterator>

namespace mprun {

void RowSet::add(std::uint64_t begin, std::uint64_t end) {
  if (begin >= end) return;
  auto next = runs_.upper_bound(begin);
  if (next != runs_.begin() && std::prev(next)->second >= begin) --next;
  while (next != runs_.end() && next->first <= end) {
    begin = std::min(begin, next->first);
    end = std::max(end, next->second);
    count_ -= next->second - next->first;
    next = runs_.erase(next);
  }
  runs_.emplace_hint(next, begin, end);
  count_ += end - begin;
}

bool RowSet::has(std::uint64_t row) const {
  const auto next = runs_.upper_bound(row);
  return next != runs_.begin() && std::prev(next)->second > row;
}

bool RowSet::has_all(std::uint64_t begin, std::uint64_t end) const {
  const auto next = runs_.upper_bound(begin);
  return begin >= end || (next != runs_.begin() && std::prev(next)->second >= end);
}

std::vector<std::pair<std::uint64_t, std::uint64_t>> RowSet::gaps(std::uint64_t total) const {
  std::vector<std::pair<std::uint64_t, std::uint64_t>> found;
  std::uint64_t at = 0;
  for (const auto& [begin, end] : runs_) {
    if (begin >= total) break;
    if (begin > at) found.emplace_back(at, begin);
    at = end;
  }
  if (at < total) found.emplace_back(at, total);
  return found;
}

}  // namespace mprun
