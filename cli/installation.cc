#include "installation.h"

#include <filesystem>

namespace mprun {

Result<std::string> find_bootstrap() {
  std::error_code error;
  const auto program = std::filesystem::read_symlink("/proc/self/exe", error);
  const auto file = program.parent_path().parent_path() / "lib/mprun/python/bootstrap.py";
  if (error || !std::filesystem::exists(file, error)) {
    return internal_error("mprun's adapter files are missing: there is no " + file.string() +
                          "\n  install mprun again: bin/mprun and lib/mprun belong together");
  }
  return file.string();
}

}  // namespace mprun
