// The header of a .safetensors file: 8 bytes with its length, then JSON that names the tensors, then their bytes.
// Called when the inputs of a job are resolved; owns nothing.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace mprun {

struct SafeTensor {
  std::string name;
  std::string dtype;  ///< as written in the file: "F32"
  std::vector<std::int64_t> shape;
  std::uint64_t begin = 0;  ///< of its bytes, in the file
  std::uint64_t end = 0;
};

/// What workers use for a dtype of the format.
struct SafeDtype {
  std::string_view name;   ///< "F32"
  std::string_view numpy;  ///< "<f4"; "bfloat16" for the one that numpy lacks
  std::uint64_t bytes;     ///< of one element
};

/// The dtype of that name; null if numpy and torch's CPU tensors have no equivalent.
[[nodiscard]] const SafeDtype* find_safe_dtype(std::string_view name);

/// The most bytes of a file that the header needs, its length included: some hundred tensors.
inline constexpr std::size_t kSafetensorsHead = std::size_t{64} * 1024;

/// Parses the first bytes (all, or kSafetensorsHead of them) of a file of `file_size` bytes; tensors in the
/// header's order. As the format demands, the tensors' bytes must fill the file without gaps and overlaps. Refuses,
/// with the reason as a kUsage error, a file that is cut off, has invalid JSON, or makes impossible claims.
[[nodiscard]] Result<std::vector<SafeTensor>> parse_safetensors_header(std::string_view head, std::uint64_t file_size);

}  // namespace mprun
