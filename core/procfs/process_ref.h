// ProcessRef: the identity of one process: its pid, and the pidfd that says whether the pid still means that process.
// Used wherever mprun signals a process or asks whether it has ended. Copies share the pidfd.
//
// A pid alone names the process that has the number now. A pidfd names one process for ever, so signals go through it
// (pidfd_send_signal(2)), and a process that was reaped is not confused with the next one of its number. Where the
// kernel refuses pidfds (before Linux 5.3, a seccomp filter, no free descriptor) the start time stands in: it is
// compared before each signal, which leaves the moment between the two. Children of ours are exempt from that: their
// numbers are theirs until we reap them.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <optional>

#include "base/process_end.h"
#include "base/result.h"
#include "os/fd.h"

namespace mprun {

class ProcessRef {
 public:
  /// No process.
  ProcessRef() = default;

  /// A child of this process that has not been reaped yet.
  [[nodiscard]] static ProcessRef of_child(pid_t pid);
  /// The process that has the number now; nullopt: none. The caller checks afterwards which one that is.
  [[nodiscard]] static std::optional<ProcessRef> open(pid_t pid);
  /// The process of a pidfd that another process sent. Its pid is the number in our PID namespace, not the sender's;
  /// `senders_pid` stands in only where neither the kernel nor /proc gives the number. No process: it has been reaped.
  /// Error: it is no pidfd, or of a process outside of our PID namespace.
  [[nodiscard]] static Result<ProcessRef> adopt(Fd pidfd, pid_t senders_pid);

  /// 0: no process.
  [[nodiscard]] pid_t pid() const { return state_ ? state_->pid : 0; }
  explicit operator bool() const { return state_ != nullptr; }
  /// Readable when the process has ended; -1: there is none.
  [[nodiscard]] int pidfd() const { return state_ ? state_->pidfd.get() : -1; }

  /// Whether it still has its number: it runs, or is a zombie.
  [[nodiscard]] bool exists() const;
  /// Whether it is a zombie, or reaped.
  [[nodiscard]] bool has_ended() const;
  /// How it ended, even if it is no child of ours: from the zombie, or after that from the kernel (Linux 6.15).
  /// nullopt: it has not ended, or that is not known.
  [[nodiscard]] std::optional<ProcessEnd> end() const;

  /// kill(2) of this process alone. False: it is gone, or may not be signalled.
  bool signal(int number) const;
  /// sigqueue(3) of this process: `value` comes with the signal.
  bool queue_signal(int number, int value) const;
  /// Signals the process group that it leads; the process alone if it leads none.
  bool signal_group(int number) const;

  /// True for copies of one reference.
  bool operator==(const ProcessRef& other) const { return state_ == other.state_; }

 private:
  struct State {
    pid_t pid = 0;
    Fd pidfd;
    std::uint64_t start_ticks = 0;  ///< since boot; only where there is no pidfd. 0: unknown
    bool verified = true;           ///< the pid is known to be the pidfd's
  };
  explicit ProcessRef(State state) : state_(std::make_shared<const State>(std::move(state))) {}

  std::shared_ptr<const State> state_;
};

}  // namespace mprun
