// WorkerConnection: connects the supervisor with the process in one slot: frames to it through a socket, frames from it
// through a pipe, both watched by the event loop. Used by TaskPool and RankPool; owns both descriptors.
#pragma once

#include <functional>
#include <optional>

#include "base/clock.h"
#include "launch/launcher.h"
#include "wire/frames.h"

namespace mprun {

class WorkerConnection {
 public:
  struct Events {
    std::function<void()> on_closed;    ///< the process has closed its end of the socket
    std::function<void()> on_readable;  ///< bytes have arrived in the pipe, or it was closed
  };

  WorkerConnection() = default;
  ~WorkerConnection() { close(); }
  WorkerConnection(const WorkerConnection&) = delete;
  WorkerConnection& operator=(const WorkerConnection&) = delete;

  /// Opens socket, pipe and logs; the ends of the process go into `*request`. Closes what was open, and drops what had
  /// arrived.
  [[nodiscard]] Result<void> open(const LaunchPlan& plan, LaunchRequest* request, Events events);
  void close();
  /// Closes it, and drops what has arrived.
  void reset();

  [[nodiscard]] bool is_open() const { return sender_.has_value(); }
  /// Only while it is open; call flush() after frames were queued.
  [[nodiscard]] FrameSender& sender() { return *sender_; }
  /// Sends what the socket takes, and the rest as soon as it takes more.
  void flush();

  [[nodiscard]] FrameReader& reader() { return reader_; }
  [[nodiscard]] bool has_pipe() const { return static_cast<bool>(results_); }
  /// Only if it has the pipe.
  [[nodiscard]] FrameReader::Fill fill();
  /// Reads until the pipe is empty, and calls `on_frame` for each frame while `wants_more` holds.
  FrameReader::Fill drain(const std::function<bool()>& wants_more, const std::function<void(const Frame&)>& on_frame);
  /// The event loop watches the pipe no longer; fill() and drain() still read it.
  void ignore_pipe();
  void close_pipe();
  /// The monotonic clock after the last fill(), of drain() too.
  [[nodiscard]] Nanos filled_at() const { return filled_at_; }

  /// Where this process's part of the slot's stderr log begins.
  [[nodiscard]] std::int64_t log_offset() const { return log_offset_; }

 private:
  void on_socket(std::uint32_t events);

  EventLoop* loop_ = nullptr;
  std::optional<FrameSender> sender_;
  Fd results_;
  FrameReader reader_;
  std::function<void()> on_closed_;
  std::int64_t log_offset_ = 0;
  Nanos filled_at_ = 0;
};

}  // namespace mprun
