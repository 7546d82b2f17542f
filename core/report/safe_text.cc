#include "report/safe_text.h"

namespace mprun {
namespace {

constexpr std::string_view kBlank = " \t\r\n\f\v";

[[nodiscard]] bool is_continuation(char c) { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; }

}  // namespace

std::string printable(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t at = 0; at < text.size(); ++at) {
    const auto byte = static_cast<unsigned char>(text[at]);
    const bool two_byte_control =  // U+0080 to U+009F: some terminals obey these, too
        byte == 0xC2 && at + 1 < text.size() && static_cast<unsigned char>(text[at + 1]) < 0xA0;
    if (two_byte_control) {
      out += '?';
      ++at;
    } else if (byte == '\t') {
      out += ' ';
    } else if ((byte < 0x20 && byte != '\n') || byte == 0x7F) {
      out += '?';
    } else {
      out += text[at];
    }
  }
  return out;
}

std::string one_line(std::string_view text, std::size_t longest) {
  const std::size_t begin = text.find_first_not_of(kBlank);
  if (begin == text.npos) return {};
  text.remove_prefix(begin);
  text = text.substr(0, text.find('\n'));
  text = text.substr(0, text.find_last_not_of(kBlank) + 1);
  if (text.size() <= longest) return printable(text);
  std::size_t end = longest > 3 ? longest - 3 : 0;
  while (end > 0 && is_continuation(text[end])) --end;
  return printable(text.substr(0, end)) + "...";
}

std::string ascii(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (const char c : text) {
    if (!is_continuation(c)) out += static_cast<unsigned char>(c) < 0x80 ? c : '?';
  }
  return out;
}

int columns_at_most(std::string_view text) {
  int columns = 0;
  for (const char c : text) {
    if (is_continuation(c)) continue;
    columns += static_cast<unsigned char>(c) < 0x80 ? 1 : 2;
  }
  return columns;
}

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : printable(text)) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\'':
        out += "&#39;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

}  // namespace mprun
