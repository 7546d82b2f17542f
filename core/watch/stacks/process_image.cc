#include "watch/stacks/process_image.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "os/fd.h"
#include "procfs/live_memory.h"
#include "watch/sample/architecture.h"

namespace mprun {
namespace {

constexpr std::size_t kHead = 4096;               // holds the ELF header, and the build ID of nearly every file
constexpr std::size_t kMostCopied = 256UL << 20;  // of one module's memory
constexpr std::size_t kMostSegments = 64;         // program headers looked at

[[nodiscard]] bool is_of_this_machine(const Elf64_Ehdr& header) {
  return std::memcmp(header.e_ident, ELFMAG, SELFMAG) == 0 && header.e_ident[EI_CLASS] == ELFCLASS64 &&
         header.e_ident[EI_DATA] == ELFDATA2LSB && header.e_machine == architecture::kElfMachine &&
         header.e_phentsize == sizeof(Elf64_Phdr);
}

// Opens a file by a name from another process: never waits for a FIFO, never accepts a device.
[[nodiscard]] Fd open_plain_file(const std::string& path) {
  Fd fd = open_fd(path, O_RDONLY | O_NONBLOCK | O_NOCTTY);
  struct stat status {};
  if (!fd || fstat(fd.get(), &status) != 0 || !S_ISREG(status.st_mode)) return {};
  return fd;
}

// True if the file begins like the mapped one. Devices and inodes do not show this: in /proc/PID/maps they may be those
// of the layer below an overlay.
[[nodiscard]] bool begins_with(int fd, const std::vector<char>& head) {
  std::vector<char> found(head.size());
  const ssize_t count = pread_all(fd, found.data(), found.size(), 0);
  return count >= static_cast<ssize_t>(sizeof(Elf64_Ehdr)) &&
         std::memcmp(found.data(), head.data(), static_cast<std::size_t>(count)) == 0;
}

}  // namespace

void ProcessImages::Unmap::operator()(char* memory) const { munmap(memory, size); }

ModuleImage ProcessImages::open(const std::string& path, std::uint64_t base) {
  std::vector<char> head(kHead);
  Elf64_Ehdr header{};
  if (!read_live_memory(pid_, base, head.data(), head.size())) return {};
  std::memcpy(&header, head.data(), sizeof header);
  if (!is_of_this_machine(header)) return {};
  if (!path.empty() && path.front() == '/') {
    // The process's own view of the file system first: it may live in a container.
    const ModuleImage seen_by_it = open_file("/proc/" + std::to_string(pid_) + "/root" + path, head);
    if (seen_by_it.elf != nullptr) return seen_by_it;
    const ModuleImage seen_by_us = open_file(path, head);
    if (seen_by_us.elf != nullptr) return seen_by_us;
  }
  return copy_memory(base);
}

ModuleImage ProcessImages::open_file(const std::string& path, const std::vector<char>& head) const {
  const Fd fd = open_plain_file(path);
  if (!fd || !begins_with(fd.get(), head)) return {};
  // Read, not mapped: a file that is cut short meanwhile must not cause a SIGBUS here.
  const int kept = fcntl(fd.get(), F_DUPFD_CLOEXEC, 0);
  Elf* elf = kept >= 0 ? elf_begin(kept, ELF_C_READ, nullptr) : nullptr;
  if (elf != nullptr) return {elf, kept};
  if (kept >= 0) ::close(kept);
  return {};
}

// Copies the loaded segments to their places in the file. The section headers are not loaded: libdw does without them.
ModuleImage ProcessImages::copy_memory(std::uint64_t base) {
  Elf64_Ehdr header{};
  if (!read_live_memory(pid_, base, &header, sizeof header) || !is_of_this_machine(header)) return {};
  std::vector<Elf64_Phdr> segments(std::min<std::size_t>(header.e_phnum, kMostSegments));
  if (header.e_phoff > kMostCopied ||
      !read_live_memory(pid_, base + header.e_phoff, segments.data(), segments.size() * sizeof(Elf64_Phdr))) {
    return {};
  }
  std::erase_if(segments, [](const Elf64_Phdr& segment) { return segment.p_type != PT_LOAD; });
  if (segments.empty()) return {};
  std::size_t size = 0;
  for (const Elf64_Phdr& segment : segments) {
    if (segment.p_offset > kMostCopied || segment.p_filesz > kMostCopied) return {};
    size = std::max<std::size_t>(size, segment.p_offset + segment.p_filesz);
  }
  if (size < header.e_phoff + header.e_phnum * sizeof(Elf64_Phdr) || size > kMostCopied) return {};

  void* memory = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return {};
  std::unique_ptr<char, Unmap> copy(static_cast<char*>(memory), Unmap{size});
  const std::uint64_t bias = base - (segments.front().p_vaddr - segments.front().p_offset);
  for (const Elf64_Phdr& segment : segments) {
    // What is not readable stays zero: a stack may do without it.
    (void)read_live_memory(pid_, bias + segment.p_vaddr, copy.get() + segment.p_offset, segment.p_filesz);
  }
  header.e_shoff = 0;
  header.e_shnum = 0;
  header.e_shstrndx = 0;
  std::memcpy(copy.get(), &header, sizeof header);
  Elf* elf = elf_memory(copy.get(), size);
  if (elf == nullptr) return {};
  copies_.push_back(std::move(copy));
  return {elf, -1};
}

}  // namespace mprun
