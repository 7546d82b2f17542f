// The pool of a command job: one process per task, executed with no shell in between. The output of a
// slot's commands is appended to the slot's log pair, one command after the other, so that lines of
// two tasks never mix; a result quotes its part of them. Also runs executables as ranks.
#pragma once

#include <unordered_map>
#include <vector>

#include "supervise/rank_attempt.h"
#include "supervise/worker_pool.h"

namespace mprun {

/// `argv` with {} replaced by the input's bytes, {#} by the task's number and {%} by the slot's.
[[nodiscard]] std::vector<std::string> fill_command(const std::vector<std::string>& argv, std::string_view input,
                                                    TaskId task, int slot);

class CommandPool : public WorkerPool {
 public:
  CommandPool(LaunchPlan plan, std::vector<std::pair<Fd, Fd>> logs, WorkerPoolListener* listener);
  void start(int slot) override;
  void assign(int slot, const std::vector<HandedTask>& tasks) override;
  std::uint32_t take_back(int /*slot*/) override { return 0; }
  void retire(int slot) override;
  void signal(int slot, int signal) override;
  bool child_gone(pid_t pid, ProcessEnd end) override;
  void finish() override {}
  void kill_hosts() override {}
  [[nodiscard]] bool idle() const override { return true; }
  [[nodiscard]] bool has_no_hosts() const override { return true; }

 private:
  struct Slot {
    Fd out, err;
    ProcessRef process;                         ///< none: no command runs
    std::int64_t out_begin = 0, err_begin = 0;  ///< where the running command's output begins
    Nanos start = 0, began = 0;                 ///< wall clock, monotonic
  };
  void spawn_failed(int number, const std::string& program, const std::string& why);
  [[nodiscard]] std::string describe(int number, ProcessEnd end) const;
  [[nodiscard]] bool is_rank() const { return plan_.spec->kind == JobKind::kRanks; }
  Slot& at(int slot) { return slots_[static_cast<std::size_t>(slot)]; }
  [[nodiscard]] const Slot& at(int slot) const { return slots_[static_cast<std::size_t>(slot)]; }

  LaunchPlan plan_;
  WorkerPoolListener* listener_;
  std::vector<std::string> argv_;
  std::string search_path_;
  RankAttempt attempt_;
  std::vector<Slot> slots_;
  std::unordered_map<pid_t, int> running_;
};

}  // namespace mprun
