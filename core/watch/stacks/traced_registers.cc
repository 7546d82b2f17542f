#include "watch/stacks/traced_registers.h"

#include <elf.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <system_error>
#include <thread>

#include "base/clock.h"

namespace mprun {
namespace {

constexpr Nanos kPatience = 200 * kNanosPerMilli;

[[nodiscard]] bool read_registers(pid_t tid, DwarfRegisters* registers) {
  std::array<char, sizeof(user_regs_struct)> user{};
  iovec place{user.data(), user.size()};
  if (ptrace(PTRACE_GETREGSET, tid, NT_PRSTATUS, &place) != 0 || place.iov_len != user.size()) return false;
  for (std::size_t i = 0; i < registers->size(); ++i) {
    std::memcpy(&registers->at(i), user.data() + architecture::kDwarfRegisters.at(i), sizeof(std::uint64_t));
  }
  return architecture::kIsKnown;
}

// Waits until the thread stops; -1: it does not in time, or is gone. Else the signal that stopped it, 0 for our own
// stop. Waits for stops only, and leaves the end of a child of ours for others to reap; for a thread that has ended,
// the kernel then returns ECHILD.
[[nodiscard]] int wait_for_stop(pid_t tid) {
  static constexpr timespec kPause{0, 200'000};
  const Nanos deadline = monotonic_now() + kPatience;
  for (;;) {
    siginfo_t stop{};
    const int failed = waitid(P_PID, static_cast<id_t>(tid), &stop, WSTOPPED | __WALL | WNOHANG);
    if (failed == 0 && stop.si_pid == tid) {
      const int event = stop.si_status >> 8;
      return event == PTRACE_EVENT_STOP ? 0 : stop.si_status & 0xff;
    }
    if ((failed != 0 && errno != EINTR) || monotonic_now() > deadline) return -1;
    nanosleep(&kPause, nullptr);
  }
}

[[nodiscard]] std::optional<DwarfRegisters> trace(pid_t tid) {
  if (ptrace(PTRACE_SEIZE, tid, nullptr, nullptr) != 0) return std::nullopt;
  if (ptrace(PTRACE_INTERRUPT, tid, nullptr, nullptr) != 0) return std::nullopt;
  const int signal = wait_for_stop(tid);
  if (signal < 0) return std::nullopt;
  DwarfRegisters registers{};
  const bool known = read_registers(tid, &registers);
  ptrace(PTRACE_DETACH, tid, nullptr, static_cast<std::intptr_t>(signal));
  if (!known) return std::nullopt;
  return registers;
}

}  // namespace

// A thread that does not stop in time cannot be let go by PTRACE_DETACH, and would stand still for ever when it stops
// later. When its tracer ends, it is let go in any state. A tracer is a thread, so one is started for this alone. (A
// process would not do: where Yama restricts ptrace, only ancestors may trace.)
std::optional<DwarfRegisters> registers_by_ptrace(pid_t tid) {
  std::optional<DwarfRegisters> registers;
  try {
    std::thread tracer([&] { registers = trace(tid); });
    tracer.join();
  } catch (const std::system_error&) {  // no thread can be started
    return std::nullopt;
  }
  return registers;
}

}  // namespace mprun
