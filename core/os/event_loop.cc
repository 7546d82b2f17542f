#include "os/event_loop.h"

#include <algorithm>
#include <array>
#include <cerrno>

namespace mprun {
namespace {

// Each event carries descriptor and generation, so that a stale event cannot reach a new owner.
std::uint64_t tag(int fd, std::uint32_t generation) {
  return (static_cast<std::uint64_t>(generation) << 32) | static_cast<std::uint32_t>(fd);
}

}  // namespace

Result<EventLoop> EventLoop::create() {
  Fd epoll(epoll_create1(EPOLL_CLOEXEC));
  if (!epoll) return system_error("cannot make an epoll set", errno);
  return EventLoop(std::move(epoll));
}

Result<void> EventLoop::add(int fd, std::uint32_t events, Handler handler) {
  epoll_event event{};
  event.events = events;
  event.data.u64 = tag(fd, ++generation_);
  if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) != 0) return system_error("cannot watch a descriptor", errno);
  watches_[fd] = Watch{generation_, std::move(handler)};
  return {};
}

void EventLoop::modify(int fd, std::uint32_t events) {
  const auto it = watches_.find(fd);
  if (it == watches_.end()) return;
  epoll_event event{};
  event.events = events;
  event.data.u64 = tag(fd, it->second.generation);
  epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, fd, &event);
}

void EventLoop::remove(int fd) {
  if (watches_.erase(fd) != 0) epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr);
}

void EventLoop::at(Nanos when, std::function<void()> action) { timers_.emplace(when, std::move(action)); }

int EventLoop::next_timeout_ms(Nanos patience) const {
  Nanos wait = patience;
  if (!timers_.empty()) wait = std::min(wait, timers_.begin()->first - monotonic_now());
  return static_cast<int>((std::max<Nanos>(wait, 0) + kNanosPerMilli - 1) / kNanosPerMilli);
}

void EventLoop::run_timers() {
  const Nanos now = monotonic_now();
  while (!timers_.empty() && timers_.begin()->first <= now) {
    auto node = timers_.extract(timers_.begin());
    node.mapped()();
  }
}

Result<void> EventLoop::run_once(Nanos patience) {
  std::array<epoll_event, 64> events{};
  const int count = epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), next_timeout_ms(patience));
  if (count < 0 && errno != EINTR) return system_error("cannot wait for events", errno);
  for (int i = 0; i < count; ++i) {
    const auto& event = events[static_cast<std::size_t>(i)];
    const int fd = static_cast<int>(event.data.u64 & 0xffffffffU);
    const auto it = watches_.find(fd);
    if (it == watches_.end() || it->second.generation != event.data.u64 >> 32) continue;
    const Handler handler = it->second.handler;  // a copy: the handler may remove itself
    handler(event.events);
  }
  run_timers();
  return {};
}

}  // namespace mprun
