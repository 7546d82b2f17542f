#include "os/inheritance.h"

#include <fcntl.h>
#include <sys/prctl.h>

namespace mprun {
namespace {

// mprun changes PIPE, XFSZ, TTOU and CHLD in itself. Callers may ignore the others for reasons of their own, which
// would keep the processes of a job from being ended.
constexpr std::array kManaged = {SIGHUP,  SIGINT,  SIGQUIT, SIGTERM, SIGPIPE, SIGXFSZ,
                                 SIGTSTP, SIGTTIN, SIGTTOU, SIGCHLD, SIGUSR1, SIGUSR2};

}  // namespace

bool is_ignored(int number) {
  struct sigaction now {};
  return sigaction(number, nullptr, &now) == 0 && now.sa_handler == SIG_IGN;
}

Inheritance read_inheritance() {
  Inheritance found;
  sigprocmask(SIG_BLOCK, nullptr, &found.signals.blocked);
  for (const int number : kManaged) {
    if (is_ignored(number)) sigaddset(&found.signals.ignored, number);
  }
  found.parent_death_signal = 0;
  prctl(PR_GET_PDEATHSIG, &found.parent_death_signal);
  prctl(PR_GET_CHILD_SUBREAPER, &found.subreaper);
  for (std::size_t fd = 0; fd < found.standard_descriptors.size(); ++fd) {
    found.standard_descriptors[fd] = fcntl(static_cast<int>(fd), F_GETFD) >= 0;
  }
  return found;
}

bool take_on(const SignalState& signals) {
  struct sigaction action {};
  for (const int number : kManaged) {
    action.sa_handler = sigismember(&signals.ignored, number) == 1 ? SIG_IGN : SIG_DFL;
    if (sigaction(number, &action, nullptr) != 0) return false;
  }
  return sigprocmask(SIG_SETMASK, &signals.blocked, nullptr) == 0;
}

}  // namespace mprun
