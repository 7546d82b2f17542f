#include "scenario.h"

#include <algorithm>
#include <array>

namespace mprun::simulation {
namespace {

void choose_limits(Choices* choices, Policy* policy) {
  policy->grace = (1 + static_cast<Nanos>(choices->pick(8))) * 50 * kNanosPerMilli;
  policy->join_limit = (1 + static_cast<Nanos>(choices->pick(10))) * 100 * kNanosPerMilli;
  if (choices->one_in(3)) policy->task_limit = (2 + static_cast<Nanos>(choices->pick(10))) * 100 * kNanosPerMilli;
  if (choices->one_in(10)) policy->job_limit = static_cast<Nanos>(choices->pick(30)) * 100 * kNanosPerMilli;
  if (!choices->one_in(3)) return;
  constexpr std::array<double, 4> kBackoffs = {1, 2, 1.5, 4};  // with these, all delays are exact
  policy->retry_delay = (1 + static_cast<Nanos>(choices->pick(10))) * 50 * kNanosPerMilli;
  policy->retry_backoff = kBackoffs[choices->pick(kBackoffs.size())];
  if (choices->one_in(2)) policy->retry_max_delay = (1 + static_cast<Nanos>(choices->pick(10))) * 100 * kNanosPerMilli;
}

}  // namespace

Scenario make_scenario(Choices* choices) {
  Scenario scenario;
  Policy& policy = scenario.policy;
  const bool big = choices->one_in(1000);
  policy.workers = 1 + static_cast<int>(choices->pick(4));
  scenario.total = big ? 5000 + choices->pick(25'000) : 1 + choices->pick(choices->one_in(5) ? 300 : 24);
  const std::uint32_t kind = big ? 0 : choices->pick(6);  // 4: commands, 5: ranks
  policy.process_per_task = kind >= 4;
  policy.ranks = kind == 5;
  if (policy.ranks) scenario.total = static_cast<std::uint64_t>(policy.workers);
  if (choices->one_in(2)) policy.chunk_size = 1 + static_cast<int>(choices->pick(9));
  policy.retries_on_error = static_cast<int>(choices->pick(3));
  policy.retries_on_death = static_cast<int>(choices->pick(choices->one_in(3) ? 6 : 3));
  policy.retries_on_hang = static_cast<int>(choices->pick(3));
  if (policy.ranks && choices->one_in(3))
    policy.retries_on_error = policy.retries_on_death = policy.retries_on_hang = 0;
  choose_limits(choices, &policy);
  policy.stop_on_error = choices->one_in(8);
  if (choices->one_in(8)) policy.max_failures = 1 + static_cast<int>(choices->pick(4));
  if (!policy.process_per_task && choices->one_in(4)) policy.tasks_per_worker = 1 + static_cast<int>(choices->pick(8));
  policy.total = scenario.total;
  for (bool* trouble : {&scenario.deaths, &scenario.errors, &scenario.hangs}) *trouble = choices->one_in(2);
  for (bool* trouble : {&scenario.stubborn, &scenario.slow_inputs, &scenario.clock, &scenario.duplicates}) {
    *trouble = choices->one_in(3);
  }
  for (bool* trouble : {&scenario.start_trouble, &scenario.interrupts, &scenario.crashes})
    *trouble = choices->one_in(4);
  scenario.large = choices->one_in(3);
  scenario.killer = choices->one_in(2);
  scenario.full_disk = choices->one_in(12);
  scenario.retry_failed = choices->one_in(3);
  scenario.sessions = 1 + choices->pick(3);
  constexpr std::array<Nanos, 5> kTaskTimes = {10 * kNanosPerMilli, 1000, 20'000, kNanosPerMilli, kNanosPerSecond / 5};
  scenario.task_time = kTaskTimes[choices->pick(kTaskTimes.size())];
  scenario.steps = 20 + choices->pick(400);
  policy.shares_inputs = choices->one_in(4);
  policy.has_leader = policy.ranks && choices->one_in(3);
  return scenario;
}

}  // namespace mprun::simulation
