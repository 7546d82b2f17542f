#include "formats/npy_writer.h"

namespace mprun {
namespace {

constexpr std::size_t kPrefix = 10;  // magic, version and length
constexpr std::size_t kAlignment = 64;

}  // namespace

std::string NpyText::dictionary() const {
  std::string lengths;
  for (const std::int64_t length : shape) lengths += (lengths.empty() ? "" : " ") + std::to_string(length) + ",";
  if (shape.size() > 1) lengths.pop_back();
  return "{'descr': '" + std::string(dtype) + "', 'fortran_order': " + (fortran_order ? "True" : "False") +
         ", 'shape': (" + lengths + "), }";
}

std::string NpyText::of_length(std::size_t bytes) const {
  std::string text = dictionary();
  if (bytes < kPrefix + text.size() + 1) return "";
  const std::size_t length = bytes - kPrefix;
  text.append(length - text.size() - 1, ' ');
  std::string whole = "\x93NUMPY\x01";
  whole += '\0';
  whole += static_cast<char>(length & 0xFFU);
  whole += static_cast<char>(length >> 8U);
  return whole + text + '\n';
}

std::string NpyText::aligned() const {
  const std::size_t needed = kPrefix + dictionary().size() + 1;
  return of_length((needed + kAlignment - 1) / kAlignment * kAlignment);
}

}  // namespace mprun
