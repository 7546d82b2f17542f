// How many open files a job needs.
#pragma once

#include <sys/resource.h>

#include <cstdint>

namespace mprun {

/// The descriptors that mprun needs for so many workers, and the workers that so many descriptors suffice for.
[[nodiscard]] std::uint64_t open_files_for(std::uint64_t workers);
[[nodiscard]] std::uint64_t most_workers(rlim_t open_files);

}  // namespace mprun
