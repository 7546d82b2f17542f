#include "record/results_writer.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

#include <fcntl.h>
#include <unistd.h>

#include "json/json_text.h"
#include "record/atomic_file.h"
#include "record/line_format.h"
#include "wire/tensor_claims.h"

namespace mprun {
namespace {

[[nodiscard]] Result<AppendFile> open_copy(const std::string& target) {
  if (target != "-") return AppendFile::create(target, "--results");
  const int fd = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
  if (fd < 0) return usage_error(std::string("--results -: standard output is not open: ") + std::strerror(errno));
  return AppendFile{Fd(fd), "standard output", "--results"};
}

/// Appends JSON text as one line: line breaks in JSON are only ever white space between tokens.
void append_json(std::string& out, std::string_view text, std::string_view if_empty) {
  const std::size_t begin = out.size();
  out.append(text.empty() ? if_empty : text);
  for (std::size_t at = out.find('\n', begin); at != out.npos; at = out.find('\n', at)) out[at] = ' ';
}

/// Rewrites the file without the lines that do not count; if that fails, the file stays as it was.
[[nodiscard]] Result<void> leave_out(const std::string& path, const EarlierResults& earlier, OnDisk when) {
  if (earlier.dropped.empty()) return {};
  const auto from = open_file(path, O_RDONLY);
  if (!from) return from.error();
  auto to = AppendFile::create(path + ".tmp", "--output");
  if (!to) return to.error();
  std::uint64_t at = 0;
  const auto copy_until = [&](std::uint64_t end) {
    while (at < end && !to->failure()) {
      const auto most = static_cast<std::size_t>(std::min<std::uint64_t>(end - at, AppendFile::kFlushBytes));
      const std::size_t got = LineReader::copy_bytes(from->get(), at, most, &to->buffer());
      if (got == 0) to->fail(EIO);
      at += got;
      to->end_line();
    }
  };
  for (const auto& [begin, end] : earlier.dropped) {
    copy_until(begin);
    at = end;
  }
  copy_until(earlier.bytes);
  return take_name(&*to, path, when);
}

void append_tensors(std::string& out, std::string_view claims) {
  const auto tensors = parse_tensor_claims(claims);
  if (!tensors || tensors->empty()) return;
  char separator = '[';
  out += R"(,"tensors":)";
  for (const TensorClaim& tensor : *tensors) {
    out += separator;
    out += R"({"name":)";
    append_json_string(&out, tensor.name);
    if (tensor.kind == MPRUN_TENSOR_ROWS) {
      out += R"(,"rows":[)" + std::to_string(tensor.begin) + "," + std::to_string(tensor.end) + "]";
    }
    out += '}';
    separator = ',';
  }
  out += ']';
}

[[nodiscard]] std::string_view status_and_key(TaskStatus status) {
  switch (status) {
    case TaskStatus::kOk:
      return R"(,"status":"ok","value":)";
    case TaskStatus::kFailed:
      return R"(,"status":"failed","error":)";
    case TaskStatus::kCancelled:
      return R"(,"status":"cancelled","error":)";
  }
  return {};
}

}  // namespace

Result<std::unique_ptr<ResultsWriter>> ResultsWriter::open(const ResultsOptions& options) {
  Result<AppendFile> file = AppendFile::create(options.path, "--output");
  if (!file) return std::move(file).error();
  return make(std::move(*file), options);
}

Result<std::unique_ptr<ResultsWriter>> ResultsWriter::reopen(const ResultsOptions& options,
                                                             const EarlierResults& earlier) {
  if (auto done = leave_out(options.path, earlier, on_disk(options.durability)); !done) return done.error();
  std::uint64_t gone = 0;
  for (const auto& [begin, end] : earlier.dropped) gone += end - begin;
  Result<AppendFile> file = AppendFile::reopen(options.path, earlier.bytes - gone, "--output");
  if (!file) return std::move(file).error();
  auto writer = make(std::move(*file), options);
  if (!writer || options.order != Order::kInput) return writer;
  auto dropped = earlier.dropped.begin();
  gone = 0;
  for (const auto& [task, offset] : earlier.kept) {
    for (; dropped != earlier.dropped.end() && dropped->first < offset; ++dropped) {
      gone += dropped->second - dropped->first;
    }
    (*writer)->remember(task, offset - gone);
  }
  return writer;
}

Result<std::unique_ptr<ResultsWriter>> ResultsWriter::make(AppendFile file, const ResultsOptions& options) {
  std::optional<AppendFile> copy;
  if (!options.copy.empty()) {
    Result<AppendFile> opened = open_copy(options.copy);
    if (!opened) return std::move(opened).error();
    copy = std::move(*opened);
  }
  // Not make_unique: the constructor is private, so that a writer always has its files.
  return std::unique_ptr<ResultsWriter>(new ResultsWriter(std::move(file), std::move(copy), options));
}

ResultsWriter::ResultsWriter(AppendFile file, std::optional<AppendFile> copy, const ResultsOptions& options)
    : file_(std::move(file)),
      copy_(std::move(copy)),
      order_(options.order),
      durability_(options.durability),
      written_files_(options.written_files),
      before_writing_(options.before_writing),
      certain_(options.certain),
      synced_(monotonic_now()),
      tasks_(options.tasks) {}

void ResultsWriter::on_event(const JobEvent& event) {
  if (const auto* ended = std::get_if<TaskEnded>(&event)) {
    append_task(*ended);
    ++unsynced_;
    if (durability_ == Durability::kEach) start_sync(true);
    if (durability_ == Durability::kBatch && unsynced_ % kMostUnsynced == 0) start_sync(false);
  } else if (std::holds_alternative<Pulse>(event)) {
    flush();
    if (syncing_ > 0) finish_sync(false);
    if (durability_ == Durability::kBatch && monotonic_now() - synced_ >= kSyncEvery) start_sync(false);
  }
}

bool ResultsWriter::write_out() {
  if (before_writing_) before_writing_();
  return file_.flush();
}

// Begins to bring new results to disk, unless the disk is still busy with earlier ones; `now` waits for it.
void ResultsWriter::start_sync(bool now) {
  if (!finish_sync(now)) return;
  std::vector<Fd> files = written_files_ ? written_files_() : std::vector<Fd>();
  if ((unsynced_ == 0 && files.empty()) || !write_out()) return;
  unsynced_ = 0;
  synced_ = monotonic_now();
  has_files_ = has_files_ || !files.empty();
  if (has_files_ && certain_) syncing_ = file_.written();
  sync_files(std::move(files), file_.fd(), now);
  if (now) finish_sync(now);
}

void ResultsWriter::sync_files(std::vector<Fd> files, int last, bool now) {
  if (now) {
    sync_.run(files, last);
  } else {
    sync_.start(std::move(files), last);
  }
}

bool ResultsWriter::sync() {
  start_sync(true);
  return !failure();
}

// False: a sync is under way; `now` waits for its end. Records what is then on disk, and brings the record to disk.
bool ResultsWriter::finish_sync(bool now) {
  for (;;) {
    if (now) sync_.wait();
    if (!sync_.idle()) return false;
    if (sync_.error_number() != 0) file_.fail(sync_.error_number());
    const std::uint64_t bytes = std::exchange(syncing_, 0);
    if (bytes == 0 || failure()) return true;
    sync_files({}, certain_(bytes), now);
  }
}

void ResultsWriter::flush() {
  write_out();
  if (copy_) feed_copy();
}

void ResultsWriter::append_task(const TaskEnded& ended) {
  const std::uint64_t offset = file_.size();
  append_line(ended);
  if (order_ == Order::kInput) remember(ended.task, offset);
  if (copy_ && file_.size() - last_fed_ >= AppendFile::kFlushBytes) feed_copy();
  if (file_.buffer().size() >= AppendFile::kFlushBytes || failure()) write_out();
}

// Gives the copy what it may have now, as long as its reader takes it; what is not read stays on disk.
void ResultsWriter::feed_copy() {
  last_fed_ = file_.size();
  write_out();
  while (fill_copy()) {
    copy_->flush_ready();
    if (copy_->failure() || !copy_->buffer().empty()) break;
  }
  check_copy();
}

// Appends lines until a buffer is full; false if there is nothing to copy.
bool ResultsWriter::fill_copy() {
  std::string& out = copy_->buffer();
  if (order_ == Order::kCompletion && out.size() < AppendFile::kFlushBytes) {
    const std::uint64_t left = file_.written() - copied_;
    const auto most = static_cast<std::size_t>(std::min<std::uint64_t>(left, AppendFile::kFlushBytes));
    copied_ += LineReader::copy_bytes(file_.fd(), copied_, most, &out);
  }
  while (order_ == Order::kInput && out.size() < AppendFile::kFlushBytes && next_copied_ < offsets_.size()) {
    if (const std::uint64_t offset = offsets_.at(next_copied_); present(offset)) {
      if (!reader_.copy_line(file_.fd(), offset, &out)) break;
    } else if (!ending_) {
      break;
    }
    ++next_copied_;
  }
  return !out.empty();
}

void ResultsWriter::append_line(const TaskEnded& ended) {
  std::string& out = file_.buffer();
  char text[192];  // the longest head is 60 bytes, the longest tail 130
  char* end = put(text, R"({"task":)");
  end = put_number(end, ended.task);
  end = put(end, status_and_key(ended.status));
  out.append(text, static_cast<std::size_t>(end - text));
  append_json(out, ended.result, ended.status == TaskStatus::kOk ? "null" : "{}");
  append_tensors(out, ended.tensors);
  end = put(text, R"(,"worker":)");
  end = put_number(end, ended.worker);
  end = put(end, R"(,"attempt":)");
  end = put_number(end, ended.attempt);
  end = put(end, R"(,"start":)");
  end = put_seconds<6>(end, ended.start);
  end = put(end, R"(,"seconds":)");
  end = put_seconds<6>(end, ended.duration);
  end = put(end, "}\n");
  out.append(text, static_cast<std::size_t>(end - text));
}

void ResultsWriter::remember(TaskId task, std::uint64_t offset) {
  const std::uint64_t index = (task - tasks_.begin) / tasks_.step;
  out_of_order_ = out_of_order_ || index < offsets_.size();
  offsets_.set(index, offset);
}

// Lines that could not be written (see AppendFile) lie past the end, and so do absent ones.
bool ResultsWriter::present(std::uint64_t offset) const { return offset < file_.size(); }

void ResultsWriter::check_copy() {
  if (!copy_ || !copy_->failure()) return;
  warnings_.push_back("the copy of the results stops here: " + copy_->failure()->message + "; all of them are in " +
                      file_.path());
  copy_.reset();
}

void ResultsWriter::end_copy(bool deliver) {
  ending_ = true;
  feed_copy();
  while (deliver && copy_ && fill_copy()) {
    copy_->flush();
    check_copy();
  }
  if (!copy_ || !fill_copy()) return;
  warnings_.push_back("the copy of the results is incomplete, its reader was too slow; all of them are in " +
                      file_.path());
  copy_.reset();
}

void ResultsWriter::finish(bool deliver) {
  write_out();
  if (durability_ != Durability::kNone && !failure()) start_sync(true);
  if (copy_) end_copy(deliver);
  if (!out_of_order_ || failure()) return;
  if (std::optional<std::string> reason = rewrite_in_input_order()) {
    warnings_.push_back(file_.path() + " stays in the order of completion: " + *reason);
  }
}

bool ResultsWriter::copy_ordered(std::uint64_t offset, AppendFile* to) {
  if (!reader_.copy_line(file_.fd(), offset, &to->buffer())) return false;
  to->end_line();
  return true;
}

std::optional<std::string> ResultsWriter::rewrite_in_input_order() {
  const std::string temporary = file_.path() + ".tmp";
  Result<AppendFile> ordered = AppendFile::create(temporary, "--output");
  if (!ordered) return ordered.error().message;
  std::optional<std::string> reason;
  offsets_.for_each([&](std::uint64_t offset) {
    if (!present(offset) || copy_ordered(offset, &*ordered)) return !ordered->failure();
    const int error = reader_.error_number();
    reason = error != 0 ? "cannot read it: " + std::string(std::strerror(error)) : "it was cut short";
    return false;
  });
  if (reason) {
    unlink(temporary.c_str());
    return reason;
  }
  auto named = take_name(&*ordered, file_.path(), on_disk(durability_));
  return named ? std::nullopt : std::optional(named.error().message);
}

std::vector<std::string> ResultsWriter::take_warnings() { return std::exchange(warnings_, {}); }

}  // namespace mprun
