#include "run/version.h"

#include <string_view>

#include "commit.h"

namespace mprun {

const char* version() { return MPRUN_VERSION; }

std::string version_and_commit() {
  constexpr std::string_view kCommit = MPRUN_COMMIT;
  return kCommit.empty() ? version() : version() + std::string(" (").append(kCommit) + ")";
}

}  // namespace mprun
