// The size and abilities of a terminal, from the environment and the kernel. Used by TextReport; owns nothing.
#pragma once

namespace mprun {

struct ScreenSize {
  int columns = 80, rows = 24;
};

/// The current size; 80 x 24 if it is unknown.
[[nodiscard]] ScreenSize screen_size(int fd);
/// Whether the terminal obeys control sequences (TERM).
[[nodiscard]] bool terminal_obeys();
/// Whether it is a terminal, obeys, and NO_COLOR is not set.
[[nodiscard]] bool takes_colors(int fd);
/// By LC_ALL, LC_CTYPE, LANG.
[[nodiscard]] bool locale_is_utf8();
/// Whether the terminal breaks lines that have become too long when it gets narrower, as most do; else it cuts them
/// off.
[[nodiscard]] bool terminal_breaks_lines();

}  // namespace mprun
