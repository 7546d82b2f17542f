// Start methods fork and forkserver: a host, the user's own interpreter, forks every worker. The host
// reports how workers end and keeps each unreaped until told, so that no pid is reused under us.
// A host that dies takes its workers along; a new one is started for what is asked next.
#pragma once

#include <deque>
#include <optional>
#include <set>
#include <unordered_map>

#include "launch/launcher.h"
#include "wire/frames.h"

namespace mprun {

class HostLauncher : public Launcher {
 public:
  HostLauncher(LaunchPlan plan, LauncherListener* listener) : plan_(std::move(plan)), listener_(listener) {}
  ~HostLauncher() override;
  void launch(int slot) override;
  bool child_gone(pid_t pid, ProcessEnd end) override;
  void task_done() override { deaths_ = 0; }
  void finish() override;
  void kill_host() override;
  [[nodiscard]] bool has_host() const override { return pid_ != 0; }

 private:
  void start_host();
  void on_event(std::uint32_t events);
  void on_readable();
  void on_frame(const Frame& frame);
  void send_waiting();
  void watch_channel();
  void send(std::uint16_t type, std::string_view payload);
  void lose_host();
  void forget_host();
  void host_died_early(ProcessEnd end);
  void worker_gone(pid_t pid, ProcessEnd end, bool reap);

  LaunchPlan plan_;
  LauncherListener* listener_;
  pid_t pid_ = 0;
  bool said_hello_ = false, ready_ = false, was_ready_ = false, ever_ready_ = false, finishing_ = false,
       failed_ = false;
  int deaths_ = 0;  ///< of hosts since a task was done, by weight
  std::optional<FrameSender> channel_;
  FrameReader reader_;
  std::deque<int> waiting_;               ///< until the host is ready
  std::set<int> forking_;                 ///< slots asked for and not yet answered
  std::unordered_map<pid_t, int> slots_;  ///< forked and alive
};

}  // namespace mprun
