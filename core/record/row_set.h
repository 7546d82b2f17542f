// RowSet: which rows of a tensor file are done, as ranges: a job that loses nothing needs one range, however many rows
// it has. Used by TensorFiles.
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

namespace mprun {

class RowSet {
 public:
  /// Adds the rows from `begin` to before `end`; some may be in already.
  void add(std::uint64_t begin, std::uint64_t end);
  [[nodiscard]] bool has(std::uint64_t row) const;
  [[nodiscard]] bool has_all(std::uint64_t begin, std::uint64_t end) const;
  /// How many rows are in.
  [[nodiscard]] std::uint64_t count() const { return count_; }
  /// One past the last row that is in; 0 if none is.
  [[nodiscard]] std::uint64_t end() const { return runs_.empty() ? 0 : runs_.rbegin()->second; }
  /// The ranges of rows below `total` that are not in, in order.
  [[nodiscard]] std::vector<std::pair<std::uint64_t, std::uint64_t>> gaps(std::uint64_t total) const;

 private:
  std::map<std::uint64_t, std::uint64_t> runs_;  ///< begin -> end; none touches another
  std::uint64_t count_ = 0;
};

}  // namespace mprun
