#include "run/obey_signals.h"

#include <csignal>
#include <ctime>
#include <initializer_list>

namespace mprun {

void obey_signals() {
  for (const int number : {SIGUSR1, SIGUSR2}) signal(number, SIG_IGN);
  sigset_t set;
  sigemptyset(&set);
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGQUIT}) sigaddset(&set, number);
  const timespec at_once{};
  while (sigtimedwait(&set, nullptr, &at_once) > 0) {
  }
  sigemptyset(&set);
  sigprocmask(SIG_SETMASK, &set, nullptr);
}

}  // namespace mprun
