#include "supervise/task_inputs.h"

#include <utility>

namespace mprun {

void TaskInputs::keep(InputSource::Pull pulled, TaskId task, std::string text) {
  if (pulled == InputSource::Pull::kBad) bad_[task] = std::exchange(text, "null");
  fresh_.push_back(std::move(text));
}

std::vector<HandedTask> TaskInputs::hand_out(int slot, const std::vector<TaskAttempt>& tasks) {
  auto& queue = held_[static_cast<std::size_t>(slot)];
  const std::size_t before = queue.size();
  for (const TaskAttempt& task : tasks) queue.push_back({task, take(task.task)});
  std::vector<HandedTask> handed;
  handed.reserve(tasks.size());
  for (std::size_t i = before; i < queue.size(); ++i) {
    handed.push_back({queue[i].task, queue[i].input, fault_of(queue[i].task.task) != nullptr});
  }
  return handed;
}

void TaskInputs::take_back(int slot, std::uint32_t count) {
  auto& queue = held_[static_cast<std::size_t>(slot)];
  for (std::uint32_t i = 0; i < count && !queue.empty(); ++i) {
    put_back(std::move(queue.back()));
    queue.pop_back();
  }
}

std::optional<TaskInputs::Held> TaskInputs::take_oldest(int slot) {
  auto& queue = held_[static_cast<std::size_t>(slot)];
  if (queue.empty()) return std::nullopt;
  Held oldest = std::move(queue.front());
  queue.pop_front();
  return oldest;
}

TaskInputs::Held TaskInputs::take_all(int slot, bool begun) {
  auto lost = std::exchange(held_[static_cast<std::size_t>(slot)], {});
  Held oldest;
  if (begun && !lost.empty()) {
    oldest = std::move(lost.front());
    lost.pop_front();
  }
  for (Held& task : lost) put_back(std::move(task));
  return oldest;
}

const std::string* TaskInputs::fault_of(TaskId task) const {
  const auto bad = bad_.empty() ? bad_.end() : bad_.find(task);
  return bad == bad_.end() ? nullptr : &bad->second;
}

std::string TaskInputs::take(TaskId task) {
  const auto it = back_.find(task);
  if (it != back_.end()) {
    std::string text = std::move(it->second);
    back_.erase(it);
    return text;
  }
  std::string text = std::move(fresh_.front());  // fresh tasks are handed out in order
  fresh_.pop_front();
  return text;
}

}  // namespace mprun
