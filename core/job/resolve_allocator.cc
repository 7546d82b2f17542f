#include <algorithm>
#include <utility>

#include "job/allocators.h"
#include "job/resolve_parts.h"
#include "json/words.h"

namespace mprun {

const std::vector<Allocator>& allocators() {
  static const std::vector<Allocator> kAll{
      {"jemalloc", "libjemalloc2", {"libjemalloc.so.2"}},
      {"tcmalloc", "libtcmalloc-minimal4", {"libtcmalloc_minimal.so.4", "libtcmalloc.so.4"}},
      {"mimalloc", "libmimalloc2.0", {"libmimalloc.so.3", "libmimalloc.so.2", "libmimalloc.so.2.0"}},
  };
  return kAll;
}

std::vector<std::string> allocator_libraries() {
  std::vector<std::string> names;
  for (const Allocator& allocator : allocators()) {
    names.insert(names.end(), allocator.libraries.begin(), allocator.libraries.end());
  }
  return names;
}

std::string path_of(const Allocator& allocator, const std::map<std::string, std::string>& found) {
  for (const std::string& name : allocator.libraries) {
    if (const auto library = found.find(name); library != found.end()) return library->second;
  }
  return {};
}

namespace job {

Result<void> resolve_allocator(Resolving& job) {
  const std::string name = job.text("/allocator");
  const auto& all = allocators();
  const auto allocator = std::find_if(all.begin(), all.end(), [&](const Allocator& one) { return one.name == name; });
  if (allocator == all.end()) return {};  // system
  std::string path = path_of(*allocator, job.around.find_libraries(allocator->libraries));
  if (path.empty()) {
    return job.layers.error("/allocator", "found " + in_quotes(name) + ", but the dynamic linker does not find " +
                                              allocator->libraries.front() + "\n  install " + allocator->package +
                                              " (its name in Debian 12), or use \"system\"");
  }
  if (path.find_first_of(": \t") != std::string::npos) {
    return job.layers.error("/allocator", "LD_PRELOAD cannot hold the path of its library: " + path);
  }
  job.spec.allocator_library = std::move(path);
  return {};
}

}  // namespace job
}  // namespace mprun
