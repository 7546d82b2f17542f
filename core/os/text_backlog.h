// TextBacklog: text for a descriptor whose reader may be slow or stopped, such as a standard error that mprun shares
// with a program, a pager or a stopped terminal. It keeps what is not taken yet, so that mprun waits for the reader
// only at its end. Used by all that write there, on mprun's only thread. Borrows the descriptor, and owns another one
// for the same file.
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

  /// Sends what is taken at once and keeps the rest. Text beyond kMostBytes is dropped and counted.
  void add(std::string_view text);
  /// Sends what is taken now.
  void send();
  /// Writes how many texts were dropped, and waits until the reader has taken everything or is gone.
  void finish();
  /// Some text is kept: call send() once the descriptor is writable.
  [[nodiscard]] bool is_waiting() const { return !unsent_.empty(); }
  /// Whether text that is added now would be sent at once.
  [[nodiscard]] bool takes_text() const;

 private:
  [[nodiscard]] ssize_t write_some(std::string_view text) const;
  void give_up();

  int fd_;
  Fd own_;  ///< our own non-blocking description; none for a file, a socket, or one we may not open
  bool is_socket_ = false;
  bool broken_ = false;  ///< it takes no more text
  std::string unsent_;
  std::size_t left_out_ = 0;  ///< texts
};

}  // namespace mprun
