// When a wait with a time limit ends at the latest, as the arguments of its system call say. Pure but for the two
// clocks that absolute limits are told by.
#pragma once

#include "watch/tree_snapshot.h"

namespace mprun {

/// The time that is left, at least 0. `waited`: since the thread began to wait, for limits that count from there.
/// nullopt: no limit, or not known.
[[nodiscard]] std::optional<Nanos> time_left(const ThreadSample& thread, Nanos waited, TreeSnapshot* snapshot);

/// The same wait as if it had no limit; nullopt: it has none, or is a wait of which the
/// limit is no argument that can be left out.
[[nodiscard]] std::optional<ThreadSample> without_limit(const ThreadSample& thread);

}  // namespace mprun
