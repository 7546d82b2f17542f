#include "job/npy_header.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <optional>

namespace mprun::job {

namespace {

constexpr std::string_view kMagic = "\x93NUMPY";

std::uint64_t little_endian(std::string_view bytes) {
  std::uint64_t value = 0;
  for (std::size_t i = bytes.size(); i-- > 0;) value = value << 8U | static_cast<unsigned char>(bytes[i]);
  return value;
}

/// Reads the Python literal of the header: {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }.
class LiteralReader {
 public:
  explicit LiteralReader(std::string_view text) : rest_(text) {}

  bool read(NpyHeader* header) {
    if (!take("{")) return false;
    bool descr = false;
    bool order = false;
    bool shape = false;
    while (!take("}")) {
      const std::optional<std::string> key = text();
      if (!key || !take(":")) return false;
      if (*key == "descr") {
        descr = read_descr(header);
        if (!descr) return false;
      } else if (*key == "fortran_order") {
        header->fortran_order = take("True");
        order = header->fortran_order || take("False");
        if (!order) return false;
      } else if (*key == "shape") {
        shape = read_shape(&header->shape);
        if (!shape) return false;
      } else {
        return false;
      }
      if (!take(",") && !peek('}')) return false;
    }
    return descr && order && shape;
  }

  [[nodiscard]] bool is_structured() const { return structured_; }

 private:
  void skip_space() { rest_.remove_prefix(std::min(rest_.find_first_not_of(" \n"), rest_.size())); }
  bool peek(char c) {
    skip_space();
    return !rest_.empty() && rest_.front() == c;
  }
  bool take(std::string_view token) {
    skip_space();
    if (rest_.substr(0, token.size()) != token) return false;
    rest_.remove_prefix(token.size());
    return true;
  }
  std::optional<std::string> text() {
    skip_space();
    if (rest_.empty() || (rest_.front() != '\'' && rest_.front() != '"')) return std::nullopt;
    const std::size_t end = rest_.find(rest_.front(), 1);
    if (end == std::string_view::npos) return std::nullopt;
    std::string value(rest_.substr(1, end - 1));
    rest_.remove_prefix(end + 1);
    return value;
  }
  bool read_descr(NpyHeader* header) {
    structured_ = peek('[') || peek('(');
    const std::optional<std::string> descr = text();
    if (descr) header->descr = *descr;
    return descr.has_value();
  }
  bool read_shape(std::vector<std::int64_t>* shape) {
    if (!take("(")) return false;
    while (!take(")")) {
      skip_space();
      std::int64_t length = 0;
      const auto [end, fault] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), length);
      if (fault != std::errc() || length < 0) return false;
      rest_.remove_prefix(static_cast<std::size_t>(end - rest_.data()));
      take("L");  // Python 2 wrote long integers so
      shape->push_back(length);
      if (!take(",") && !peek(')')) return false;
    }
    return true;
  }

  std::string_view rest_;
  bool structured_ = false;
};

/// The size of one element of a plain dtype ("<f4", "|b1", "<U8", "<M8[ns]"); 0 if it is none.
std::uint64_t element_bytes(std::string_view descr) {
  if (descr.size() < 2) return 0;
  if (std::string_view("<>|=").find(descr.front()) != std::string_view::npos) descr.remove_prefix(1);
  if (descr.empty() || std::string_view("biufcmMSUVa?").find(descr.front()) == std::string_view::npos) return 0;
  std::uint64_t count = 0;
  const auto [end, fault] = std::from_chars(descr.data() + 1, descr.data() + descr.size(), count);
  constexpr std::uint64_t kMost = 1U << 30U;
  const bool rest_is_unit = end == descr.data() + descr.size() || *end == '[';
  if (fault != std::errc() || count == 0 || count > kMost || !rest_is_unit) return 0;
  return descr.front() == 'U' ? count * 4 : count;
}

Result<void> check_size(const NpyHeader& header, std::uint64_t file_size) {
  std::uint64_t bytes = header.item_bytes;
  bool too_large = false;
  const bool empty = std::find(header.shape.begin(), header.shape.end(), 0) != header.shape.end();
  for (const std::int64_t length : header.shape) {
    const auto factor = static_cast<std::uint64_t>(length);
    if (factor != 0 && bytes > std::numeric_limits<std::uint64_t>::max() / factor) too_large = true;
    bytes *= factor;
  }
  const std::uint64_t there = file_size - std::min(file_size, header.data_offset);
  if (empty || (!too_large && bytes <= there)) return {};
  return usage_error("is cut off: its header claims " +
                     (too_large ? std::string("more than 2^64") : std::to_string(bytes)) +
                     " bytes of data, the file has " + std::to_string(there));
}

}  // namespace

Result<NpyHeader> parse_npy_header(std::string_view head, std::uint64_t file_size) {
  if (head.substr(0, 2) == "PK") return usage_error("is an .npz archive; save each array as .npy (numpy.save)");
  if (head.substr(0, kMagic.size()) != kMagic) return usage_error("is not a .npy file (numpy.save writes them)");
  const std::size_t length_bytes = head.size() > kMagic.size() && head[kMagic.size()] == 1 ? 2 : 4;
  const std::size_t text_begin = kMagic.size() + 2 + length_bytes;
  if (head.size() < text_begin) return usage_error("is cut off inside its header");
  const int version = static_cast<unsigned char>(head[kMagic.size()]);
  if (version < 1 || version > 3)
    return usage_error("has .npy version " + std::to_string(version) + ", known are 1 to 3");
  const std::uint64_t length = little_endian(head.substr(kMagic.size() + 2, length_bytes));
  if (length > file_size - std::min<std::uint64_t>(file_size, text_begin)) {
    return usage_error("is cut off inside its header");
  }
  if (length > kLongestNpyHeader - text_begin) {
    return usage_error("has a header of " + std::to_string(length) + " bytes, more than any array needs");
  }
  NpyHeader header;
  header.data_offset = text_begin + length;
  LiteralReader reader(head.substr(text_begin, length));
  const bool good = reader.read(&header);
  if (reader.is_structured()) return usage_error("holds records with named fields; save a plain array");
  if (!good) return usage_error("has a damaged header");
  if (header.descr.find('O') != std::string::npos) {
    return usage_error("holds Python objects (dtype object), which only pickle can read; save numbers");
  }
  header.item_bytes = element_bytes(header.descr);
  if (header.item_bytes == 0) return usage_error("has the unknown dtype '" + header.descr.substr(0, 40) + "'");
  if (Result<void> checked = check_size(header, file_size); !checked) return std::move(checked).error();
  return header;
}

}  // namespace mprun::job
