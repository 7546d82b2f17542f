// The size of an array from what a header claims, which may be anything. Used by the readers of headers; owns nothing.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace mprun {

/// The bytes of an array of `shape` (no negative lengths) with elements of `item_bytes`; nullopt from 2^64 on.
[[nodiscard]] inline std::optional<std::uint64_t> array_bytes(std::uint64_t item_bytes,
                                                              const std::vector<std::int64_t>& shape) {
  std::uint64_t bytes = item_bytes;
  bool too_large = false;
  bool empty = false;
  for (const std::int64_t length : shape) {
    empty = empty || length == 0;
    too_large = __builtin_mul_overflow(bytes, static_cast<std::uint64_t>(length), &bytes) || too_large;
  }
  if (empty) return 0;
  return too_large ? std::nullopt : std::optional(bytes);
}

}  // namespace mprun
