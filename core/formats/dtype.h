// The dtypes of numbers that a user may name: numpy's names and codes, and torch's bfloat16. Called when the shared
// tensors of a job are resolved; owns nothing.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace mprun {

struct Dtype {
  std::string text;         ///< as numpy's files write it ("<f4", "|b1"), or "bfloat16"
  std::uint64_t bytes = 0;  ///< of one element
};

/// The dtype of a name ("float32") or code ("f4", "<f4", ">f4"); nullopt if there is none, or if it holds no numbers.
[[nodiscard]] std::optional<Dtype> find_dtype(std::string_view text);

/// All names, for messages.
[[nodiscard]] std::vector<std::string> dtype_names();

}  // namespace mprun
