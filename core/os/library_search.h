// Where the dynamic linker finds shared libraries, for those that are to be preloaded. Used by run and cli.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace mprun {

/// The paths of libraries by their names ("libjemalloc.so.2"), as a program with our environment would preload them;
/// those that it would not find are left out. Asks the dynamic linker as ldd(1) does, which takes some milliseconds.
[[nodiscard]] std::map<std::string, std::string> find_libraries(const std::vector<std::string>& names);

}  // namespace mprun
