// The header of a .safetensors file: 8 bytes with its length, then JSON that names the tensors, then their bytes.
// Called when the inputs of a job are resolved; owns nothing.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace mprun::job {

struct SafeTensor {
  std::string name;
  std::string dtype;  ///< as the file has it: "F32"
  std::vector<std::int64_t> shape;
  std::uint64_t begin = 0;  ///< of its bytes, in the file
  std::uint64_t end = 0;
};

/// How workers see a dtype of the format.
struct SafeDtype {
  std::string_view name;   ///< "F32"
  std::string_view numpy;  ///< "<f4"; "bfloat16" for the one that numpy has not
  std::uint64_t bytes;     ///< of one element
};

/// The dtype of that name; null if numpy and torch's CPU tensors have none for it.
[[nodiscard]] const SafeDtype* find_safe_dtype(std::string_view name);

/// The bytes of a file that the header needs at most, its length included: some hundred tensors.
inline constexpr std::size_t kLongestSafetensorsHeader = std::size_t{64} * 1024;

/// Parses the first bytes of a file (all of it, or kLongestSafetensorsHeader of them) of `file_size` bytes; tensors in
/// the header's order. As the format demands, the tensors' bytes must fill the file without gaps and overlaps.
/// Refused, with the reason as a kUsage error: what is cut off, is no JSON, or claims what cannot be.
[[nodiscard]] Result<std::vector<SafeTensor>> parse_safetensors_header(std::string_view head, std::uint64_t file_size);

}  // namespace mprun::job
