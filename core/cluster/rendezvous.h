// Rendezvous: how the ranks of several shards start, start again and end together (README.md, Ranks that start again).
// The shards exchange short texts, each with one writer: the reports of all, and the decision of the first, the leader.
// Leader and Follower are pure; RendezvousFiles (core/record) has the files, and Supervisor uses it.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "cluster/blocks.h"

namespace mprun {

/// What the ranks of one shard do.
enum class RankState : std::uint8_t {
  kReady,    ///< none runs, and the attempt may begin
  kRunning,  ///< the attempt runs, or its last ranks are being ended
  kFailed,   ///< one failed and may run again
  kWell,     ///< all have ended well
  kStopped,  ///< the shard ends its part of the job
};

struct RankReport {
  std::string token;   ///< of the shard's session
  std::string leader;  ///< the token of the leader whose decision the shard has read; empty: of none
  RankState state = RankState::kReady;
  int attempt = 1;
  std::uint64_t beat = 0;  ///< grows from text to text
  std::string reason;      ///< why ranks failed or the shard stops, one line; empty: they do not

  [[nodiscard]] bool is(RankState wanted, int of_attempt) const { return state == wanted && attempt == of_attempt; }
};

enum class GroupPhase : std::uint8_t { kGather, kRun, kFinished, kStopped };
inline constexpr std::array<std::string_view, 4> kGroupPhases = {"gather", "run", "finished", "stopped"};

struct GroupDecision {
  std::string leader;  ///< the token of its session
  GroupPhase phase = GroupPhase::kGather;
  int attempt = 1;
  std::uint64_t beat = 0;           ///< grows from text to text
  std::vector<std::string> shards;  ///< their tokens; empty: that shard is not known yet
  std::string reason;               ///< of kStopped, and of kGather after a failure

  [[nodiscard]] bool is_final() const { return phase == GroupPhase::kFinished || phase == GroupPhase::kStopped; }
};

[[nodiscard]] std::string to_string(const RankReport& report);
[[nodiscard]] std::string to_string(const GroupDecision& decision);
[[nodiscard]] std::optional<RankReport> parse_report(std::string_view text);
[[nodiscard]] std::optional<GroupDecision> parse_decision(std::string_view text);

/// Decides for all shards.
class Leader {
 public:
  Leader(std::string token, std::uint64_t shards, Nanos patience, Nanos now);
  /// `reports`: the texts of all shards; empty: not there, or unreadable now. The result stays valid.
  const GroupDecision& decide(const std::vector<std::string>& reports, Nanos now);
  /// The shards for which the decision waits, "shards 2, 3"; empty: none.
  [[nodiscard]] std::string waits_for() const;

 private:
  void take(std::uint64_t shard, const std::string& text, Nanos now);
  void stop(std::string reason);
  [[nodiscard]] bool all(RankState state) const;
  [[nodiscard]] std::string name(std::uint64_t shard) const;

  GroupDecision decision_;
  Nanos begun_;
  Heartbeats heartbeats_;
  std::vector<std::optional<RankReport>> reports_;  ///< of each shard, the last one that counts
};

/// Follows the decisions of the leader, in any shard but the first.
class Follower {
 public:
  Follower(std::string token, std::uint64_t shard, Nanos patience, Nanos now);
  /// `text`: the leader's decision; empty: not there, or unreadable now. What it means for this shard, nullopt: nothing
  /// yet. Without a word from the leader for too long that is kStopped.
  const std::optional<GroupDecision>& follow(std::string_view text, Nanos now);
  /// RankReport::leader.
  [[nodiscard]] const std::string& leader() const { return leader_; }

 private:
  void stop(std::string reason);

  std::string token_, leader_;
  std::uint64_t shard_;
  Nanos begun_;
  Heartbeats heartbeats_;
  std::optional<GroupDecision> decision_;
};

/// What the supervisor needs of the other shards.
class Rendezvous {
 public:
  virtual ~Rendezvous() = default;
  /// Tells the others about our ranks: `state`, `attempt`, `reason`. The decision of the leader as far as it is known;
  /// nullptr: there is none for us yet. Called 20 times a second, and once more at the end.
  [[nodiscard]] virtual const GroupDecision* meet(RankState state, int attempt, std::string_view reason, Nanos now) = 0;
  /// For whom the ranks of this shard wait, "shards 2, 3".
  [[nodiscard]] virtual std::string waits_for() const = 0;
};

}  // namespace mprun
