// LineOffsets: the offset of each task's line in results.jsonl, 8 bytes a task. Tasks that are far apart, like those of
// a shard that helps others, cost no memory for the gap between them. Used by ResultsWriter.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

namespace mprun {

class LineOffsets {
 public:
  static constexpr std::uint64_t kAbsent = UINT64_MAX;

  void set(std::uint64_t index, std::uint64_t offset) {
    Page& page = pages_[index / kPage];
    if (page.empty()) page.assign(kPage, kAbsent);
    page[index % kPage] = offset;
    if (index >= size_) size_ = index + 1;
  }
  /// kAbsent: none was set.
  [[nodiscard]] std::uint64_t at(std::uint64_t index) const {
    const auto page = pages_.find(index / kPage);
    return page == pages_.end() ? kAbsent : page->second[index % kPage];
  }
  /// One past the last index that was set.
  [[nodiscard]] std::uint64_t size() const { return size_; }
  /// Calls `take` with each offset that was set, in the order of the indices, until it returns false.
  template <typename Take>
  void for_each(const Take& take) const {
    for (const auto& [number, page] : pages_) {
      for (const std::uint64_t offset : page) {
        if (offset != kAbsent && !take(offset)) return;
      }
    }
  }

 private:
  static constexpr std::uint64_t kPage = 4096;
  using Page = std::vector<std::uint64_t>;
  std::map<std::uint64_t, Page> pages_;
  std::uint64_t size_ = 0;
};

}  // namespace mprun
