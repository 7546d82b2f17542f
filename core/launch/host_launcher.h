// Start methods fork and forkserver: a host, the user's own interpreter, forks every worker. The host
// reports how workers end and reaps each only on request, so that their process groups can be signalled.
// A host that dies takes its workers along; a new one is started for further launches.
//
// The host sends a pidfd with each worker. Its number for the worker may belong to another PID namespace (an
// interpreter that is a wrapper: unshare -pf, bwrap --unshare-pid), so only frames between mprun and the host use it.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>

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
  [[nodiscard]] bool has_host() const override { return static_cast<bool>(host_); }

 private:
  struct Worker {
    int slot = 0;
    pid_t number = 0;  ///< its host's number for it; 0: that host has ended
    ProcessRef process;
    bool watched = false;  ///< the loop has its pidfd
  };

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
  void add_worker(int slot, pid_t number);
  [[nodiscard]] Result<ProcessRef> take_process(pid_t number);
  void worker_exited(pid_t number, ProcessEnd end);
  void worker_gone(std::uint64_t id, ProcessEnd end);
  void on_worker_ended(std::uint64_t id);

  LaunchPlan plan_;
  LauncherListener* listener_;
  ProcessRef host_;
  bool said_hello_ = false, ready_ = false, was_ready_ = false, ever_ready_ = false, finishing_ = false,
       failed_ = false;
  int deaths_ = 0;  ///< of hosts since a task was done, by weight
  std::optional<FrameSender> channel_;
  FrameReader reader_;
  std::deque<Fd> passed_;                    ///< pidfds of workers, until the frames they came with are read
  std::deque<int> waiting_;                  ///< until the host is ready
  std::set<int> forking_;                    ///< slots asked for and not yet answered
  std::map<std::uint64_t, Worker> workers_;  ///< forked and alive, in their order
  std::uint64_t next_id_ = 0;                ///< of a worker
};

}  // namespace mprun
