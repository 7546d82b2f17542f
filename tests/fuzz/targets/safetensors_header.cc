// The header of a .safetensors file of inputs.
#include "formats/safetensors_reader.h"

#include "formats/array_bytes.h"
#include "fuzz_support.h"
#include "targets.h"

namespace mprun::fuzz {

void safetensors_header(std::string_view input) {
  Bytes bytes(input);
  const auto more = bytes.take<std::uint32_t>();
  const std::string_view head = bytes.rest();
  const std::uint64_t file_size = head.size() + more;
  const auto tensors = parse_safetensors_header(head, file_size);
  if (!tensors) {
    require(tensors.error().message.size() < 1000, "messages are short");
    return;
  }
  std::uint64_t filled = 0;
  for (const SafeTensor& tensor : *tensors) {
    require(tensor.begin <= tensor.end && tensor.end <= file_size, "a tensor lies in the file");
    filled += tensor.end - tensor.begin;
    const SafeDtype* dtype = find_safe_dtype(tensor.dtype);
    require(dtype == nullptr || array_bytes(dtype->bytes, tensor.shape) == tensor.end - tensor.begin,
            "a tensor has the bytes of its shape");
  }
  require(filled <= file_size - 8, "tensors do not overlap");
}

}  // namespace mprun::fuzz
