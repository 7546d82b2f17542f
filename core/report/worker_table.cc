#include "report/worker_table.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

#include <fmt/format.h>

#include "report/colors.h"
#include "report/progress.h"

namespace mprun {
namespace {

enum Column : std::size_t { kWorker, kState, kTask, kAge, kCpu, kMemory, kCpus, kColumnCount };
using Row = std::array<std::string, kColumnCount>;

constexpr Row::size_type kBetweenColumns = 2;
constexpr std::array<std::string_view, kColumnCount> kHeadings = {"worker", "state",  "task", "age",
                                                                  "CPU",    "memory", "CPUs"};
// The least important first.
constexpr std::array<Column, kColumnCount> kFirstToGo = {kCpus, kMemory, kCpu, kTask, kAge, kState, kWorker};
// Minimum widths, so that the columns do not move with every task.
constexpr std::array<std::size_t, kColumnCount> kSmallest = {6, 8, 5, 6, 5, 6, 0};

[[nodiscard]] const char* state_text(WorkerState state) {
  switch (state) {
    case WorkerState::kStarting:
      return "starting";
    case WorkerState::kIdle:
      return "idle";
    case WorkerState::kBusy:
      return "busy";
    case WorkerState::kStopped:
      return "stopped";
    case WorkerState::kEnding:
      return "ending";
  }
  return "";
}

[[nodiscard]] Row row_of(const WorkerView& worker) {
  Row row;
  row[kWorker] = fmt::format("{}", worker.worker);
  row[kState] = state_text(worker.state);
  if (worker.task) row[kTask] = fmt::format("{}", *worker.task);
  if (worker.task) row[kAge] = format_duration(std::floor(worker.task_seconds));
  if (worker.pid != 0) row[kCpu] = fmt::format("{:.0f}%", 100 * worker.load);
  if (worker.memory != 0) row[kMemory] = short_size(worker.memory);
  row[kCpus] = worker.cpus;
  return row;
}

/// Which workers are shown first if not all fit.
[[nodiscard]] int urgency(WorkerState state) {
  switch (state) {
    case WorkerState::kStopped:
      return 3;
    case WorkerState::kBusy:
    case WorkerState::kEnding:
      return 2;
    case WorkerState::kStarting:
      return 1;
    case WorkerState::kIdle:
      break;
  }
  return 0;
}

/// The most urgent ones, by number. Ages count in whole seconds: with short tasks, always the same workers are shown.
[[nodiscard]] std::vector<WorkerView> most_urgent(std::span<const WorkerView> workers, std::size_t most) {
  std::vector<WorkerView> chosen(workers.begin(), workers.end());
  if (chosen.size() <= most) return chosen;
  std::stable_sort(chosen.begin(), chosen.end(), [](const WorkerView& a, const WorkerView& b) {
    const int first = urgency(a.state), second = urgency(b.state);
    return first != second ? first > second : std::floor(a.task_seconds) > std::floor(b.task_seconds);
  });
  chosen.resize(most);
  std::sort(chosen.begin(), chosen.end(), [](const WorkerView& a, const WorkerView& b) { return a.worker < b.worker; });
  return chosen;
}

/// The width of each column; 0: it is left out.
[[nodiscard]] std::array<std::size_t, kColumnCount> widths_of(const std::vector<Row>& rows, std::size_t limit) {
  std::array<std::size_t, kColumnCount> widths = kSmallest;
  for (const Row& row : rows) {
    for (std::size_t i = 0; i < kColumnCount; ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  // Most jobs bind no worker. A column that would be wider than all others is of no use either.
  constexpr std::size_t kWidestCpus = 24;
  if (widths[kCpus] > kWidestCpus) widths[kCpus] = 0;
  if (widths[kCpus] > 0) widths[kCpus] = std::max(widths[kCpus], kHeadings[kCpus].size());
  for (const Column column : kFirstToGo) {
    std::size_t sum = 0;
    for (const std::size_t width : widths) sum += width != 0 ? width + kBetweenColumns : 0;
    if (sum <= limit + kBetweenColumns) break;
    widths[column] = 0;
  }
  return widths;
}

[[nodiscard]] std::string join(const Row& row, const std::array<std::size_t, kColumnCount>& widths) {
  std::string line;
  for (std::size_t i = 0; i < kColumnCount; ++i) {
    if (widths[i] == 0) continue;
    if (!line.empty()) line.append(kBetweenColumns, ' ');
    const std::string blank(widths[i] - row[i].size(), ' ');
    line += i == kState || i == kCpus ? row[i] + blank : blank + row[i];
  }
  line.resize(line.find_last_not_of(' ') + 1);
  return line;
}

[[nodiscard]] std::string colored(const std::string& line, std::string_view color, bool wanted) {
  return wanted ? std::string(color).append(line).append(kReset) : line;
}

}  // namespace

std::vector<std::string> worker_table(std::span<const WorkerView> workers, const TableRoom& room) {
  constexpr int kLeastRows = 2;  // the heading and a worker
  if (workers.empty() || room.rows < kLeastRows) return {};
  const auto places = static_cast<std::size_t>(room.rows) - 1;
  const std::size_t most = workers.size() <= places ? places : std::max<std::size_t>(places - 1, 1);
  const std::vector<WorkerView> chosen = most_urgent(workers, most);
  std::vector<Row> rows;
  rows.reserve(chosen.size());
  for (const WorkerView& worker : chosen) rows.push_back(row_of(worker));
  const auto widths = widths_of(rows, static_cast<std::size_t>(std::max(room.columns - 1, 0)));
  if (widths[kWorker] == 0) return {};
  Row headings;
  std::copy(kHeadings.begin(), kHeadings.end(), headings.begin());
  std::vector<std::string> lines{colored(join(headings, widths), kDim, room.color)};
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const bool warns = chosen[i].state == WorkerState::kStopped;
    lines.push_back(colored(join(rows[i], widths), kYellow, room.color && warns));
  }
  const std::size_t left_out = workers.size() - chosen.size();
  if (left_out > 0 && places > chosen.size()) {
    std::string rest = fmt::format("and {} more", left_out);
    rest.resize(std::min(rest.size(), static_cast<std::size_t>(room.columns - 1)));
    lines.push_back(colored(rest, kDim, room.color));
  }
  return lines;
}

std::string short_size(std::uint64_t bytes) {
  constexpr std::string_view kUnits = "KMGTPE";
  auto size = static_cast<double>(bytes) / 1024;
  std::size_t unit = 0;
  for (; size >= 999.5 && unit + 1 < kUnits.size(); ++unit) size /= 1024;
  return size < 9.95 && unit > 1 ? fmt::format("{:.1f}{}", size, kUnits[unit])
                                 : fmt::format("{:.0f}{}", size, kUnits[unit]);
}

}  // namespace mprun
