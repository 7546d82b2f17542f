#include "launch/guard.h"

#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>

#include "base/exit_codes.h"
#include "launch/teardown.h"
#include "os/fd.h"
#include "os/process.h"
#include "os/signal_set.h"
#include "os/uninterrupted.h"
#include "procfs/process_ref.h"

namespace mprun {
namespace {

constexpr double kTeardownSeconds = 5;

// The supervisor has just stopped itself and its job: now we stop, so that the shell gets its prompt.
void stop_with(const ProcessRef& supervisor) {
  supervisor.signal(SIGTSTP);
  siginfo_t info{};
  const auto id = static_cast<id_t>(supervisor.pid());
  uninterrupted([&] { return waitid(P_PID, id, &info, WSTOPPED | WEXITED | WNOWAIT); });
  if (info.si_code == CLD_STOPPED) raise(SIGSTOP);
  supervisor.signal(SIGCONT);
}

void pass_on(const siginfo_t& got, bool terminal_shared, const ProcessRef& supervisor) {
  if (terminal_shared && got.si_code == SI_KERNEL) {
    supervisor.queue_signal(got.si_signo, kFromSharedTerminal);
  } else {
    supervisor.signal(got.si_signo);
  }
}

// A program's supervisor asks for it when the program has stopped, so that our parent sees the same stop.
void stop_by(int number) {
  const sigset_t only = signal_set(number);
  raise(number);
  sigprocmask(SIG_UNBLOCK, &only, nullptr);  // here we stop, until we are continued
  sigprocmask(SIG_BLOCK, &only, nullptr);
}

int exit_code_of(const siginfo_t& info) {
  if (info.si_code == CLD_EXITED) return info.si_status;
  for (const int asked : kEndSignals) {
    if (info.si_status == asked)
      return exit_code_of_signal(asked);  // these have their default action once it closes its records
  }
  std::fprintf(stderr, "mprun: the supervisor was ended by signal %d; everything it had started was killed\n",
               info.si_status);
  return kExitInternal;
}

// Returns the exit code once the supervisor is gone and nothing is left below us.
int watch_over(const ProcessRef& supervisor, bool terminal_shared) {
  const sigset_t set = taken_signals(terminal_shared);
  const auto id = static_cast<id_t>(supervisor.pid());
  for (;;) {
    siginfo_t got{};
    if (uninterrupted([&] { return sigwaitinfo(&set, &got); }) < 0) {
      got.si_signo = SIGCHLD;  // we can forward no more signals, but still wait for its end
      siginfo_t ended{};
      uninterrupted([&] { return waitid(P_PID, id, &ended, WEXITED | WNOWAIT); });
    }
    if (got.si_signo == SIGCHLD) {
      siginfo_t info{};
      if (uninterrupted([&] { return waitid(P_PID, id, &info, WEXITED | WNOHANG); }) != 0) {
        std::perror("mprun: cannot see how the supervisor ends; everything it has started is killed");
        supervisor.signal(SIGKILL);
        kill_descendants(kTeardownSeconds);
        return kExitInternal;
      }
      if (info.si_pid == supervisor.pid()) {
        kill_descendants(kTeardownSeconds);
        return exit_code_of(info);
      }
      continue;
    }
    if (got.si_signo == SIGTSTP && !terminal_shared) {
      stop_with(supervisor);
    } else if (stops_jobs(got.si_signo) && got.si_pid == supervisor.pid()) {
      stop_by(got.si_signo);
    } else {
      pass_on(got, terminal_shared, supervisor);
    }
  }
}

}  // namespace

sigset_t taken_signals(bool of_program) {
  sigset_t set = signal_set(std::array{SIGUSR1, SIGUSR2, SIGCONT, SIGCHLD});
  for (const int number : kEndSignals) {
    if (of_program || !is_ignored(number)) sigaddset(&set, number);
  }
  if (of_program || !is_ignored(SIGTSTP)) sigaddset(&set, SIGTSTP);
  for (const int number : {SIGTTIN, SIGTTOU}) {
    if (of_program) sigaddset(&set, number);
  }
  return set;
}

bool stops_jobs(int number) { return number == SIGTSTP || number == SIGTTIN || number == SIGTTOU; }

// The guard never reads it. Where it cannot be sent, the lock ends with the supervisor.
void Guard::keep_open(int fd) const { (void)send_descriptor(alive_fd, fd); }

int run_guarded(const Inheritance& inheritance, bool terminal_shared,
                const std::function<int(const Guard&)>& supervise) {
  const int cannot_begin = terminal_shared ? kExitInternal : kExitLaunch;  // a program's own exit code may be 3
  auto alive = make_socket_pair();
  if (!alive) {
    std::fprintf(stderr, "mprun: %s\n", alive.error().message.c_str());
    return cannot_begin;
  }
  become_subreaper();
  signal(SIGCHLD, SIG_DFL);  // if we had inherited it ignored, we could not wait for a child
  for (const int number : {SIGTSTP, SIGTTIN, SIGTTOU}) {
    if (terminal_shared) signal(number, SIG_DFL);  // for stop_by()
  }
  const sigset_t set = taken_signals(terminal_shared);
  sigprocmask(SIG_BLOCK, &set, nullptr);
  Guard guard{getpid(), ProcessRef::open(getpid()).value_or(ProcessRef()), getpgrp(), alive->ours.get(), inheritance};
  const pid_t supervisor = fork();
  if (supervisor < 0) {
    std::perror("mprun: cannot fork");
    return cannot_begin;
  }
  if (supervisor == 0) {
    alive->theirs.reset();
    setpgid(0, 0);  // not by the guard as well: it may be late and move us out of a group that we have joined since
    signal(SIGTTOU, SIG_IGN);  // we may write to the terminal although we are in no foreground group
    become_subreaper();
    return supervise(guard);
  }
  alive->ours.reset();
  return watch_over(ProcessRef::of_child(supervisor), terminal_shared);
}

}  // namespace mprun
