#include "schedule.h"

#include <utility>

#include "scenario.h"
#include "session.h"

namespace mprun::simulation {
namespace {

/// What the ends in a journal mean to the session that resumes the run.
struct Resume {
  std::vector<bool> ended;
  Counts earlier;
  std::optional<std::string> fault;
};

Resume read_journal(const Scenario& scenario, const Journal& journal) {
  Resume resume;
  resume.ended.resize(scenario.total);
  for (const Journal::End& end : journal.ends) {
    const bool stays = end.status == TaskStatus::kOk || (end.status == TaskStatus::kFailed && !scenario.retry_failed);
    if (resume.ended[end.task]) resume.fault = "a task ended in two sessions";
    if (!stays) continue;
    resume.ended[end.task] = true;
    ++(end.status == TaskStatus::kOk ? resume.earlier.ok : resume.earlier.failed);
  }
  return resume;
}

void lose_tail(Journal* journal, Choices* choices, Stats* stats) {
  const auto unsynced = static_cast<std::uint32_t>(std::exchange(journal->unsynced, 0));
  if (unsynced == 0 || choices->pick(2) == 0) return;  // only mprun was killed: what it wrote is kept
  stats->saw(Seen::kLostTails);
  const std::size_t lost = choices->pick(unsynced + 1);
  journal->ends.resize(journal->ends.size() - lost);
}

bool all_ended(const Resume& resume) { return resume.earlier.done() == resume.ended.size(); }

}  // namespace

std::optional<std::string> run_schedule(Choices* choices, Stats* stats, std::string* log) {
  const Scenario scenario = make_scenario(choices);
  stats->saw(Seen::kSchedules);
  if (scenario.big()) stats->saw(Seen::kBigJobs);
  Journal journal;
  for (std::uint32_t number = 0;; ++number) {
    const Resume resume = read_journal(scenario, journal);
    if (resume.fault) return resume.fault;
    if (number > 0 && all_ended(resume)) return std::nullopt;
    const bool last = number >= scenario.sessions;
    if (last && scenario.policy.ranks) return std::nullopt;  // ranks are rerun as a whole
    Session::Setup setup;
    setup.scenario = &scenario;
    setup.policy = scenario.policy;
    setup.policy.earlier = resume.earlier;
    if (last) setup.policy.job_limit.reset();
    setup.calm = last;
    setup.ended_earlier = resume.ended;
    setup.journal = &journal;
    setup.choices = choices;
    setup.stats = stats;
    setup.log = log;
    Session session(std::move(setup));
    const Session::End end = session.run();
    if (end == Session::End::kFailed) return session.failure();
    if (end == Session::End::kCrashed) {
      stats->saw(Seen::kCrashes);
      lose_tail(&journal, choices, stats);
      if (log != nullptr) *log += "# mprun is killed\n";
    }
    if (scenario.policy.ranks) return std::nullopt;
    if (last) {
      if (all_ended(read_journal(scenario, journal))) return std::nullopt;
      return "a task has not ended after the last session";
    }
  }
}

}  // namespace mprun::simulation
