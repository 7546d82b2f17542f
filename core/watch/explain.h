// Turns what a look has found into a report: stacks, the join that waits, the chain, the cause. Called by the
// supervisor after a proof, when nothing that is examined can move any more, and by `mprun inspect`.
#pragma once

#include "watch/causes/process_history.h"
#include "watch/watched_tree.h"

namespace mprun {

/// `now`: monotonic, to compute how long it has waited. Reads stacks. If the native stack of a thread that is blocked
/// for ever cannot be read whole otherwise, stops the thread for a moment.
[[nodiscard]] Hang explain(Proof* proof, ProcSource* proc, const ProcessHistory& history, Nanos now);

/// True for a stall that is no news before its limit has passed: what a signal or a client may release could be idle.
[[nodiscard]] bool may_be_idle(const Proof& proof, const Hang& hang);

/// The same for every process and thread, including live ones. If nothing is stuck, the verdict is kLive, without a
/// join and a cause. The time waited is known only if `found` says when a thread last ran.
[[nodiscard]] Hang describe(Proof* found, ProcSource* proc, const ProcessHistory& history, Nanos now);

/// For a limit that has passed: where its process and all below it are. Proves nothing and stops nothing.
[[nodiscard]] Hang explain_overdue(const PassedLimit& limit, ProcSource* proc, const WatchedTree::AskBoundary& boundary,
                                   const ProcessHistory& history);

}  // namespace mprun
