// What is in a file of arrays, as workers will map it. Called when the inputs of a job are resolved; reads headers
// only.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "job/spec.h"

namespace mprun::job {

/// The array of a .npy file, without a name. kUsage errors begin with the path.
[[nodiscard]] Result<InputArray> read_npy_file(const std::string& path);

/// The name of a keyword argument and of the tensor that it gets.
using TensorArgument = std::pair<std::string, std::string>;

/// The tensors of a .safetensors file that are asked for; all of them, each under its own name, if none is.
/// kUsage errors begin with the path.
[[nodiscard]] Result<std::vector<InputArray>> read_safetensors_file(const std::string& path,
                                                                    const std::vector<TensorArgument>& wanted);

}  // namespace mprun::job
