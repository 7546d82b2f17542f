// Whether an alarm may reach a process, according to its preload library, its environment, or its calls.
#include "watch/sample/alarm.h"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>

#include "fake_proc.h"
#include "os/fd.h"

namespace mprun {
namespace {

constexpr const char* kAsked = "has asked for an alarm";
constexpr const char* kUnknown = "may have asked for an alarm";

std::string why(FakeProc* proc, pid_t pid = 10) { return why_alarm_may_come(proc, pid, pid, monotonic_now()); }

// A program without the library, which keeps the number of a process that had an alarm.
TEST(Alarm, IsInTheEnvironmentOfProcessesThatMayHaveNoLibrary) {
  FakeProc proc;
  std::string& environment = proc.process(10).environ;
  proc.process(10).thread(10);
  EXPECT_EQ(why(&proc), "");
  for (const std::string other : {"MPRUN_ALARM=1", "MPRUN_ALARM=100", "XMPRUN_ALARM=10", "A=MPRUN_ALARM=10"}) {
    environment = std::string("A=1") + '\0' + other + '\0';
    EXPECT_EQ(why(&proc), "") << other;
  }
  for (const std::string before : {"", "A=1"}) {
    environment = before.empty() ? "" : before + '\0';
    environment += std::string("MPRUN_ALARM=10") + '\0' + "B=" + '\0';
    EXPECT_EQ(why(&proc), kAsked);
  }
}

TEST(Alarm, MayComeToAProcessThatCannotBeAsked) {
  FakeProc proc;
  proc.process(10).thread(10);
  proc.processes[10].readable = false;
  EXPECT_EQ(why(&proc), kUnknown);
  EXPECT_EQ(why(&proc, 11), kUnknown) << "there is none";
  proc.processes[10].readable = true;
  proc.processes[10].map("r--p", 7, "/usr/lib/mprun/libmprun_preload.so");
  EXPECT_EQ(why(&proc), kUnknown) << "its memory cannot be read";
  proc.processes[10].put(FakeProc::kMapped, std::array<char, 64>{});
  EXPECT_EQ(why(&proc), kUnknown) << "no library is there";
}

/// cat(1) with the preload library, which waits for input. `alarmed`: it has an alarm from before its exec.
class Cat {
 public:
  explicit Cat(bool alarmed) {
    std::array<int, 2> pipe{};
    EXPECT_EQ(pipe2(pipe.data(), O_CLOEXEC), 0);
    input_ = Fd(pipe[1]);
    const Fd end(pipe[0]);
    pid_ = fork();
    if (pid_ == 0) {
      dup2(pipe[0], STDIN_FILENO);
      if (alarmed) alarm(1000);
      const char* const preload = "LD_PRELOAD=" MPRUN_PRELOAD_LIBRARY;
      execle("/bin/cat", "cat", nullptr, std::array<const char*, 2>{preload, nullptr}.data());
      _exit(127);
    }
    wait_until_it_reads();
  }
  ~Cat() {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  Cat(const Cat&) = delete;
  Cat& operator=(const Cat&) = delete;

  [[nodiscard]] pid_t pid() const { return pid_; }

 private:
  void wait_until_it_reads() const {
    const auto proc = live_proc();
    for (int i = 0; i < 3000; ++i) {
      const auto call = proc->read(std::to_string(pid_) + "/syscall");
      if (call && call->starts_with(std::to_string(SYS_read) + " 0x0 ")) return;
      usleep(10'000);
    }
    ADD_FAILURE() << "cat does not read";
  }

  Fd input_;
  pid_t pid_ = -1;
};

TEST(Alarm, StandsInTheMemoryOfTheLibrary) {
  const auto proc = live_proc();
  const Cat without(false);
  const Nanos now = monotonic_now();
  EXPECT_EQ(why_alarm_may_come(proc.get(), without.pid(), without.pid(), now), "");
  const Cat with(true);
  for (const int seconds : {0, 999, 1001}) {
    const Nanos later = now + seconds * kNanosPerSecond;
    EXPECT_EQ(why_alarm_may_come(proc.get(), with.pid(), with.pid(), later), kAsked) << seconds;
  }
  const Nanos after = monotonic_now() + 1003 * kNanosPerSecond;
  EXPECT_EQ(why_alarm_may_come(proc.get(), with.pid(), with.pid(), after), "") << "it has come";
}

/// A child without the preload library, which waits for a signal. `seconds`: the time of the alarm that it asks for.
pid_t child_with_alarm(unsigned seconds) {
  std::array<int, 2> ready{};
  EXPECT_EQ(pipe2(ready.data(), O_CLOEXEC), 0);
  const pid_t child = fork();
  if (child == 0) {
    void* library = dlopen(MPRUN_ALARM_LAZY, RTLD_LAZY);
    const auto ask = reinterpret_cast<unsigned (*)(unsigned)>(dlsym(library, "mprun_test_alarm"));
    if (seconds != 0) ask(seconds);
    (void)!write(ready[1], "", 1);
    for (;;) pause();
  }
  close(ready[1]);
  char byte = 0;
  EXPECT_EQ(read(ready[0], &byte, 1), 1);
  close(ready[0]);
  return child;
}

TEST(Alarm, ShowsInTheCallsOfAProgramWithoutTheLibrary) {
  const auto proc = live_proc();
  for (const unsigned seconds : {0U, 1000U}) {
    const pid_t child = child_with_alarm(seconds);
    EXPECT_EQ(why_alarm_may_come(proc.get(), child, child, monotonic_now()), seconds == 0 ? "" : kUnknown) << seconds;
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
  }
}

}  // namespace
}  // namespace mprun
