// The environment of the processes a job starts: the user's own, what the spec adds, thread counts,
// the device, and the variables that identify the process. Used by launchers and worker pools.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "job/spec.h"

namespace mprun {

using Environment = std::map<std::string, std::string>;

/// The adapters' files, and where their notes go. No path holds a blank or a colon: ld.so and Python split there.
struct AdapterFiles {
  std::string preload;    ///< libmprun_preload.so
  std::string site;       ///< the folder of our sitecustomize.py
  std::string notes;      ///< NoteBox::address()
  std::string deadlines;  ///< DeadlineBoard::path(); empty: there is no board
  std::string sync;       ///< SyncSegment::path(); empty: there is none
};

/// mprun's own environment, as its children inherit it: without what another mprun or a service manager sets for mprun
/// alone.
[[nodiscard]] Environment own_environment();

/// What all processes of a job share: `base` with the spec's env, thread counts (OMP_NUM_THREADS and the
/// like, unless the user set them and threads_per_worker was left to us), the allocator's library in LD_PRELOAD,
/// MPRUN_RUN_DIR, MPRUN_WORKERS.
[[nodiscard]] Environment job_environment(const JobSpec& spec, const Environment& base, const std::string& run_dir);

/// Puts the adapters into `environment`: LD_PRELOAD, PYTHONPATH (ours first, then the user's own), MPRUN_NOTES,
/// MPRUN_DEADLINES, MPRUN_SYNC, and `off` ("libgomp", ...) as MPRUN_ADAPTERS.
void add_adapters(Environment* environment, const AdapterFiles& files, const std::vector<std::string>& off);

/// A slot's variables: MPRUN_WORKER, MPRUN_CPUS where it is bound ("0-3,8"), and its devices (MPRUN_DEVICE,
/// MPRUN_DEVICE_INDEX and the variable that hides all others, CUDA_VISIBLE_DEVICES or ASCEND_RT_VISIBLE_DEVICES:
/// "2,3").
[[nodiscard]] Environment slot_environment(const JobSpec& spec, int slot);

/// Adds what ranks need unless it is set. USE_LIBUV=0: since version 2.4 the store of torch.distributed asks for libuv
/// by default, and fails where torch was built without it, as Debian's is.
void add_rank_defaults(Environment* environment);

/// torchrun's variables: RANK, LOCAL_RANK, WORLD_SIZE, LOCAL_WORLD_SIZE, GROUP_RANK, GROUP_WORLD_SIZE, ROLE_RANK,
/// ROLE_WORLD_SIZE, MASTER_ADDR, MASTER_PORT. `local`: which of the `each` ranks that every shard has.
[[nodiscard]] Environment rank_environment(int local, int each, int port, Shard shard = {},
                                           const std::string& address = "127.0.0.1");
/// The same for a job.
[[nodiscard]] Environment rank_environment(const JobSpec& spec, int local, int port);

/// A TCP port on the loopback that is free now.
[[nodiscard]] int find_free_port();

/// "NAME=value" strings of `base` overridden by `more`: variables of mprun's own environment first, in its order, then
/// the others.
[[nodiscard]] std::vector<std::string> flatten(const Environment& base, const Environment& more);

}  // namespace mprun
