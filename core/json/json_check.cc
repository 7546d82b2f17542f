#include "json/json_check.h"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

namespace mprun {
namespace {

constexpr std::size_t kDeepest = 10'000;

class Check {
 public:
  explicit Check(std::string_view text) : at_(text.data()), end_(at_ + text.size()) {}

  bool run() {
    skip_space();
    for (;;) {  // a value begins here
      const bool opens = at_ < end_ && (*at_ == '{' || *at_ == '[');
      if (opens) {
        if (!open()) return false;
        if (!closes_at_once() && (open_.back() == '[' || key())) continue;
        if (!closed_) return false;
      } else if (!scalar()) {
        return false;
      }
      if (!leave_ended()) return false;
      if (open_.empty()) return at_ == end_;
    }
  }

 private:
  bool open() {
    open_ += *at_++;
    skip_space();
    closed_ = false;
    return open_.size() <= kDeepest;
  }

  // "{}" and "[]".
  bool closes_at_once() {
    closed_ = at_ < end_ && *at_ == closing();
    return closed_;
  }

  [[nodiscard]] char closing() const { return open_.back() == '{' ? '}' : ']'; }

  // After a value, or at the end of an empty object or array: closes what ends here, up to where the next value begins.
  bool leave_ended() {
    skip_space();
    while (!open_.empty()) {
      if (at_ == end_) return false;
      if (*at_ == closing()) {
        ++at_;
        open_.pop_back();
        skip_space();
        continue;
      }
      if (*at_++ != ',') return false;
      skip_space();
      return open_.back() == '[' || key();
    }
    return true;
  }

  // "name":
  bool key() {
    if (!string()) return false;
    skip_space();
    if (at_ == end_ || *at_++ != ':') return false;
    skip_space();
    return true;
  }

  bool scalar() {
    if (at_ == end_) return false;
    switch (*at_) {
      case '"':
        return string();
      case 't':
        return word("true");
      case 'f':
        return word("false");
      case 'n':
        return word("null");
      default:
        return number();
    }
  }

  bool word(std::string_view wanted) {
    if (static_cast<std::size_t>(end_ - at_) < wanted.size()) return false;
    const bool is = std::memcmp(at_, wanted.data(), wanted.size()) == 0;
    at_ += wanted.size();
    return is;
  }

  bool digits() {
    const char* const begin = at_;
    while (at_ < end_ && *at_ >= '0' && *at_ <= '9') ++at_;
    return at_ > begin;
  }

  bool number() {
    if (at_ < end_ && *at_ == '-') ++at_;
    const bool zero = at_ < end_ && *at_ == '0';
    if (zero) {
      ++at_;
    } else if (!digits()) {
      return false;
    }
    if (at_ < end_ && *at_ == '.') {
      ++at_;
      if (!digits()) return false;
    }
    if (at_ < end_ && (*at_ == 'e' || *at_ == 'E')) {
      ++at_;
      if (at_ < end_ && (*at_ == '+' || *at_ == '-')) ++at_;
      if (!digits()) return false;
    }
    return true;
  }

  bool string() {
    if (at_ == end_ || *at_++ != '"') return false;
    while (at_ < end_) {
      const auto c = static_cast<unsigned char>(*at_);
      if (c == '"') {
        ++at_;
        return true;
      }
      if (c < 0x20) return false;
      if (c == '\\' ? !escape() : c < 0x80 ? (++at_, false) : !multibyte(c)) return false;
    }
    return false;
  }

  bool escape() {
    if (end_ - at_ < 2) return false;
    const char c = at_[1];
    at_ += 2;
    if (c != 'u') return std::strchr("\"\\/bfnrt", c) != nullptr && c != '\0';
    if (end_ - at_ < 4) return false;
    for (const char* const last = at_ + 4; at_ < last; ++at_) {
      const char digit = *at_;
      const bool hex =
          (digit >= '0' && digit <= '9') || (digit >= 'a' && digit <= 'f') || (digit >= 'A' && digit <= 'F');
      if (!hex) return false;
    }
    return true;
  }

  // One UTF-8 character beyond ASCII, in its shortest form and not a surrogate.
  bool multibyte(unsigned char first) {
    const std::ptrdiff_t size = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
    if (first < 0xc2 || first > 0xf4 || end_ - at_ < size) return false;
    std::uint32_t code = first & (0x7fU >> size);
    for (std::ptrdiff_t i = 1; i < size; ++i) {
      const auto next = static_cast<unsigned char>(at_[i]);
      if ((next & 0xc0U) != 0x80U) return false;
      code = (code << 6U) | (next & 0x3fU);
    }
    at_ += size;
    if (size == 3) return code >= 0x800 && (code < 0xd800 || code > 0xdfff);
    return size == 2 || (code >= 0x10000 && code <= 0x10ffff);
  }

  void skip_space() {
    while (at_ < end_ && (*at_ == ' ' || *at_ == '\t' || *at_ == '\n' || *at_ == '\r')) ++at_;
  }

  const char* at_;
  const char* end_;
  std::string open_;     ///< the brackets not yet closed
  bool closed_ = false;  ///< the one just opened is empty
};

}  // namespace

bool is_json(std::string_view text) { return Check(text).run(); }

}  // namespace mprun
