// The runtime of a Go program, read from outside: its signal handlers catch nearly all signals in every program, and
// its monitor thread wakes up now and then. Facts from src/runtime of Go 1.19 (sigqueue.go, signal_unix.go, proc.go),
// unchanged since 1.5 as far as used. A stripped program shows nothing.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <optional>

namespace mprun {

struct GoRuntime {
  std::uint64_t awaited = 0;  ///< the signals that the program asked for (os/signal.Notify); bit N-1: signal N
  std::uint64_t scheduler = 0, scheduler_end = 0;  ///< runtime.sched
  /// True for a wait of the runtime itself, by the address of its futex: sysmon() sleeps for a minute while no
  /// goroutine runs, unless it is woken before.
  [[nodiscard]] bool is_own_wait(std::uint64_t futex) const { return futex >= scheduler && futex < scheduler_end; }
};

/// Go's runtime handles the urgent signal, by which it preempts goroutines, and all real-time signals from 35 on.
[[nodiscard]] bool may_be_go(std::uint64_t caught_signals);

/// `read` copies memory of the process, and is false if it cannot. nullopt: not Go, or it shows nothing.
using ReadMemory = std::function<bool(std::uint64_t address, void* to, std::size_t size)>;
[[nodiscard]] std::optional<GoRuntime> read_go_runtime(pid_t pid, const ReadMemory& read);

}  // namespace mprun
