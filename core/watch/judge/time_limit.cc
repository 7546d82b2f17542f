#include "watch/judge/time_limit.h"

#include <linux/futex.h>
#include <sys/time.h>

#include <algorithm>
#include <ctime>

#include "watch/judge/library_waits.h"
#include "watch/sample/syscall_numbers.h"
#include "watch/sample/syscall_table.h"

namespace mprun {
namespace {

constexpr Nanos kNanosPerMicro = 1'000;
constexpr std::int64_t kMostSeconds = std::int64_t{1} << 32;  // more is no limit

struct Limit {
  Nanos time = 0;
  std::optional<clockid_t> clock = {};  ///< of an absolute limit; none: it counts from the start of the wait
};

std::optional<Nanos> timespec_at(std::uint64_t address, const ThreadSample& thread, TreeSnapshot* snapshot) {
  const auto read = address == 0 ? std::nullopt : snapshot->word<timespec>(thread.pid, address);
  if (!read || read->tv_sec < 0 || read->tv_sec > kMostSeconds) return std::nullopt;
  return read->tv_sec * kNanosPerSecond + read->tv_nsec;
}

std::optional<Limit> from_start(std::optional<Nanos> time) { return time ? std::optional(Limit{*time}) : std::nullopt; }

std::optional<Limit> milliseconds(std::uint64_t argument) {
  const auto count = static_cast<std::int32_t>(argument);
  return count < 0 ? std::nullopt : std::optional(Limit{count * kNanosPerMilli});
}

std::optional<Limit> of_futex(const ThreadSample& thread, TreeSnapshot* snapshot) {
  const std::uint64_t operation = thread.call.arguments[1];
  auto limit = from_start(timespec_at(thread.call.arguments[3], thread, snapshot));
  if (!limit || (operation & FUTEX_CMD_MASK) == FUTEX_WAIT) return limit;
  limit->clock = (operation & FUTEX_CLOCK_REALTIME) != 0 ? CLOCK_REALTIME : CLOCK_MONOTONIC;
  return limit;
}

std::optional<Limit> of_sleep(const ThreadSample& thread, TreeSnapshot* snapshot) {
  const auto& arguments = thread.call.arguments;
  if (thread.call.number == SYS_nanosleep) return from_start(timespec_at(arguments[0], thread, snapshot));
  auto limit = from_start(timespec_at(arguments[2], thread, snapshot));
  if (limit && (arguments[1] & TIMER_ABSTIME) != 0) limit->clock = static_cast<clockid_t>(arguments[0]);
  return limit;
}

std::optional<Limit> of_posix_queue(const ThreadSample& thread, TreeSnapshot* snapshot) {
  auto limit = from_start(timespec_at(thread.call.arguments[4], thread, snapshot));
  if (limit) limit->clock = CLOCK_REALTIME;
  return limit;
}

std::optional<Limit> of_select(const ThreadSample& thread, TreeSnapshot* snapshot) {
  const std::uint64_t address = thread.call.arguments[4];
  if (thread.call.number == SYS_pselect6) return from_start(timespec_at(address, thread, snapshot));
  const auto read = address == 0 ? std::nullopt : snapshot->word<timeval>(thread.pid, address);
  if (!read || read->tv_sec < 0 || read->tv_sec > kMostSeconds) return std::nullopt;
  return Limit{read->tv_sec * kNanosPerSecond + read->tv_usec * kNanosPerMicro};
}

std::optional<Limit> limit_of(const ThreadSample& thread, TreeSnapshot* snapshot) {
  const auto& arguments = thread.call.arguments;
  switch (call_of(thread.call.number)) {
    case Call::kFutex:
      return of_futex(thread, snapshot);
    case Call::kPoll:
      return milliseconds(arguments[2]);
    case Call::kEpollWait:
      return milliseconds(arguments[3]);
    case Call::kPpoll:
      return from_start(timespec_at(arguments[2], thread, snapshot));
    case Call::kSelect:
      return of_select(thread, snapshot);
    case Call::kEpollWait2:
      return from_start(timespec_at(arguments[3], thread, snapshot));
    case Call::kSemaphore:
      if (thread.call.number != SYS_semtimedop) return std::nullopt;
      return from_start(timespec_at(arguments[3], thread, snapshot));
    case Call::kPosixQueue:
      return of_posix_queue(thread, snapshot);
    case Call::kSleep:
      return of_sleep(thread, snapshot);
    case Call::kSignal:
      if (thread.call.number != SYS_rt_sigtimedwait) return std::nullopt;
      return from_start(timespec_at(arguments[2], thread, snapshot));
    default:
      return std::nullopt;
  }
}

struct LimitArgument {
  std::size_t index = 0;
  bool in_milliseconds = false;  ///< true: negative means no limit; false: an address, 0 means no limit
};

std::optional<LimitArgument> limit_argument(std::int64_t number) {
  switch (call_of(number)) {
    case Call::kFutex:
    case Call::kEpollWait2:
      return LimitArgument{3, false};
    case Call::kPoll:
      return LimitArgument{2, true};
    case Call::kPpoll:
      return LimitArgument{2, false};
    case Call::kSemaphore:
      return number == SYS_semtimedop ? std::optional(LimitArgument{3, false}) : std::nullopt;
    case Call::kSelect:
    case Call::kPosixQueue:
      return LimitArgument{4, false};
    case Call::kEpollWait:
      return LimitArgument{3, true};
    default:
      return std::nullopt;
  }
}

}  // namespace

std::optional<Nanos> time_left(const ThreadSample& thread, Nanos waited, TreeSnapshot* snapshot) {
  if (thread.call.running || thread.hidden || thread.state == 'Z') return std::nullopt;
  const auto limit = limit_of(thread, snapshot);
  if (!limit) return std::nullopt;
  if (!limit->clock) return std::max<Nanos>(limit->time - waited, 0);
  timespec now{};
  if (clock_gettime(*limit->clock, &now) != 0) return std::nullopt;
  return std::max<Nanos>(limit->time - (now.tv_sec * kNanosPerSecond + now.tv_nsec), 0);
}

bool is_sleep(const ThreadSample& thread) {
  const Call call = call_of(thread.call.number);
  const auto& arguments = thread.call.arguments;
  return call == Call::kSleep || (call == Call::kSelect && arguments[0] == 0 && arguments[4] != 0);
}

std::optional<std::uint32_t> limit_in_milliseconds(const ThreadSample& thread) {
  const auto at = limit_argument(thread.call.number);
  if (!at || !at->in_milliseconds) return std::nullopt;
  const auto limit = static_cast<std::int32_t>(thread.call.arguments[at->index]);
  return limit < 0 ? std::nullopt : std::optional(static_cast<std::uint32_t>(limit));
}

std::optional<ThreadSample> without_limit(const ThreadSample& thread) {
  const auto at = limit_argument(thread.call.number);
  if (!at || is_sleep(thread)) return std::nullopt;
  const bool has_limit =
      at->in_milliseconds ? limit_in_milliseconds(thread).has_value() : thread.call.arguments[at->index] != 0;
  if (!has_limit) return std::nullopt;
  ThreadSample endless = thread;
  endless.call.arguments[at->index] = at->in_milliseconds ? ~std::uint64_t{0} : 0;
  return endless;
}

bool is_go_monitor(const ThreadSample& thread, TreeSnapshot* snapshot) {
  const GoRuntime* go = call_of(thread.call.number) == Call::kFutex ? snapshot->go(thread.pid) : nullptr;
  return go != nullptr && go->is_own_wait(thread.call.arguments[0]);
}

bool is_idle_event_loop(const ThreadSample& thread, TreeSnapshot* snapshot) {
  const PythonThread* python = snapshot->python_thread(thread.pid, thread.tid);
  const LibraryPoll* poll = python == nullptr ? nullptr : find_library_poll(python->frames);
  return poll != nullptr && poll->longest != 0 &&
         first_number(snapshot->proc(), thread.pid, thread.tid, poll->function) == poll->longest;
}

}  // namespace mprun
