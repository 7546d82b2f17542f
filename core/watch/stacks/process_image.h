// ELF images of the files that a process runs from: read from disk if the file there is the one that was mapped, else
// from the process's memory (deleted or replaced files, the vDSO). Private to native_stack.cc.
#pragma once

#include <libelf.h>
#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace mprun {

/// An image; `fd` backs it if it comes from a file.
struct ModuleImage {
  Elf* elf = nullptr;  ///< nullptr: there is none
  int fd = -1;
};

/// Makes images and owns the memory of those that were copied; must outlive them.
class ProcessImages {
 public:
  explicit ProcessImages(pid_t pid) : pid_(pid) {}

  /// The image of the module mapped at `base`, `path` as /proc/PID/maps has it. The caller owns the result.
  [[nodiscard]] ModuleImage open(const std::string& path, std::uint64_t base);

 private:
  struct Unmap {
    std::size_t size = 0;
    void operator()(char* memory) const;
  };

  [[nodiscard]] ModuleImage open_file(const std::string& path, const std::vector<char>& head) const;
  [[nodiscard]] ModuleImage copy_memory(std::uint64_t base);

  pid_t pid_;
  std::vector<std::unique_ptr<char, Unmap>> copies_;
};

}  // namespace mprun
