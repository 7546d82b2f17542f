// Text from jobs (error messages, names, notices) made safe to print: a task's exception must not move the
// cursor or colour the terminal. Used by core/report; owns nothing.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace mprun {

/// The text with every control character but the newline replaced: tabs by a space, others by '?'.
[[nodiscard]] std::string printable(std::string_view text);

/// Printable text as text or an attribute of HTML and XML; XML 1.0 cannot hold most control characters anyway.
[[nodiscard]] std::string escaped(std::string_view text);

/// The first line, printable and without white space at its ends, cut to `longest` bytes (then it ends with "...").
[[nodiscard]] std::string one_line(std::string_view text, std::size_t longest = 200);

/// For terminals that show ASCII only: every other character becomes a '?'.
[[nodiscard]] std::string ascii(std::string_view text);

/// The terminal columns that printable text takes at most: 2 for every character beyond ASCII.
[[nodiscard]] int columns_at_most(std::string_view text);

}  // namespace mprun
