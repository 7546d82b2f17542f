// The supervisor's side of frames: a reader that cuts a byte stream into frames, and a sender that
// never blocks. Each belongs to one worker or host; protocol.h has the layouts.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "os/fd.h"
#include "wire/protocol.h"

namespace mprun {

struct Frame {
  std::uint16_t type = 0;
  std::string_view payload;  ///< valid until the next call of the reader
};

/// Cuts what arrives on a non-blocking descriptor into frames.
class FrameReader {
 public:
  enum class Fill { kMore, kEmpty, kClosed };
  static constexpr std::size_t kMostPassed = 64;
  /// Reads at once: more than a pipe can hold, but a process that inherited one may write faster than we read.
  static constexpr int kMostFills = 64;

  FrameReader() = default;
  /// `read_size`: bytes that one call of fill() reads at most.
  explicit FrameReader(std::size_t read_size) : read_size_(read_size) {}

  /// Reads what is there. kMore: there may be more at once.
  [[nodiscard]] Fill fill(int fd);

  /// The same from a socket that also carries descriptors: appends them to `passed`, in the order of their frames. More
  /// than kMostPassed at once, or any that could not be received, make the stream corrupt.
  [[nodiscard]] Fill fill(int socket, std::deque<Fd>* passed);

  /// The next whole frame. False: none yet, or the stream is corrupt (then corrupt() is true).
  [[nodiscard]] bool next(Frame* frame);

  [[nodiscard]] bool corrupt() const { return corrupt_; }
  /// Whether part of a frame has arrived.
  [[nodiscard]] bool mid_frame() const { return begin_ < end_; }

 private:
  void make_room();
  [[nodiscard]] Fill filled(ssize_t size);

  std::size_t read_size_ = std::size_t{256} * 1024;
  std::string buffer_;
  std::size_t begin_ = 0;  ///< of what was read and not yet returned
  std::size_t end_ = 0;    ///< and its end
  bool corrupt_ = false;
};

/// Queues frames for a non-blocking socket and sends as much as it takes.
class FrameSender {
 public:
  explicit FrameSender(Fd socket) : socket_(std::move(socket)) { set_nonblocking(socket_.get()); }

  [[nodiscard]] int fd() const { return socket_.get(); }

  /// Starts a frame; the payload is appended to buffer() and the frame closed by end_frame().
  void begin_frame(std::uint16_t type);
  [[nodiscard]] std::string& buffer() { return pending_; }
  void end_frame();
  void send_frame(std::uint16_t type, std::string_view payload);

  enum class Sent { kSent, kBusy, kGone };
  /// Sends one frame with descriptors now. kBusy: the socket is full, nothing was sent: wait until it is writable.
  [[nodiscard]] Sent send_with_fds(std::uint16_t type, std::string_view payload, const std::vector<int>& fds);

  /// Sends what the socket takes. False: the peer is gone.
  [[nodiscard]] bool flush();
  [[nodiscard]] bool wants_to_write() const { return sent_ < pending_.size(); }

 private:
  Fd socket_;
  std::string pending_;
  std::size_t sent_ = 0;
  std::size_t frame_start_ = 0;
};

}  // namespace mprun
