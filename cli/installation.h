// Where this mprun's own files are: relative to its executable, in a build tree and installed alike.
#pragma once

#include <string>

#include "base/result.h"

namespace mprun {

/// adapters/python/bootstrap.py as installed: PREFIX/lib/mprun/python/bootstrap.py for PREFIX/bin/mprun.
[[nodiscard]] Result<std::string> find_bootstrap();

}  // namespace mprun
