#include "cluster/rendezvous.h"

#include <algorithm>
#include <sstream>
#include <utility>

namespace mprun {
namespace {

// As torchrun waits for its nodes.
constexpr Nanos kComingLimit = 600 * kNanosPerSecond;
constexpr std::string_view kComingText = " did not begin within ten minutes, or has another run directory";

constexpr std::array<std::string_view, 5> kRankStates = {"ready", "running", "failed", "well", "stopped"};
constexpr std::string_view kNone = "-";  // for an empty token

std::string_view shown(const std::string& token) { return token.empty() ? kNone : token; }
std::string parsed(const std::string& word) { return word == kNone ? "" : word; }

template <typename Enum, std::size_t N>
bool parse(const std::array<std::string_view, N>& names, const std::string& word, Enum* value) {
  const auto found = std::find(names.begin(), names.end(), word);
  *value = static_cast<Enum>(found - names.begin());
  return found != names.end();
}

std::string one_line(std::string text) {
  std::replace(text.begin(), text.end(), '\n', ' ');
  return text;
}

}  // namespace

// --- texts ---

std::string to_string(const RankReport& report) {
  std::ostringstream out;
  out << report.token << ' ' << shown(report.leader) << ' ' << kRankStates[static_cast<std::size_t>(report.state)]
      << ' ' << report.attempt << ' ' << report.beat << '\n'
      << one_line(report.reason) << '\n';
  return out.str();
}

std::optional<RankReport> parse_report(std::string_view text) {
  std::istringstream in{std::string(text)};
  RankReport report;
  std::string state;
  in >> report.token >> report.leader >> state >> report.attempt >> report.beat;
  if (!in || in.get() != '\n' || !parse(kRankStates, state, &report.state)) return std::nullopt;
  report.leader = parsed(report.leader);
  std::getline(in, report.reason);
  return in.eof() ? std::nullopt : std::optional(report);
}

std::string to_string(const GroupDecision& decision) {
  std::ostringstream out;
  out << decision.leader << ' ' << kGroupPhases[static_cast<std::size_t>(decision.phase)] << ' ' << decision.attempt
      << ' ' << decision.beat << '\n'
      << one_line(decision.reason) << '\n';
  for (const std::string& token : decision.shards) out << shown(token) << '\n';
  return out.str();
}

std::optional<GroupDecision> parse_decision(std::string_view text) {
  std::istringstream in{std::string(text)};
  GroupDecision decision;
  std::string phase;
  in >> decision.leader >> phase >> decision.attempt >> decision.beat;
  if (!in || in.get() != '\n' || !parse(kGroupPhases, phase, &decision.phase)) return std::nullopt;
  std::getline(in, decision.reason);
  for (std::string token; std::getline(in, token);) decision.shards.push_back(parsed(token));
  return decision;
}

// --- the leader ---

Leader::Leader(std::string token, std::uint64_t shards, Nanos patience, Nanos now)
    : begun_(now), heartbeats_(patience), reports_(shards) {
  decision_.leader = std::move(token);
  decision_.shards.resize(shards);
}

const GroupDecision& Leader::decide(const std::vector<std::string>& reports, Nanos now) {
  heartbeats_.look(now);
  for (std::uint64_t shard = 0; shard < reports_.size(); ++shard) take(shard, reports[shard], now);
  if (decision_.is_final()) return decision_;
  // A shard whose ranks have all ended since is ready for the next attempt.
  const auto failed = std::find_if(reports_.begin(), reports_.end(), [this](const auto& report) {
    return report &&
           (report->is(RankState::kFailed, decision_.attempt) || report->is(RankState::kReady, decision_.attempt + 1));
  });
  if (decision_.phase == GroupPhase::kGather && all(RankState::kReady)) {
    decision_.phase = GroupPhase::kRun;
    decision_.reason.clear();
  } else if (decision_.phase == GroupPhase::kRun && failed != reports_.end()) {
    decision_.phase = GroupPhase::kGather;
    ++decision_.attempt;
    decision_.reason = name(static_cast<std::uint64_t>(failed - reports_.begin())) + ": " + (*failed)->reason;
  } else if (decision_.phase == GroupPhase::kRun && all(RankState::kWell)) {
    decision_.phase = GroupPhase::kFinished;
  }
  return decision_;
}

// Reports of other sessions do not count, nor old ones, and what cannot be read changes nothing.
void Leader::take(std::uint64_t shard, const std::string& text, Nanos now) {
  const auto report = parse_report(text);
  std::string& token = decision_.shards[shard];
  if (report && report->leader == decision_.leader) {
    if (!token.empty() && token != report->token) stop(name(shard) + " has begun anew");
    token = report->token;
    if (!reports_[shard] || report->beat >= reports_[shard]->beat) reports_[shard] = report;
  }
  if (!reports_[shard]) {
    if (now - begun_ >= kComingLimit) stop(waits_for().append(kComingText));
  } else if (reports_[shard]->state == RankState::kStopped) {
    const std::string& why = reports_[shard]->reason;
    stop(name(shard) + " has stopped" + (why.empty() ? "" : ": " + why));
  } else if (heartbeats_.has_stopped(shard, std::to_string(reports_[shard]->beat), now)) {
    stop(name(shard) + " has not been heard from for too long");
  }
}

// The first reason counts.
void Leader::stop(std::string reason) {
  if (decision_.is_final()) return;
  decision_.phase = GroupPhase::kStopped;
  decision_.reason = std::move(reason);
}

bool Leader::all(RankState state) const {
  return std::all_of(reports_.begin(), reports_.end(), [this, state](const std::optional<RankReport>& report) {
    return report && report->is(state, decision_.attempt);
  });
}

std::string Leader::name(std::uint64_t shard) const { return "shard " + folder_of({shard, reports_.size()}); }

std::string Leader::waits_for() const {
  constexpr std::size_t kMostNamed = 3;
  const RankState wanted = decision_.phase == GroupPhase::kGather ? RankState::kReady : RankState::kWell;
  std::vector<std::string> missing;
  for (std::uint64_t shard = 0; shard < reports_.size(); ++shard) {
    const auto& report = reports_[shard];
    if (!report || !report->is(wanted, decision_.attempt)) missing.push_back(folder_of({shard, reports_.size()}));
  }
  if (missing.empty()) return "";
  std::string text = missing.size() == 1 ? "shard " : "shards ";
  for (std::size_t i = 0; i < missing.size(); ++i) {
    if (i == kMostNamed) return text + " and others";
    text += (i == 0 ? "" : ", ") + missing[i];
  }
  return text;
}

// --- the others ---

Follower::Follower(std::string token, std::uint64_t shard, Nanos patience, Nanos now)
    : token_(std::move(token)), shard_(shard), begun_(now), heartbeats_(patience) {}

const std::optional<GroupDecision>& Follower::follow(std::string_view text, Nanos now) {
  if (decision_ && decision_->is_final()) return decision_;
  heartbeats_.look(now);
  const auto found = parse_decision(text);
  if (found && !decision_) leader_ = found->leader;
  const bool names_us = found && shard_ < found->shards.size() && found->shards[shard_] == token_;
  if (found && decision_ && found->leader != leader_) {
    stop("shard 1 has begun anew");
  } else if (names_us && (!decision_ || found->beat >= decision_->beat)) {
    decision_ = found;
  }
  if (!decision_ && now - begun_ >= kComingLimit) stop("shard 1" + std::string(kComingText));
  if (decision_ && !decision_->is_final() && heartbeats_.has_stopped(0, std::to_string(decision_->beat), now)) {
    stop("shard 1 has not been heard from for too long");
  }
  return decision_;
}

void Follower::stop(std::string reason) {
  if (!decision_) decision_.emplace();
  decision_->phase = GroupPhase::kStopped;
  decision_->reason = std::move(reason);
}

}  // namespace mprun
