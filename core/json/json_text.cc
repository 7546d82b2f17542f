#include "json/json_text.h"

#include <array>
#include <cstdint>

namespace mprun {

namespace {

constexpr std::string_view kHexDigits = "0123456789abcdef";

unsigned byte_at(std::string_view text, std::size_t at) { return static_cast<unsigned char>(text[at]); }

/// The length of the valid UTF-8 sequence at `at` (RFC 3629: no surrogates, nothing overlong); 0 if there is none.
std::size_t utf8_length(std::string_view text, std::size_t at) {
  const unsigned lead = byte_at(text, at);
  std::size_t length = 0;
  unsigned least = 0x80;
  unsigned most = 0xBF;
  if (lead < 0x80) return 1;
  if (lead >= 0xC2 && lead <= 0xDF) {
    length = 2;
  } else if (lead >= 0xE0 && lead <= 0xEF) {
    length = 3;
    if (lead == 0xE0) least = 0xA0;
    if (lead == 0xED) most = 0x9F;
  } else if (lead >= 0xF0 && lead <= 0xF4) {
    length = 4;
    if (lead == 0xF0) least = 0x90;
    if (lead == 0xF4) most = 0x8F;
  }
  if (length == 0 || at + length > text.size()) return 0;
  if (byte_at(text, at + 1) < least || byte_at(text, at + 1) > most) return 0;
  for (std::size_t i = 2; i < length; ++i) {
    if ((byte_at(text, at + i) & 0xC0U) != 0x80U) return 0;
  }
  return length;
}

void append_unicode_escape(std::string* out, unsigned code) {
  *out += "\\u";
  for (int shift = 12; shift >= 0; shift -= 4) *out += kHexDigits[(code >> static_cast<unsigned>(shift)) & 0xFU];
}

/// Appends one byte that must be escaped.
void append_escaped(std::string* out, unsigned byte) {
  switch (byte) {
    case '"':
      *out += "\\\"";
      return;
    case '\\':
      *out += "\\\\";
      return;
    case '\n':
      *out += "\\n";
      return;
    case '\t':
      *out += "\\t";
      return;
    case '\r':
      *out += "\\r";
      return;
    default:
      append_unicode_escape(out, byte < 0x80 ? byte : 0xDC00 + byte);
  }
}

/// The four hexadecimal digits at `at`; 0xFFFFFFFF if they are not there.
std::uint32_t hex_at(std::string_view text, std::size_t at) {
  constexpr std::uint32_t kNone = 0xFFFFFFFF;
  if (at + 4 > text.size()) return kNone;
  std::uint32_t code = 0;
  for (std::size_t i = at; i < at + 4; ++i) {
    const char lower = static_cast<char>(byte_at(text, i) | 0x20U);
    const std::size_t digit = kHexDigits.find(lower);
    if (digit == std::string_view::npos) return kNone;
    code = code * 16 + static_cast<std::uint32_t>(digit);
  }
  return code;
}

void append_utf8(std::string* out, std::uint32_t code) {
  const auto tail = [&](unsigned shift) { *out += static_cast<char>(0x80U | ((code >> shift) & 0x3FU)); };
  if (code < 0x80) {
    *out += static_cast<char>(code);
  } else if (code < 0x800) {
    *out += static_cast<char>(0xC0U | (code >> 6U));
    tail(0);
  } else if (code < 0x10000) {
    *out += static_cast<char>(0xE0U | (code >> 12U));
    tail(6);
    tail(0);
  } else {
    *out += static_cast<char>(0xF0U | (code >> 18U));
    tail(12);
    tail(6);
    tail(0);
  }
}

/// Appends what the \uXXXX with its digits at `at` means, and returns the bytes it takes.
std::size_t append_unicode(std::string* out, std::string_view text, std::size_t at) {
  const std::uint32_t code = hex_at(text, at);
  if (code > 0xFFFF) return 0;
  if (code >= 0xDC80 && code <= 0xDCFF) {
    *out += static_cast<char>(code - 0xDC00);
    return 4;
  }
  const bool pair = code >= 0xD800 && code <= 0xDBFF && text.substr(at + 4, 2) == "\\u";
  const std::uint32_t low = pair ? hex_at(text, at + 6) : 0;
  if (low >= 0xDC00 && low <= 0xDFFF) {
    append_utf8(out, 0x10000 + ((code - 0xD800) << 10U) + (low - 0xDC00));
    return 10;
  }
  append_utf8(out, code);
  return 4;
}

}  // namespace

void append_json_string(std::string* out, std::string_view bytes) {
  *out += '"';
  std::size_t run = 0;  // start of what can be copied as it is
  for (std::size_t at = 0; at < bytes.size();) {
    const unsigned byte = byte_at(bytes, at);
    const bool plain = byte >= 0x20 && byte != '"' && byte != '\\';
    const std::size_t length = plain ? utf8_length(bytes, at) : 0;
    if (length > 0) {
      at += length;
      continue;
    }
    out->append(bytes, run, at - run);
    append_escaped(out, byte);
    run = ++at;
  }
  out->append(bytes, run);
  *out += '"';
}

std::string decode_json_text(std::string_view json) {
  if (json.size() < 2 || json.front() != '"' || json.back() != '"') return std::string(json);
  const std::string_view body = json.substr(1, json.size() - 2);
  std::string bytes;
  bytes.reserve(body.size());
  for (std::size_t at = 0; at < body.size();) {
    const std::size_t escape = std::min(body.find('\\', at), body.size());
    bytes.append(body, at, escape - at);
    if (escape + 1 >= body.size()) break;
    constexpr std::string_view kLetters = "bfnrt";
    constexpr std::string_view kMeanings = "\b\f\n\r\t";
    const char letter = body[escape + 1];
    at = escape + 2;
    if (letter == 'u') {
      at += append_unicode(&bytes, body, at);
    } else {
      const std::size_t index = kLetters.find(letter);
      bytes += index == std::string_view::npos ? letter : kMeanings[index];
    }
  }
  return bytes;
}

}  // namespace mprun
