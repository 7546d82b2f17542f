#include "formats/npy_reader.h"

#include <algorithm>
#include <charconv>
#include <initializer_list>
#include <optional>
#include <string>

#include "formats/array_bytes.h"
#include "json/words.h"

namespace mprun {

namespace {

constexpr std::string_view kMagic = "\x93NUMPY";

std::uint64_t little_endian(std::string_view bytes) {
  std::uint64_t value = 0;
  for (std::size_t i = bytes.size(); i-- > 0;) value = value << 8U | static_cast<unsigned char>(bytes[i]);
  return value;
}

/// Whether numpy's elements of that kind can have this size; texts and bytes: any up to 1 GiB.
bool is_size_of(char kind, std::uint64_t bytes) {
  constexpr std::uint64_t kMost = 1U << 30U;
  const auto one_of = [bytes](std::initializer_list<std::uint64_t> sizes) {
    return std::find(sizes.begin(), sizes.end(), bytes) != sizes.end();
  };
  switch (kind) {
    case 'b':
      return bytes == 1;
    case 'i':
    case 'u':
      return one_of({1, 2, 4, 8});
    case 'f':
      return one_of({2, 4, 8, 16});
    case 'c':
      return one_of({8, 16, 32});
    case 'm':
    case 'M':
      return bytes == 8;
    case 'S':
    case 'U':
    case 'V':
      return bytes > 0 && bytes <= kMost;
    default:
      return false;
  }
}

/// The size of one element of a plain dtype ("<f4", "|b1", "<U8", "<M8[ns]"); 0 if it is none.
std::uint64_t element_bytes(std::string_view descr) {
  if (descr.empty()) return 0;
  if (std::string_view("<>|=").find(descr.front()) != std::string_view::npos) descr.remove_prefix(1);
  if (descr.empty()) return 0;
  const char kind = descr.front();
  const char* const end_of_text = descr.data() + descr.size();
  std::uint64_t count = 0;
  const auto [end, fault] = std::from_chars(descr.data() + 1, end_of_text, count);
  const bool with_unit = kind == 'm' || kind == 'M';
  const bool whole = end == end_of_text || (with_unit && *end == '[' && descr.back() == ']');
  if (fault != std::errc() || !whole || !is_size_of(kind, count)) return 0;
  return kind == 'U' ? count * 4 : count;
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
      const std::optional<std::string_view> key = text();
      if (!key || !take(":")) return false;
      if (*key == "descr") {
        const bool plain = !peek('[');
        descr = read_dtype(&header->item_bytes, 0);
        if (!descr) return false;
        header->descr = plain ? last_descr_ : "";
      } else if (*key == "fortran_order") {
        header->fortran_order = take("True");
        order = header->fortran_order || take("False");
        if (!order) return false;
      } else if (*key == "shape") {
        header->shape.clear();
        shape = read_shape(&header->shape);
        if (!shape) return false;
      } else {
        return false;
      }
      if (!take(",") && !peek('}')) return false;
    }
    skip_space();
    return descr && order && shape && rest_.empty();
  }

  [[nodiscard]] bool holds_objects() const { return objects_; }
  /// The first dtype that numpy does not know; empty: none.
  [[nodiscard]] const std::string& unknown() const { return unknown_; }

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
  /// The text between quotes, escapes unchanged.
  std::optional<std::string_view> text() {
    if (!peek('\'') && !peek('"')) return std::nullopt;
    const char quote = rest_.front();
    std::size_t end = 1;
    while (end < rest_.size() && rest_[end] != quote) end += rest_[end] == '\\' ? 2 : 1;
    if (end >= rest_.size()) return std::nullopt;
    const std::string_view value = rest_.substr(1, end - 1);
    rest_.remove_prefix(end + 1);
    return value;
  }

  /// '<f4', or the fields of a record: [('x', '<f4'), ('y', [('z', '<i2', (3,))])].
  bool read_dtype(std::uint64_t* bytes, int depth) {
    constexpr int kDeepest = 16;
    if (peek('[')) return depth < kDeepest && read_fields(bytes, depth);
    const std::optional<std::string_view> descr = text();
    if (!descr) return false;
    last_descr_ = *descr;
    objects_ = objects_ || descr->find('O') != std::string_view::npos;
    *bytes = element_bytes(*descr);
    if (*bytes == 0 && unknown_.empty()) unknown_ = descr->empty() ? " " : *descr;
    return true;
  }
  bool read_fields(std::uint64_t* bytes, int depth) {
    if (!take("[")) return false;
    *bytes = 0;
    while (!take("]")) {
      std::uint64_t field = 0;
      std::vector<std::int64_t> shape;
      if (!take("(") || !read_field_name() || !take(",") || !read_dtype(&field, depth + 1)) return false;
      if (take(",") && !peek(')') && !read_shape(&shape)) return false;
      if (!take(")") || (!take(",") && !peek(']'))) return false;
      const std::optional<std::uint64_t> whole = array_bytes(field, shape);
      if (!whole || __builtin_add_overflow(*bytes, *whole, bytes)) return false;
    }
    return *bytes > 0;
  }
  /// 'name', or ('title', 'name').
  bool read_field_name() {
    if (!take("(")) return text().has_value();
    return text() && take(",") && text() && take(")");
  }
  bool read_shape(std::vector<std::int64_t>* shape) {
    if (!take("(")) return false;
    while (!take(")")) {
      skip_space();
      std::int64_t length = 0;
      const auto [end, fault] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), length);
      if (fault != std::errc() || length < 0) return false;
      rest_.remove_prefix(static_cast<std::size_t>(end - rest_.data()));
      take("L");  // Python 2 wrote long integers this way
      shape->push_back(length);
      if (!take(",") && !peek(')')) return false;
    }
    return true;
  }

  std::string_view rest_;
  bool objects_ = false;
  std::string last_descr_;
  std::string unknown_;
};

Result<void> check_size(const NpyHeader& header, std::uint64_t file_size) {
  const std::optional<std::uint64_t> bytes = array_bytes(header.item_bytes, header.shape);
  const std::uint64_t there = file_size - std::min(file_size, header.data_offset);
  if (bytes && *bytes <= there) return {};
  return usage_error("is cut off: its header claims " + (bytes ? std::to_string(*bytes) : "2^64 or more") +
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
  if (reader.holds_objects()) {
    return usage_error("holds Python objects (dtype object), which only pickle can read; save numbers");
  }
  if (!reader.unknown().empty()) return usage_error("has the unknown dtype " + in_quotes(clip(reader.unknown(), 40)));
  if (!good) return usage_error("has a damaged header");
  if (Result<void> checked = check_size(header, file_size); !checked) return std::move(checked).error();
  return header;
}

}  // namespace mprun
