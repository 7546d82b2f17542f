// Scenario: what is fixed before a schedule runs: the job's policy, and the kinds of trouble that may occur.
#pragma once

#include "choices.h"
#include "supervise/scheduler.h"

namespace mprun::simulation {

struct Scenario {
  Policy policy;
  std::uint64_t total = 0;  ///< tasks
  bool deaths = false, errors = false, hangs = false, start_trouble = false, stubborn = false, interrupts = false,
       crashes = false, full_disk = false, slow_inputs = false, clock = false, duplicates = false, large = false,
       killer = false;         ///< large: workers that use too much memory; killer: deaths by signals from outside
  bool retry_failed = false;   ///< resume --retry-failed
  std::uint32_t sessions = 1;  ///< with trouble; one without any may follow
  Nanos task_time = 0;         ///< of most tasks
  std::uint32_t steps = 0;     ///< of a session, before all obey
  [[nodiscard]] bool big() const { return total > 1000; }
};

[[nodiscard]] Scenario make_scenario(Choices* choices);

}  // namespace mprun::simulation
