// The header of a .safetensors file: 8 bytes of length, JSON that names tensors with dtype, shape and place, the data.
// Used by TensorFiles to check that a worker wrote what it claims (nothing in the file is trusted), and by
// SharedTensors to write one.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace mprun {

/// Longer headers are refused: mprun reads headers between its other work.
inline constexpr std::size_t kLongestSafetensorsHeader = std::size_t{8} * 1024 * 1024;

/// The only tensor of a file.
struct SafetensorsEntry {
  std::string name, dtype;  ///< "BF16"
  std::vector<std::int64_t> shape;
  std::uint64_t bytes = 0;
};

/// All that precedes the tensor's bytes: length and JSON, a multiple of 8 bytes.
[[nodiscard]] std::string safetensors_header(const SafetensorsEntry& entry);

/// Why `fd`, a regular file, does not hold the whole tensors of these names; nullopt if it does.
[[nodiscard]] std::optional<std::string> safetensors_fault(int fd, const std::vector<std::string_view>& names);

}  // namespace mprun
