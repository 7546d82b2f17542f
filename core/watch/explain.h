// From what a look has found to what people are told: stacks, the join that waits, the chain, the cause. Called by the
// supervisor after a proof, when nothing that is looked at can move any more, and by `mprun inspect`.
#pragma once

#include "watch/process_history.h"
#include "watch/watcher.h"

namespace mprun {

/// `now`: monotonic, for how long it has waited. Reads stacks; stops a thread that is blocked for ever for a moment
/// where its native stack cannot be read whole otherwise.
[[nodiscard]] Hang explain(Proof* proof, ProcSource* proc, const ProcessHistory& history, Nanos now);

/// The same of every process and thread, live ones too. Where nothing is stuck the verdict is kLive, without a join and
/// a cause. How long it has waited is told where `found` knows when a thread last ran.
[[nodiscard]] Hang describe(Proof* found, ProcSource* proc, const ProcessHistory& history, Nanos now);

/// Of a limit that has passed: where its process, and all below that, are. Proves nothing, and stops nothing.
[[nodiscard]] Hang explain_overdue(const PassedLimit& limit, ProcSource* proc, const Watcher::AskBoundary& boundary,
                                   const ProcessHistory& history);

}  // namespace mprun
