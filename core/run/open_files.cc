#include "run/open_files.h"

#include <algorithm>
#include <limits>

namespace mprun {
namespace {

// Descriptors of mprun itself, apart from those of its workers, and those needed while one worker starts.
constexpr std::uint64_t kOwnDescriptors = 32;
constexpr std::uint64_t kDescriptorsPerWorker = 2;
constexpr std::uint64_t kUnlimited = std::numeric_limits<std::uint64_t>::max();

}  // namespace

std::uint64_t open_files_for(std::uint64_t workers) { return kOwnDescriptors + kDescriptorsPerWorker * workers; }

std::uint64_t most_workers(rlim_t open_files) {
  if (open_files == RLIM_INFINITY) return kUnlimited;
  return (std::max<std::uint64_t>(open_files, kOwnDescriptors) - kOwnDescriptors) / kDescriptorsPerWorker;
}

}  // namespace mprun
