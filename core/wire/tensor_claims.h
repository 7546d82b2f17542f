// What a result says of the tensors that its task has written (struct mprun_tensor in protocol.h), taken apart.
// Used by the records on mprun's side; the bytes come from a worker and are believed only as far as they are checked.
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

/// The claims of one result; nullopt where the bytes are none, or are more than kMostTensors of them.
[[nodiscard]] std::optional<std::vector<TensorClaim>> parse_tensor_claims(std::string_view bytes);

/// The tensors that one result may bring (adapters/python/mprun/tensor_files.py has the same number).
inline constexpr std::size_t kMostTensors = 1000;

}  // namespace mprun
