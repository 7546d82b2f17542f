// TextBacklog: text for a descriptor whose reader may sleep, such as a standard error that mprun shares with a program,
// a pager or a stopped terminal. What is not taken yet is kept, so that mprun never waits for the reader before its
// end. Used in mprun's one thread by whoever writes there; borrows the descriptor, and owns one of its own to the same
// file.
#pragma once

#include <string>
#include <string_view>

#include "os/fd.h"

namespace mprun {

class TextBacklog {
 public:
  static constexpr std::size_t kMostBytes = std::size_t{256} * 1024;

  /// SIGPIPE has to be ignored.
  explicit TextBacklog(int fd);

  /// Sends what is taken at once and keeps the rest. Beyond kMostBytes text is left out, and counted.
  void add(std::string_view text);
  /// Sends what is taken now.
  void send();
  /// Waits until the reader has taken all of it, or has gone; tells how many texts were left out.
  void finish();
  /// Something is kept: worth to call send() once the descriptor is writable.
  [[nodiscard]] bool is_waiting() const { return !unsent_.empty(); }
  /// What is added now would be sent at once.
  [[nodiscard]] bool takes_text() const;

 private:
  [[nodiscard]] ssize_t write_some(std::string_view text) const;
  void give_up();

  int fd_;
  Fd own_;  ///< a description of our own, which does not block; none: of a file, a socket, or one we may not open
  bool is_socket_ = false;
  bool broken_ = false;  ///< it takes nothing any more
  std::string unsent_;
  std::size_t left_out_ = 0;  ///< texts
};

}  // namespace mprun
