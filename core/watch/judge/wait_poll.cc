// Waits for several descriptors: poll, select, epoll. Any of them can end the wait.
#include <poll.h>

#include <algorithm>
#include <array>

#include "watch/judge/wait.h"
#include "watch/sample/syscall_table.h"

namespace mprun {
namespace {

constexpr std::uint64_t kMostDescriptors = 4096;

using Polled = std::int64_t;  ///< the number of a descriptor

std::optional<std::vector<Polled>> polled_by_poll(const ThreadSample& thread, TreeSnapshot* snapshot) {
  const std::uint64_t count = thread.call.arguments[1];
  if (count > kMostDescriptors) return std::nullopt;
  std::vector<pollfd> waits(count);
  if (count > 0 && !snapshot->memory(thread.pid, thread.call.arguments[0], waits.data(), count * sizeof(pollfd))) {
    return std::nullopt;
  }
  std::vector<Polled> polled;
  for (const pollfd& wait : waits) {
    if (wait.fd < 0) continue;  // left out by its caller
    polled.push_back(wait.fd);
  }
  return polled;
}

std::optional<std::vector<Polled>> polled_by_select(const ThreadSample& thread, TreeSnapshot* snapshot) {
  const std::uint64_t count = thread.call.arguments[0];
  if (count > kMostDescriptors) return std::nullopt;
  constexpr std::size_t kBits = 64;
  const std::size_t words = (count + kBits - 1) / kBits;
  std::array<std::vector<std::uint64_t>, 3> sets;
  for (std::size_t i = 0; i < sets.size(); ++i) {
    sets[i].resize(words);
    const std::uint64_t address = thread.call.arguments[i + 1];
    if (address == 0 || words == 0) continue;
    if (!snapshot->memory(thread.pid, address, sets[i].data(), words * sizeof(std::uint64_t))) return std::nullopt;
  }
  std::vector<Polled> polled;
  for (std::uint64_t number = 0; number < count; ++number) {
    const auto has = [&](std::size_t set) { return ((sets[set][number / kBits] >> (number % kBits)) & 1) != 0; };
    if (has(0) || has(1) || has(2)) polled.push_back(static_cast<Polled>(number));
  }
  return polled;
}

// An epoll set lists the numbers by which files were added to it. A number that now means another file proves nothing:
// the one that was added may live on in another process.
std::optional<std::vector<Polled>> polled_by_epoll(const ThreadSample& thread, TreeSnapshot* snapshot) {
  const Descriptor* epoll = snapshot->descriptor(thread.pid, static_cast<std::int32_t>(thread.call.arguments[0]));
  if (epoll == nullptr || epoll->kind != Descriptor::Kind::kEpoll) return std::nullopt;
  if (epoll->watched.size() > kMostDescriptors || epoll->watched.size() != epoll->watched_inodes.size()) {
    return std::nullopt;
  }
  std::vector<Polled> polled;
  for (std::size_t i = 0; i < epoll->watched.size(); ++i) {
    const Descriptor* now = snapshot->descriptor(thread.pid, epoll->watched[i]);
    if (now == nullptr || epoll->watched_inodes[i] == 0) return std::nullopt;
    const bool has_own_inode = now->kind == Descriptor::Kind::kPipe || now->kind == Descriptor::Kind::kSocket;
    if (epoll->watched_inodes[i] != (has_own_inode ? now->inode : now->info_inode)) return std::nullopt;
    polled.push_back(epoll->watched[i]);
  }
  return polled;
}

// After a stop and a continuation, the kernel restarts calls with a time limit, and any poll. Which call it is cannot
// be seen, but no other call without a limit has arguments like these.
bool is_endless_poll(const ThreadSample& thread, TreeSnapshot* snapshot) {
  const auto& arguments = thread.call.arguments;
  const std::uint64_t count = arguments[1];
  if (static_cast<std::int32_t>(arguments[2]) >= 0 || count == 0 || count > kMostDescriptors) return false;
  std::vector<pollfd> waits(count);
  if (!snapshot->memory(thread.pid, arguments[0], waits.data(), count * sizeof(pollfd))) return false;
  constexpr int kEvents = 0x3fff;  // all events of asm-generic/poll.h
  const auto is_wait = [&](const pollfd& wait) {
    return snapshot->descriptor(thread.pid, wait.fd) != nullptr && wait.events != 0 && (wait.events & ~kEvents) == 0;
  };
  return std::any_of(waits.begin(), waits.end(), is_wait) &&
         std::all_of(waits.begin(), waits.end(), [&](const pollfd& wait) { return wait.fd < 0 || is_wait(wait); });
}

bool has_time_limit(const ThreadSample& thread) {
  const auto& arguments = thread.call.arguments;
  switch (call_of(thread.call.number)) {
    case Call::kPoll:
    case Call::kRestart:
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

std::optional<std::vector<Polled>> polled_by(const ThreadSample& thread, TreeSnapshot* snapshot) {
  switch (call_of(thread.call.number)) {
    case Call::kPoll:
    case Call::kRestart:
    case Call::kPpoll:
      return polled_by_poll(thread, snapshot);
    case Call::kSelect:
      return polled_by_select(thread, snapshot);
    default:
      return polled_by_epoll(thread, snapshot);
  }
}

// All eventfds have one inode, so an epoll set does not show which of them it holds: it may be any.
void add_all_eventfds(const ThreadSample& thread, Polled number, TreeSnapshot* snapshot, Wait* wait) {
  const Descriptor* descriptor = snapshot->descriptor(thread.pid, number);
  if (descriptor == nullptr || descriptor->kind != Descriptor::Kind::kEventfd) return;
  add_processes(snapshot->eventfd_holders(std::nullopt), wait);
}

void add(const Wait& part, Wait* wait) {
  constexpr std::size_t kEnough = 160;  // of its text
  if (wait->why_live.empty()) wait->why_live = part.why_live;
  add_wakers(part.wakers, wait);
  if (part.object.empty() || wait->object.size() > kEnough) return;
  wait->object += (wait->object.empty() ? "" : ", ") + part.object;
}

}  // namespace

Wait decode_poll(const ThreadSample& thread, TreeSnapshot* snapshot) {
  if (has_time_limit(thread)) {
    Wait wait = live_wait(WaitKind::kTimer, "a wait with a time limit");
    wait.timed = true;
    return wait;
  }
  if (call_of(thread.call.number) == Call::kRestart && !is_endless_poll(thread, snapshot)) {
    return live_wait(WaitKind::kTimer, "a wait that was interrupted, perhaps one with a time limit");
  }
  const auto polled = polled_by(thread, snapshot);
  if (!polled) return live_wait(WaitKind::kPoll, "its descriptors are not known");
  const Call call = call_of(thread.call.number);
  const bool is_epoll = call == Call::kEpollWait || call == Call::kEpollWait2;
  Wait wait{WaitKind::kPoll, {}, {}, {}};
  wait.polled = *polled;
  for (const Polled number : *polled) {
    Wait part = decode_polled(thread, number, snapshot);
    // Event loops, which poll by epoll, have a function for each signal that they hear of so.
    const Descriptor* const descriptor = is_epoll ? nullptr : snapshot->descriptor(thread.pid, number);
    const bool may_end = descriptor != nullptr && part.why_live.empty();
    if (may_end && may_be_wakeup(thread.pid, *descriptor, snapshot)) part.why_live = kHandlerMayWrite;
    if (part.kind == WaitKind::kChild && polled->size() == 1) wait.kind = WaitKind::kChild;
    add(part, &wait);
    if (is_epoll) add_all_eventfds(thread, number, snapshot, &wait);
  }
  if (wait.wakers.empty() && wait.why_live.empty()) wait.why_live = kOnlyASignal;
  return wait;
}

}  // namespace mprun
