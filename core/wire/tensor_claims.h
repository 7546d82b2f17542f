// Parses what a result claims about the tensors that its task has written (struct mprun_tensor in protocol.h).
// Used by mprun's records; the bytes come from a worker and are trusted only as far as they are checked.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "wire/protocol.h"

namespace mprun {

/// One tensor that a task claims; `name` points into the frame.
struct TensorClaim {
  mprun_tensor_kind kind = MPRUN_TENSOR_ROWS;
  std::uint64_t begin = 0, end = 0;  ///< rows, for MPRUN_TENSOR_ROWS
  std::string_view name;
};

/// The claims of one result; nullopt if the bytes are no claims, or hold more than kMostTensors.
[[nodiscard]] std::optional<std::vector<TensorClaim>> parse_tensor_claims(std::string_view bytes);

/// The most tensors that one result may claim (adapters/python/mprun/tensor_files.py has the same number).
inline constexpr std::size_t kMostTensors = 1000;

}  // namespace mprun
