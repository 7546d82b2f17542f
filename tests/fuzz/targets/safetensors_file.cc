// A .safetensors file that a worker claims to have written, read by both of mprun's readers.
#include <sys/mman.h>
#include <unistd.h>

#include "formats/safetensors_reader.h"
#include "formats/safetensors_writer.h"
#include "fuzz_support.h"
#include "os/fd.h"
#include "targets.h"

namespace mprun::fuzz {
namespace {

/// Makes the file `bytes` followed by `more` zeros.
void fill(int fd, std::string_view bytes, std::uint64_t more) {
  require(ftruncate(fd, 0) == 0 && pwrite(fd, bytes.data(), bytes.size(), 0) == static_cast<ssize_t>(bytes.size()) &&
              ftruncate(fd, static_cast<off_t>(bytes.size() + more)) == 0,
          "a file can be written");
}

}  // namespace

void safetensors_file(std::string_view input) {
  static const Fd file(memfd_create("fuzz", MFD_CLOEXEC));
  Bytes bytes(input);
  const auto more = bytes.take<std::uint32_t>();
  const std::string_view head = bytes.rest().substr(0, kSafetensorsHead);
  fill(file.get(), head, more);
  const auto tensors = parse_safetensors_header(head, head.size() + more);
  const auto fault = safetensors_fault(file.get(), {"a", "logits"});
  require(!fault || fault->size() < 100, "a fault has few words");
  if (!tensors) return;
  for (const SafeTensor& tensor : *tensors) {
    if (find_safe_dtype(tensor.dtype) == nullptr) continue;
    require(!safetensors_fault(file.get(), {tensor.name}), "what a job may read, a worker may write");
    const SafetensorsEntry entry{tensor.name, tensor.dtype, tensor.shape, tensor.end - tensor.begin};
    const std::string header = mprun::safetensors_header(entry);
    const auto again = parse_safetensors_header(header, header.size() + entry.bytes);
    require(again && again->size() == 1 && again->front().shape == tensor.shape && again->front().name == tensor.name &&
                header.size() % 8 == 0,
            "a header survives being written and read");
  }
}

}  // namespace mprun::fuzz
