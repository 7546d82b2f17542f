// NoteBox: receives what the adapter library in the processes of a job reports to the user (a fork hook was late, a
// runtime cannot be made safe). Owned by the supervisor. An abstract datagram socket: nothing is left in the file
// system, no descriptor is inherited, and a sender never waits.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "base/result.h"
#include "os/fd.h"

namespace mprun {

/// Notes for the watch (core/watch/causes/process_history.h) instead of the user: take() returns all of them.
inline constexpr const char* kHistoryNotes = "history";

/// A note that is new.
struct AdapterNote {
  int pid = 0;  ///< the process that sent it first
  std::string adapter;
  std::string text;
};

class NoteBox {
 public:
  [[nodiscard]] static Result<NoteBox> open();

  [[nodiscard]] int fd() const { return socket_.get(); }
  /// The value of MPRUN_NOTES: the abstract name, without its leading NUL.
  [[nodiscard]] const std::string& address() const { return address_; }
  /// The notes that have arrived, without repeated texts and without those of other users. Never waits.
  /// Of very many at once the rest stays for the next call.
  [[nodiscard]] std::vector<AdapterNote> take();

 private:
  NoteBox(Fd fd, std::string address) : socket_(std::move(fd)), address_(std::move(address)) {}

  Fd socket_;
  std::string address_;
  std::set<std::string> seen_;
};

/// The note as one human-readable line.
[[nodiscard]] std::string to_string(const AdapterNote& note);

}  // namespace mprun
