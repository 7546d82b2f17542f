// NoteBox: where the adapter library in the processes of a job says what a person should know (a fork hook was
// late, a runtime cannot be made safe). Owned by the supervisor. An abstract datagram socket: nothing is left in
// the file system, no descriptor is inherited, and a sender never waits.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "base/result.h"
#include "os/fd.h"

namespace mprun {

/// Notes that are not for people but for the watch (core/watch/process_history.h): all of them are passed on.
inline constexpr const char* kHistoryNotes = "history";

/// One thing an adapter said for the first time.
struct AdapterNote {
  int pid = 0;  ///< who said it first
  std::string adapter;
  std::string text;
};

class NoteBox {
 public:
  [[nodiscard]] static Result<NoteBox> open();

  [[nodiscard]] int fd() const { return socket_.get(); }
  /// The value of MPRUN_NOTES: the abstract name, without its leading NUL.
  [[nodiscard]] const std::string& address() const { return address_; }
  /// What has arrived; a text that was heard before, and what another user sent, is left out. Never waits.
  /// Of very many at once the rest stays for the next call.
  [[nodiscard]] std::vector<AdapterNote> take();

 private:
  NoteBox(Fd fd, std::string address) : socket_(std::move(fd)), address_(std::move(address)) {}

  Fd socket_;
  std::string address_;
  std::set<std::string> heard_;
};

/// The note as one line for people.
[[nodiscard]] std::string to_string(const AdapterNote& note);

}  // namespace mprun
