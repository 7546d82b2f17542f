#include "os/shared_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "os/uninterrupted.h"

namespace mprun {

namespace {

Error cannot_share(const char* name) {
  return system_error(std::string("cannot share the memory \"") + name + "\"", errno);
}

Result<Fd> sealed(const char* name, Fd file, std::size_t bytes) {
  if (!file || uninterrupted([&] { return ftruncate(file.get(), static_cast<off_t>(bytes)); }) != 0)
    return cannot_share(name);
  if (fcntl(file.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) return cannot_share(name);
  return file;
}

}  // namespace

Result<Fd> create_memory_file(const char* name, std::size_t bytes) {
  return sealed(name, Fd(memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING)), bytes);
}

Result<Fd> create_huge_memory_file(const char* name, std::size_t bytes) {
  Fd file(memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_HUGETLB));
  struct stat info {};
  if (!file || fstat(file.get(), &info) != 0) return cannot_share(name);
  const auto page = static_cast<std::size_t>(info.st_blksize);
  return sealed(name, std::move(file), (bytes + page - 1) / page * page);
}

Result<void> take_huge_pages(const char* name, int fd) {
  struct stat info {};
  if (fstat(fd, &info) != 0) return cannot_share(name);
  if (uninterrupted([&] { return fallocate(fd, 0, 0, info.st_size); }) != 0) return cannot_share(name);
  return {};
}

std::string path_of_descriptor(int fd) { return "/proc/" + std::to_string(getpid()) + "/fd/" + std::to_string(fd); }

MemoryMapping::MemoryMapping(int fd) {
  struct stat info {};
  if (fstat(fd, &info) != 0) return;
  bytes_ = static_cast<std::size_t>(info.st_size);
  void* const mapped = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (mapped == MAP_FAILED) return;
  data_ = static_cast<char*>(mapped);
  madvise(mapped, bytes_, MADV_HUGEPAGE);  // a kernel without huge pages refuses, which changes nothing
}

MemoryMapping::~MemoryMapping() {
  if (data_ != nullptr) munmap(data_, bytes_);
}

Result<SharedMemory> SharedMemory::create(const char* name, std::size_t bytes) {
  auto file = create_memory_file(name, bytes);
  if (!file) return file.error();
  void* data = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file->get(), 0);
  if (data == MAP_FAILED) return cannot_share(name);
  return SharedMemory(std::move(*file), data, bytes);
}

SharedMemory::SharedMemory(SharedMemory&& other) noexcept
    : file_(std::move(other.file_)), data_(std::exchange(other.data_, nullptr)), bytes_(other.bytes_) {}

SharedMemory& SharedMemory::operator=(SharedMemory&& other) noexcept {
  std::swap(file_, other.file_);
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

SharedMemory::~SharedMemory() {
  if (data_ != nullptr) munmap(data_, bytes_);
}

bool SharedMemory::is_mapping(std::uint64_t device, std::uint64_t inode) const {
  struct stat info {};
  if (fstat(fd(), &info) != 0) return false;
  return info.st_ino == inode && (std::uint64_t{major(info.st_dev)} << 32U | minor(info.st_dev)) == device;
}

}  // namespace mprun
