// Calls of libraries that wait in a loop that never sleeps, such as MPI_Recv(). SpinMeter (watch/stalls/spins.h) says
// which threads are in one.
#pragma once

#include <string>
#include <vector>

#include "procfs/process_facts.h"
#include "watch/sample/sample.h"

namespace mprun {

/// The library call in which a thread only waits; "": there is none. `frames` as NativeStack has them.
[[nodiscard]] std::string call_that_spins(const std::vector<std::string>& frames);
/// Whether a process may have such calls.
[[nodiscard]] bool may_spin(const std::vector<Mapping>& maps);
/// True for a thread of a library that looks for messages all the time, and does nothing by itself.
[[nodiscard]] bool is_busy_reactor(ProcSource* proc, const ThreadSample& thread);
/// True for mpirun and its daemons, which start ranks and serve them.
[[nodiscard]] bool is_mpi_launcher(const std::vector<Mapping>& maps);

}  // namespace mprun
