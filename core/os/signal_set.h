// Sets of signals.
#pragma once

#include <array>
#include <csignal>
#include <initializer_list>
#include <span>

namespace mprun {

/// The signals by which a user or a system asks a program to end.
inline constexpr std::array kEndSignals{SIGINT, SIGTERM, SIGHUP, SIGQUIT};

[[nodiscard]] inline sigset_t signal_set(std::span<const int> numbers) {
  sigset_t set;
  sigemptyset(&set);
  for (const int number : numbers) sigaddset(&set, number);
  return set;
}

[[nodiscard]] inline sigset_t signal_set(int number) { return signal_set(std::array{number}); }

}  // namespace mprun
