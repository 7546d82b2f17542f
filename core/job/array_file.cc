#include "job/array_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "json/words.h"
#include "os/fd.h"

namespace mprun::job {

namespace {

/// The first bytes of a regular file, and its size.
struct FileHead {
  std::string bytes;
  std::uint64_t file_size = 0;
};

Result<FileHead> read_head(const std::string& path, std::size_t longest) {
  // O_NONBLOCK: a FIFO of that name must not make mprun wait
  const Fd file = open_fd(path, O_RDONLY | O_NONBLOCK);
  struct stat status {};
  if (!file || fstat(file.get(), &status) != 0) return usage_error(path + ": cannot be read: " + std::strerror(errno));
  if (!S_ISREG(status.st_mode)) return usage_error(path + ": is not a regular file, which arrays must be in");
  FileHead head;
  head.file_size = static_cast<std::uint64_t>(status.st_size);
  head.bytes.resize(std::min<std::uint64_t>(longest, head.file_size));
  const ssize_t n = pread_all(file.get(), head.bytes.data(), head.bytes.size(), 0);
  if (n < 0) return usage_error(path + ": cannot be read: " + std::strerror(errno));
  head.bytes.resize(static_cast<std::size_t>(n));
  return head;
}

Result<InputArray> to_array(const SafeTensor& tensor, const std::string& name) {
  const std::string words = "the tensor " + in_quotes(clip(tensor.name));
  if (name.empty()) {
    return usage_error("has a tensor without a name\n  name the argument it is for: \"tensors\": {\"...\": \"\"}");
  }
  const SafeDtype* dtype = find_safe_dtype(tensor.dtype);
  if (dtype == nullptr) {
    return usage_error(words + " has the dtype " + in_quotes(clip(tensor.dtype, 20)) +
                       ", which numpy has not\n  name the tensors that are wanted: \"tensors\": [...]");
  }
  if (tensor.shape.empty()) {
    return usage_error(words +
                       " is a single number, which has no rows\n"
                       "  name the tensors that are wanted: \"tensors\": [...]");
  }
  if (tensor.begin % dtype->bytes != 0 && tensor.begin != tensor.end) {
    return usage_error(words + " is not aligned: it begins at byte " + std::to_string(tensor.begin) +
                       ", its elements have " + std::to_string(dtype->bytes) +
                       " bytes; write the file again with a current safetensors");
  }
  InputArray array;
  array.name = name;
  array.rows = tensor.shape.front();
  array.dtype = dtype->numpy;
  array.shape = tensor.shape;
  array.offset = tensor.begin;
  return array;
}

Error no_such_tensor(const std::string& name, const std::vector<SafeTensor>& tensors) {
  constexpr std::size_t kMostShown = 8;
  std::vector<std::string> known;
  known.reserve(tensors.size());
  for (const SafeTensor& tensor : tensors) known.push_back(tensor.name);
  std::string words = "has no tensor " + in_quotes(clip(name));
  if (known.empty()) return usage_error(words + ", it has none at all");
  if (const auto near = nearest_name(name, known))
    return usage_error(words + "\n  did you mean " + in_quotes(*near) + "?");
  const bool more = known.size() > kMostShown;
  known.resize(std::min(known.size(), kMostShown));
  for (std::string& shown : known) shown = in_quotes(clip(shown));
  return usage_error(words + ", it has " + comma_list(known) + (more ? ", ..." : ""));
}

Result<SafeTensor> find_tensor(const std::vector<SafeTensor>& tensors, const std::string& name) {
  const auto found =
      std::find_if(tensors.begin(), tensors.end(), [&](const SafeTensor& tensor) { return tensor.name == name; });
  if (found == tensors.end()) return no_such_tensor(name, tensors);
  return *found;
}

Result<std::vector<InputArray>> pick(const std::vector<SafeTensor>& tensors,
                                     const std::vector<TensorArgument>& wanted) {
  std::vector<InputArray> arrays;
  for (const auto& [argument, name] : wanted) {
    const Result<SafeTensor> found = find_tensor(tensors, name);
    if (!found) return found.error();
    Result<InputArray> array = to_array(*found, argument);
    if (!array) return std::move(array).error();
    arrays.push_back(std::move(*array));
  }
  return arrays;
}

Result<std::vector<SafeTensor>> read_safetensors_header(const std::string& path) {
  Result<FileHead> head = read_head(path, kSafetensorsHead);
  if (!head) return std::move(head).error();
  Result<std::vector<SafeTensor>> tensors = parse_safetensors_header(head->bytes, head->file_size);
  if (!tensors) return usage_error(path + ": " + tensors.error().message);
  return tensors;
}

}  // namespace

Result<NpyHeader> read_npy_header(const std::string& path) {
  Result<FileHead> head = read_head(path, kLongestNpyHeader);
  if (!head) return std::move(head).error();
  Result<NpyHeader> header = parse_npy_header(head->bytes, head->file_size);
  if (!header) return usage_error(path + ": " + header.error().message);
  return header;
}

Result<SafeTensor> read_safe_tensor(const std::string& path, const std::string& name) {
  const Result<std::vector<SafeTensor>> tensors = read_safetensors_header(path);
  if (!tensors) return tensors.error();
  Result<SafeTensor> tensor = find_tensor(*tensors, name);
  if (!tensor) return usage_error(path + ": " + tensor.error().message);
  return tensor;
}

Result<InputArray> read_npy_file(const std::string& path) {
  const Result<NpyHeader> header = read_npy_header(path);
  if (!header) return header.error();
  InputArray array;
  array.path = path;
  if (!header->shape.empty()) array.rows = header->shape.front();
  array.shape = header->shape;
  return array;
}

Result<std::vector<InputArray>> read_safetensors_file(const std::string& path,
                                                      const std::vector<TensorArgument>& wanted) {
  const Result<std::vector<SafeTensor>> tensors = read_safetensors_header(path);
  if (!tensors) return tensors.error();
  std::vector<TensorArgument> arguments = wanted;
  if (wanted.empty()) {
    for (const SafeTensor& tensor : *tensors) arguments.emplace_back(tensor.name, tensor.name);
  }
  Result<std::vector<InputArray>> arrays = pick(*tensors, arguments);
  if (!arrays) return usage_error(path + ": " + arrays.error().message);
  if (arrays->empty()) return usage_error(path + ": has no inputs: it has no tensors");
  for (InputArray& array : *arrays) array.path = path;
  return arrays;
}

}  // namespace mprun::job
