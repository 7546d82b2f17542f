// FuzzFolder: a folder for targets whose readers need file names; it exists as long as the program runs.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <string_view>

#include "fuzz_support.h"
#include "os/fd.h"

namespace mprun::fuzz {

class FuzzFolder {
 public:
  FuzzFolder() {
    path_ = (std::filesystem::temp_directory_path() / "mprun-fuzz-XXXXXX").string();
    require(mkdtemp(path_.data()) != nullptr, "a folder can be made");
  }
  FuzzFolder(const FuzzFolder&) = delete;
  FuzzFolder& operator=(const FuzzFolder&) = delete;
  ~FuzzFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }

  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] std::string file(const char* name) const { return path_ + "/" + name; }
  /// Writes a file of the folder again.
  void put(const char* name, std::string_view text) const {
    const Fd fd(open(file(name).c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
    require(write(fd.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size()), "a file can be written");
  }

 private:
  std::string path_;
};

}  // namespace mprun::fuzz
