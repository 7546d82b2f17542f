#include "record/shared_tensors.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <utility>

#include "formats/npy_writer.h"
#include "formats/safetensors_writer.h"
#include "os/fd.h"
#include "os/file_sync.h"
#include "os/memory_policy.h"
#include "os/process.h"
#include "os/shared_memory.h"
#include "os/uninterrupted.h"
#include "record/append_file.h"

namespace mprun {
namespace {

constexpr std::uint64_t kPage = 4096;
constexpr std::size_t kLongestVariable = std::size_t{96} * 1024;  // the kernel takes 128 KiB, including the name
constexpr std::uint64_t kHeaderRoom = 4096;                       // of a saved file, generously
constexpr const char* kBfloat16 = "bfloat16";
constexpr const char* kMemoryName = "mprun-shared";

std::string bytes_text(std::uint64_t bytes) { return std::to_string(bytes) + " bytes"; }

std::uint64_t bytes_to_save(const std::vector<SharedTensor>& tensors) {
  std::uint64_t bytes = 0;
  for (const SharedTensor& tensor : tensors) bytes += tensor.bytes + kHeaderRoom;
  return bytes;
}

/// The end of the last tensor, a whole number of pages and at least one: an empty mapping is not possible.
std::uint64_t memory_bytes(const std::vector<SharedTensor>& tensors) {
  std::uint64_t end = 1;
  for (const SharedTensor& tensor : tensors) end = std::max(end, tensor.offset + tensor.bytes);
  return (end + kPage - 1) / kPage * kPage;
}

/// The directory itself, or the nearest existing one above it.
std::string existing_part(const std::string& directory) {
  std::filesystem::path path(directory);
  std::error_code failed;
  while (path.has_relative_path() && !std::filesystem::is_directory(path, failed)) path = path.parent_path();
  return path.string();
}

/// Checks what can be known now: whether there is room for the saved files, and whether they may be that large.
Result<void> check_room(const std::vector<SharedTensor>& tensors, const std::string& output_dir) {
  const std::uint64_t needed = bytes_to_save(tensors);
  const rlimit limit = limits_of(RLIMIT_FSIZE);
  if (limit.rlim_cur != RLIM_INFINITY && limit.rlim_cur < needed) {
    return usage_error("/shared: the shared tensors need files of up to " + bytes_text(needed) + ", the limit is " +
                       std::to_string(limit.rlim_cur) + "\n  raise it (ulimit -f), or make them smaller");
  }
  const std::string there = existing_part(output_dir);
  struct statvfs space {};
  if (statvfs(there.c_str(), &space) != 0 || space.f_blocks == 0) return {};
  const std::uint64_t free_bytes = std::uint64_t{space.f_bavail} * space.f_frsize;
  if (free_bytes >= needed) return {};
  return usage_error("/shared: there is no space to save the shared tensors in the end: they need " +
                     bytes_text(needed) + ", " + there + " has " + std::to_string(free_bytes) +
                     "; free some space there, or choose another place with --output");
}

/// A range of bytes of an open file.
struct Range {
  int fd;
  std::uint64_t at;
};

constexpr int kSourceEnded = -1;

/// 0, an errno, or kSourceEnded.
int copy_bytes(Range from, Range to, std::uint64_t bytes) {
  std::string buffer(std::min<std::uint64_t>(bytes, std::uint64_t{1} << 20U), '\0');
  for (std::uint64_t done = 0; done < bytes;) {
    const std::size_t part = std::min<std::uint64_t>(buffer.size(), bytes - done);
    const ssize_t got = pread_all(from.fd, buffer.data(), part, from.at + done);
    if (got <= 0) return got < 0 ? errno : kSourceEnded;
    if (!pwrite_all(to.fd, buffer.data(), static_cast<std::size_t>(got), to.at + done)) return errno;
    done += static_cast<std::uint64_t>(got);
  }
  return 0;
}

std::string file_of(const SharedTensor& tensor) {
  return tensor.name + (tensor.dtype == kBfloat16 ? ".safetensors" : ".npy");
}

std::string header_of(const SharedTensor& tensor) {
  if (tensor.dtype == kBfloat16) return safetensors_header({tensor.name, "BF16", tensor.shape, tensor.bytes});
  return NpyText{tensor.dtype, tensor.fortran_order, tensor.shape}.aligned();
}

// Reads the initial value of a tensor into its memory. The pages come as they are touched, huge ones too.
Result<void> fill(const SharedTensor& tensor, char* memory) {
  if (tensor.path.empty() || tensor.bytes == 0) return {};
  const Fd file = open_fd(tensor.path, O_RDONLY | O_NONBLOCK);
  if (!file) return usage_error("/shared/" + tensor.name + ": " + tensor.path + ": " + std::strerror(errno));
  const ssize_t got = pread_all(file.get(), memory, tensor.bytes, tensor.path_offset);
  if (got == static_cast<ssize_t>(tensor.bytes)) return {};
  const int failed = errno == EFAULT ? ENOMEM : errno;  // there was no page for what was read
  return usage_error("/shared/" + tensor.name + ": cannot read " + tensor.path +
                     " into memory: " + (got >= 0 ? "it has become shorter" : std::strerror(failed)));
}

}  // namespace

Result<SharedTensors> SharedTensors::create(const std::vector<SharedTensor>& tensors, const SharedPlacement& placement,
                                            const std::string& output_dir) {
  SharedTensors shared;
  shared.tensors_ = tensors;
  if (tensors.empty()) return shared;
  if (auto room = check_room(tensors, output_dir); !room) return room.error();
  const std::uint64_t bytes = memory_bytes(tensors);
  auto memory =
      placement.hugetlb ? create_huge_memory_file(kMemoryName, bytes) : create_memory_file(kMemoryName, bytes);
  if (!memory) return memory.error();
  shared.memory_ = std::move(*memory);
  if (!placement.nodes.empty()) {
    if (auto spread = interleave_file(shared.memory_.get(), placement.nodes); !spread) return spread.error();
  }
  if (placement.hugetlb) {  // a page that is missing later would end the process that touches it
    if (auto taken = take_huge_pages(kMemoryName, shared.memory_.get()); !taken)
      return usage_error("/huge_pages: " + taken.error().message +
                         "\n  the pool of huge pages, or the share of it that a control group allows, is too small; "
                         "use \"transparent\"");
  }
  if (shared.variable().size() > kLongestVariable) {
    return usage_error("/shared: there are more shared tensors than one variable can list (" +
                       std::to_string(tensors.size()) + ", at most some hundred)\n  put small ones together in one");
  }
  const MemoryMapping mapped(shared.memory_.get());
  if (mapped.data() == nullptr) return system_error("cannot map the shared tensors", errno);
  for (const SharedTensor& tensor : tensors) {
    if (auto filled = fill(tensor, mapped.data() + tensor.offset); !filled) return filled.error();
  }
  return shared;
}

std::string SharedTensors::variable() const {
  if (tensors_.empty()) return "";
  const std::string path = path_of_descriptor(memory_.get());
  Json all = Json::object();
  for (const SharedTensor& tensor : tensors_) {
    all[tensor.name] = {{"path", path},
                        {"offset", tensor.offset},
                        {"dtype", tensor.dtype},
                        {"shape", tensor.shape},
                        {"fortran_order", tensor.fortran_order}};
  }
  return all.dump();
}

Result<void> SharedTensors::save(const std::string& run_dir, OnDisk when) {
  if (tensors_.empty()) return {};
  const std::string path = run_dir + "/shared";
  const bool made = mkdir(path.c_str(), 0700) == 0 || errno == EEXIST;
  // a task may have put anything there: a symbolic link must not lead us elsewhere
  const Fd folder = made ? open_fd(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW) : Fd();
  if (!folder) return internal_error(write_failure_text(path, errno, "--output"));
  std::string first;
  std::size_t failures = 0;
  for (const SharedTensor& tensor : tensors_) {
    const std::string file = file_of(tensor);
    const int failed = save_one(tensor, folder.get(), file, when);
    if (failed == 0) {
      saved_.push_back(
          {{"name", tensor.name}, {"file", "shared/" + file}, {"dtype", tensor.dtype}, {"shape", tensor.shape}});
    } else if (++failures == 1) {
      first = write_failure_text(std::string(path).append("/").append(file), failed, "--output");
    }
  }
  const int synced = when == OnDisk::kNow ? std::max(sync_now(folder.get()), sync_directory(run_dir)) : 0;
  if (failures == 0 && synced != 0) return internal_error(write_failure_text(path, synced, "--output"));
  if (failures == 0) return {};
  if (failures > 1) first += "; " + std::to_string(failures) + " shared tensors are lost";
  return internal_error(first);
}

// 0 or an errno.
int SharedTensors::save_one(const SharedTensor& tensor, int folder, const std::string& file, OnDisk when) const {
  const std::string header = header_of(tensor);
  const std::string temporary = "." + file + ".tmp";  // no tensor's name begins with a dot
  unlinkat(folder, temporary.c_str(), 0);
  const Fd opened = open_fd_at(folder, temporary, O_WRONLY | O_CREAT | O_EXCL);
  if (!opened) return errno;
  const std::uint64_t size = header.size() + tensor.bytes;
  int failed = 0;
  const bool reserved = uninterrupted([&] { return fallocate(opened.get(), 0, 0, static_cast<off_t>(size)); }) == 0;
  if (!reserved && errno != EOPNOTSUPP && errno != ENOSYS) failed = errno;
  if (failed == 0 && !pwrite_all(opened.get(), header.data(), header.size(), 0)) failed = errno;
  if (failed == 0) failed = copy_bytes({memory_.get(), tensor.offset}, {opened.get(), header.size()}, tensor.bytes);
  if (failed == 0 && when == OnDisk::kNow) failed = sync_now(opened.get());
  if (failed == 0 && renameat(folder, temporary.c_str(), folder, file.c_str()) != 0) failed = errno;
  if (failed != 0) unlinkat(folder, temporary.c_str(), 0);
  return failed == kSourceEnded ? EIO : failed;  // a sealed file does not end
}

}  // namespace mprun
