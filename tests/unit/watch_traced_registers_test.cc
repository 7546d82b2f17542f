// The tracer that stops a thread for its registers, and children of ours: their ends are for their parent to reap.
#include "watch/stacks/traced_registers.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <string>

#include "os/uninterrupted.h"

namespace mprun {
namespace {

/// Kills `victim` as soon as it is traced.
[[noreturn]] void kill_when_traced(pid_t victim) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  const timespec moment{0, 100'000};
  for (;;) {
    std::ifstream status("/proc/" + std::to_string(victim) + "/status");
    for (std::string line; std::getline(status, line);) {
      if (line.rfind("TracerPid:", 0) != 0 || line == "TracerPid:\t0") continue;
      kill(victim, SIGKILL);
      _exit(0);
    }
    nanosleep(&moment, nullptr);
  }
}

/// A child that waits as after vfork(2), where it can be killed but not stopped. Its own child kills it when it
/// is traced, so it always ends between the request to stop and the stop.
pid_t start_victim() {
  const pid_t victim = fork();
  if (victim != 0) return victim;
  if (syscall(SYS_clone, CLONE_VFORK | SIGCHLD, nullptr, nullptr, nullptr, nullptr) == 0) kill_when_traced(getppid());
  _exit(0);
}

bool waits_in_vfork(pid_t pid) {
  const timespec moment{0, 1'000'000};
  for (int tries = 0; tries < 30'000; ++tries) {
    std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
    std::string id, name, state;
    file >> id >> name >> state;
    if (state == "D") return true;
    nanosleep(&moment, nullptr);
  }
  return false;
}

TEST(TracedRegisters, LeaveTheEndOfAChildToItsParent) {
  const pid_t victim = start_victim();
  ASSERT_TRUE(waits_in_vfork(victim));
  EXPECT_FALSE(registers_by_ptrace(victim));
  siginfo_t end{};
  ASSERT_EQ(uninterrupted([&] { return waitid(P_PID, static_cast<id_t>(victim), &end, WEXITED); }), 0)
      << "another process has reaped it";
  EXPECT_EQ(end.si_code, CLD_KILLED);
  EXPECT_EQ(end.si_status, SIGKILL);
}

}  // namespace
}  // namespace mprun
