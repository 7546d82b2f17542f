// SharedMemory: an anonymous memory file of a fixed size, mapped here, that other processes can map too by its
// descriptor. It is sealed: no process can shrink it, so our accesses never fault. Zeroed at first.
#pragma once

#include <cstddef>
#include <string>

#include "base/result.h"
#include "os/fd.h"

namespace mprun {

/// An anonymous memory file of a fixed size, zeroed, sealed against shrinking and growing. /proc/PID/maps shows `name`
/// after "/memfd:".
[[nodiscard]] Result<Fd> create_memory_file(const char* name, std::size_t bytes);

/// The same in huge pages of the kernel's reserved pool (hugetlbfs), of the default size; as large as a whole number of
/// them. No page is taken from the pool yet. Errors: this kernel has no such pool.
[[nodiscard]] Result<Fd> create_huge_memory_file(const char* name, std::size_t bytes);

/// Takes all pages of a file of create_huge_memory_file() from the pool, so that no access to them fails. Errors: the
/// pool, or this process's share of it, has too few.
[[nodiscard]] Result<void> take_huge_pages(const char* name, int fd);

/// The path by which any process that may trace us can open a descriptor of ours, as long as it is open.
[[nodiscard]] std::string path_of_descriptor(int fd);

/// All of a memory file, mapped for reading and writing as long as this lives. Where the kernel offers huge pages for
/// shared memory (transparent_hugepage/shmem_enabled), pages that are first touched by this mapping are huge.
class MemoryMapping {
 public:
  explicit MemoryMapping(int fd);
  ~MemoryMapping();
  MemoryMapping(const MemoryMapping&) = delete;
  MemoryMapping& operator=(const MemoryMapping&) = delete;

  /// nullptr: it could not be mapped; after the constructor, errno says why.
  [[nodiscard]] char* data() const { return data_; }
  [[nodiscard]] std::size_t bytes() const { return bytes_; }

 private:
  char* data_ = nullptr;
  std::size_t bytes_ = 0;
};

class SharedMemory {
 public:
  /// `name` as in create_memory_file().
  [[nodiscard]] static Result<SharedMemory> create(const char* name, std::size_t bytes);
  SharedMemory(SharedMemory&& other) noexcept;
  SharedMemory& operator=(SharedMemory&& other) noexcept;
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;
  ~SharedMemory();

  [[nodiscard]] int fd() const { return file_.get(); }
  /// Whether a mapping of /proc/PID/maps with this device (major << 32 | minor) and inode maps it.
  [[nodiscard]] bool is_mapping(std::uint64_t device, std::uint64_t inode) const;
  [[nodiscard]] void* data() const { return data_; }  ///< at the beginning of a page

 private:
  SharedMemory(Fd file, void* data, std::size_t bytes) : file_(std::move(file)), data_(data), bytes_(bytes) {}
  Fd file_;
  void* data_ = nullptr;
  std::size_t bytes_ = 0;
};

}  // namespace mprun
