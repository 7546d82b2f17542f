#include "job/inputs.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <utility>

#include "job/input_sources.h"
#include "json/json.h"
#include "json/json_text.h"

namespace mprun {

namespace {

using job::SourceResult;

std::string compact(const Json& value) { return value.dump(-1, ' ', false, Json::error_handler_t::replace); }

template <typename Source, typename... Arguments>
SourceResult make_source(Arguments&&... arguments) {
  return std::unique_ptr<InputSource>(std::make_unique<Source>(std::forward<Arguments>(arguments)...));
}

class ItemSource final : public InputSource {
 public:
  explicit ItemSource(std::shared_ptr<const Json> items) : items_(std::move(items)) {}
  Pull pull(std::string* out) override {
    if (next_ == items_->size()) return Pull::kEnd;
    *out += compact((*items_)[next_++]);
    return Pull::kItem;
  }
  void skip(std::uint64_t count) override { next_ += std::min<std::uint64_t>(count, items_->size() - next_); }
  [[nodiscard]] std::optional<std::uint64_t> total() const override { return items_->size(); }

 private:
  std::shared_ptr<const Json> items_;
  std::size_t next_ = 0;
};

class RangeSource final : public InputSource {
 public:
  RangeSource(const RangeInput& range, std::uint64_t count) : next_(range.start), step_(range.step), count_(count) {}
  Pull pull(std::string* out) override {
    if (given_ == count_) return Pull::kEnd;
    char digits[24];
    const auto written = std::to_chars(std::begin(digits), std::end(digits), next_);
    out->append(digits, static_cast<std::size_t>(written.ptr - digits));
    if (++given_ < count_) next_ += step_;
    return Pull::kItem;
  }
  void skip(std::uint64_t count) override {
    const std::uint64_t steps = std::min(count, count_ - given_);
    given_ += steps;
    // The same as that many additions modulo 2^64.
    next_ = static_cast<std::int64_t>(static_cast<std::uint64_t>(next_) + steps * static_cast<std::uint64_t>(step_));
  }
  [[nodiscard]] std::optional<std::uint64_t> total() const override { return count_; }

 private:
  std::int64_t next_;
  std::int64_t step_;
  std::uint64_t count_;
  std::uint64_t given_ = 0;
};

std::uint64_t range_size(const RangeInput& range) {
  const bool up = range.step > 0;
  if (range.step == 0 || (up ? range.start >= range.stop : range.start <= range.stop)) return 0;
  const auto from = static_cast<std::uint64_t>(up ? range.start : range.stop);
  const auto to = static_cast<std::uint64_t>(up ? range.stop : range.start);
  const std::uint64_t step = up ? static_cast<std::uint64_t>(range.step) : 0 - static_cast<std::uint64_t>(range.step);
  return (to - from - 1) / step + 1;
}

/// One object per combination, computed from its number: the last axis varies fastest.
class GridSource final : public InputSource {
 public:
  GridSource(std::shared_ptr<const Json> axes, std::uint64_t count) : axes_(std::move(axes)), count_(count) {
    std::uint64_t block = count;
    for (const auto& [name, values] : axes_->items()) {
      block /= values.size();
      std::string key;
      append_json_string(&key, name);
      columns_.push_back({std::move(key), &values, block});
    }
  }
  Pull pull(std::string* out) override {
    if (next_ == count_) return Pull::kEnd;
    char separator = '{';
    for (const Axis& axis : columns_) {
      *out += separator;
      *out += axis.key;
      *out += ':';
      *out += compact((*axis.values)[next_ / axis.block % axis.values->size()]);
      separator = ',';
    }
    *out += '}';
    ++next_;
    return Pull::kItem;
  }
  void skip(std::uint64_t count) override { next_ += std::min(count, count_ - next_); }
  [[nodiscard]] std::optional<std::uint64_t> total() const override { return count_; }

 private:
  struct Axis {
    std::string key;      ///< as JSON text
    const Json* values;   ///< in *axes_
    std::uint64_t block;  ///< tasks in a row with the same value
  };
  std::shared_ptr<const Json> axes_;
  std::vector<Axis> columns_;
  std::uint64_t count_;
  std::uint64_t next_ = 0;
};

SourceResult open_grid(const GridInput& input) {
  std::uint64_t count = 1;
  for (const auto& [name, values] : input.axes->items()) {
    if (values.empty()) return usage_error("the axis " + name + " is empty");
    if (count > std::numeric_limits<std::uint64_t>::max() / 2 / values.size()) {
      return usage_error("has more than 2^63 combinations");
    }
    count *= values.size();
  }
  if (input.axes->empty()) return usage_error("has no inputs: there is no axis");
  return make_source<GridSource>(input.axes, count);
}

class RankSource final : public InputSource {
 public:
  explicit RankSource(std::uint64_t processes) : processes_(processes) {}
  Pull pull(std::string* out) override {
    if (next_ == processes_) return Pull::kEnd;
    ++next_;
    *out += "null";
    return Pull::kItem;
  }
  [[nodiscard]] std::optional<std::uint64_t> total() const override { return processes_; }

 private:
  std::uint64_t processes_;
  std::uint64_t next_ = 0;
};

class PartSource final : public InputSource {
 public:
  PartSource(std::unique_ptr<InputSource> all, const ShardTasks& tasks) : all_(std::move(all)), next_(tasks.begin) {
    all_->skip(tasks.begin);
    const auto total = all_->total();
    end_ = total ? std::min(*total, tasks.end) : tasks.end;
    if (total || tasks.end != UINT64_MAX) total_ = end_ > next_ ? end_ - next_ : 0;
  }
  Pull pull(std::string* out) override {
    if (next_ >= end_) return Pull::kEnd;
    const Pull pulled = all_->pull(out);
    if (pulled == Pull::kItem || pulled == Pull::kBad) ++next_;
    return pulled;
  }
  [[nodiscard]] std::optional<std::uint64_t> total() const override { return total_; }
  [[nodiscard]] std::optional<std::uint64_t> rows() const override { return all_->rows(); }
  [[nodiscard]] int wait_fd() const override { return all_->wait_fd(); }

 private:
  std::unique_ptr<InputSource> all_;
  std::uint64_t next_, end_ = 0;
  std::optional<std::uint64_t> total_;
};

struct Opener {
  const JobSpec& spec;
  SourceResult operator()(const std::monostate& /*none*/) const {
    return make_source<RankSource>(static_cast<std::uint64_t>(spec.processes) * spec.shard.value_or(Shard{}).count);
  }
  SourceResult operator()(const ItemsInput& input) const {
    if (input.items->empty()) return usage_error("has no inputs: the list is empty");
    return make_source<ItemSource>(input.items);
  }
  SourceResult operator()(const RangeInput& input) const {
    const std::uint64_t count = range_size(input);
    if (count == 0) {
      return usage_error("has no inputs: range(" + std::to_string(input.start) + ", " + std::to_string(input.stop) +
                         ", " + std::to_string(input.step) + ") is empty");
    }
    return make_source<RangeSource>(input, count);
  }
  SourceResult operator()(const GridInput& input) const { return open_grid(input); }
  SourceResult operator()(const LinesInput& input) const { return job::open_lines(input); }
  SourceResult operator()(const JsonlInput& input) const { return job::open_jsonl(input); }
  SourceResult operator()(const GlobInput& input) const { return job::open_glob(input); }
  SourceResult operator()(const ArraysInput& input) const { return job::open_arrays(input); }
};

}  // namespace

void InputSource::skip(std::uint64_t count) {
  std::string passed;
  for (; count > 0; --count) {
    passed.clear();
    const Pull pulled = pull(&passed);
    if (pulled == Pull::kEnd || pulled == Pull::kWait) return;  // waiting inputs have no known end, and are not split
  }
}

std::unique_ptr<InputSource> open_part(std::unique_ptr<InputSource> all, const ShardTasks& tasks) {
  return std::make_unique<PartSource>(std::move(all), tasks);
}

Result<std::unique_ptr<InputSource>> open_inputs(const JobSpec& spec) {
  try {
    auto opened = std::visit(Opener{spec}, spec.inputs);
    if (!opened && opened.error().fault == Fault::kUsage) opened.error().message.insert(0, spec.inputs_place);
    return opened;
  } catch (const Json::exception& error) {
    return internal_error(std::string("the inputs could not be opened: ") + error.what());
  }
}

}  // namespace mprun
