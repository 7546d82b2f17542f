// Start method spawn: every worker is a fresh interpreter and mprun's own child.
#pragma once

#include <unordered_map>

#include "launch/launcher.h"

namespace mprun {

class SpawnLauncher : public Launcher {
 public:
  SpawnLauncher(LaunchPlan plan, LauncherListener* listener) : plan_(std::move(plan)), listener_(listener) {}
  void launch(int slot) override;
  bool child_gone(pid_t pid, ProcessEnd end) override;
  void finish() override {}
  void kill_host() override {}
  [[nodiscard]] bool has_host() const override { return false; }

 private:
  struct Started {
    int slot = 0;
    ProcessRef process;
  };

  LaunchPlan plan_;
  LauncherListener* listener_;
  std::unordered_map<pid_t, Started> started_;
};

}  // namespace mprun
