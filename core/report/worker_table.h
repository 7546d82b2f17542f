// The workers of a job as lines of a table: state, task, its age, CPU and memory. A pure function, called by LiveView.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "events/job_event.h"

namespace mprun {

struct TableRoom {
  int columns = 80, rows = 20;
  bool color = false;
};

/// A heading and a line a worker, by number; no line takes more than columns - 1. If columns are few, the less
/// important ones are left out. If rows are few, the workers that have had their tasks for the shortest time are left
/// out, and the last line says how many. Empty if there is no room for a worker at all.
[[nodiscard]] std::vector<std::string> worker_table(std::span<const WorkerView> workers, const TableRoom& room);

/// "340M", "1.2G": bytes in five characters at most.
[[nodiscard]] std::string short_size(std::uint64_t bytes);

}  // namespace mprun
