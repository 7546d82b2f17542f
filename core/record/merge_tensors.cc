#include "record/merge_tensors.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "base/run_layout.h"
#include "formats/npy_reader.h"
#include "os/fd.h"
#include "os/uninterrupted.h"
#include "record/whole_number.h"

namespace mprun {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kCopyAtOnce = std::size_t{1} << 20U;

/// The beginning of a gathered file of one shard.
struct TensorHead {
  std::string text;  ///< the whole header
  NpyHeader header;
};

Result<TensorHead> read_head(const std::string& path) {
  const auto file = open_file(path, O_RDONLY | O_NOFOLLOW);
  if (!file) return file.error();
  struct stat info {};
  if (fstat(file->get(), &info) != 0) return system_error("cannot read " + path, errno);
  TensorHead head;
  head.text.resize(kLongestNpyHeader);
  const ssize_t size = pread_all(file->get(), head.text.data(), head.text.size(), 0);
  if (size < 0) return system_error("cannot read " + path, errno);
  head.text.resize(static_cast<std::size_t>(size));
  auto header = parse_npy_header(head.text, static_cast<std::uint64_t>(info.st_size));
  if (!header) return internal_error(path + " " + header.error().message);
  if (header->shape.empty()) return internal_error(path + " has no rows");
  head.text.resize(header->data_offset);
  head.header = std::move(*header);
  return head;
}

bool same_rows(const NpyHeader& one, const NpyHeader& other) {
  return one.descr == other.descr && one.data_offset == other.data_offset && one.item_bytes == other.item_bytes &&
         one.shape.size() == other.shape.size() &&
         std::equal(one.shape.begin() + 1, one.shape.end(), other.shape.begin() + 1);
}

/// Copies within the file system where it can.
bool copy_bytes(int from, int to, std::uint64_t at, std::uint64_t bytes) {
  std::string buffer;
  for (std::uint64_t done = 0; done < bytes;) {
    auto in = static_cast<off_t>(at + done);
    auto out = in;
    const ssize_t copied =
        buffer.empty() ? uninterrupted([&] { return copy_file_range(from, &in, to, &out, bytes - done, 0); }) : 0;
    if (copied > 0) {
      done += static_cast<std::uint64_t>(copied);
      continue;
    }
    buffer.resize(kCopyAtOnce);
    const std::size_t part = std::min<std::uint64_t>(buffer.size(), bytes - done);
    if (pread_all(from, buffer.data(), part, at + done) != static_cast<ssize_t>(part)) return false;
    if (!pwrite_all(to, buffer.data(), part, at + done)) return false;
    done += part;
  }
  return true;
}

}  // namespace

MergedTensors::MergedTensors(const std::string& run_dir, const std::vector<ShardRun>* shards)
    : folder_(tensors_folder(run_dir)), shards_(shards), files_(run_dir, std::nullopt, std::nullopt) {}

Result<MergedTensors> MergedTensors::begin(const std::string& run_dir, const std::vector<ShardRun>& shards) {
  MergedTensors merged(run_dir, &shards);
  std::error_code error;
  fs::remove_all(merged.folder_, error);
  if (error) return internal_error("cannot remove " + merged.folder_ + ": " + error.message());
  const bool any = std::any_of(shards.begin(), shards.end(), [](const ShardRun& shard) {
    return access(tensors_folder(shard.path).c_str(), F_OK) == 0;
  });
  if (any && mkdir(merged.folder_.c_str(), kPrivateFolder) != 0)
    return system_error("cannot make " + merged.folder_, errno);
  return merged;
}

// The file gets the header of the shard with the most rows: where their number was not known, each shard has as many as
// its last task needs.
Result<MergedTensors::Gathered*> MergedTensors::gathered(const std::string& name) {
  if (const auto known = gathered_.find(name); known != gathered_.end()) return &known->second;
  std::optional<TensorHead> longest;
  for (const ShardRun& shard : *shards_) {
    const std::string path = shard.path + "/tensors/" + name + ".npy";
    if (access(path.c_str(), F_OK) != 0) continue;
    auto head = read_head(path);
    if (!head) return head.error();
    if (longest && !same_rows(longest->header, head->header)) {
      return usage_error("tensors/" + name + ".npy of " + shard.name() + " has another shape or dtype than that of " +
                         "shards before it, so that they cannot be gathered in one file\n  set \"output.pad\", or " +
                         "\"output.tensors\" to \"safetensors\", and run the job again");
    }
    if (!longest || longest->header.shape[0] < head->header.shape[0]) longest = std::move(*head);
  }
  if (!longest) return internal_error("results name tensors/" + name + ".npy, which no shard has");
  Gathered file;
  file.data_offset = longest->header.data_offset;
  file.row_bytes = longest->header.item_bytes;
  for (std::size_t i = 1; i < longest->header.shape.size(); ++i) {
    file.row_bytes *= static_cast<std::uint64_t>(longest->header.shape[i]);  // no overflow: the file is this large
  }
  const std::string path = folder_ + "/" + name + ".npy";
  auto to = open_file(path, O_RDWR | O_CREAT | O_EXCL, 0666);
  if (!to) return to.error();
  const std::uint64_t size = file.data_offset + static_cast<std::uint64_t>(longest->header.shape[0]) * file.row_bytes;
  if (!pwrite_all(to->get(), longest->text.data(), longest->text.size(), 0) ||
      ftruncate(to->get(), static_cast<off_t>(size)) != 0) {
    return system_error("cannot write " + path, errno);
  }
  file.to = std::move(*to);
  return &gathered_.emplace(name, std::move(file)).first->second;
}

Result<void> MergedTensors::copy_pending(const std::string& name, Gathered* file) {
  if (file->begin == file->end) return {};
  if (file->from.count(file->shard) == 0) {
    const std::string path = (*shards_)[file->shard].path + "/tensors/" + name + ".npy";
    auto from = open_file(path, O_RDONLY | O_NOFOLLOW);
    if (!from) return from.error();
    file->from.clear();
    file->from.emplace(file->shard, std::move(*from));
  }
  const std::uint64_t at = file->data_offset + file->begin * file->row_bytes;
  if (!copy_bytes(file->from[file->shard].get(), file->to.get(), at, (file->end - file->begin) * file->row_bytes)) {
    return system_error("cannot copy rows of tensors/" + name + ".npy of " + (*shards_)[file->shard].name(), errno);
  }
  file->begin = file->end;
  return {};
}

Result<void> MergedTensors::take_own_file(std::size_t shard, TaskId task) const {
  const std::string name = "/" + std::to_string(task) + ".safetensors";
  const std::string from = tensors_folder((*shards_)[shard].path) + name;
  std::error_code error;
  fs::create_hard_link(from, folder_ + name, error);
  if (error) fs::copy_file(from, folder_ + name, error);
  if (error) return internal_error("cannot copy " + from + ": " + error.message());
  return {};
}

Result<void> MergedTensors::take(std::size_t shard, TaskId task, const Json& tensors) {
  bool own_file = false;
  try {
    for (const Json& named : tensors) {
      if (!named.contains("rows")) {
        own_file = true;
        continue;
      }
      const auto name = named.at("name").get<std::string>();
      if (!is_tensor_name(name)) return internal_error("a result names a tensor that is no plain file name");
      const auto begin = whole_number<std::uint64_t>(named.at("rows").at(0));
      const auto end = whole_number<std::uint64_t>(named.at("rows").at(1));
      const auto file = gathered(name);
      if (!file) return file.error();
      Gathered& target = **file;
      if (target.shard != shard || target.end != begin) {
        if (auto copied = copy_pending(name, &target); !copied) return copied;
        target.shard = shard;
        target.begin = begin;
      }
      target.end = end;
    }
  } catch (const Json::exception& error) {
    return internal_error(std::string("a result names its tensors in another way than mprun: ") + error.what());
  }
  if (own_file) {
    if (auto taken = take_own_file(shard, task); !taken) return taken;
  }
  if (files_.restore(task, tensors)) return {};
  return internal_error("the tensors of task " + std::to_string(task) + " are not in " + (*shards_)[shard].path +
                        "/tensors, though its result names them");
}

Result<std::vector<std::string>> MergedTensors::finish(OnDisk when) {
  for (auto& [name, file] : gathered_) {
    if (auto copied = copy_pending(name, &file); !copied) return copied.error();
  }
  auto warnings = files_.finish();
  const Fd folder = open_fd(folder_, O_RDONLY | O_DIRECTORY);
  if (!folder || when == OnDisk::kLater) return warnings;  // no task has returned a tensor
  // There may be more files than can be open at a time.
  if (uninterrupted([&] { return syncfs(folder.get()); }) != 0) return system_error("cannot write " + folder_, errno);
  return warnings;
}

}  // namespace mprun
