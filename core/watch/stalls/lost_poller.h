// gRPC in a forked child: a call waits for its answer, but the thread that listens to the network for it stayed in the
// parent. The call and gRPC's own threads wake up now and then, so nothing is proved.
#pragma once

#include <set>

#include "procfs/proc_source.h"
#include "watch/sample/sample.h"

namespace mprun {

/// Processes whose main thread waits on a futex with a limit of time, and of which no thread runs or waits for anything
/// but time and other threads.
[[nodiscard]] std::set<pid_t> processes_that_poll_nothing(const Sample& sample);

/// Whether the main thread of such a process waits for the answer to a call of gRPC that has no limit of time. While
/// gRPC works, a thread of the process waits for descriptors meanwhile. Read in grpcio 1.51 (grpc/_channel.py).
[[nodiscard]] bool waits_for_grpc(ProcSource* proc, pid_t pid);

}  // namespace mprun
