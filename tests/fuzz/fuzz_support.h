// What the fuzz targets share: promises, and the splitting of an input into values.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>

namespace mprun::fuzz {

/// Ends the program if a promise is broken, so that the fuzzer keeps the input.
inline void require(bool holds, const char* promise) {
  if (holds) return;
  std::fprintf(stderr, "broken promise: %s\n", promise);
  std::abort();
}

/// The text with part of it replaced by zeros.
inline std::string with_zeros(std::string_view text, std::size_t begin, std::size_t length) {
  std::string zeroed(text);
  begin = std::min(begin, zeroed.size());
  length = std::min(length, zeroed.size() - begin);
  return zeroed.replace(begin, length, length, '\0');
}

/// Takes values off the front of an input; zeros where it is too short.
class Bytes {
 public:
  explicit Bytes(std::string_view bytes) : rest_(bytes) {}

  [[nodiscard]] bool at_end() const { return rest_.empty(); }
  [[nodiscard]] std::string_view rest() const { return rest_; }

  template <typename T>
  T take() {
    static_assert(std::is_trivially_copyable_v<T>);
    T value{};
    const std::string_view taken = take(sizeof value);
    std::memcpy(&value, taken.data(), taken.size());
    return value;
  }
  std::string_view take(std::size_t size) {
    const std::string_view taken = rest_.substr(0, size);
    rest_.remove_prefix(taken.size());
    return taken;
  }

 private:
  std::string_view rest_;
};

}  // namespace mprun::fuzz
