#include "report/terminal.h"

#include <cstdlib>
#include <string_view>

#include <sys/ioctl.h>
#include <unistd.h>

namespace mprun {
namespace {

[[nodiscard]] std::string_view environment(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : "";
}

}  // namespace

bool terminal_obeys() { return !environment("TERM").empty() && environment("TERM") != "dumb"; }

bool takes_colors(int fd) { return isatty(fd) != 0 && terminal_obeys() && environment("NO_COLOR").empty(); }

bool locale_is_utf8() {
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    const std::string_view value = environment(name);
    if (value.empty()) continue;
    const bool named = value.find("UTF-8") != value.npos || value.find("utf8") != value.npos;
    return named || value.find("utf-8") != value.npos || value.find("UTF8") != value.npos;
  }
  return false;
}

ScreenSize screen_size(int fd) {
  winsize size{};
  ScreenSize found;
  if (ioctl(fd, TIOCGWINSZ, &size) != 0) return found;
  if (size.ws_col > 0) found.columns = size.ws_col;
  if (size.ws_row > 0) found.rows = size.ws_row;
  return found;
}

bool terminal_breaks_lines() {
  const std::string_view term = environment("TERM");
  const bool in_tmux = !environment("TMUX").empty();
  const bool is_xterm = !environment("XTERM_VERSION").empty() && !in_tmux;
  const bool is_screen = !environment("STY").empty() && !in_tmux;
  return !is_xterm && !is_screen && term != "linux" && term.rfind("rxvt", 0) != 0;
}

}  // namespace mprun
