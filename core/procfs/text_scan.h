// TextScan: a cursor over a text from the kernel (or from any other source) that takes words and numbers off its front.
// Used by the parsers of this module. Owns nothing. No text can make it read past the end.
#pragma once

#include <sys/types.h>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <optional>
#include <string_view>
#include <system_error>

namespace mprun {

class TextScan {
 public:
  explicit TextScan(std::string_view text) : rest_(text) {}

  [[nodiscard]] std::string_view rest() const { return rest_; }
  [[nodiscard]] bool at_end() const { return rest_.empty(); }

  /// Blanks and tabs, but no newline.
  void skip_blanks() { rest_.remove_prefix(std::min(rest_.find_first_not_of(" \t"), rest_.size())); }

  /// Takes `text` if the rest begins with it.
  bool literal(std::string_view text) {
    if (rest_.substr(0, text.size()) != text) return false;
    rest_.remove_prefix(text.size());
    return true;
  }

  /// Takes a number, blanks before it left out. False, and `value` as it was, if there is none or it does not fit.
  template <typename Number>
  bool number(Number* value, int base = 10) {
    skip_blanks();
    const auto [end, fault] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), *value, base);
    if (fault != std::errc()) return false;
    rest_.remove_prefix(static_cast<std::size_t>(end - rest_.data()));
    return true;
  }

  /// Takes "0x" and a number, as number().
  template <typename Number>
  bool prefixed_hex(Number* value) {
    skip_blanks();
    return literal("0x") && number(value, 16);
  }

  /// Takes what is before the next blank, tab or newline; blanks before it left out.
  std::string_view word() {
    skip_blanks();
    return take(std::min(rest_.find_first_of(" \t\n"), rest_.size()));
  }

  /// Takes the next line, and its newline, which is not part of what is returned.
  std::string_view line() {
    const std::string_view taken = take(std::min(rest_.find('\n'), rest_.size()));
    if (!rest_.empty()) rest_.remove_prefix(1);
    return taken;
  }

 private:
  std::string_view take(std::size_t size) {
    const std::string_view taken = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return taken;
  }

  std::string_view rest_;
};

/// The number of a process or thread that is the whole text.
[[nodiscard]] inline std::optional<pid_t> parse_id(std::string_view text) {
  pid_t id = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, id);
  if (error != std::errc() || stop != end) return std::nullopt;
  return id;
}

}  // namespace mprun
