#include "record/tensor_files.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <memory>
#include <utility>

#include "base/run_layout.h"
#include "formats/npy_writer.h"
#include "formats/safetensors_writer.h"
#include "json/json.h"
#include "os/fd.h"
#include "os/uninterrupted.h"
#include "record/whole_number.h"

namespace mprun {
namespace {

constexpr std::size_t kMostFiles = 4096;  // of different names in one job
constexpr std::size_t kLongestName = 200;
constexpr std::size_t kVersion1Prefix = 10;  // magic, version and length
constexpr std::string_view kNpy = ".npy";
constexpr std::string_view kDtypeBegins = "{'descr': '";

using Rows = std::pair<std::uint64_t, std::uint64_t>;

/// The rows of an input that is a batch, "[64,128]".
std::optional<Rows> batch_of(std::string_view input) {
  Rows rows;
  if (input.empty() || input.front() != '[') return std::nullopt;
  const char* const end = input.data() + input.size();
  const auto first = std::from_chars(input.data() + 1, end, rows.first);
  if (first.ec != std::errc() || first.ptr == end || *first.ptr != ',') return std::nullopt;
  const auto second = std::from_chars(first.ptr + 1, end, rows.second);
  if (second.ec != std::errc() || second.ptr == end || *second.ptr != ']') return std::nullopt;
  return rows;
}

std::string shown(const std::string& file) { return "tensors/" + file; }

/// The bytes of one row; nullopt where they are too many to count.
std::optional<std::uint64_t> row_bytes_of(const NpyHeader& header) {
  std::uint64_t bytes = header.item_bytes;
  for (std::size_t i = 1; i < header.shape.size(); ++i) {
    if (__builtin_mul_overflow(bytes, static_cast<std::uint64_t>(header.shape[i]), &bytes)) return std::nullopt;
  }
  return bytes;
}

/// The header of a file with that many rows, as long as it was; empty if it would be longer.
std::string header_text(const NpyHeader& header, std::string_view dtype, std::uint64_t rows) {
  std::vector<std::int64_t> shape = header.shape;
  shape.front() = static_cast<std::int64_t>(rows);
  return NpyText{dtype, false, std::move(shape)}.of_length(header.data_offset);
}

/// Makes a part of the file read as zeros, and frees its space where the file system can.
bool clear(int fd, std::uint64_t from, std::uint64_t bytes) {
  const auto at = static_cast<off_t>(from);
  if (bytes == 0) return true;
  const auto punch = [&] {
    return fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, at, static_cast<off_t>(bytes));
  };
  if (uninterrupted(punch) == 0) return true;
  const std::string zeros(std::min<std::uint64_t>(bytes, std::uint64_t{1} << 20U), '\0');
  for (std::uint64_t done = 0; done < bytes;) {
    const std::size_t part = std::min<std::uint64_t>(zeros.size(), bytes - done);
    if (!pwrite_all(fd, zeros.data(), part, from + done)) return false;
    done += part;
  }
  return true;
}

}  // namespace

bool is_tensor_name(std::string_view name) {
  if (name.empty() || name.size() > kLongestName || name.front() == '.') return false;
  return std::none_of(name.begin(), name.end(), [](unsigned char c) { return c < 0x20 || c == '/' || c == 0x7F; });
}

TensorFiles::TensorFiles(const std::string& run_dir, std::optional<std::uint64_t> tasks,
                         std::optional<std::uint64_t> rows)
    : path_(tensors_folder(run_dir)), tasks_(tasks), rows_(rows) {}

// --- what a result claims ---

std::optional<std::string> TensorFiles::check(TaskId task, std::string_view input, std::string_view claims,
                                              Nanos read) {
  pending_.reset();
  const auto parsed = parse_tensor_claims(claims);
  if (!parsed) return "the task's result says nothing sensible of its tensors";
  if (!open_folder()) return "cannot open " + path_ + ": " + std::strerror(errno);
  pending_ = Pending{task, read, {}, false};
  std::vector<std::string_view> in_own_file;
  std::optional<std::string> fault;
  for (const TensorClaim& claim : *parsed) {
    if (claim.kind == MPRUN_TENSOR_ROWS) {
      fault = check_rows(input, claim);
    } else {
      in_own_file.push_back(claim.name);
    }
    if (fault) break;
  }
  if (!fault && !in_own_file.empty()) fault = check_own_file(in_own_file);
  pending_->own_file = !in_own_file.empty();
  if (!fault) claimed_.insert_or_assign(task, std::move(*pending_));
  pending_.reset();
  return fault;
}

std::optional<std::string> TensorFiles::check_rows(std::string_view input, const TensorClaim& claim) {
  if (!is_tensor_name(claim.name)) return "the task's result names a tensor that is no plain file name";
  const auto file = [&claim] { return shown(std::string(claim.name) + ".npy"); };
  const Rows claimed{claim.begin, claim.end};
  const bool is_batch = rows_ && batch_of(input) == claimed;
  if (!is_batch && claimed != Rows{pending_->task, pending_->task + 1}) {
    return "the task claims rows " + std::to_string(claim.begin) + " to " + std::to_string(claim.end) + " of " +
           file() + ", which are not its own";
  }
  const auto found = find(claim.name);
  if (!found) return file() + " " + found.error().message;
  const Gathered& gathered = **found;
  if (gathered.rows != (is_batch ? rows_ : tasks_).value_or(0)) {
    return file() + " has " + std::to_string(gathered.rows) + " rows, which is not what this job gives it";
  }
  return check_file(*found, claim);
}

// Checks that the claimed rows lie within the file, and that the file is still that of its first claim.
std::optional<std::string> TensorFiles::check_file(Gathered* gathered_file, const TensorClaim& claim) {
  const Gathered& gathered = *gathered_file;
  if (gathered.looked < pending_->read) {
    if (auto fault = look_again(claim.name, gathered_file)) return fault;
  }
  std::uint64_t needed = 0;
  if (__builtin_mul_overflow(claim.end, gathered.row_bytes, &needed) ||
      __builtin_add_overflow(needed, gathered.header.data_offset, &needed) || needed > gathered.size) {
    return shown(std::string(claim.name) + ".npy") + " ends before row " + std::to_string(claim.end) +
           ", which the task claims to have written";
  }
  pending_->rows.emplace_back(gathered_file, Rows{claim.begin, claim.end});
  return std::nullopt;
}

std::optional<std::string> TensorFiles::look_again(std::string_view name, Gathered* gathered) {
  const std::string file = std::string(name) + ".npy";
  const Nanos now = monotonic_now();
  struct statx info {};
  // Not the times: since Linux 6.13 each write after such a question stores a new one.
  constexpr unsigned kWanted = STATX_TYPE | STATX_INO | STATX_SIZE;
  if (statx(folder_.get(), file.c_str(), AT_SYMLINK_NOFOLLOW, kWanted, &info) != 0) {
    note_error(errno);
    return shown(file) + " cannot be read: " + std::strerror(errno);
  }
  if (info.stx_ino != gathered->inode || !S_ISREG(info.stx_mode))
    return shown(file) + " was replaced while the job ran";
  gathered->size = info.stx_size;
  gathered->looked = now;
  return std::nullopt;
}

bool TensorFiles::restore(TaskId task, const Json& tensors) {
  pending_ = Pending{task, 0, {}, false};  // written before any look of this session
  bool holds = tensors.is_array() && open_folder();
  std::vector<std::string> in_own_file;
  try {
    for (std::size_t i = 0; holds && i < tensors.size(); ++i) {
      const auto name = tensors[i].at("name").get<std::string>();
      holds = is_tensor_name(name);
      if (!holds || !tensors[i].contains("rows")) {
        in_own_file.push_back(name);
        continue;
      }
      const Json& named = tensors[i].at("rows");
      const Rows rows(whole_number<std::uint64_t>(named.at(0)), whole_number<std::uint64_t>(named.at(1)));
      const auto found = find(name);
      holds = found && rows.first <= rows.second && ((*found)->rows == 0 || rows.second <= (*found)->rows) &&
              !check_file(*found, {MPRUN_TENSOR_ROWS, rows.first, rows.second, name});
    }
  } catch (const Json::exception&) {
    holds = false;
  }
  if (holds && !in_own_file.empty()) holds = !check_own_file({in_own_file.begin(), in_own_file.end()});
  pending_->own_file = !in_own_file.empty();
  if (holds) count(*pending_);
  ended_ = std::max(ended_, task + 1);
  pending_.reset();
  return holds;
}

Result<bool> TensorFiles::go_on() {
  if (first_error_ != 0) return system_error("cannot look at what is in " + path_, first_error_);
  if (!open_folder()) return false;  // no task has returned a tensor
  remove_leftovers();
  remove_broken();
  own_written_.clear();
  // What a killed session wrote may be in memory only.
  const bool on_disk = uninterrupted([this] { return syncfs(folder_.get()); }) == 0;
  named_ = on_disk;
  for (auto& [name, gathered] : files_) {
    gathered.written = false;
    gathered.named = on_disk;
    const bool batches = rows_ && gathered.rows == *rows_;
    gathered.rows = (batches ? rows_ : tasks_).value_or(0);
    const auto file = open_one(name + ".npy", O_RDWR);
    const std::string header = header_text(gathered.header, gathered.dtype, gathered.rows);
    if (!file || header.empty() || !pwrite_all(file->get(), header.data(), header.size(), 0)) {
      return internal_error("cannot go on with " + path_ + "/" + name + ".npy: " + std::strerror(errno));
    }
  }
  return on_disk;
}

std::vector<Fd> TensorFiles::take_written() {
  std::vector<Fd> written;
  const auto take = [&](const std::string& file) {
    if (auto opened = open_one(file, O_RDONLY)) written.push_back(std::move(*opened));
  };
  bool new_names = !own_written_.empty();
  for (auto& [name, gathered] : files_) {
    if (!std::exchange(gathered.written, false)) continue;
    take(name + ".npy");
    new_names = !std::exchange(gathered.named, true) || new_names;
  }
  for (const TaskId task : std::exchange(own_written_, {})) take(std::to_string(task) + ".safetensors");
  if (new_names) take_folders(&written);
  return written;
}

// Workers make these folders.
void TensorFiles::take_folders(std::vector<Fd>* written) {
  for (const char* const folder : {".", ".."}) {
    if (folder == std::string_view("..") && std::exchange(named_, true)) continue;
    if (Fd opened = open_fd_at(folder_.get(), folder, O_RDONLY | O_DIRECTORY)) written->push_back(std::move(opened));
  }
}

// Counts as done what the task that has ended well claimed.
void TensorFiles::count(const Pending& claimed) {
  for (const auto& [gathered, rows] : claimed.rows) {
    gathered->done.add(rows.first, rows.second);
    bytes_ += (rows.second - rows.first) * gathered->row_bytes;
    gathered->written = true;
  }
  if (!claimed.own_file) return;
  ++own_files_;
  bytes_ += claimed.own_bytes;
  own_written_.push_back(claimed.task);
}

std::optional<std::string> TensorFiles::check_own_file(const std::vector<std::string_view>& names) {
  const std::string file = std::to_string(pending_->task) + ".safetensors";
  const auto opened = open_one(file, O_RDONLY);
  if (!opened) return shown(file) + " " + opened.error().message;
  struct stat info {};
  errno = 0;
  if (fstat(opened->get(), &info) == 0) pending_->own_bytes = static_cast<std::uint64_t>(info.st_size);
  const auto fault = safetensors_fault(opened->get(), names);
  if (fault && errno == EIO) note_error(errno);  // parsing numbers sets other values
  return fault ? std::optional(shown(file) + " " + *fault) : std::nullopt;
}

bool TensorFiles::open_folder() {
  if (!folder_) folder_ = open_fd(path_, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
  if (!folder_) note_error(errno);
  return static_cast<bool>(folder_);
}

// A call on a file has failed; these errors mean that it is not one of ours.
void TensorFiles::note_error(int error_number) {
  constexpr std::array kNotOurs = {ENOENT, ENOTDIR, ELOOP, ENXIO, EISDIR};
  if (std::find(kNotOurs.begin(), kNotOurs.end(), error_number) == kNotOurs.end()) first_error_ = error_number;
}

// A FIFO must not make mprun wait, and a symbolic link must not lead it elsewhere.
Result<Fd> TensorFiles::open_one(const std::string& file, int access) {
  Fd fd = open_fd_at(folder_.get(), file, access | O_NOFOLLOW | O_NONBLOCK);
  if (!fd) note_error(errno);
  if (!fd) return internal_error(std::string("cannot be opened: ") + std::strerror(errno));
  return fd;
}

Result<TensorFiles::Gathered*> TensorFiles::find(std::string_view name) {
  const auto known = files_.find(name);
  if (known != files_.end()) return &known->second;
  if (files_.size() == kMostFiles) {
    return internal_error("is one too many: the job's tensors have more than " + std::to_string(kMostFiles) + " names");
  }
  auto read_now = read(std::string(name));
  if (!read_now) return read_now.error();
  return &files_.emplace(name, std::move(*read_now)).first->second;
}

Result<TensorFiles::Gathered> TensorFiles::read(const std::string& name) {
  const auto file = open_one(name + ".npy", O_RDONLY);
  if (!file) return file.error();
  const Nanos now = monotonic_now();
  struct stat info {};
  const bool looked = fstat(file->get(), &info) == 0;
  if (looked && !S_ISREG(info.st_mode)) return internal_error("is not a regular file");
  std::string head(kLongestNpyHeader, '\0');
  const ssize_t n = looked ? pread_all(file->get(), head.data(), head.size(), 0) : -1;
  if (n < 0) note_error(errno);
  if (n < 0) return internal_error(std::string("cannot be read: ") + std::strerror(errno));
  head.resize(static_cast<std::size_t>(n));
  auto header = parse_npy_header(head, static_cast<std::uint64_t>(info.st_size));
  if (!header) return header.error();
  Gathered gathered;
  gathered.inode = info.st_ino;
  gathered.size = static_cast<std::uint64_t>(info.st_size);
  gathered.looked = now;
  const auto row_bytes = row_bytes_of(*header);
  if (!row_bytes || header->shape.empty()) return internal_error("has a header that mprun did not write");
  const std::size_t dtype = kVersion1Prefix + kDtypeBegins.size();
  gathered.dtype = head.substr(dtype, head.find('\'', dtype) - dtype);
  gathered.rows = static_cast<std::uint64_t>(header->shape.front());
  gathered.row_bytes = *row_bytes;
  gathered.header = std::move(*header);
  if (header_text(gathered.header, gathered.dtype, gathered.rows) != head.substr(0, gathered.header.data_offset)) {
    return internal_error("has a header that mprun did not write");
  }
  return gathered;
}

void TensorFiles::on_event(const JobEvent& event) {
  if (const auto* retried = std::get_if<TaskRetried>(&event)) claimed_.erase(retried->task);
  const auto* ended = std::get_if<TaskEnded>(&event);
  if (ended == nullptr) return;
  ended_ = std::max(ended_, ended->task + 1);
  const auto claimed = claimed_.extract(ended->task);
  if (claimed && ended->status == TaskStatus::kOk) count(claimed.mapped());
}

// --- the end of the job ---

std::vector<std::string> TensorFiles::finish() {
  std::vector<std::string> warnings;
  if (!open_folder()) return warnings;  // no task has returned a tensor
  remove_leftovers();
  for (auto& [name, gathered] : files_) {
    if (auto done = finish_file(name, &gathered); !done) {
      warnings.push_back(path_ + "/" + name + ".npy " + done.error().message);
    }
  }
  return warnings;
}

Result<void> TensorFiles::finish_file(const std::string& name, Gathered* gathered) {
  if (gathered->rows == 0) gathered->rows = ended_;
  const std::uint64_t offset = gathered->header.data_offset;
  const auto file = open_one(name + ".npy", O_RDWR);
  if (!file) return file.error();
  struct stat info {};
  if (fstat(file->get(), &info) != 0 || info.st_ino != gathered->inode) return internal_error("was replaced");
  const bool was_cut = static_cast<std::uint64_t>(info.st_size) < offset + gathered->done.end() * gathered->row_bytes;
  const std::string header = header_text(gathered->header, gathered->dtype, gathered->rows);
  std::uint64_t size = 0;
  if (header.empty() || __builtin_mul_overflow(gathered->rows, gathered->row_bytes, &size)) {
    return internal_error("has no room for its number of rows");
  }
  gathered->written = true;
  bool good = pwrite_all(file->get(), header.data(), header.size(), 0);
  good = good && uninterrupted([&] { return ftruncate(file->get(), static_cast<off_t>(offset + size)); }) == 0;
  for (const auto& [begin, end] : gathered->done.gaps(gathered->rows)) {
    good = good && clear(file->get(), offset + begin * gathered->row_bytes, (end - begin) * gathered->row_bytes);
  }
  if (!good) return internal_error(std::string("cannot be written: ") + std::strerror(errno));
  if (was_cut) return internal_error("was cut when rows of it were done; they are zeros now");
  return {};
}

std::vector<std::string> TensorFiles::names() const {
  std::vector<std::string> found;
  const int again = uninterrupted([&] { return openat(folder_.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC); });
  if (again < 0) return found;
  const std::unique_ptr<DIR, int (*)(DIR*)> listing(fdopendir(again), closedir);
  if (!listing) close(again);
  for (const dirent* entry = nullptr; listing && (entry = readdir(listing.get())) != nullptr;) {
    found.emplace_back(entry->d_name);
  }
  return found;
}

void TensorFiles::remove_leftovers() const {
  for (const std::string& name : names()) {
    if (name.size() > 5 && name.front() == '.' && name.ends_with(".tmp")) unlinkat(folder_.get(), name.c_str(), 0);
  }
}

// A power cut may leave the name of a file without its header: workers could write no row there. No result needs it.
void TensorFiles::remove_broken() {
  for (const std::string& file : names()) {
    if (!file.ends_with(kNpy)) continue;
    const std::string name = file.substr(0, file.size() - kNpy.size());
    if (files_.count(name) == 0 && !read(name) && first_error_ == 0) unlinkat(folder_.get(), file.c_str(), 0);
  }
}

Json TensorFiles::to_json() const {
  Json list = Json::array();
  for (const auto& [name, gathered] : files_) {
    if (gathered.done.count() == 0) continue;
    Json shape = gathered.header.shape;
    shape[0] = gathered.rows;
    list.push_back({{"name", name},
                    {"file", shown(name + ".npy")},
                    {"dtype", gathered.dtype},
                    {"shape", std::move(shape)},
                    {"rows_done", gathered.done.count()},
                    {"rows_missing", gathered.rows - gathered.done.count()}});
  }
  if (own_files_ > 0) list.push_back({{"file", "tensors/TASK.safetensors"}, {"tasks", own_files_}});
  return list;
}

}  // namespace mprun
