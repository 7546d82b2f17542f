#include "run/user_messages.h"

#include "report/hang_report.h"
#include "report/terminal.h"
#include "run/obey_signals.h"

namespace mprun {

void UserMessages::warn(const std::string& text) {
  if (!quiet_) say("warning: " + text);
}

void UserMessages::show_hang(std::string_view text) {
  backlog_.add(takes_colors(fd_) ? colored_hang_text(text) : std::string(text));
}

void UserMessages::finish() {
  if (!is_waiting()) return;
  obey_signals();
  backlog_.finish();
}

}  // namespace mprun
