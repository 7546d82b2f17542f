// What a spawned process inherits, which descriptors it does not, and the switch that kills it when no one else can.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstddef>
#include <functional>

#include "os/close_descriptors.h"
#include "os/dead_mans_switch.h"
#include "os/inheritance.h"
#include "os/process.h"

namespace mprun {
namespace {

/// The exit code of a process, or its signal as a negative number.
int end_of(pid_t pid) {
  int status = 0;
  waitpid(pid, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

/// How a child that runs `what` ends.
int end_of_child(const std::function<int()>& what) {
  const pid_t pid = fork();
  if (pid == 0) _exit(what());
  return end_of(pid);
}

int end_of_shell(const std::string& script, const Inheritance& inheritance = {}) {
  SpawnPlan plan;
  plan.argv = {"/bin/sh", "-c", script};
  plan.inheritance = inheritance;
  SpawnFailure failure;
  const pid_t pid = spawn_process(plan, &failure);
  return pid < 0 ? 126 : end_of(pid);
}

/// From now on the kernel rejects these system calls as unknown. False if that is not possible.
bool forget(std::initializer_list<int> calls) {
  std::vector<sock_filter> filter{BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr))};
  for (const int call : calls) {
    filter.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<unsigned>(call), 0, 1));
    filter.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS));
  }
  filter.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
  const sock_fprog program{static_cast<unsigned short>(filter.size()), filter.data()};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

constexpr int kNoSeccomp = 99;

// Descriptor 150 would survive exec; the limit keeps the slowest way short.
int look_for_descriptor(std::initializer_list<int> unknown_calls) {
  const rlimit few{200, 200};
  if (setrlimit(RLIMIT_NOFILE, &few) != 0 || dup2(STDERR_FILENO, 150) != 150) return 98;
  if (!forget(unknown_calls)) return kNoSeccomp;
  if (end_of_shell("test -e /proc/$$/fd/2") != 0) return 97;
  SpawnPlan plan;
  plan.argv = {"/no/such/program"};
  SpawnFailure failure;
  if (spawn_process(plan, &failure) != -1 || failure.error_number != ENOENT) return 96;  // its pipe was closed too
  return end_of_shell("test -e /proc/$$/fd/150");
}

TEST(Spawn, ClosesTheCallersDescriptorsOnEveryKernel) {
  EXPECT_EQ(end_of_child([] { return look_for_descriptor({}); }), 1);
  const int without_close_range = end_of_child([] { return look_for_descriptor({SYS_close_range}); });
  if (without_close_range == kNoSeccomp) GTEST_SKIP() << "no seccomp here";
  EXPECT_EQ(without_close_range, 1);
  EXPECT_EQ(end_of_child([] { return look_for_descriptor({SYS_close_range, SYS_getdents64}); }), 1);
}

// 1 if descriptor 150 was closed and the one before it was not.
int close_the_last(std::initializer_list<int> unknown_calls) {
  const rlimit few{200, 200};
  if (setrlimit(RLIMIT_NOFILE, &few) != 0 || dup2(STDERR_FILENO, 149) < 0 || dup2(STDERR_FILENO, 150) < 0) return 98;
  if (!forget(unknown_calls)) return kNoSeccomp;
  close_from(150);
  return fcntl(149, F_GETFD) >= 0 && fcntl(150, F_GETFD) < 0 ? 1 : 0;
}

TEST(Descriptors, AreClosedFromTheFirstOn) {
  EXPECT_EQ(end_of_child([] { return close_the_last({}); }), 1);
  const int without_close_range = end_of_child([] { return close_the_last({SYS_close_range}); });
  if (without_close_range == kNoSeccomp) GTEST_SKIP() << "no seccomp here";
  EXPECT_EQ(without_close_range, 1);
  EXPECT_EQ(end_of_child([] { return close_the_last({SYS_close_range, SYS_getdents64}); }), 1);
}

TEST(Spawn, ClosesDescriptorsThatAreToBeClosed) {
  SpawnPlan plan;
  plan.argv = {"/bin/sh", "-c", "test -e /proc/$$/fd/0"};
  plan.fds = {{-1, 0}, {1, 1}, {2, 2}};
  SpawnFailure failure;
  const pid_t pid = spawn_process(plan, &failure);
  ASSERT_GT(pid, 0);
  EXPECT_EQ(end_of(pid), 1);
}

TEST(Spawn, RunsAFileUnderAnotherName) {
  SpawnPlan plan;
  plan.file = "/bin/sh";
  plan.argv = {"another name", "-c", "test \"$0\" = 'another name'"};
  SpawnFailure failure;
  const pid_t pid = spawn_process(plan, &failure);
  ASSERT_GT(pid, 0);
  EXPECT_EQ(end_of(pid), 0);
}

// Its input ends only after it should have been killed: a child that outlives its parent ends by itself, with 0.
TEST(Spawn, DiesWithItsParent) {
  become_subreaper();
  auto input = make_pipe();
  auto answer = make_pipe();
  ASSERT_TRUE(input && answer);
  const pid_t parent = fork();
  if (parent == 0) {
    SpawnPlan plan;
    plan.argv = {"/bin/cat"};
    plan.fds = {{input->read.get(), 0}, {1, 1}, {2, 2}};
    SpawnFailure failure;
    const pid_t child = spawn_process(plan, &failure);
    if (write(answer->write.get(), &child, sizeof child) != sizeof child) _exit(1);
    for (;;) pause();
  }
  pid_t child = -1;
  EXPECT_EQ(read(answer->read.get(), &child, sizeof child), static_cast<ssize_t>(sizeof child));
  kill(parent, SIGKILL);
  EXPECT_EQ(end_of(parent), -SIGKILL);
  input->write.reset();
  ASSERT_GT(child, 0);
  EXPECT_EQ(end_of(child), -SIGKILL);
}

TEST(Inheritance, IsGivenBackAsItWasFound) {
  const auto find_and_change = [] {
    signal(SIGINT, SIG_IGN);
    sigset_t blocked;
    sigemptyset(&blocked);
    sigaddset(&blocked, SIGUSR2);
    sigprocmask(SIG_SETMASK, &blocked, nullptr);
    prctl(PR_SET_PDEATHSIG, SIGWINCH);
    const Inheritance found = read_inheritance();
    signal(SIGINT, SIG_DFL);
    signal(SIGPIPE, SIG_IGN);
    sigaddset(&blocked, SIGTERM);
    sigprocmask(SIG_SETMASK, &blocked, nullptr);
    if (found.parent_death_signal != SIGWINCH) return 2;
    return end_of_shell("test $(grep -cE '^SigBlk:.0*800$|^SigIgn:.0*2$' /proc/$$/status) = 2", found);
  };
  EXPECT_EQ(end_of_child(find_and_change), 0);
}

TEST(Inheritance, OfAJobIsNothing) {
  const auto ignore_all = [] {
    for (const int number : {SIGINT, SIGTERM, SIGPIPE, SIGTSTP, SIGXFSZ}) signal(number, SIG_IGN);
    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, nullptr);
    return end_of_shell("test $(grep -cE 'Sig(Blk|Ign):.0000000000000000' /proc/$$/status) = 2");
  };
  EXPECT_EQ(end_of_child(ignore_all), 0);
}

/// A process that is tied to the switch, by spawn_process() and nothing after it.
pid_t start_sleeper(const DeadMansSwitch& tie) {
  SpawnPlan plan;
  plan.argv = {"/bin/sleep", "600"};
  plan.inheritance.parent_death_signal = 0;
  plan.dies_with = tie.theirs.get();
  SpawnFailure failure;
  return spawn_process(plan, &failure);
}

TEST(DeadMansSwitch, KillsWhenItIsClosed) {
  auto tie = make_dead_mans_switch();
  ASSERT_TRUE(tie);
  const pid_t pid = start_sleeper(*tie);
  tie->theirs.reset();
  siginfo_t info{};
  EXPECT_EQ(waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOHANG | WNOWAIT), 0);
  EXPECT_EQ(info.si_pid, 0) << "it was killed before";
  tie->ours.reset();
  EXPECT_EQ(end_of(pid), -SIGKILL);
}

TEST(DeadMansSwitch, KillsWhenItsOwnerEndsAsSoonAsTheProcessRuns) {
  become_subreaper();
  auto pipe = make_pipe();
  ASSERT_TRUE(pipe);
  const pid_t owner = fork();
  if (owner == 0) {
    const auto tie = make_dead_mans_switch();
    const pid_t sleeper = tie ? start_sleeper(*tie) : -1;
    if (write(pipe->write.get(), &sleeper, sizeof sleeper) != sizeof sleeper) _exit(1);
    kill(getpid(), SIGKILL);
  }
  pid_t sleeper = 0;
  ASSERT_EQ(read(pipe->read.get(), &sleeper, sizeof sleeper), static_cast<ssize_t>(sizeof sleeper));
  ASSERT_GT(sleeper, 0);
  EXPECT_EQ(end_of(owner), -SIGKILL);
  EXPECT_EQ(end_of(sleeper), -SIGKILL);
  prctl(PR_SET_CHILD_SUBREAPER, 0);
}

}  // namespace
}  // namespace mprun
