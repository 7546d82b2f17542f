// RendezvousFiles: the files by which the ranks of several shards start, start again and end together; core/cluster has
// the protocol. DIR/rendezvous is the leader's decision, DIR/shards/I/rendezvous the report of shard I. Used by mprun's
// one thread; owns paths and what this shard has written.
#pragma once

#include <optional>
#include <string>

#include "base/result.h"
#include "cluster/rendezvous.h"
#include "cluster/shard.h"

namespace mprun {

class RendezvousFiles final : public Rendezvous {
 public:
  /// `run_dir`: of the whole run. `patience`: a shard without a heartbeat for so long counts as dead.
  RendezvousFiles(std::string run_dir, Shard shard, Nanos patience, Nanos now);

  [[nodiscard]] const GroupDecision* meet(RankState state, int attempt, std::string_view reason, Nanos now) override;
  [[nodiscard]] std::string waits_for() const override;

 private:
  void lead(Nanos now);
  void follow(Nanos now);
  template <typename T>
  [[nodiscard]] Result<void> write(const std::string& path, T* said, Nanos now);
  [[nodiscard]] std::string decision_path() const;
  [[nodiscard]] std::string report_path(std::uint64_t shard) const;

  std::string run_dir_;
  Shard shard_;
  Nanos patience_;
  Nanos pause_;       ///< between two looks at the files of others
  Nanos beat_every_;  ///< between two heartbeats
  Nanos next_look_ = 0, next_beat_ = 0, decided_at_;
  std::uint64_t beats_ = 0;
  RankReport report_;
  std::optional<Leader> leader_;           ///< in the first shard
  std::optional<Follower> follower_;       ///< in all others
  std::string written_;                    ///< the leader's decision, or the report of any other shard
  std::optional<GroupDecision> decision_;  ///< the one that counts: the leader's after it was written
};

}  // namespace mprun
