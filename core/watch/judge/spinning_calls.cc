#include "watch/judge/spinning_calls.h"

#include <algorithm>
#include <array>
#include <string_view>

namespace mprun {
namespace {

/// A library whose calls wait in a loop that never sleeps, or hardly.
struct SpinningLibrary {
  std::string_view file;    ///< a prefix of its name
  std::string_view prefix;  ///< of the functions that a program calls
  const char* what;
};
constexpr std::array kLibraries = {
    SpinningLibrary{"libmpi.so", "MPI_", "Open MPI: opal_progress() until a request is complete"},
    SpinningLibrary{"libopen_mpi.so", "MPI_", "Open MPI 6: the functions that libmpi.so jumps to"},
    SpinningLibrary{"libmpich.so", "MPI_", "MPICH: MPID_Progress_wait()"},
};
// The calls of MPI that wait for what other ranks do. All others go on by themselves: MPI_Test, MPI_Irecv, MPI_Wtime.
constexpr std::string_view kWaitingCalls =
    " Allgather Allgatherv Allreduce Alltoall Alltoallv Alltoallw Barrier Bcast Cart_create Comm_accept"
    " Comm_connect Comm_create Comm_create_group Comm_disconnect Comm_dup Comm_dup_with_info Comm_free Comm_spawn"
    " Comm_spawn_multiple Comm_split Comm_split_type Dist_graph_create Exscan Finalize Gather Gatherv Graph_create"
    " Init Init_thread Intercomm_create Intercomm_merge Mprobe Mrecv Neighbor_allgather Neighbor_allgatherv"
    " Neighbor_alltoall Neighbor_alltoallv Neighbor_alltoallw Probe Recv Reduce Reduce_scatter"
    " Reduce_scatter_block Rsend Scan Scatter Scatterv Send Sendrecv Sendrecv_replace Ssend Wait Waitall Waitany"
    " Waitsome Win_create Win_fence Win_free ";

// MPI_Finalize() of Open MPI ends with a jump to this function, which sleeps for 100 us again and again.
constexpr std::string_view kFinalizes = "ompi_mpi_finalize", kFinalize = "MPI_Finalize";

// "MPI_Recv (libmpi.so.40)", or "PMPI_Recv (...)".
std::string call_in(std::string_view frame) {
  for (const SpinningLibrary& library : kLibraries) {
    const std::size_t file = frame.find(" (");
    if (file == frame.npos || !frame.substr(file + 2).starts_with(library.file)) continue;
    std::string_view function = frame.substr(0, file);
    if (function == kFinalizes) return std::string(kFinalize);
    if (function.starts_with('P')) function.remove_prefix(1);
    if (!function.starts_with(library.prefix)) continue;
    const std::string_view verb = function.substr(library.prefix.size());
    const bool waits = kWaitingCalls.find(' ' + std::string(verb) + ' ') != kWaitingCalls.npos;
    return waits ? std::string(function) : "";
  }
  return {};
}

}  // namespace

std::string call_that_spins(const std::vector<std::string>& frames) {
  for (auto frame = frames.rbegin(); frame != frames.rend(); ++frame) {  // the outermost is what was called
    const bool is_of_library = std::any_of(kLibraries.begin(), kLibraries.end(), [&](const SpinningLibrary& library) {
      return frame->find("(" + std::string(library.file)) != frame->npos;
    });
    if (is_of_library) return call_in(*frame);
  }
  return {};
}

bool may_spin(const std::vector<Mapping>& maps) {
  return std::any_of(kLibraries.begin(), kLibraries.end(),
                     [&](const SpinningLibrary& library) { return maps_file(maps, library.file); });
}

bool is_busy_reactor(ProcSource* proc, const ThreadSample& thread) {
  // TensorPipe, of torch.distributed.rpc: transport/shm/reactor.cc, which polls a ring in shared memory.
  constexpr std::string_view kReactor = "TP_SHM_reactor\n";
  const std::string path = std::to_string(thread.pid) + "/task/" + std::to_string(thread.tid) + "/comm";
  return thread.call.running && proc->read(path) == kReactor;
}

bool is_mpi_launcher(const std::vector<Mapping>& maps) {
  return !may_spin(maps) && (maps_file(maps, "libopen-rte.so") || maps_file(maps, "libprrte.so"));
}

}  // namespace mprun
