// Summary: summary.json, the outcome of a run. A Sink in mprun's one thread that counts; owns 16 bytes for every
// process that worked (commands, one per task, are only counted), and the reported warnings and errors.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "events/job_event.h"
#include "job/spec.h"
#include "json/json.h"
#include "record/atomic_file.h"
#include "record/earlier_run.h"

namespace mprun {

/// Warnings and errors that summary.json repeats.
inline constexpr std::size_t kMostNotices = 1000;

/// Counts of ended tasks; `retried` counts attempts that were tried again, `earlier` those of `ok` and `failed` that
/// earlier sessions did.
struct TaskCounts {
  std::optional<std::uint64_t> total;
  std::uint64_t ok = 0, failed = 0, cancelled = 0, retried = 0, earlier = 0;

  [[nodiscard]] std::uint64_t done() const { return ok + failed + cancelled; }
  /// Tasks that never began; nullopt if it is unknown how many there are.
  [[nodiscard]] std::optional<std::uint64_t> not_run() const {
    if (!total) return std::nullopt;
    return *total > done() ? *total - done() : 0;
  }
};

class Summary : public Sink {
 public:
  /// `started`: the wall clock when the job began.
  Summary(const JobSpec& spec, Nanos started);

  void on_event(const JobEvent& event) override;

  /// Takes over the outcome of earlier sessions. Their processes, retries, warnings and hangs are replayed as events.
  void go_on(const Counts& counts, const EarlierSessions& sessions);

  /// The counts so far; `total` comes from the last Pulse.
  [[nodiscard]] const TaskCounts& counts() const { return counts_; }
  /// What became of the tensors that tasks returned: TensorFiles::to_json().
  void set_tensors(Json tensors) { tensors_ = std::move(tensors); }
  /// The shared tensors that were saved: SharedTensors::to_json().
  void set_shared(Json shared) { shared_ = std::move(shared); }
  /// The document; `seconds`: how long this session took.
  [[nodiscard]] Json to_json(int exit_code, double seconds) const;
  /// Writes the document to `path`, which afterwards holds all of it or is unchanged.
  [[nodiscard]] Result<void> write(const std::string& path, int exit_code, double seconds, OnDisk when) const;

 private:
  struct Process {
    std::int32_t pid;
    std::int32_t worker;
    std::int32_t exit_code;
    std::uint8_t signal;
    std::uint8_t role;  ///< index in roles_
    bool expected;
  };
  static_assert(sizeof(Process) <= 24);

  void add_task(TaskStatus status);
  void add_process(const WorkerEnded& ended);
  void add_notice(const Notice& notice);
  [[nodiscard]] Json processes_json() const;
  [[nodiscard]] Json command_exits_json() const;

  std::string job_;
  const char* kind_;
  const char* start_method_;
  Nanos started_;
  int sessions_ = 1;
  double earlier_seconds_ = 0;
  TaskCounts counts_;
  std::vector<std::string> roles_;
  std::vector<Process> processes_;
  bool has_commands_ = false;
  std::array<std::uint64_t, 256> command_codes_{};
  std::array<std::uint64_t, 65> command_signals_{};
  std::vector<std::pair<Notice::Kind, std::string>> notices_;
  std::uint64_t notices_left_out_ = 0;
  Json hangs_ = Json::array();
  Json tensors_ = Json::array();
  Json shared_ = Json::array();
};

}  // namespace mprun
