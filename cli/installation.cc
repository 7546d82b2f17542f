#include "installation.h"

#include <filesystem>

namespace mprun {

Result<Installation> find_installation() {
  std::error_code error;
  const auto program = std::filesystem::read_symlink("/proc/self/exe", error);
  const auto folder = program.parent_path().parent_path() / "lib/mprun";
  Installation found;
  found.bootstrap = folder / "python/bootstrap.py";
  found.importer = folder / "python/import_script.py";
  found.adapters.preload = folder / "libmprun_preload.so";
  found.adapters.site = folder / "python/site";
  for (const std::string& file : {found.bootstrap, found.importer, found.adapters.preload, found.adapters.site}) {
    if (error || !std::filesystem::exists(file, error)) {
      return internal_error("mprun's adapter files are missing: there is no " + file +
                            "\n  install mprun again: bin/mprun and lib/mprun belong together");
    }
  }
  return found;
}

}  // namespace mprun
