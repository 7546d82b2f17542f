// UserMessages: what mprun says on standard error beside a program that writes there too. Its reader may sleep:
// signals, limits and ends do not wait for it. Used by `mprun -- COMMAND` and `mprun watch`, in the supervisor's
// process.
#pragma once

#include <string>
#include <string_view>

#include "base/clock.h"
#include "os/text_backlog.h"

namespace mprun {

class UserMessages {
 public:
  /// How soon to call send() again while a slow reader has not taken everything.
  static constexpr Nanos kSendAgain = 50 * kNanosPerMilli;

  /// `fd`: of standard error. `quiet`: without warnings.
  UserMessages(int fd, bool quiet) : fd_(fd), quiet_(quiet), backlog_(fd) {}

  void say(const std::string& text) { backlog_.add("mprun: " + text + "\n"); }
  void warn(const std::string& text);
  /// A report as hang_text() gives it, coloured where the terminal takes colours.
  void show_hang(std::string_view text);

  void send() { backlog_.send(); }
  [[nodiscard]] bool is_waiting() const { return backlog_.is_waiting(); }
  /// Nothing runs any more that a signal could be meant for: waits for the reader until a signal stops us.
  void finish();

 private:
  int fd_;
  bool quiet_;
  TextBacklog backlog_;
};

}  // namespace mprun
