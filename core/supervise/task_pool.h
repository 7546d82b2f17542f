// The pool of a function job: long-lived Python workers that take chunks of tasks from a channel and
// write results to a pipe. Owns their connections and the claim table.
#pragma once

#include <deque>
#include <vector>

#include "supervise/worker_connection.h"
#include "supervise/worker_pool.h"
#include "wire/claim_table.h"

namespace mprun {

class TaskPool : public WorkerPool, private LauncherListener {
 public:
  TaskPool(LaunchPlan plan, ClaimTable claims, WorkerPoolListener* listener);
  void start(int slot) override;
  void assign(int slot, const std::vector<HandedTask>& tasks) override;
  std::uint32_t take_back(int slot) override;
  void retire(int slot) override;
  void signal(int slot, int signal) override;
  bool child_gone(pid_t pid, ProcessEnd end) override { return launcher_->child_gone(pid, end); }
  void finish() override { launcher_->finish(); }
  void kill_hosts() override { launcher_->kill_host(); }
  [[nodiscard]] bool idle() const override { return !launcher_->has_host(); }
  [[nodiscard]] bool has_no_hosts() const override { return plan_.spec->start_method == StartMethod::kSpawn; }

 private:
  struct Slot {
    ProcessRef process;                  ///< none: it is not launched yet, or gone
    std::string_view verdict;            ///< what is wrong with its pipe
    std::deque<std::uint32_t> expected;  ///< positions handed out, neither reported nor taken back
    std::uint32_t next_position = 0;     ///< of the next task handed out
    bool wanted = false;                 ///< between start() and on_gone()
    bool ready = false, retired = false;
    bool broke_channels = false;  ///< ended by us because of its verdict
    bool signalled = false;       ///< by us: such an end is expected
    bool foreign = false;         ///< it sent a result for none of its tasks
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
  void on_readable(int number);
  void on_frame(int number, const Frame& frame);
  void on_result(int number, std::string_view payload);
  void on_closed(int number);
  void give_up(int number, std::string_view verdict);
  void end_given_up(int number);
  void gone_later(int number);
  void never_launched(int number);
  Slot& at(int slot) { return slots_[static_cast<std::size_t>(slot)]; }
  WorkerConnection& connection(int slot) { return connections_[static_cast<std::size_t>(slot)]; }

  LaunchPlan plan_;
  ClaimTable claims_;
  WorkerPoolListener* listener_;
  std::vector<Slot> slots_;
  bool any_said_hello_ = false;  ///< so the interpreter is a Python
  std::unique_ptr<Launcher> launcher_;
  std::vector<WorkerConnection> connections_;  ///< by slot
};

}  // namespace mprun
