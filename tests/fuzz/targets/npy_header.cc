// The header of a .npy file: read, then written by mprun and read again.
#include "formats/npy_reader.h"

#include "formats/array_bytes.h"
#include "formats/dtype.h"
#include "formats/npy_writer.h"
#include "fuzz_support.h"
#include "targets.h"

namespace mprun::fuzz {
namespace {

void check_written(const NpyHeader& header) {
  const NpyText text{header.descr, header.fortran_order, header.shape};
  const std::string written = text.aligned();
  const std::uint64_t data = *array_bytes(header.item_bytes, header.shape);
  if (data > ~std::uint64_t{0} - written.size()) return;
  const auto read = parse_npy_header(written, written.size() + data);
  require(read && read->descr == header.descr && read->fortran_order == header.fortran_order &&
              read->shape == header.shape && read->item_bytes == header.item_bytes &&
              read->data_offset == written.size() && written.size() % 64 == 0,
          "a header survives being written and read");
  require(text.of_length(written.size() + 7).size() == written.size() + 7, "a header is as long as is asked");
}

}  // namespace

void npy_header(std::string_view input) {
  Bytes bytes(input);
  const auto more = bytes.take<std::uint64_t>();
  const std::string_view head = bytes.rest();
  if (more > ~std::uint64_t{0} - head.size()) return;
  const std::uint64_t file_size = head.size() + more;
  const auto header = parse_npy_header(head, file_size);
  if (!header) {
    require(header.error().message.size() < 300, "messages are short");
    return;
  }
  const auto data = array_bytes(header->item_bytes, header->shape);
  require(header->data_offset <= file_size, "the data begin in the file");
  require(data && *data <= file_size - header->data_offset, "the data end in the file");
  if (find_dtype(header->descr) && header->shape.size() <= 32) check_written(*header);
}

}  // namespace mprun::fuzz
