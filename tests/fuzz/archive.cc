#include "archive.h"

#include <charconv>
#include <optional>

namespace mprun::fuzz {
namespace {

constexpr std::size_t kBlock = 512;

/// The fields of a ustar header, at the offsets of POSIX (pax, "ustar Interchange Format").
class Header {
 public:
  explicit Header(std::string_view block) : block_(block) {}

  [[nodiscard]] std::string_view name() const { return text(0, 100); }
  [[nodiscard]] std::optional<std::size_t> size() const { return octal(text(124, 12)); }

  /// A regular file whose header is unmodified.
  [[nodiscard]] bool is_sound() const {
    return text(257, 6) == "ustar" && block_[156] == '0' && text(345, 155).empty() && octal(text(148, 8)) == sum();
  }

 private:
  [[nodiscard]] std::string_view text(std::size_t offset, std::size_t length) const {
    const std::string_view field = block_.substr(offset, length);
    return field.substr(0, field.find('\0'));
  }

  [[nodiscard]] static std::optional<std::size_t> octal(std::string_view digits) {
    std::size_t number = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number, 8);
    if (error != std::errc() || end != digits.data() + digits.size()) return std::nullopt;
    return number;
  }

  /// The sum of all bytes, with the checksum field itself counted as spaces.
  [[nodiscard]] std::size_t sum() const {
    std::size_t sum = 8 * ' ';
    for (std::size_t i = 0; i < block_.size(); ++i) {
      if (i < 148 || i >= 156) sum += static_cast<unsigned char>(block_[i]);
    }
    return sum;
  }

  std::string_view block_;
};

bool is_zeros(std::string_view bytes) { return bytes.find_first_not_of('\0') == std::string_view::npos; }

Error broken(std::size_t offset, const std::string& what) {
  return internal_error("byte " + std::to_string(offset) + ": " + what);
}

}  // namespace

Result<std::vector<ArchiveFile>> read_archive(std::string_view bytes) {
  std::vector<ArchiveFile> files;
  std::size_t offset = 0;
  while (true) {
    const std::string_view rest = bytes.substr(offset);
    if (rest.size() == 2 * kBlock && is_zeros(rest)) return files;
    if (rest.size() < kBlock) return broken(offset, "the archive is truncated");
    const Header header(rest.substr(0, kBlock));
    const auto size = header.size();
    if (!header.is_sound() || !size) return broken(offset, "not the header of a regular file");
    const std::size_t padded = (*size + kBlock - 1) / kBlock * kBlock;
    if (padded < *size || rest.size() - kBlock < padded) return broken(offset, "the file is truncated");
    const std::string_view contents = rest.substr(kBlock, padded);
    if (!is_zeros(contents.substr(*size))) return broken(offset, "the file is longer than its header says");
    files.push_back({std::string(header.name()), std::string(contents.substr(0, *size))});
    offset += kBlock + padded;
  }
}

}  // namespace mprun::fuzz
