// When a wait with a time limit ends at the latest, from the arguments of its system call. Pure, except for the two
// clocks that absolute limits refer to.
#pragma once

#include "watch/judge/tree_snapshot.h"

namespace mprun {

/// The time that is left, at least 0. `waited`: the time since the thread began to wait, for limits that count from
/// there. nullopt: no limit, or not known.
[[nodiscard]] std::optional<Nanos> time_left(const ThreadSample& thread, Nanos waited, TreeSnapshot* snapshot);

/// True if the thread only waits for time to pass: it sleeps, or selects from no descriptors, as Python does to sleep
/// until 3.10.
[[nodiscard]] bool is_sleep(const ThreadSample& thread);

/// The limit of a wait whose system call takes it in milliseconds; nullopt: it takes another one, or has none.
[[nodiscard]] std::optional<std::uint32_t> limit_in_milliseconds(const ThreadSample& thread);

/// The same wait without its limit; nullopt: it has none, or its limit is not an argument that can be left out.
[[nodiscard]] std::optional<ThreadSample> without_limit(const ThreadSample& thread);

/// True for the monitor thread of a Go runtime that sleeps: it wakes up after a minute to look around. Timers of the
/// program wake another thread.
[[nodiscard]] bool is_go_monitor(const ThreadSample& thread, TreeSnapshot* snapshot);

/// True for an event loop of a library that waits for as long as it ever does (LibraryPoll::longest): no timer is due
/// before.
[[nodiscard]] bool is_idle_event_loop(const ThreadSample& thread, TreeSnapshot* snapshot);

}  // namespace mprun
