// Waits for several descriptors: poll, select, epoll. Any of them can end the wait.
#include <poll.h>

#include <algorithm>
#include <array>

#include "watch/syscall_table.h"
#include "watch/wait.h"

namespace mprun {
namespace {

constexpr std::uint64_t kMostDescriptors = 4096;

struct Polled {
  std::int64_t number;
  bool read, write;
};

std::optional<std::vector<Polled>> polled_by_poll(const ThreadSample& thread, World* world) {
  const std::uint64_t count = thread.call.arguments[1];
  if (count > kMostDescriptors) return std::nullopt;
  std::vector<pollfd> waits(count);
  if (count > 0 && !world->proc()->memory(thread.pid, thread.call.arguments[0], waits.data(), count * sizeof(pollfd))) {
    return std::nullopt;
  }
  std::vector<Polled> polled;
  for (const pollfd& wait : waits) {
    if (wait.fd < 0) continue;  // left out by its caller
    polled.push_back({wait.fd, (wait.events & (POLLIN | POLLPRI | POLLRDHUP)) != 0, (wait.events & POLLOUT) != 0});
  }
  return polled;
}

std::optional<std::vector<Polled>> polled_by_select(const ThreadSample& thread, World* world) {
  const std::uint64_t count = thread.call.arguments[0];
  if (count > kMostDescriptors) return std::nullopt;
  constexpr std::size_t kBits = 64;
  const std::size_t words = (count + kBits - 1) / kBits;
  std::array<std::vector<std::uint64_t>, 3> sets;
  for (std::size_t i = 0; i < sets.size(); ++i) {
    sets[i].resize(words);
    const std::uint64_t address = thread.call.arguments[i + 1];
    if (address == 0 || words == 0) continue;
    if (!world->proc()->memory(thread.pid, address, sets[i].data(), words * sizeof(std::uint64_t))) return std::nullopt;
  }
  std::vector<Polled> polled;
  for (std::uint64_t number = 0; number < count; ++number) {
    const auto has = [&](std::size_t set) { return ((sets[set][number / kBits] >> (number % kBits)) & 1) != 0; };
    if (has(0) || has(1) || has(2)) polled.push_back({static_cast<std::int64_t>(number), has(0) || has(2), has(1)});
  }
  return polled;
}

// Its set says numbers, not what they mean now: a descriptor that was closed and taken anew is somebody else's, but one
// more who could end the wait does no harm; one that is gone altogether may live on in another process.
std::optional<std::vector<Polled>> polled_by_epoll(const ThreadSample& thread, World* world) {
  const Descriptor* epoll = world->descriptor(thread.pid, static_cast<std::int32_t>(thread.call.arguments[0]));
  if (epoll == nullptr || epoll->kind != Descriptor::Kind::kEpoll) return std::nullopt;
  std::vector<Polled> polled;
  polled.reserve(epoll->watched.size());
  for (const int number : epoll->watched) polled.push_back({number, true, true});
  return polled;
}

bool has_time_limit(const ThreadSample& thread) {
  const auto& arguments = thread.call.arguments;
  switch (call_of(thread.call.number)) {
    case Call::kPoll:
      return static_cast<std::int32_t>(arguments[2]) >= 0;
    case Call::kPpoll:
      return arguments[2] != 0;
    case Call::kSelect:
      return arguments[4] != 0;
    case Call::kEpollWait:
      return static_cast<std::int32_t>(arguments[3]) >= 0;
    default:
      return arguments[3] != 0;
  }
}

std::optional<std::vector<Polled>> polled_by(const ThreadSample& thread, World* world) {
  switch (call_of(thread.call.number)) {
    case Call::kPoll:
    case Call::kPpoll:
      return polled_by_poll(thread, world);
    case Call::kSelect:
      return polled_by_select(thread, world);
    default:
      return polled_by_epoll(thread, world);
  }
}

void add(const Wait& part, Wait* wait) {
  if (!part.why_live.empty() && wait->why_live.empty()) wait->why_live = part.why_live;
  for (const Waker& waker : part.wakers) {
    if (std::find(wait->wakers.begin(), wait->wakers.end(), waker) == wait->wakers.end()) wait->wakers.push_back(waker);
  }
  if (!part.object.empty()) wait->object += (wait->object.empty() ? "" : ", ") + part.object;
}

}  // namespace

Wait decode_poll(const ThreadSample& thread, World* world) {
  if (has_time_limit(thread)) {
    Wait wait = live_wait(WaitKind::kTimer, "a wait with a time limit");
    wait.timed = true;
    return wait;
  }
  const auto polled = polled_by(thread, world);
  if (!polled) return live_wait(WaitKind::kPoll, "its descriptors are not known");
  Wait wait{WaitKind::kPoll, {}, {}, {}};
  for (const Polled& one : *polled) {
    if (one.read) add(decode_descriptor(thread, one.number, World::End::kRead, world), &wait);
    // What asks for nothing waits for a hang-up.
    if (one.write || !one.read) add(decode_descriptor(thread, one.number, World::End::kWrite, world), &wait);
  }
  if (wait.wakers.empty() && wait.why_live.empty()) wait.why_live = "it waits for a signal";
  return wait;
}

}  // namespace mprun
