// Reads what a file of arrays holds. Called when the inputs and the shared tensors of a job are resolved; reads headers
// only.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "formats/npy_reader.h"
#include "formats/safetensors_reader.h"
#include "job/spec.h"

namespace mprun::job {

/// The header of a .npy file. kUsage errors begin with the path.
[[nodiscard]] Result<NpyHeader> read_npy_header(const std::string& path);

/// Where a tensor of a .safetensors file is, whatever its dtype. kUsage errors begin with the path.
[[nodiscard]] Result<SafeTensor> read_safe_tensor(const std::string& path, const std::string& name);

/// The array of a .npy file, without a name. kUsage errors begin with the path.
[[nodiscard]] Result<InputArray> read_npy_file(const std::string& path);

/// The name of a keyword argument, and of the tensor passed in it.
using TensorArgument = std::pair<std::string, std::string>;

/// The requested tensors of a .safetensors file; all of them, each under its own name, if none is requested. kUsage
/// errors begin with the path.
[[nodiscard]] Result<std::vector<InputArray>> read_safetensors_file(const std::string& path,
                                                                    const std::vector<TensorArgument>& wanted);

}  // namespace mprun::job
