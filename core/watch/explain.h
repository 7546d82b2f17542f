// From a proof to what people are told: stacks, the join that waits, the chain, the cause. Called by the supervisor
// after a proof, when nothing that is looked at can move any more.
#pragma once

#include "watch/family.h"
#include "watch/watcher.h"

namespace mprun {

/// `now`: monotonic, for how long it has waited. Reads stacks; stops no process.
[[nodiscard]] Hang explain(Proof* proof, ProcSource* proc, const Family& family, Nanos now);

}  // namespace mprun
