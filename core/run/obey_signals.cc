#include "run/obey_signals.h"

#include <csignal>
#include <ctime>
#include <initializer_list>

#include "os/signal_set.h"

namespace mprun {

void obey_signals() {
  for (const int number : {SIGUSR1, SIGUSR2}) signal(number, SIG_IGN);
  const sigset_t set = signal_set(kEndSignals);
  const timespec at_once{};
  while (sigtimedwait(&set, nullptr, &at_once) > 0) {
  }
  const sigset_t none = signal_set(std::span<const int>());
  sigprocmask(SIG_SETMASK, &none, nullptr);
}

}  // namespace mprun
