// Allocation: what the variables of a batch system or MPI launcher say about this mprun: which one of how many it is,
// which resources it has, which hosts take part. A pure function of the environment; called by cli/ and resolve().
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "cluster/shard.h"

namespace mprun {

struct Allocation {
  std::optional<Shard> shard;       ///< set only where there are several mpruns
  std::string shard_source;         ///< the variable that says so
  std::string shard_fault;          ///< why the variables make no shard, though there are several; else empty
  std::string run_name;             ///< the same for all shards and only for them: "slurm-12"; empty: none
  bool same_after_requeue = false;  ///< run_name names the same run when the job is started once more
  bool slurm = false;               ///< in an allocation of Slurm, or in a step of one
  std::string job_id;               ///< Slurm's; of an array the array's own
  std::string node;                 ///< of the cluster; empty: unknown
  std::optional<int> cpus;          ///< that mprun was given
  std::string cpus_source;
  bool threads_are_cpus = false;  ///< OMP_NUM_THREADS and the like say how many CPUs there are, as HTCondor sets them
  bool uneven_cpus = false;       ///< other nodes of the allocation have other numbers of CPUs
  std::string first_host;         ///< of all shards; empty: unknown
  bool one_host = false;          ///< all shards are on one host
  int master_port = 0;            ///< for the ranks of all shards, agreed by all of them; 0: there is none
};

using Variables = std::map<std::string, std::string>;

[[nodiscard]] Allocation recognise(const Variables& environment);

/// Whether a variable numbers a process among several. That number does not hold for the processes that mprun starts.
[[nodiscard]] bool names_a_place(std::string_view variable);

}  // namespace mprun
