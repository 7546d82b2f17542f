#include "procfs/process_ref.h"

#include <poll.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <string>
#include <utility>

#include "os/uninterrupted.h"
#include "procfs/process_facts.h"
#include "procfs/process_tree.h"

namespace mprun {
namespace {

// struct pidfd_info and PIDFD_GET_INFO of linux/pidfd.h, which older headers lack. They give a process's numbers in the
// caller's PID namespace (Linux 6.13), and how it ended, even after it was reaped (Linux 6.15).
struct PidfdInfo {
  std::uint64_t mask = 0, cgroup = 0;
  std::uint32_t pid = 0, tgid = 0, ppid = 0;
  std::array<std::uint32_t, 8> users{};
  std::int32_t exit_code = 0;
};
static_assert(sizeof(PidfdInfo) == 64);
constexpr std::uint64_t kInfoPid = 1, kInfoExit = 8;
constexpr unsigned long kGetInfo = _IOWR(0xFF, 11, PidfdInfo);
// PIDFD_SIGNAL_PROCESS_GROUP of Linux 6.9.
constexpr unsigned kWholeGroup = 4;

[[nodiscard]] long send_by_pidfd(int pidfd, int number, unsigned flags) {
  return syscall(SYS_pidfd_send_signal, pidfd, number, nullptr, flags);
}

[[nodiscard]] std::optional<PidfdInfo> ask_pidfd(int pidfd, std::uint64_t mask) {
  PidfdInfo info;
  info.mask = mask;
  if (ioctl(pidfd, kGetInfo, &info) != 0 || (info.mask & mask) == 0) return std::nullopt;
  return info;
}

[[nodiscard]] std::uint64_t start_ticks_of(pid_t pid) {
  const auto stat = read_stat(pid);
  return stat ? stat->start_ticks : 0;
}

}  // namespace

ProcessRef ProcessRef::of_child(pid_t pid) {
  auto opened = open(pid);
  if (opened) return std::move(*opened);
  State state;  // without pidfds and without /proc: the number is the child's until it is reaped
  state.pid = pid;
  return ProcessRef(std::move(state));
}

std::optional<ProcessRef> ProcessRef::open(pid_t pid) {
  if (pid <= 0) return std::nullopt;
  State state;
  state.pid = pid;
  state.pidfd = Fd(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
  if (!state.pidfd) {
    state.start_ticks = start_ticks_of(pid);
    if (state.start_ticks == 0) return std::nullopt;
  }
  return ProcessRef(std::move(state));
}

Result<ProcessRef> ProcessRef::adopt(Fd pidfd, pid_t senders_pid) {
  State state;
  if (const auto info = ask_pidfd(pidfd.get(), kInfoPid)) {
    state.pid = static_cast<pid_t>(info->tgid);
  } else if (const auto number = pid_of_pidfd(pidfd.get())) {
    state.pid = *number;
  } else if (send_by_pidfd(pidfd.get(), 0, 0) == 0) {
    state.pid = senders_pid;
    state.verified = false;
  }
  if (send_by_pidfd(pidfd.get(), 0, 0) != 0 && errno == ESRCH) return ProcessRef();
  state.pidfd = std::move(pidfd);
  if (state.pid <= 1 || state.pid == getpid()) {
    return internal_error("pid " + std::to_string(senders_pid) + " is no process of mprun's PID namespace");
  }
  return ProcessRef(std::move(state));
}

bool ProcessRef::exists() const {
  if (!state_) return false;
  if (state_->pidfd) {
    if (send_by_pidfd(pidfd(), 0, 0) == 0) return true;
    if (errno == ESRCH) return false;
    // We may not signal it, or a filter refuses the call. Until it has ended it has its number.
    const auto stat = has_ended() ? read_stat(pid()) : std::nullopt;
    return !has_ended() || (stat && stat->state == 'Z');
  }
  return state_->start_ticks == 0 || start_ticks_of(pid()) == state_->start_ticks;
}

bool ProcessRef::has_ended() const {
  if (!state_) return true;
  if (state_->pidfd) {
    pollfd wait{pidfd(), POLLIN, 0};
    return uninterrupted([&] { return poll(&wait, 1, 0); }) == 1;
  }
  const auto stat = read_stat(pid());
  return !stat || stat->start_ticks != state_->start_ticks || stat->state == 'Z';
}

std::optional<ProcessEnd> ProcessRef::end() const {
  const auto stat = state_ ? read_stat(pid()) : std::nullopt;
  if (stat && stat->state == 'Z' && exists()) return end_from_status(stat->exit_code);
  const auto info = ask_pidfd(pidfd(), kInfoExit);
  if (!info) return std::nullopt;
  return end_from_status(info->exit_code);
}

bool ProcessRef::signal(int number) const {
  if (!state_) return false;
  if (state_->pidfd) {
    if (send_by_pidfd(pidfd(), number, 0) == 0) return true;
    if (errno == ESRCH) return false;  // else a filter may refuse this call and allow the other
  }
  return exists() && kill(pid(), number) == 0;
}

bool ProcessRef::queue_signal(int number, int value) const {
  if (!state_) return false;
  siginfo_t info{};
  info.si_signo = number;
  info.si_code = SI_QUEUE;
  info.si_pid = getpid();
  info.si_uid = getuid();
  info.si_value.sival_int = value;
  if (state_->pidfd) {
    if (syscall(SYS_pidfd_send_signal, pidfd(), number, &info, 0) == 0) return true;
    if (errno == ESRCH) return false;
  }
  return exists() && sigqueue(pid(), number, info.si_value) == 0;
}

bool ProcessRef::signal_group(int number) const {
  if (!state_) return false;
  if (state_->pidfd) {
    if (send_by_pidfd(pidfd(), number, kWholeGroup) == 0) return true;
    if (errno == ESRCH) return signal(number);
  }
  if (!state_->verified || !exists() || getpgid(pid()) != pid()) return signal(number);
  return kill(-pid(), number) == 0;
}

}  // namespace mprun
