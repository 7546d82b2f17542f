// Parses and checks a RESULT frame (wire/protocol.h). Used by the pools of workers and ranks; the bytes come from a
// process of the job and are trusted only as far as they are checked.
#pragma once

#include <optional>
#include <string_view>

#include "wire/protocol.h"

namespace mprun {

/// Says, human-readable, what a process did whose pipe holds anything else.
inline constexpr std::string_view kWroteNoResult = "wrote something that is no result to mprun's pipe";

/// Borrows from the payload.
struct ResultFrame {
  mprun_result head{};
  std::string_view tensors;  ///< what it claims to have written, see wire/tensor_claims.h
  std::string_view json;     ///< the value or the error: one whole JSON value
};

/// nullopt: the payload is no result.
[[nodiscard]] std::optional<ResultFrame> parse_result(std::string_view payload);

}  // namespace mprun
