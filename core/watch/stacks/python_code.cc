#include "watch/stacks/python_code.h"

#include <algorithm>
#include <array>
#include <cstring>

namespace mprun {
namespace {

constexpr std::size_t kLongestFile = 4096;
constexpr std::size_t kLongestName = 512;
constexpr std::size_t kLargestLineTable = std::size_t{1} << 20U;
constexpr std::uint64_t kMostInstructions = std::uint64_t{1} << 24U;
constexpr std::uint64_t kStringSubclass = std::uint64_t{1} << 28U;  ///< Py_TPFLAGS_UNICODE_SUBCLASS
constexpr std::uint64_t kInstructionSize = 2;
/// Since 3.13, CPython puts a frame of its own between a call of a class and __init__. Its code (_Py_InitCleanup in
/// Python/specialize.c) has three instructions, the first four of which count as not traced: one more than there are.
constexpr std::uint64_t kUntracedBeyondEnd = 1;

/// What lies `offset` bytes into a piece of memory.
template <typename T>
T take(const std::array<char, kLargestPythonPiece>& piece, std::size_t offset) {
  T value{};
  if (offset + sizeof value <= piece.size()) std::memcpy(&value, piece.data() + offset, sizeof value);
  return value;
}

void append_utf8(std::uint32_t c, std::string* text) {
  if (c > 0x10ffff || (c >= 0xd800 && c < 0xe000)) c = 0xfffd;  // lone surrogates: undecodable bytes of a file name
  if (c < 0x80) {
    text->push_back(static_cast<char>(c));
    return;
  }
  if (c >= 0x10000) {
    text->push_back(static_cast<char>(0xf0U | (c >> 18U)));
    text->push_back(static_cast<char>(0x80U | ((c >> 12U) & 0x3fU)));
  } else if (c >= 0x800) {
    text->push_back(static_cast<char>(0xe0U | (c >> 12U)));
  }
  if (c >= 0x800) {
    text->push_back(static_cast<char>(0x80U | ((c >> 6U) & 0x3fU)));
  } else {
    text->push_back(static_cast<char>(0xc0U | (c >> 6U)));
  }
  text->push_back(static_cast<char>(0x80U | (c & 0x3fU)));
}

/// Walks the entries of a co_linetable.
class LineTable {
 public:
  explicit LineTable(std::string_view table) : left_(table) {}

  struct Entry {
    std::uint64_t length = 0;  ///< bytes of instructions
    std::int64_t line_step = 0;
    bool has_line = true;
  };

  std::optional<Entry> next() {
    if (left_.empty() || (byte(0) & 0x80U) == 0) return std::nullopt;
    const unsigned kind = (byte(0) >> 3U) & 15U;
    Entry entry{((byte(0) & 7U) + 1) * kInstructionSize, 0, kind != kNoLocation};
    left_.remove_prefix(1);
    if (kind == kLong || kind == kNoColumns) entry.line_step = signed_number();
    if (kind >= kFirstOneLine && kind < kNoColumns) entry.line_step = kind - kFirstOneLine;
    while (!left_.empty() && (byte(0) & 0x80U) == 0) left_.remove_prefix(1);  // columns
    return entry;
  }

 private:
  static constexpr unsigned kFirstOneLine = 10, kNoColumns = 13, kLong = 14, kNoLocation = 15;

  [[nodiscard]] unsigned byte(std::size_t i) const { return static_cast<unsigned char>(left_[i]); }

  /// Six bits per byte, the lowest first; the lowest of all is the sign.
  std::int64_t signed_number() {
    std::uint64_t number = 0;
    for (unsigned shift = 0; !left_.empty() && shift < 36; shift += 6) {
      const unsigned bits = byte(0);
      if ((bits & 0x80U) != 0) break;  // garbage: the next entry
      left_.remove_prefix(1);
      number |= std::uint64_t{bits & 63U} << shift;
      if ((bits & 64U) == 0) break;
    }
    const auto magnitude = static_cast<std::int64_t>(number >> 1U);
    return (number & 1U) != 0 ? -magnitude : magnitude;
  }

  std::string_view left_;
};

int signed_byte(char c) {
  const int byte = static_cast<unsigned char>(c);
  return byte < 128 ? byte : byte - 256;
}

int line_of_ranges(std::string_view table, int first_line, std::uint64_t offset) {
  constexpr int kNoLine = -128;
  std::uint64_t begin = 0;
  int line = first_line;
  for (std::size_t i = 0; i + 1 < table.size(); i += 2) {
    begin += static_cast<unsigned char>(table[i]);
    const int step = signed_byte(table[i + 1]);
    if (step != kNoLine) line += step;
    if (offset < begin) return step == kNoLine ? 0 : line;
  }
  return 0;
}

int line_of_steps(std::string_view table, int first_line, std::uint64_t offset) {
  std::uint64_t begin = 0;
  int line = first_line;
  for (std::size_t i = 0; i + 1 < table.size(); i += 2) {
    begin += static_cast<unsigned char>(table[i]);
    if (offset < begin) break;
    line += signed_byte(table[i + 1]);
  }
  return line;
}

}  // namespace

int python_line(std::string_view table, int first_line, std::uint64_t offset, PythonLineFormat format) {
  if (format == PythonLineFormat::kRanges) return line_of_ranges(table, first_line, offset);
  if (format == PythonLineFormat::kSteps) return line_of_steps(table, first_line, offset);
  LineTable entries(table);
  std::int64_t line = first_line;
  std::uint64_t begin = 0;
  while (const auto entry = entries.next()) {
    line += entry->line_step;
    begin += entry->length;
    if (offset < begin) return entry->has_line && line > 0 && line < (1 << 30) ? static_cast<int>(line) : 0;
  }
  return 0;
}

const PythonCode* PythonCodeReader::read(std::uint64_t address) {
  auto known = known_.find(address);
  if (known == known_.end()) known = known_.emplace(address, decode(address)).first;
  return known->second ? &*known->second : nullptr;
}

std::optional<PythonCode> PythonCodeReader::decode(std::uint64_t address) {
  std::array<char, kLargestPythonPiece> object{};
  const bool has_instructions = layout_.code.instructions != 0;
  const std::size_t needed =
      has_instructions ? layout_.code.instructions : layout_.code.line_table + sizeof(std::uint64_t);
  if (!memory_->read(address, object.data(), needed)) return std::nullopt;
  const auto size = has_instructions ? take<std::uint64_t>(object, layout_.object_size) : 0;
  if (take<std::uint64_t>(object, type_offset(layout_)) != types_.code || size > kMostInstructions) return std::nullopt;

  PythonCode code;
  code.begin = address + layout_.code.instructions;
  code.end = code.begin + size * kInstructionSize;
  const auto untraced = has_instructions ? take<std::uint32_t>(object, layout_.code.first_traceable) : 0;
  if (untraced > size + kUntracedBeyondEnd) return std::nullopt;
  code.first_traceable = code.begin + untraced * kInstructionSize;
  if (layout_.code.copies != 0) code.copies = take<std::uint64_t>(object, layout_.code.copies);
  code.first_line = take<std::int32_t>(object, layout_.code.first_line);
  code.argument_count = take<std::uint32_t>(object, layout_.code.argument_count);
  code.local_count = take<std::uint32_t>(object, layout_.code.local_count);
  auto file = text(take<std::uint64_t>(object, layout_.code.filename), kLongestFile);
  auto function = text(take<std::uint64_t>(object, layout_.code.qualified_name), kLongestName);
  auto lines = bytes(take<std::uint64_t>(object, layout_.code.line_table));
  if (!file || !function || !lines) return std::nullopt;
  code.file = std::move(*file);
  code.function = std::move(*function);
  code.lines = std::move(*lines);
  return code;
}

std::optional<std::string> PythonCodeReader::bytes(std::uint64_t address) {
  const auto type = memory_->read<std::uint64_t>(address + type_offset(layout_));
  const auto size = memory_->read<std::uint64_t>(address + layout_.object_size);
  if (!type || *type != types_.bytes || !size || *size > kLargestLineTable) return std::nullopt;
  return memory_->bytes(address + layout_.text.bytes_data, *size);
}

bool PythonCodeReader::is_string_type(std::uint64_t type) {
  if (type == types_.unicode) return true;
  const auto flags = memory_->read<std::uint64_t>(type + type_flags_offset(layout_));
  return flags && (*flags & kStringSubclass) != 0;
}

std::optional<std::string> PythonCodeReader::text(std::uint64_t address, std::size_t most) {
  std::array<char, kLargestPythonPiece> object{};
  if (!memory_->read(address, object.data(), layout_.text.ascii_data)) return std::nullopt;
  const auto length = take<std::uint64_t>(object, layout_.text.length);
  const auto state = take<std::uint32_t>(object, layout_.text.state) >> layout_.text.interned_bits;
  const unsigned width = state & 7U;
  const bool compact = (state & 8U) != 0;
  const bool ascii = (state & 16U) != 0;
  if (!is_string_type(take<std::uint64_t>(object, type_offset(layout_)))) return std::nullopt;
  if ((width != 1 && width != 2 && width != 4) || (ascii && width != 1)) return std::nullopt;

  std::uint64_t data = address + (ascii ? layout_.text.ascii_data : layout_.text.compact_data);
  if (!compact) {  // an instance of a subclass: a pointer to the characters is where they would be
    const auto pointer = memory_->read<std::uint64_t>(address + layout_.text.compact_data);
    if (!pointer) return std::nullopt;
    data = *pointer;
  }
  const std::size_t taken = std::min<std::uint64_t>(length, most);
  const auto raw = taken == 0 ? std::string() : memory_->bytes(data, taken * width);
  if (!raw) return std::nullopt;
  std::string utf8;
  for (std::size_t i = 0; i < taken; ++i) {
    std::uint32_t c = 0;
    std::memcpy(&c, raw->data() + i * width, width);
    append_utf8(c, &utf8);
  }
  if (taken < length) utf8 += "...";
  return utf8;
}

bool is_library_file(std::string_view file) {
  return file.substr(0, 8) == "<frozen " || file.find("/dist-packages/") != std::string_view::npos ||
         file.find("/site-packages/") != std::string_view::npos ||
         file.find("/lib/python3.") != std::string_view::npos ||
         file.find("/mprun/python/mprun/sync.py") != std::string_view::npos;
}

}  // namespace mprun
