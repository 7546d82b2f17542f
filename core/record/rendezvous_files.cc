#include "record/rendezvous_files.h"

#include <sys/random.h>

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "record/atomic_file.h"

namespace mprun {
namespace {

// The time between two looks grows with the shards: the leader reads a file of each.
constexpr Nanos kMeetEvery = 200 * kNanosPerMilli, kMeetEveryPerShard = 5 * kNanosPerMilli;

/// Differs from one session of a shard to the next.
std::string new_token() {
  std::array<std::uint64_t, 2> bits{};
  if (getrandom(bits.data(), sizeof bits, 0) < 0) bits[0] = static_cast<std::uint64_t>(wall_now());
  return std::to_string(bits[0]) + "." + std::to_string(bits[1]);
}

}  // namespace

RendezvousFiles::RendezvousFiles(std::string run_dir, Shard shard, Nanos patience, Nanos now)
    : run_dir_(std::move(run_dir)),
      shard_(shard),
      patience_(patience),
      pause_(std::min(patience / kBeatsInPatience, kMeetEvery + kMeetEveryPerShard * static_cast<Nanos>(shard.count))),
      beat_every_(patience / kBeatsInPatience),
      decided_at_(now) {
  report_.token = new_token();
  if (shard.index == 0) {
    report_.leader = report_.token;
    leader_.emplace(report_.token, shard.count, patience, now);
  } else {
    follower_.emplace(report_.token, shard.index, patience, now);
  }
}

const GroupDecision* RendezvousFiles::meet(RankState state, int attempt, std::string_view reason, Nanos now) {
  const bool is_news = !report_.is(state, attempt);
  report_.state = state;
  report_.attempt = attempt;
  report_.reason = reason;
  if (is_news || now >= next_look_) {
    next_look_ = now + pause_;
    leader_ ? lead(now) : follow(now);
  }
  return decision_ ? &*decision_ : nullptr;
}

void RendezvousFiles::lead(Nanos now) {
  std::vector<std::string> reports(shard_.count);
  ++report_.beat;
  reports[0] = to_string(report_);
  for (std::uint64_t shard = 1; shard < shard_.count; ++shard) reports[shard] = read_if_there(report_path(shard));
  GroupDecision decision = leader_->decide(reports, now);
  if (const auto written = write(decision_path(), &decision, now)) {
    decided_at_ = now;
    decision_ = std::move(decision);
  } else if (now - decided_at_ >= patience_) {  // the others have given us up
    decision_ = std::move(decision);
    decision_->phase = GroupPhase::kStopped;
    decision_->reason = written.error().message;
  }
}

// A report that cannot be written is missed by the leader, who acts on that.
void RendezvousFiles::follow(Nanos now) {
  decision_ = follower_->follow(read_if_there(decision_path()), now);
  report_.leader = follower_->leader();
  (void)write(report_path(shard_.index), &report_, now);
}

// Writes what has changed, and a heartbeat when it is due.
template <typename T>
Result<void> RendezvousFiles::write(const std::string& path, T* said, Nanos now) {
  said->beat = beats_;
  if (to_string(*said) == written_ && now < next_beat_) return {};
  said->beat = ++beats_;
  next_beat_ = now + beat_every_;
  written_.clear();
  std::string text = to_string(*said);
  if (auto written = write_atomically(path, text, OnDisk::kLater); !written) return written;
  written_ = std::move(text);
  return {};
}

std::string RendezvousFiles::decision_path() const { return run_dir_ + "/rendezvous"; }

std::string RendezvousFiles::report_path(std::uint64_t shard) const {
  return run_dir_ + "/shards/" + folder_of({shard, shard_.count}) + "/rendezvous";
}

std::string RendezvousFiles::waits_for() const { return leader_ ? leader_->waits_for() : "the other shards"; }

}  // namespace mprun
