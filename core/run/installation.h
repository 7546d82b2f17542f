// Finds this mprun's own files: relative to its executable, in a build tree and installed alike.
#pragma once

#include <string>

#include "base/result.h"
#include "launch/environment.h"
#include "os/fd.h"

namespace mprun {

/// PREFIX/lib/mprun for PREFIX/bin/mprun.
struct Installation {
  std::string bootstrap;  ///< python/bootstrap.py: what mprun's own interpreters run
  std::string importer;   ///< python/import_script.py: what `mprun doctor SCRIPT.py` runs
  AdapterFiles adapters;
  Fd folder;  ///< `adapters` leads through it where the path itself cannot be used; must be kept open
};

[[nodiscard]] Result<Installation> find_installation();

/// PREFIX/share/mprun for PREFIX/bin/mprun.
[[nodiscard]] std::string shared_folder();

}  // namespace mprun
