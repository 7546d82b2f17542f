// Finds places in a JSON text: offsets to lines, and JSON pointers to lines by reading the text again, so that nothing
// is recorded per value. Used by the document reader; owns nothing.
#pragma once

#include <cstddef>
#include <iterator>
#include <string>
#include <string_view>

namespace mprun {

/// Reads a text and reports through a counter how far the parser has come.
class CountingIterator {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  CountingIterator(const char* at, std::size_t* consumed) : at_(at), consumed_(consumed) {}
  reference operator*() const { return *at_; }
  CountingIterator& operator++() {
    ++at_;
    ++*consumed_;
    return *this;
  }
  CountingIterator operator++(int) {
    const CountingIterator before = *this;
    ++*this;
    return before;
  }
  bool operator==(const CountingIterator& other) const { return at_ == other.at_; }
  bool operator!=(const CountingIterator& other) const { return at_ != other.at_; }

 private:
  const char* at_;
  std::size_t* consumed_;
};

struct TextPosition {
  int line = 1;
  std::size_t column = 1;  ///< in bytes
};

[[nodiscard]] TextPosition position_in(std::string_view text, std::size_t offset);

/// The line around `offset`, at most about 76 bytes of it, with a caret below it; two lines, indented.
[[nodiscard]] std::string show_position(std::string_view text, std::size_t offset);

/// The line (from 1) of the value that a JSON pointer names, for a member that of its key; 0 if there is none.
[[nodiscard]] int find_line(std::string_view text, const std::string& pointer);

}  // namespace mprun
