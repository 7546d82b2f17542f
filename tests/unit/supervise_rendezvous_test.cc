// Schedulers of several shards whose ranks start, start again and end together, under random schedules: leader and
// followers are real, the files are memory that some shards see late.
#include <gtest/gtest.h>

#include <deque>
#include <map>
#include <random>
#include <set>

#include "scheduler_driver.h"

namespace mprun {
namespace {

class Group {
 public:
  static constexpr int kShards = 3;

  explicit Group(std::uint64_t seed) : random_(seed) {
    for (int shard = 0; shard < kShards; ++shard) start(shard);
  }

  std::uint64_t pick(std::uint64_t count) { return random_() % count; }

  /// Anything may happen to a shard, and some time passes.
  void happen(bool calm) {
    const int shard = static_cast<int>(pick(kShards));
    if (calm || pick(3) > 0) {
      for (int other = 0; other < kShards; ++other) meet(other);
    }
    if (gone_.count(shard) != 0) return;
    const std::uint64_t kind = pick(calm ? 8 : 400);
    if (kind == 399) interrupt(shard);
    if (kind == 398) gone_.insert(shard);
    if (kind < 100) end_rank(shard, static_cast<int>(pick(kRanks)), !calm && pick(4) == 0);
  }

  void pass(double seconds) {
    for (Shard& shard : shards_) shard.driver->pass(seconds);
    now_ += from_seconds(seconds);
  }

  [[nodiscard]] bool over() {
    for (int shard = 0; shard < kShards; ++shard) {
      if (gone_.count(shard) == 0 && !shards_.at(static_cast<std::size_t>(shard)).driver->scheduler().over())
        return false;
    }
    return true;
  }

  /// All ranks of this shard have ended well, and nothing has stopped it.
  [[nodiscard]] bool succeeded(int shard) {
    const Scheduler& scheduler = at(shard).driver->scheduler();
    return gone_.count(shard) == 0 && scheduler.stopping() == Cause::kNone && scheduler.counts().ok == kRanks;
  }
  [[nodiscard]] bool any_gone() const { return !gone_.empty(); }
  [[nodiscard]] bool interrupted(int shard) { return at(shard).driver->scheduler().stopping() == Cause::kInterrupted; }
  int restarts = 0;

 private:
  static constexpr int kRanks = 2, kRestarts = 2;
  static constexpr Nanos kPatience = 10 * kNanosPerSecond;
  /// The last texts of a file, newest first: readers may see any of the last three.
  using File = std::deque<std::string>;

  struct Shard {
    std::optional<Driver> driver;
    std::optional<Leader> leader;
    std::optional<Follower> follower;
    RankReport report;
    std::map<int, int> running;  ///< the attempt that a rank runs
    int well = 0;                ///< ranks of the current attempt that ended well
  };
  Shard& at(int shard) { return shards_.at(static_cast<std::size_t>(shard)); }

  void start(int number) {
    shards_.emplace_back();
    Shard& shard = at(number);
    shard.report.token = std::to_string(number) + "-token";
    if (number == 0) {
      shard.report.leader = shard.report.token;
      shard.leader.emplace(shard.report.token, kShards, kPatience, now_);
    } else {
      shard.follower.emplace(shard.report.token, number, kPatience, now_);
    }
    Policy policy = ranks(kRanks, kRestarts);
    policy.has_leader = true;
    policy.retry_delay = kNanosPerSecond / 10;
    shard.driver.emplace(policy);
    send(number, event::Begin{});
    send(number, event::InputsRead{kRanks, true});
    for (int rank = 0; rank < kRanks; ++rank) send(number, event::WorkerReady{rank});
  }

  void send(int number, const Event& event) {
    for (const Action& action : at(number).driver->send(event)) {
      if (const auto* assign = std::get_if<action::Assign>(&action)) begin(number, *assign);
      if (const auto* retire = std::get_if<action::Retire>(&action)) gone_slots_.emplace_back(number, retire->slot);
    }
    while (!gone_slots_.empty()) {
      const auto [shard, slot] = gone_slots_.front();
      gone_slots_.pop_front();
      send(shard, event::WorkerGone{slot});
    }
  }

  // No rank of any shard is in another attempt, and no shard that is over has succeeded.
  void begin(int number, const action::Assign& assign) {
    const int attempt = assign.tasks.at(0).attempt;
    at(number).running[assign.slot] = attempt;
    restarts = std::max(restarts, attempt - 1);
    for (int shard = 0; shard < kShards; ++shard) {
      for (const auto& [rank, of] : at(shard).running) EXPECT_EQ(of, attempt) << "shard " << shard;
      EXPECT_FALSE(succeeded(shard)) << "shard " << shard;
    }
  }

  void end_rank(int number, int rank, bool failed) {
    if (at(number).running.erase(rank) > 0) send(number, event::TaskDone{rank, failed, 1});
  }

  void interrupt(int number) {
    send(number, event::Interrupt{});
    send(number, event::Interrupt{});
  }

  std::string read(const File& file) { return file.empty() ? "" : file[pick(file.size())]; }
  static void write(File* file, std::string text) {
    file->push_front(std::move(text));
    file->resize(std::min<std::size_t>(file->size(), 3));
  }

  void meet(int number) {
    Shard& shard = at(number);
    if (gone_.count(number) != 0) return;
    send(number, event::Tick{});
    const auto [state, attempt] = shard.driver->scheduler().rank_state();
    shard.report.state = state;
    shard.report.attempt = attempt;
    ++shard.report.beat;
    std::optional<GroupDecision> decision;
    if (shard.leader) {
      std::vector<std::string> reports{to_string(shard.report)};
      for (int other = 1; other < kShards; ++other) reports.push_back(read(reports_[other]));
      decision = shard.leader->decide(reports, now_);
      decision->beat = shard.report.beat;
      write(&decision_, to_string(*decision));
    } else {
      decision = shard.follower->follow(read(decision_), now_);
      shard.report.leader = shard.follower->leader();
      write(&reports_[number], to_string(shard.report));
    }
    if (decision) send(number, event::GroupDecided{decision->phase, decision->attempt});
  }

  std::mt19937_64 random_;
  Nanos now_ = kNanosPerSecond;
  std::deque<Shard> shards_;
  std::set<int> gone_;  ///< shards that were killed
  std::deque<std::pair<int, int>> gone_slots_;
  File decision_;
  std::map<int, File> reports_;
};

TEST(RendezvousSchedules, AllEndAndAgree) {
  int restarted = 0;
  int successes = 0;
  int stops = 0;
  for (std::uint64_t seed = 0; seed < 3000 && !testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Group group(seed);
    for (std::uint64_t step = group.pick(400); step > 0 && !group.over(); --step) {
      group.happen(false);
      group.pass(0.05);
    }
    for (int step = 0; step < 2000 && !group.over(); ++step) {
      group.happen(true);
      group.pass(0.5);
    }
    ASSERT_TRUE(group.over());
    int well = 0;
    bool excused = group.any_gone();
    for (int shard = 0; shard < Group::kShards; ++shard) {
      well += group.succeeded(shard) ? 1 : 0;
      excused = excused || group.interrupted(shard);  // after its ranks had ended well
    }
    EXPECT_TRUE(well == 0 || well == Group::kShards || excused) << well;
    restarted += group.restarts > 0 ? 1 : 0;
    successes += well == Group::kShards ? 1 : 0;
    stops += well == 0 ? 1 : 0;
  }
  EXPECT_GT(restarted, 0);
  EXPECT_GT(successes, 0);
  EXPECT_GT(stops, 0);
}

}  // namespace
}  // namespace mprun
