// ShardProgress: how far the shards of a run are, according to their growing files. `mprun submit --wait` reads it
// again and again; owns a few words a shard, and reads only what is new.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "cluster/shard.h"
#include "json/document.h"
#include "json/json_fwd.h"

namespace mprun {

class ShardProgress {
 public:
  struct State {
    std::uint64_t done = 0, failed = 0;  ///< tasks
    std::string node;                    ///< of its session in the batch job
    bool begun = false, ended = false;   ///< whether that session has
    bool stopped = false;                ///< it has ended by a signal: the batch job may begin again
  };
  /// `batch_job`: only its sessions count as begun and ended; tasks that other sessions have done count too.
  ShardProgress(const std::string& run_dir, std::uint64_t shards, std::string batch_job);

  /// Reads what was written since the last call. Returns a human-readable line for each hang that was found meanwhile.
  [[nodiscard]] std::vector<std::string> update();
  /// Whether there was more to read than one call takes.
  [[nodiscard]] bool is_behind() const { return behind_; }
  [[nodiscard]] const std::vector<State>& states() const { return states_; }
  [[nodiscard]] bool all_ended() const;
  [[nodiscard]] bool any_stopped() const;
  [[nodiscard]] std::uint64_t done() const;
  /// "450 of 1797 tasks, 2 failed; 4 shards: 3 running, 1 ended"; `total`: number of tasks, 0 if unknown.
  [[nodiscard]] std::string line(std::uint64_t total) const;

 private:
  struct Files {
    std::string folder;
    std::uint64_t results = 0, journal = 0;  ///< bytes that have been read
    ino_t results_inode = 0, journal_inode = 0;
    bool mine = false;  ///< the session that writes the journal now belongs to the batch job
  };
  void read_results(std::size_t shard, std::uint64_t* most);
  void read_journal(std::size_t shard, std::vector<std::string>* hangs);
  void take_journal(std::size_t shard, const Json& line, std::vector<std::string>* hangs);

  std::string batch_job_;
  std::vector<Files> files_;
  std::vector<State> states_;
  bool behind_ = false;
};

}  // namespace mprun
