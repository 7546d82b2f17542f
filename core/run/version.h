// The version of this program. Made by the build.
#pragma once

#include <string>

namespace mprun {

/// "0.2.0".
[[nodiscard]] const char* version();

/// "0.2.0 (7d20aa31c5e4)": with the commit it was built from, where that is known.
[[nodiscard]] std::string version_and_commit();

}  // namespace mprun
