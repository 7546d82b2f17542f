// TaskInputs: the inputs of a job, from when they are read until their tasks have ended. The supervisor keeps them here
// and says which tasks go where; decides nothing.
#pragma once

#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "job/inputs.h"
#include "supervise/scheduler.h"
#include "supervise/worker_pool.h"

namespace mprun {

class TaskInputs {
 public:
  struct Held {
    TaskAttempt task;
    std::string input;  ///< JSON text
  };

  explicit TaskInputs(int slots) : held_(static_cast<std::size_t>(slots)) {}

  /// An input was read, in the order of tasks. kBad: `text` says why it is none.
  void keep(InputSource::Pull pulled, TaskId task, std::string text);
  /// Gives the tasks to a slot, after those that it has. The views hold until the slot's tasks change.
  [[nodiscard]] std::vector<HandedTask> hand_out(int slot, const std::vector<TaskAttempt>& tasks);
  /// Takes the slot's last `count` tasks away; they will be handed out again.
  void take_back(int slot, std::uint32_t count);
  /// The slot's oldest task has ended; nullopt: it has none.
  [[nodiscard]] std::optional<Held> take_oldest(int slot);
  /// The slot's worker is gone: returns the oldest task if that had begun. The others will be handed out again.
  [[nodiscard]] Held take_all(int slot, bool begun);
  /// The task will be handed out again.
  void put_back(Held held) { back_[held.task.task] = std::move(held.input); }

  /// Why the input of a task is none; nullptr: it is one.
  [[nodiscard]] const std::string* fault_of(TaskId task) const;
  [[nodiscard]] bool has_none(int slot) const { return held_[static_cast<std::size_t>(slot)].empty(); }
  [[nodiscard]] int slots() const { return static_cast<int>(held_.size()); }

 private:
  [[nodiscard]] std::string take(TaskId task);

  std::deque<std::string> fresh_;       ///< of tasks never handed out, in order
  std::map<TaskId, std::string> bad_;   ///< inputs that could not be read: the reason
  std::map<TaskId, std::string> back_;  ///< of tasks taken back or to be retried
  std::vector<std::deque<Held>> held_;  ///< in flight, by slot
};

}  // namespace mprun
