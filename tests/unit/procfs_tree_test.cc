// Process trees: the table on fixture trees, and what is held below a real process.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <functional>

#include "procfs/process_table.h"
#include "procfs/process_tree.h"

namespace mprun {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class FixtureTree : public testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::remove_all(root_);
    std::filesystem::create_directories(root_ / "self");
  }
  void add(int pid, int parent, char state, const std::string& name = "x") {
    std::string numbers;
    for (int field = 5; field <= 52; ++field) numbers += " 0";
    std::filesystem::create_directories(root_ / std::to_string(pid));
    std::ofstream(root_ / std::to_string(pid) / "stat")
        << pid << " (" << name << ") " << state << ' ' << parent << numbers;
  }
  void add_threads(int pid, int count) {
    for (int i = 0; i < count; ++i) {
      std::filesystem::create_directories(root_ / std::to_string(pid) / "task" / std::to_string(pid + i));
    }
  }
  [[nodiscard]] std::vector<pid_t> tree(pid_t root, bool with_root, std::vector<pid_t>* ended = nullptr) const {
    return process_tree(live_proc(root_.string()).get(), root, with_root, ended);
  }

  std::filesystem::path root_ = testing::TempDir() + "mprun-procfs";
};

// What may be looked into shows its program.
TEST_F(FixtureTree, BeginsBelowManagersAndBelowWhatMayNotBeLookedInto) {
  add(1, 0, 'S', "systemd");
  add(2, 0, 'S', "kthreadd");
  add(3, 2, 'S', "kworker");
  add(10, 1, 'S', "server");
  add(11, 10, 'S', "worker");
  add(20, 1, 'S', "sshd");
  add(21, 20, 'S', "bash");
  add(30, 1, 'S', "systemd");
  add(31, 30, 'S', "service");
  add(40, 1, 'Z', "ended");
  for (const char* pid : {"1", "10", "11", "21", "30", "31", "40"}) {
    std::filesystem::create_symlink("/bin/x", root_ / pid / "exe");
  }
  EXPECT_THAT(tree_roots(live_proc(root_.string()).get()), ElementsAre(10, 21, 31));
}

TEST_F(FixtureTree, BeginsAtTheFirstProcessOfAContainer) {
  add(1, 0, 'S', "server");
  add(10, 1, 'S', "worker");
  add(20, 0, 'S', "sh");  // kubectl exec
  for (const char* pid : {"1", "10", "20"}) std::filesystem::create_symlink("/bin/x", root_ / pid / "exe");
  EXPECT_THAT(tree_roots(live_proc(root_.string()).get()), ElementsAre(1, 20));
}

TEST_F(FixtureTree, IsWalkedParentsFirstAndShowsWhatHasEnded) {
  add(1, 0, 'S');
  add(10, 1, 'S');
  add(11, 10, 'R');
  add(12, 11, 'T');
  add(13, 10, 'Z');
  add(20, 1, 'S');
  std::vector<pid_t> ended;
  EXPECT_THAT(tree(10, false, &ended), ElementsAre(11, 12));
  EXPECT_THAT(ended, ElementsAre(13));
  EXPECT_THAT(tree(10, true), ElementsAre(10, 11, 12));
  EXPECT_THAT(tree(12, false), IsEmpty());
  EXPECT_THAT(tree(1, false), ElementsAre(10, 20, 11, 12));
}

TEST_F(FixtureTree, KeepsTheChildrenOfAProcessWhoseFirstThreadHasEnded) {
  add(10, 1, 'S');
  add(11, 10, 'Z');
  add_threads(11, 2);
  add(12, 11, 'S');
  EXPECT_THAT(tree(10, false), ElementsAre(11, 12));
}

// Numbers reused while /proc is listed can make a process its own ancestor.
TEST_F(FixtureTree, EndsWhereTheNumbersMakeACycle) {
  add(10, 12, 'S');
  add(11, 10, 'S');
  add(12, 11, 'S');
  EXPECT_THAT(tree(10, false), ElementsAre(11, 12));
}

TEST(CommandLine, IsReadWithItsNulsAndEmptyWithoutAProcess) {
  const std::filesystem::path root = testing::TempDir() + "mprun-cmdline";
  std::filesystem::create_directories(root / "7");
  const std::string text("cat\0a b\0", 8);
  std::ofstream(root / "7/cmdline") << text;
  EXPECT_EQ(command_line(7, root.string()), text);
  EXPECT_EQ(command_line(8, root.string()), "");
}

/// A child and its child, which wait for SIGKILL; the second ends with the first.
class RealTree : public testing::Test {
 protected:
  void SetUp() override {
    std::array<int, 2> ready{};
    ASSERT_EQ(pipe(ready.data()), 0);
    child_ = fork();
    if (child_ == 0) {
      const pid_t middle = getpid();
      const pid_t inner = fork();
      if (inner == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != middle) _exit(1);
        const pid_t self = getpid();
        if (write(ready[1], &self, sizeof self) != sizeof self) _exit(1);
      }
      for (;;) pause();
    }
    ASSERT_EQ(read(ready[0], &grandchild_, sizeof grandchild_), static_cast<ssize_t>(sizeof grandchild_));
    close(ready[0]);
    close(ready[1]);
  }
  void TearDown() override {
    ProcessRef::of_child(child_).signal(SIGKILL);
    waitpid(child_, nullptr, 0);
  }
  pid_t child_ = 0, grandchild_ = 0;
};

TEST_F(RealTree, IsHeldWithItsGroups) {
  std::vector<pid_t> pids;
  for (const Descendant& one : hold_descendants()) {
    pids.push_back(one.process.pid());
    EXPECT_EQ(one.group, getpgrp());
    EXPECT_TRUE(one.process.exists());
  }
  EXPECT_THAT(pids, testing::IsSupersetOf({child_, grandchild_}));
}

TEST_F(RealTree, DescendsFromUsAndItsParentDoesNot) {
  EXPECT_TRUE(may_descend_from_us(ProcessRef::of_child(child_)));
  EXPECT_TRUE(may_descend_from_us(*ProcessRef::open(grandchild_)));
  EXPECT_FALSE(may_descend_from_us(*ProcessRef::open(getppid())));
  EXPECT_FALSE(may_descend_from_us(*ProcessRef::open(1)));
}

TEST_F(RealTree, IsAdoptedByItsPidfdWhateverNumberIsReported) {
  const auto adopted = ProcessRef::adopt(Fd(static_cast<int>(syscall(SYS_pidfd_open, grandchild_, 0))), 2);
  ASSERT_TRUE(adopted);
  EXPECT_EQ(adopted->pid(), grandchild_);
}

TEST_F(RealTree, IsNoProcessOfOursIfItsDescriptorIsNoPidfd) {
  const auto adopted = ProcessRef::adopt(open_fd("/dev/null", O_RDONLY), grandchild_);
  EXPECT_FALSE(adopted);
  EXPECT_FALSE(ProcessRef::adopt(Fd(static_cast<int>(syscall(SYS_pidfd_open, getpid(), 0))), grandchild_));
}

TEST_F(RealTree, IsSignalledAsAGroupOnlyByItsLeader) {
  const ProcessRef child = ProcessRef::of_child(child_);
  EXPECT_EQ(setpgid(grandchild_, 0), -1);    // we may not move it: both are in our own group
  EXPECT_TRUE(child.signal_group(SIGKILL));  // it leads no group: the signal ends only it, not this test
  siginfo_t info{};
  ASSERT_EQ(waitid(P_PID, static_cast<id_t>(child_), &info, WEXITED | WNOWAIT), 0);
  EXPECT_EQ(info.si_status, SIGKILL);
}

TEST_F(RealTree, IsNeverConfusedWithAnotherAfterItsEnd) {
  const ProcessRef child = ProcessRef::of_child(child_);
  EXPECT_FALSE(child.has_ended());
  EXPECT_FALSE(child.end());
  child.signal(SIGKILL);
  siginfo_t info{};
  ASSERT_EQ(waitid(P_PID, static_cast<id_t>(child_), &info, WEXITED | WNOWAIT), 0);
  EXPECT_TRUE(child.has_ended());
  EXPECT_TRUE(child.exists());
  ASSERT_TRUE(child.end());
  EXPECT_EQ(child.end()->signal, SIGKILL);
  waitpid(child_, nullptr, 0);
  EXPECT_TRUE(child.has_ended());
  EXPECT_FALSE(child.exists());
  EXPECT_FALSE(child.signal(0));
  EXPECT_FALSE(child.signal_group(0));
}

// Runs `check` in a process in which the kernel refuses pidfd_send_signal and one more call; returns its result as the
// exit code.
int without_pidfds(const std::function<int()>& check, unsigned also_refused = SYS_pidfd_open) {
  const pid_t pid = fork();
  if (pid == 0) {
    const auto refuse = [](unsigned call) {
      return std::array<sock_filter, 2>{sock_filter BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 1),
                                        sock_filter BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS)};
    };
    const auto open = refuse(also_refused), send = refuse(SYS_pidfd_send_signal);
    std::array<sock_filter, 6> filter{sock_filter BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
                                      open[0],
                                      open[1],
                                      send[0],
                                      send[1],
                                      sock_filter BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
    const sock_fprog program{filter.size(), filter.data()};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) {
      _exit(100);
    }
    _exit(check());
  }
  int status = 0;
  waitpid(pid, &status, 0);
  return WEXITSTATUS(status);
}

TEST(ProcessRef, KnowsAProcessByItsStartTimeWherePidfdsAreRefused) {
  EXPECT_EQ(without_pidfds([] {
              const pid_t child = fork();
              if (child == 0) {
                setpgid(0, 0);
                for (;;) pause();
              }
              setpgid(child, child);
              const ProcessRef ref = ProcessRef::of_child(child);
              if (ref.pidfd() >= 0 || !ref.exists() || ref.has_ended() || !ref.signal(0)) return 1;
              if (hold_descendants().size() != 1 || !may_descend_from_us(ref)) return 2;
              if (!ref.signal_group(SIGKILL)) return 3;
              siginfo_t info{};
              if (waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT) != 0) return 4;
              if (!ref.exists() || !ref.has_ended() || !ref.end() || ref.end()->signal != SIGKILL) return 5;
              waitpid(child, nullptr, 0);
              return ref.exists() || !ref.has_ended() || ref.signal(0) || ref.signal_group(0) ? 6 : 0;
            }),
            0);
}

TEST(ProcessRef, IsSignalledByNumberWherePidfdsTakeNoSignals) {
  const auto check = [] {
    const pid_t child = fork();
    if (child == 0) {
      for (;;) pause();
    }
    const ProcessRef ref = ProcessRef::of_child(child);
    if (ref.pidfd() < 0 || !ref.exists() || !ref.signal(SIGKILL)) return 1;
    siginfo_t info{};
    if (waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT) != 0) return 2;
    if (!ref.exists() || !ref.has_ended()) return 3;
    waitpid(child, nullptr, 0);
    return ref.exists() || ref.signal(SIGKILL) ? 4 : 0;
  };
  EXPECT_EQ(without_pidfds(check, SYS_pidfd_send_signal), 0);
}

TEST(ProcessRef, IsSignalledAloneIfItLeadsNoGroup) {
  const auto check = [] {
    const pid_t child = fork();
    if (child == 0) {
      alarm(10);  // no SIGKILL: since glibc 2.41 a new child blocks signals for a moment, and SIGTERM would come second
      for (;;) pause();
    }
    const bool signalled = ProcessRef::of_child(child).signal_group(SIGTERM);
    siginfo_t info{};
    return waitid(P_PID, static_cast<id_t>(child), &info, WEXITED) == 0 && info.si_status == SIGTERM && signalled ? 0
                                                                                                                  : 1;
  };
  EXPECT_EQ(without_pidfds(check), 0);
}

TEST(ProcessRef, OfNoProcessIsNone) {
  EXPECT_FALSE(ProcessRef());
  EXPECT_EQ(ProcessRef().pid(), 0);
  EXPECT_FALSE(ProcessRef().signal(0));
  EXPECT_FALSE(ProcessRef().exists());
  EXPECT_TRUE(ProcessRef().has_ended());
  EXPECT_FALSE(ProcessRef::open(0));
  EXPECT_FALSE(ProcessRef::open(-1));
}

}  // namespace
}  // namespace mprun
