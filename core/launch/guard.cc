#include "launch/guard.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>

#include "launch/teardown.h"
#include "os/fd.h"
#include "os/process.h"
#include "os/uninterrupted.h"

namespace mprun {
namespace {

constexpr double kTeardownSeconds = 5;

sigset_t guarded_signals() {
  sigset_t set;
  sigemptyset(&set);
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGTSTP, SIGCONT, SIGCHLD}) {
    sigaddset(&set, number);
  }
  return set;
}

// The supervisor has just stopped itself and its job: now we stop, so that the shell gets its prompt.
void stop_with(pid_t supervisor) {
  kill(supervisor, SIGTSTP);
  siginfo_t info{};
  uninterrupted([&] { return waitid(P_PID, static_cast<id_t>(supervisor), &info, WSTOPPED | WEXITED | WNOWAIT); });
  if (info.si_code == CLD_STOPPED) raise(SIGSTOP);
  kill(supervisor, SIGCONT);
}

int exit_code_of(const siginfo_t& info) {
  if (info.si_code == CLD_EXITED) return info.si_status;
  for (const int asked : {SIGINT, SIGTERM, SIGHUP, SIGQUIT}) {
    if (info.si_status == asked) return 128 + asked;  // it takes these by default once its records are being closed
  }
  std::fprintf(stderr, "mprun: the supervisor was ended by signal %d; everything it had started was killed\n",
               info.si_status);
  return 125;
}

// Returns the exit code once the supervisor is gone and nothing is left below us.
int watch_over(pid_t supervisor, bool terminal_shared) {
  const sigset_t set = guarded_signals();
  for (;;) {
    siginfo_t got{};
    if (uninterrupted([&] { return sigwaitinfo(&set, &got); }) < 0) {
      got.si_signo = SIGCHLD;  // we can pass no signal on any more, but still wait for its end
      siginfo_t ended{};
      uninterrupted([&] { return waitid(P_PID, static_cast<id_t>(supervisor), &ended, WEXITED | WNOWAIT); });
    }
    if (got.si_signo == SIGCHLD) {
      siginfo_t info{};
      if (uninterrupted([&] { return waitid(P_PID, static_cast<id_t>(supervisor), &info, WEXITED | WNOHANG); }) != 0) {
        std::perror("mprun: cannot see how the supervisor ends; everything it has started is killed");
        kill(supervisor, SIGKILL);
        kill_descendants(kTeardownSeconds);
        return 125;
      }
      if (info.si_pid == supervisor) {
        kill_descendants(kTeardownSeconds);
        return exit_code_of(info);
      }
      continue;
    }
    if (got.si_signo == SIGTSTP) {
      stop_with(supervisor);
    } else if (!(terminal_shared && got.si_code == SI_KERNEL)) {
      kill(supervisor, got.si_signo);
    }
  }
}

}  // namespace

// Sent to the guard, who never reads it: a descriptor on its way is open.
void Guard::keep_open(int fd) const {
  char byte = 0;
  iovec data{&byte, 1};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof fd)> room{};
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = room.data();
  message.msg_controllen = room.size();
  cmsghdr* const rights = CMSG_FIRSTHDR(&message);
  rights->cmsg_level = SOL_SOCKET;
  rights->cmsg_type = SCM_RIGHTS;
  rights->cmsg_len = CMSG_LEN(sizeof fd);
  std::memcpy(CMSG_DATA(rights), &fd, sizeof fd);
  uninterrupted([&] {
    return sendmsg(alive_fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
  });  // without it the lock ends with the supervisor
}

int run_guarded(bool terminal_shared, const std::function<int(const Guard&)>& supervise) {
  const int cannot_begin = terminal_shared ? 125 : 3;  // a program's own exit code may be 3
  auto alive = make_socket_pair();
  if (!alive) {
    std::fprintf(stderr, "mprun: %s\n", alive.error().message.c_str());
    return cannot_begin;
  }
  become_subreaper();
  signal(SIGCHLD, SIG_DFL);  // whoever ignores it when it starts us has no child that could be waited for
  const sigset_t set = guarded_signals();
  sigset_t before;
  sigprocmask(SIG_BLOCK, &set, &before);
  Guard guard{getpid(), getpgrp(), alive->ours.get()};
  const pid_t supervisor = fork();
  if (supervisor < 0) {
    std::perror("mprun: cannot fork");
    return cannot_begin;
  }
  if (supervisor == 0) {
    alive->theirs.reset();
    setpgid(0, 0);  // not by the guard as well, which may come late and take us out of where we have gone since
    signal(SIGTTOU, SIG_IGN);  // we may write to the terminal although we are in no foreground group
    become_subreaper();
    return supervise(guard);
  }
  alive->ours.reset();
  return watch_over(supervisor, terminal_shared);
}

}  // namespace mprun
