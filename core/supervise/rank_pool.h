// The pool of Python ranks: every slot runs the script once as __main__, all at the same time, with
// torchrun's variables. A rank is one task; its result is what it gave to mprun.result(), or its error.
#pragma once

#include <vector>

#include "supervise/rank_attempt.h"
#include "supervise/worker_connection.h"
#include "supervise/worker_pool.h"

namespace mprun {

class RankPool : public WorkerPool, private LauncherListener {
 public:
  RankPool(LaunchPlan plan, WorkerPoolListener* listener);
  void start(int slot) override;
  void assign(int slot, const std::vector<HandedTask>& tasks) override;
  std::uint32_t take_back(int /*slot*/) override { return 0; }
  void retire(int slot) override;
  void signal(int slot, int signal) override;
  bool child_gone(pid_t pid, ProcessEnd end) override { return launcher_->child_gone(pid, end); }
  void finish() override { launcher_->finish(); }
  void kill_hosts() override { launcher_->kill_host(); }
  [[nodiscard]] bool idle() const override { return !launcher_->has_host(); }
  [[nodiscard]] bool has_no_hosts() const override { return plan_.spec->start_method == StartMethod::kSpawn; }

 private:
  struct Slot {
    bool running = false;
    TaskAttempt task;
    ProcessRef process;        ///< none: it is not launched yet, or gone
    bool ready = false;        ///< the script has begun
    bool foreign = false;      ///< its pipe holds something that no rank writes
    std::string value, error;  ///< JSON of the last mprun.result(), of the exception
    std::string tensors;       ///< what the last mprun.result() claims
    Nanos start = 0, began = 0;
  };

  std::optional<LaunchRequest> prepare_launch(int slot) override;
  void on_launched(int slot, const ProcessRef& process) override;
  void on_process_gone(int slot, const ProcessRef& process, ProcessEnd end) override;
  void on_host_stage(std::string_view text) override { listener_->on_stage(-1, text); }
  void on_host_started(pid_t pid) override { listener_->on_process_started(-1, pid); }
  void on_host_gone(pid_t pid, ProcessEnd end, bool expected) override {
    listener_->on_process_ended(-1, pid, "host", end, expected);
  }
  void on_launch_failed(const std::string& reason) override;

  void drain(int number);
  void on_frame(int number, const Frame& frame);
  void end_rank(int number, ProcessEnd end);
  [[nodiscard]] std::string explain_death(int number, ProcessEnd end) const;
  Slot& at(int slot) { return slots_[static_cast<std::size_t>(slot)]; }
  [[nodiscard]] const Slot& at(int slot) const { return slots_[static_cast<std::size_t>(slot)]; }
  WorkerConnection& connection(int slot) { return connections_[static_cast<std::size_t>(slot)]; }
  [[nodiscard]] const WorkerConnection& connection(int slot) const {
    return connections_[static_cast<std::size_t>(slot)];
  }

  LaunchPlan plan_;
  WorkerPoolListener* listener_;
  RankAttempt attempt_;
  std::vector<Slot> slots_;
  std::unique_ptr<Launcher> launcher_;
  std::vector<WorkerConnection> connections_;  ///< by slot
};

}  // namespace mprun
