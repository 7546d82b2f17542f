#include "run/installation.h"

#include <fcntl.h>
#include <sys/auxv.h>
#include <unistd.h>

#include <filesystem>

#include "os/shared_memory.h"

namespace mprun {

namespace {

// Without /proc: the path that the kernel was asked to execute.
std::filesystem::path own_executable() {
  std::error_code error;
  auto program = std::filesystem::read_symlink("/proc/self/exe", error);
  if (!error) return program;
  const auto* executed = reinterpret_cast<const char*>(getauxval(AT_EXECFN));
  return std::filesystem::canonical(executed != nullptr ? executed : "", error);
}

}  // namespace

Result<Installation> find_installation() {
  std::error_code error;
  const auto program = own_executable();
  const auto folder = program.parent_path().parent_path() / "lib/mprun";
  Installation found;
  found.bootstrap = folder / "python/bootstrap.py";
  // LD_PRELOAD and PYTHONPATH cannot quote a blank or a colon: then the path leads through a descriptor of ours.
  std::string plain = folder;
  if (plain.find_first_of(" :") != std::string::npos) {
    found.folder = open_fd(plain, O_PATH | O_DIRECTORY);
    plain = path_of_descriptor(found.folder.get());
  }
  found.adapters.preload = plain + "/libmprun_preload.so";
  found.adapters.site = plain + "/python/site";
  found.importer = folder / "python/import_script.py";
  for (const std::string& file : {found.bootstrap, found.importer, found.adapters.preload, found.adapters.site}) {
    if (program.empty() || !std::filesystem::exists(file, error)) {
      return internal_error("mprun's adapter files are missing: there is no " + file +
                            (error ? " (" + error.message() + ")" : "") +
                            "\n  install mprun again: bin/mprun and lib/mprun belong together");
    }
  }
  return found;
}

std::string shared_folder() { return own_executable().parent_path().parent_path() / "share/mprun"; }

}  // namespace mprun
