// EventLoop: one thread waiting on file descriptors and timers (epoll). The supervisor's heart.
// It owns its registrations, not the descriptors: remove() a descriptor before closing it, because
// a copy inherited by a child that is being spawned would keep it in the epoll set for ever.
#pragma once

#include <sys/epoll.h>

#include <cstdint>
#include <functional>
#include <map>
#include <unordered_map>

#include "base/clock.h"
#include "os/fd.h"

namespace mprun {

class EventLoop {
 public:
  /// Called with the epoll event bits (EPOLLIN, EPOLLOUT, EPOLLHUP, ...).
  using Handler = std::function<void(std::uint32_t events)>;

  [[nodiscard]] static Result<EventLoop> create();

  /// Watches `fd` for `events` (EPOLLIN, EPOLLOUT or 0 for hang-up alone).
  [[nodiscard]] Result<void> add(int fd, std::uint32_t events, Handler handler);
  void modify(int fd, std::uint32_t events);
  void remove(int fd);

  /// Calls `action` once at `when` (monotonic nanoseconds).
  void at(Nanos when, std::function<void()> action);

  /// Waits for the next events, at most `patience`, and handles them and the timers that are due. Events
  /// of a descriptor that was removed meanwhile, or whose number was reused, are dropped.
  [[nodiscard]] Result<void> run_once(Nanos patience = 60 * kNanosPerSecond);

 private:
  struct Watch {
    std::uint32_t generation = 0;
    Handler handler;
  };
  explicit EventLoop(Fd epoll) : epoll_(std::move(epoll)) {}
  [[nodiscard]] int next_timeout_ms(Nanos patience) const;
  void run_timers();

  Fd epoll_;
  std::uint32_t generation_ = 0;
  std::unordered_map<int, Watch> watches_;
  std::multimap<Nanos, std::function<void()>> timers_;
};

}  // namespace mprun
