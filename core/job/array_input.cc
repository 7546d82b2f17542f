#include <algorithm>
#include <utility>
#include <vector>

#include "job/input_sources.h"
#include "json/json_text.h"

namespace mprun::job {

namespace {

/// Gives row numbers only: the workers map the files and read their rows from them. With several files the numbers go
/// on from one file to the next, and no batch has rows of two files.
class RowSource final : public InputSource {
 public:
  RowSource(std::vector<std::int64_t> ends, std::optional<std::int64_t> batch) : ends_(std::move(ends)), batch_(batch) {
    std::int64_t begin = 0;
    for (const std::int64_t end : ends_) {
      const std::int64_t rows = end - std::exchange(begin, end);
      const std::int64_t step = batch_.value_or(1);
      total_ += static_cast<std::uint64_t>(rows / step + (rows % step == 0 ? 0 : 1));
    }
  }
  Pull pull(std::string* out) override {
    while (file_ < ends_.size() && next_ == ends_[file_]) ++file_;
    if (file_ == ends_.size()) return Pull::kEnd;
    if (!batch_) {
      *out += std::to_string(next_++);
      return Pull::kItem;
    }
    const std::int64_t stop = next_ + std::min(*batch_, ends_[file_] - next_);
    *out += "[" + std::to_string(next_) + "," + std::to_string(stop) + "]";
    next_ = stop;
    return Pull::kItem;
  }
  void skip(std::uint64_t count) override {
    if (ends_.size() != 1) return InputSource::skip(count);
    const auto steps = static_cast<std::int64_t>(std::min(count, total_));
    next_ = steps > (ends_[0] - next_) / batch_.value_or(1) ? ends_[0] : next_ + steps * batch_.value_or(1);
  }
  [[nodiscard]] std::optional<std::uint64_t> total() const override { return total_; }
  [[nodiscard]] std::optional<std::uint64_t> rows() const override {
    return batch_ && !ends_.empty() ? std::optional(static_cast<std::uint64_t>(ends_.back())) : std::nullopt;
  }

 private:
  std::vector<std::int64_t> ends_;  ///< for each file one past its last row
  std::optional<std::int64_t> batch_;
  std::uint64_t total_ = 0;
  std::size_t file_ = 0;
  std::int64_t next_ = 0;
};

/// Gives the names of files; each file is a task.
class FileSource final : public InputSource {
 public:
  explicit FileSource(std::vector<InputArray> arrays) : arrays_(std::move(arrays)) {}
  Pull pull(std::string* out) override {
    if (next_ == arrays_.size()) return Pull::kEnd;
    append_json_string(out, arrays_[next_++].path);
    return Pull::kItem;
  }
  [[nodiscard]] std::optional<std::uint64_t> total() const override { return arrays_.size(); }

 private:
  std::vector<InputArray> arrays_;
  std::size_t next_ = 0;
};

}  // namespace

SourceResult open_arrays(const ArraysInput& input) {
  if (input.one_by_one && !input.batch) {
    return std::unique_ptr<InputSource>(std::make_unique<FileSource>(input.arrays));
  }
  std::vector<std::int64_t> ends;
  std::int64_t end = 0;
  for (const InputArray& array : input.arrays) {
    end += array.rows;  // resolve() has checked that this fits into 63 bits
    ends.push_back(end);
    if (!input.one_by_one) break;  // the other arrays have as many
  }
  return std::unique_ptr<InputSource>(std::make_unique<RowSource>(std::move(ends), input.batch));
}

}  // namespace mprun::job
