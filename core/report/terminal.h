// What a terminal can do and how large it is, from the environment and the kernel. Used by TextReport; owns nothing.
#pragma once

namespace mprun {

struct ScreenSize {
  int columns = 80, rows = 24;
};

/// As it is just now; 80 x 24 where nobody says.
[[nodiscard]] ScreenSize screen_size(int fd);
/// Whether it obeys control sequences (TERM).
[[nodiscard]] bool terminal_obeys();
/// Whether it is a terminal, obeys, and NO_COLOR is not set.
[[nodiscard]] bool takes_colors(int fd);
/// By LC_ALL, LC_CTYPE, LANG.
[[nodiscard]] bool locale_is_utf8();
/// Whether lines that have become too long are broken when it gets narrower, as most do; else they are cut off.
[[nodiscard]] bool terminal_breaks_lines();

}  // namespace mprun
