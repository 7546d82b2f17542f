#include "record/merge_results.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <queue>
#include <utility>

#include "record/line_reader.h"

namespace mprun {
namespace {

// Total bytes of the windows through which results of shards are read.
constexpr std::size_t kAllWindows = std::size_t{64} << 20U;

/// The results of one shard that count, in the order of their tasks.
class Cursor {
 public:
  Cursor(const ShardRun& shard, const DoneBlocks* done, std::size_t window)
      : path_(shard.path + "/results.jsonl"), shard_(shard.shard.index), done_(done), reader_(std::in_place, window) {}

  /// Scans all lines once: whether they are in order, and which comes first. False: there are none.
  [[nodiscard]] Result<bool> prepare() {
    std::optional<TaskId> last;
    inode_ = inode_of(open_fd(path_, O_RDONLY | O_NOFOLLOW));
    const auto read = for_each_line(path_, [&](std::string_view text, std::uint64_t) {
      const auto line = split_result_line(text);
      if (!line || !counts(*line)) return;
      ordered_ = ordered_ && (!last || *last < line->task);
      last = line->task;
      first_ = first_ ? std::min(*first_, line->task) : line->task;
    });
    if (!read) return read.error();
    bytes_ = *read;
    return first_.has_value();
  }

  /// The task whose line is next; prepare() has found one.
  [[nodiscard]] TaskId task() const { return line_ ? line_->task : *first_; }
  [[nodiscard]] const std::string& text() const { return text_; }
  [[nodiscard]] const ResultLine& line() const { return *line_; }
  [[nodiscard]] bool has_begun() const { return line_.has_value(); }

  /// False: there are no more lines.
  [[nodiscard]] Result<bool> next() {
    if (!ordered_ && !line_) {
      if (auto indexed = make_index(); !indexed) return indexed.error();
    }
    for (;;) {
      if (ordered_ ? offset_ >= bytes_ : at_ >= index_.size()) break;
      const std::uint64_t offset = ordered_ ? offset_ : index_[at_++].second;
      if (!file_ && !reader_->has_line(offset)) {
        auto file = open_file(path_, O_RDONLY | O_NOFOLLOW);
        if (!file) return file.error();
        file_ = std::move(*file);
        if (inode_of(file_) != inode_) {
          return internal_error(path_ + " has changed meanwhile, as its shard still runs; merge once more");
        }
      }
      text_.clear();
      if (!reader_->copy_line(file_.get(), offset, &text_)) {
        if (reader_->error_number() != 0) return system_error("cannot read " + path_, reader_->error_number());
        return internal_error(path_ + " has become shorter meanwhile; merge once more");
      }
      offset_ = offset + text_.size();
      text_.pop_back();
      line_ = split_result_line(text_);
      if (line_ && counts(*line_)) return true;
    }
    rest();
    reader_.reset();
    index_ = decltype(index_)();
    return false;
  }

  /// Closes the file while lines of other shards come first: thousands of files cannot be open at once.
  void rest() { file_.reset(); }

 private:
  /// Indexes a file that is in another order; the index lives from the first line to the last.
  [[nodiscard]] Result<void> make_index() {
    const auto read = for_each_line(path_, [this](std::string_view text, std::uint64_t offset) {
      if (const auto line = split_result_line(text); line && counts(*line)) index_.emplace_back(line->task, offset);
    });
    if (!read) return read.error();
    std::sort(index_.begin(), index_.end());
    return {};
  }

  [[nodiscard]] bool counts(const ResultLine& line) const { return done_ == nullptr || done_->by(shard_, line.task); }
  /// 0: there is no file.
  [[nodiscard]] static ino_t inode_of(const Fd& file) {
    struct stat info {};
    return file && fstat(file.get(), &info) == 0 ? info.st_ino : 0;
  }

  std::string path_;
  std::uint64_t shard_;
  const DoneBlocks* done_;
  ino_t inode_ = 0;
  std::optional<LineReader> reader_;  ///< until there are no more
  Fd file_;
  bool ordered_ = true;
  std::uint64_t bytes_ = 0, offset_ = 0;
  std::vector<std::pair<TaskId, std::uint64_t>> index_;
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
    const std::vector<ShardRun>& shards, const std::vector<int>& first_workers, const DoneBlocks* done, AppendFile* out,
    const std::function<Result<void>(std::size_t shard, std::string_view text, const ResultLine& line)>& take) {
  using Next = std::pair<TaskId, std::size_t>;  // the task whose line comes next, and its shard
  std::priority_queue<Next, std::vector<Next>, std::greater<>> queue;
  std::vector<Cursor> cursors;
  const std::size_t window = std::clamp(kAllWindows / std::max<std::size_t>(1, shards.size()),
                                        LineReader::kSmallestWindow, LineReader::kLargestWindow);
  for (std::size_t shard = 0; shard < shards.size(); ++shard) {
    cursors.emplace_back(shards[shard], done, window);
    const auto any = cursors.back().prepare();
    if (!any) return any.error();
    if (*any) queue.emplace(cursors.back().task(), shard);
  }
  MergedResults merged;
  TaskId expected = 0;
  std::size_t last = 0;  // the shard of the last line
  while (!queue.empty()) {
    const std::size_t shard = queue.top().second;
    queue.pop();
    Cursor& cursor = cursors[shard];
    if (shard != last) cursors[std::exchange(last, shard)].rest();
    if (!cursor.has_begun()) {
      const auto begun = cursor.next();
      if (!begun) return begun.error();
      if (!*begun) return internal_error(shards[shard].path + "/results.jsonl has changed meanwhile");
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
    const auto more = cursor.next();
    if (!more) return more.error();
    if (*more) queue.emplace(cursor.task(), shard);
  }
  return merged;
}

}  // namespace mprun
