// Reader of the corpora: tar archives in ustar format, as ./corpus makes them. Called by fuzz_replay; owns what it
// returns.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace mprun::fuzz {

/// A regular file of an archive.
struct ArchiveFile {
  std::string name;
  std::string bytes;
};

/// Every file of the archive `bytes`, in its order. The archive holds regular files only and ends with exactly two
/// blocks of zeros; anything else, a truncated archive above all, is an error.
[[nodiscard]] Result<std::vector<ArchiveFile>> read_archive(std::string_view bytes);

}  // namespace mprun::fuzz
