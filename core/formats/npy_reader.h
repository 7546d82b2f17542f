// The header of a .npy file (numpy.lib.format, versions 1 to 3), read without numpy. Called when the arrays of a job
// are resolved; owns nothing.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace mprun {

struct NpyHeader {
  std::string descr;  ///< the dtype as written in the file: "<f4"; empty for a record
  bool fortran_order = false;
  std::vector<std::int64_t> shape;
  std::uint64_t item_bytes = 0;   ///< of one element; a record counts as one
  std::uint64_t data_offset = 0;  ///< of the first element, in the file
};

/// The most bytes of a file that the header needs.
inline constexpr std::size_t kLongestNpyHeader = std::size_t{64} * 1024;

/// Parses the first bytes (all, or kLongestNpyHeader of them) of a file of `file_size` bytes. Refuses, with the reason
/// as a kUsage error, a file that is not .npy, is cut off, claims more data than there is, or holds objects.
[[nodiscard]] Result<NpyHeader> parse_npy_header(std::string_view head, std::uint64_t file_size);

}  // namespace mprun
