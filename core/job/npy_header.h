// The header of a .npy file (numpy.lib.format, versions 1 to 3), read without numpy.
// Called when the arrays of a job are resolved; owns nothing.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace mprun::job {

struct NpyHeader {
  std::string descr;  ///< the dtype as the file has it: "<f4"; empty for a record
  bool fortran_order = false;
  std::vector<std::int64_t> shape;
  std::uint64_t item_bytes = 0;   ///< of one element; a record counts as one
  std::uint64_t data_offset = 0;  ///< of the first element, in the file
};

/// The bytes of a file that the header needs at most.
inline constexpr std::size_t kLongestNpyHeader = std::size_t{64} * 1024;

/// Parses the first bytes of a file (all of it, or kLongestNpyHeader of them) of `file_size` bytes. Refused, with the
/// reason as a kUsage error: what is no .npy file, is cut off, claims more data than there is, or holds objects.
[[nodiscard]] Result<NpyHeader> parse_npy_header(std::string_view head, std::uint64_t file_size);

}  // namespace mprun::job
