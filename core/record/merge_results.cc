#include "record/merge_results.h"

#include <fcntl.h>

#include <algorithm>
#include <queue>
#include <utility>

#include "record/line_reader.h"

namespace mprun {
namespace {

/// The results of one shard, in the order of their tasks. The file is open while lines are taken from it only.
class Cursor {
 public:
  explicit Cursor(std::string path) : path_(std::move(path)) {}

  /// Looks once at all lines: whether they are in order, and which comes first.
  [[nodiscard]] Result<bool> prepare() {
    bool ordered = true;
    std::optional<TaskId> last;
    const auto read = for_each_line(path_, [&](std::string_view text, std::uint64_t) {
      const auto line = split_result_line(text);
      if (!line) return;
      ordered = ordered && (!last || *last < line->task);
      last = line->task;
      first_ = first_ ? std::min(*first_, line->task) : line->task;
    });
    if (!read) return read.error();
    bytes_ = *read;
    if (!ordered) {
      const auto again = for_each_line(path_, [this](std::string_view text, std::uint64_t offset) {
        if (const auto line = split_result_line(text)) index_.emplace_back(line->task, offset);
      });
      if (!again) return again.error();
      std::sort(index_.begin(), index_.end());
    }
    return first_.has_value();
  }

  /// The task whose line is next; prepare() has found one.
  [[nodiscard]] TaskId task() const { return file_ ? line_->task : *first_; }
  [[nodiscard]] const std::string& text() const { return text_; }
  [[nodiscard]] const ResultLine& line() const { return *line_; }
  [[nodiscard]] bool is_open() const { return static_cast<bool>(file_); }

  [[nodiscard]] Result<void> open() {
    auto file = open_file(path_, O_RDONLY | O_NOFOLLOW);
    if (!file) return file.error();
    file_ = std::move(*file);
    return {};
  }

  /// False: there are no more.
  [[nodiscard]] bool next() {
    for (;;) {
      if (index_.empty() ? offset_ >= bytes_ : at_ >= index_.size()) break;
      const std::uint64_t offset = index_.empty() ? offset_ : index_[at_++].second;
      text_.clear();
      if (!reader_.copy_line(file_.get(), offset, &text_)) break;
      offset_ = offset + text_.size();
      text_.pop_back();
      line_ = split_result_line(text_);
      if (line_) return true;
    }
    file_.reset();
    reader_ = LineReader();
    return false;
  }

 private:
  std::string path_;
  Fd file_;
  LineReader reader_;
  std::uint64_t bytes_ = 0, offset_ = 0;
  std::vector<std::pair<TaskId, std::uint64_t>> index_;  ///< of a file in another order
  std::size_t at_ = 0;
  std::optional<TaskId> first_;
  std::string text_;
  std::optional<ResultLine> line_;
};

void append_line(std::string_view text, const ResultLine& line, int first_worker, std::string* out) {
  constexpr std::string_view kWorker = R"(,"worker":)", kAttempt = R"(,"attempt":)";
  const auto head = static_cast<std::size_t>(line.payload.data() + line.payload.size() - text.data());
  out->append(text.substr(0, head)).append(kWorker).append(std::to_string(line.worker + first_worker));
  out->append(text.substr(text.find(kAttempt, head))).append("\n");
}

}  // namespace

Result<MergedResults> merge_results(
    const std::vector<ShardRun>& shards, const std::vector<int>& first_workers, AppendFile* out,
    const std::function<Result<void>(std::size_t shard, std::string_view text, const ResultLine& line)>& take) {
  using Next = std::pair<TaskId, std::size_t>;  // whose line comes next in which shard
  std::priority_queue<Next, std::vector<Next>, std::greater<>> queue;
  std::vector<Cursor> cursors;
  for (std::size_t shard = 0; shard < shards.size(); ++shard) {
    cursors.emplace_back(shards[shard].path + "/results.jsonl");
    const auto any = cursors.back().prepare();
    if (!any) return any.error();
    if (*any) queue.emplace(cursors.back().task(), shard);
  }
  MergedResults merged;
  TaskId expected = 0;
  while (!queue.empty()) {
    const std::size_t shard = queue.top().second;
    queue.pop();
    Cursor& cursor = cursors[shard];
    if (!cursor.is_open()) {
      if (auto opened = cursor.open(); !opened) return opened.error();
      if (!cursor.next()) return internal_error(shards[shard].path + "/results.jsonl has changed meanwhile");
    }
    const ResultLine line = cursor.line();
    if (line.task < expected) {
      ++merged.repeated;
    } else {
      if (line.task > expected && !merged.missing) merged.missing = expected;
      expected = line.task + 1;
      ++(line.status == TaskStatus::kOk ? merged.ok : merged.failed);
      append_line(cursor.text(), line, first_workers[shard], &out->buffer());
      out->end_line();
      if (auto taken = take(shard, cursor.text(), line); !taken) return taken.error();
      if (out->failure()) return *out->failure();
    }
    if (cursor.next()) queue.emplace(cursor.task(), shard);
  }
  return merged;
}

}  // namespace mprun
