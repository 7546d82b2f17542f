// A scheduler driven by hand: a test sends it events and reads its actions.
#pragma once

#include "supervise/scheduler.h"

namespace mprun {

inline Policy workers(int count) {
  Policy policy;
  policy.workers = count;
  return policy;
}

/// Ranks that start again that often, whatever the cause.
inline Policy ranks(int count, int restarts) {
  Policy policy = workers(count);
  policy.process_per_task = policy.ranks = true;
  policy.retries_on_error = policy.retries_on_death = policy.retries_on_hang = restarts;
  return policy;
}

/// Drives a scheduler by hand and records its actions.
class Driver {
 public:
  explicit Driver(const Policy& policy) : scheduler_(policy) {}

  /// Inputs are numbered on from those read before, unless they say where they begin.
  std::vector<Action> send(Event event) {
    std::vector<Action> actions;
    if (auto* read = std::get_if<event::InputsRead>(&event)) {
      if (read->first == 0) read->first = next_input_;
      next_input_ = read->first + read->count;
    }
    scheduler_.step(event, now_, &actions);
    return actions;
  }
  void pass(double seconds) { now_ += from_seconds(seconds); }
  Scheduler& scheduler() { return scheduler_; }

 private:
  Scheduler scheduler_;
  Nanos now_ = kNanosPerSecond;
  TaskId next_input_ = 0;
};

template <typename T>
std::vector<T> all(const std::vector<Action>& actions) {
  std::vector<T> found;
  for (const Action& action : actions) {
    if (const T* wanted = std::get_if<T>(&action)) found.push_back(*wanted);
  }
  return found;
}

inline std::vector<TaskId> assigned(const std::vector<Action>& actions, int slot) {
  std::vector<TaskId> tasks;
  for (const auto& assign : all<action::Assign>(actions)) {
    if (assign.slot != slot) continue;
    for (const TaskAttempt& task : assign.tasks) tasks.push_back(task.task);
  }
  return tasks;
}

}  // namespace mprun
