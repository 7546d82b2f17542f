// ProcessHistory: what it records of forks and ends, tested with real processes.
#include "watch/causes/process_history.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/sched.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <memory>
#include <thread>

#include "base/clock.h"
#include "procfs/process_tree.h"

namespace mprun {
namespace {

constexpr int kPollMillis = 30'000;  // milliseconds

// A child that lives until end() is called; killed and reaped with this object.
class Child {
 public:
  // `number`: the pid it must have; 0: any. `name`: the first word of its command once it runs another program.
  explicit Child(int code = 0, pid_t number = 0, const char* name = "sleep") {
    auto pipe = make_pipe();
    auto executed = make_pipe();
    if (!pipe || !executed) return;
    clone_args arguments{};
    arguments.exit_signal = SIGCHLD;
    if (number != 0) {
      arguments.set_tid = reinterpret_cast<std::uint64_t>(&number);
      arguments.set_tid_size = 1;
    }
    pid_ = static_cast<pid_t>(syscall(SYS_clone3, &arguments, sizeof arguments));
    if (pid_ == 0) {
      constexpr int kExecuted = STDIN_FILENO + 1;
      dup2(pipe->read.get(), STDIN_FILENO);
      dup3(executed->write.get(), kExecuted, O_CLOEXEC);
      close_range(kExecuted + 1, ~0U, 0);  // the other children's ends too
      char byte = 0;
      ssize_t size = 0;
      do {
        size = read(STDIN_FILENO, &byte, 1);
      } while (size < 0);
      if (size > 0) execlp("sleep", name, "600", nullptr);
      _exit(code);
    }
    release_ = std::move(pipe->write);
    executed_ = std::move(executed->read);
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  ~Child() {
    send(SIGKILL);
    if (pid_ > 0) reap();
  }

  [[nodiscard]] pid_t pid() const { return pid_; }
  // Returns when it runs another program.
  void execute() {
    char byte = 0;
    ASSERT_EQ(write(release_.get(), &byte, 1), 1);
    ASSERT_EQ(read(executed_.get(), &byte, 1), 0);
  }
  // Returns when it is a zombie.
  void end(int number = 0) {
    ASSERT_GT(pid_, 0) << "could not be started";
    if (number != 0) send(number);
    release_.reset();
    siginfo_t info{};
    ASSERT_EQ(waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOWAIT), 0);
  }
  void reap() {
    ASSERT_GT(pid_, 0) << "could not be started";
    ASSERT_EQ(waitpid(pid_, nullptr, 0), pid_);
    pid_ = -1;
  }

 private:
  // kill() takes -1 for every process.
  void send(int number) const {
    if (pid_ > 0) kill(pid_, number);
  }

  pid_t pid_ = -1;
  Fd release_, executed_;
};

class ProcessHistoryTest : public testing::Test {
 protected:
  ProcessHistoryTest() : proc_(live_proc()), history_(std::move(*ProcessHistory::create(proc_.get()))) {}

  void note(pid_t pid, const std::string& text) { EXPECT_TRUE(history_.receive({pid, kHistoryNotes, text})); }
  void note_fork(pid_t pid, pid_t parent = getpid()) {
    note(pid, "fork\t" + std::to_string(parent) + "\t" + std::to_string(parent) + "\t3");
  }
  [[nodiscard]] bool reports_an_end() const {
    pollfd wait{history_.fd(), POLLIN, 0};
    return poll(&wait, 1, 0) == 1;
  }
  // Ends that were reported when a descriptor became readable.
  void take_ends() {
    pollfd wait{history_.fd(), POLLIN, 0};
    ASSERT_EQ(poll(&wait, 1, kPollMillis), 1);
    history_.take_ends();
  }

  std::unique_ptr<ProcSource> proc_;
  ProcessHistory history_;
};

// Linux reports how a process ended that was reaped before we looked.
bool kernel_remembers_ends() {
  Child child;
  const Fd pidfd(static_cast<int>(syscall(SYS_pidfd_open, child.pid(), 0)));
  child.end();
  child.reap();
  std::array<std::uint64_t, 8> info{8};
  return ioctl(pidfd.get(), _IOWR(0xFF, 11, info), &info) == 0 && (info[0] & 8U) != 0;
}

TEST_F(ProcessHistoryTest, RemembersAFork) {
  Child child;
  EXPECT_EQ(history_.fork_of(child.pid()), nullptr);
  note(child.pid(), "fork\t12\t13\t4");
  const ForkRecord* fork = history_.fork_of(child.pid());
  ASSERT_NE(fork, nullptr);
  EXPECT_EQ(fork->parent, 12);
  EXPECT_EQ(fork->parent_tid, 13);
  EXPECT_EQ(fork->threads, 4U);
  EXPECT_FALSE(reports_an_end());
  EXPECT_TRUE(history_.deaths().empty());
}

// All are children of this process, which is the only one that can reap them: notes say otherwise.
TEST_F(ProcessHistoryTest, CountsChildrenOfAForkserverAsThoseOfItsParent) {
  Child server(0, 0, "python3 -c from multiprocessing.forkserver import main");
  Child early(3), late(4), of_another(5), other;
  note_fork(early.pid(), server.pid());  // which is not a forkserver yet
  server.execute();
  note_fork(late.pid(), server.pid());
  note_fork(of_another.pid(), other.pid());
  const auto parent_of_dead = [&](Child* child) {
    const pid_t pid = child->pid();
    child->end();
    take_ends();
    EXPECT_EQ(history_.deaths().back().pid, pid);
    return history_.deaths().back().parent;
  };
  EXPECT_EQ(parent_of_dead(&of_another), other.pid());
  EXPECT_EQ(parent_of_dead(&late), getpid());
  EXPECT_EQ(parent_of_dead(&early), server.pid());
  for (const Child* child : {&late, &early}) note(server.pid(), "end\t" + std::to_string(child->pid()) + "\t768");
  EXPECT_THAT(history_.deaths(), testing::SizeIs(3));
  EXPECT_EQ(history_.violent_deaths(getpid(), 0), 2U);
}

TEST_F(ProcessHistoryTest, LeavesOtherNotesToOthers) {
  EXPECT_FALSE(history_.receive({getpid(), "libgomp", "fork\t1\t1\t1"}));
  EXPECT_EQ(history_.fork_of(getpid()), nullptr);
}

TEST_F(ProcessHistoryTest, PassesNonsenseOver) {
  Child child;
  for (const char* text : {"", "\t", "fork", "fork\t1\t1", "fork\t1\t1\t1\t1", "fork\t1\t1\t", "fork\tx\t1\t1",
                           "fork\t1\t1\t-1", "fork\t1\t1\t1 ", "fork\t0\t1\t1", "fork\t1\t-4\t1", "fork\t1\t1\t0",
                           "fork\t99999999999999999999\t1\t1", "alarm", "fork\t1\n\t1\t1"}) {
    note(child.pid(), text);
    EXPECT_EQ(history_.fork_of(child.pid()), nullptr) << text;
  }
  for (const pid_t no_process : {0, -1}) note_fork(no_process);
  EXPECT_TRUE(history_.deaths().empty());
}

TEST_F(ProcessHistoryTest, KnowsHowAProcessEnded) {
  Child exits(7);
  Child dies;
  note_fork(exits.pid());
  note_fork(dies.pid());
  const Nanos before = wall_now();
  exits.end();
  take_ends();
  dies.end(SIGKILL);
  take_ends();
  ASSERT_EQ(history_.deaths().size(), 2U);
  const RecordedDeath& first = history_.deaths()[0];
  EXPECT_EQ(first.pid, exits.pid());
  EXPECT_EQ(first.parent, getpid());
  EXPECT_TRUE(first.end_known);
  EXPECT_EQ(first.end.exit_code, 7);
  EXPECT_EQ(first.end.signal, 0);
  EXPECT_GE(first.when, before);
  const RecordedDeath& second = history_.deaths()[1];
  EXPECT_EQ(second.pid, dies.pid());
  EXPECT_TRUE(second.end_known);
  EXPECT_EQ(second.end.signal, SIGKILL);
  EXPECT_FALSE(reports_an_end()) << "an end is reported once";
  EXPECT_EQ(history_.fork_of(exits.pid()), nullptr);
}

TEST_F(ProcessHistoryTest, KnowsOneThatItsParentHasReaped) {
  if (!kernel_remembers_ends()) GTEST_SKIP() << "needs Linux 6.15";
  Child child(9);
  const pid_t pid = child.pid();
  note_fork(pid);
  child.end();
  child.reap();
  take_ends();
  ASSERT_EQ(history_.deaths().size(), 1U);
  EXPECT_EQ(history_.deaths()[0].pid, pid);
  EXPECT_TRUE(history_.deaths()[0].end_known);
  EXPECT_EQ(history_.deaths()[0].end.exit_code, 9);
}

TEST_F(ProcessHistoryTest, KnowsOneThatHadEndedBeforeItsNoteWasRead) {
  Child child;
  const pid_t pid = child.pid();
  child.end();
  child.reap();
  note_fork(pid);
  EXPECT_EQ(history_.fork_of(pid), nullptr);
  ASSERT_EQ(history_.deaths().size(), 1U);
  EXPECT_EQ(history_.deaths()[0].pid, pid);
  EXPECT_EQ(history_.deaths()[0].parent, getpid());
  EXPECT_FALSE(history_.deaths()[0].end_known);
}

TEST_F(ProcessHistoryTest, MeetsProcessesThatDoNotReport) {
  Child child(3);
  history_.meet(child.pid());
  history_.meet(child.pid());
  EXPECT_EQ(history_.fork_of(child.pid()), nullptr) << "how it came to be is not known";
  child.end();
  take_ends();
  history_.meet(child.pid());
  EXPECT_FALSE(reports_an_end()) << "an end is reported once, however often the zombie is met";
  ASSERT_EQ(history_.deaths().size(), 1U);
  EXPECT_EQ(history_.deaths()[0].parent, getpid());
  EXPECT_EQ(history_.deaths()[0].end.exit_code, 3);
  const pid_t pid = child.pid();
  child.reap();
  history_.meet(pid);  // no such process
  EXPECT_EQ(history_.deaths().size(), 1U);
}

// Its note arrives late: it is one death, of a forked process.
TEST_F(ProcessHistoryTest, LearnsOfTheForkOfOneThatItHasMetAndThatHasEnded) {
  Child child;
  history_.meet(child.pid());
  child.end(SIGKILL);
  take_ends();
  note_fork(child.pid());
  EXPECT_FALSE(reports_an_end());
  ASSERT_EQ(history_.deaths().size(), 1U);
  EXPECT_TRUE(history_.deaths()[0].forked);
  const pid_t pid = child.pid();
  child.reap();
  note_fork(pid, getpid());
  EXPECT_EQ(history_.deaths().size(), 2U) << "the next with its number, which has ended too";
}

// It runs the same program as we do: it was forked, whatever the notes say.
TEST_F(ProcessHistoryTest, SeesWhetherOneThatItMeetsWasForked) {
  Child child;
  history_.meet(child.pid());
  child.end(SIGKILL);
  take_ends();
  ASSERT_EQ(history_.deaths().size(), 1U);
  EXPECT_TRUE(history_.deaths()[0].forked);
}

// A shell has started a command, which the watch met before it was executed.
TEST_F(ProcessHistoryTest, SeesWhetherOneThatItMetHasExecutedAnotherProgram) {
  for (const bool meets_again : {false, true}) {
    Child child;
    history_.meet(child.pid());
    child.execute();
    if (meets_again) history_.meet(child.pid());
    child.end(SIGKILL);
    if (meets_again) child.reap();
    take_ends();
    EXPECT_FALSE(history_.deaths().back().forked) << meets_again;
  }
}

TEST_F(ProcessHistoryTest, TakesOneThatItMetTwiceForForked) {
  Child child;
  history_.meet(child.pid());
  history_.meet(child.pid());
  child.end(SIGKILL);
  child.reap();
  take_ends();
  ASSERT_EQ(history_.deaths().size(), 1U);
  EXPECT_TRUE(history_.deaths()[0].forked);
}

TEST_F(ProcessHistoryTest, MeetsOneThatHasEndedAndIsNotReaped) {
  Child child;
  child.end(SIGSEGV);
  history_.meet(child.pid());
  ASSERT_EQ(history_.deaths().size(), 1U);
  history_.meet(child.pid());
  EXPECT_EQ(history_.deaths().size(), 1U);
  EXPECT_EQ(history_.deaths()[0].end.signal, SIGSEGV);
  EXPECT_TRUE(history_.deaths()[0].forked);
  EXPECT_FALSE(reports_an_end());
  note_fork(child.pid());
  EXPECT_EQ(history_.deaths().size(), 1U) << "its note came late";
}

#ifndef __SANITIZE_THREAD__  // which allows no new thread after a fork
// Its first thread is a zombie, as the process will be.
TEST_F(ProcessHistoryTest, FollowsOneWhoseFirstThreadHasEnded) {
  const pid_t pid = fork();
  if (pid == 0) {
    std::thread([] {
      for (;;) pause();
    }).detach();
    syscall(SYS_exit, 0);
  }
  for (const Nanos end = monotonic_now() + kPollMillis * kNanosPerMilli; monotonic_now() < end;) {
    const auto stat = read_stat(pid);
    if (!stat || stat->state == 'Z') break;
    usleep(1000);
  }
  history_.meet(pid);
  EXPECT_TRUE(history_.deaths().empty());
  kill(pid, SIGKILL);
  take_ends();
  EXPECT_EQ(history_.deaths().size(), 1U);
  EXPECT_EQ(waitpid(pid, nullptr, 0), pid);
}
#endif

TEST_F(ProcessHistoryTest, DoesNotCountEndsThatMprunCauses) {
  Child worker;
  Child its_child;
  Child other;
  note_fork(worker.pid());
  note_fork(its_child.pid(), worker.pid());
  note_fork(other.pid());
  history_.expect_end(worker.pid());
  for (Child* child : {&worker, &its_child, &other}) {
    child->end(SIGKILL);
    take_ends();
  }
  ASSERT_EQ(history_.deaths().size(), 3U);
  EXPECT_FALSE(is_violent(history_.deaths()[0]));
  EXPECT_FALSE(is_violent(history_.deaths()[1]));
  EXPECT_TRUE(is_violent(history_.deaths()[2]));
  EXPECT_EQ(history_.violent_deaths(getpid(), 0), 1U);
}

// mprun ends what it leaves; its own end was not mprun's doing.
TEST_F(ProcessHistoryTest, CountsAnEndThatCameBeforeMprunActed) {
  Child worker;
  Child its_child;
  note_fork(its_child.pid(), worker.pid());
  worker.end(SIGSEGV);
  history_.expect_end(worker.pid());
  ASSERT_EQ(history_.deaths().size(), 1U);
  EXPECT_TRUE(is_violent(history_.deaths()[0]));
  its_child.end(SIGKILL);
  take_ends();
  ASSERT_EQ(history_.deaths().size(), 2U);
  EXPECT_FALSE(is_violent(history_.deaths()[1]));
}

// A number that is reused before we have learned that its first owner ended.
TEST_F(ProcessHistoryTest, KnowsThatANumberIsUsedAgain) {
  Child first(5);
  const pid_t pid = first.pid();
  note_fork(pid);
  first.end();
  first.reap();
  Child second(6, pid);
  if (second.pid() != pid) GTEST_SKIP() << "may not choose a process's number";
  note(pid, "fork\t21\t22\t2");
  ASSERT_EQ(history_.deaths().size(), 1U);
  EXPECT_EQ(history_.deaths()[0].parent, getpid());
  EXPECT_EQ(history_.deaths()[0].end_known, kernel_remembers_ends());
  history_.take_ends();
  ASSERT_NE(history_.fork_of(pid), nullptr) << "the second has not ended";
  EXPECT_EQ(history_.fork_of(pid)->parent, 21);
  second.end();
  take_ends();
  ASSERT_EQ(history_.deaths().size(), 2U);
  EXPECT_EQ(history_.deaths()[1].parent, 21);
  EXPECT_EQ(history_.deaths()[1].end.exit_code, 6);
}

TEST_F(ProcessHistoryTest, RemembersWhichProcessWasAskedToEnd) {
  Child child;
  Child stranger;
  note_fork(child.pid());
  note(getpid(), "term\t" + std::to_string(child.pid()));
  note(getpid(), "term\t" + std::to_string(stranger.pid()));
  EXPECT_TRUE(history_.was_sent_sigterm(child.pid()));
  EXPECT_FALSE(history_.was_sent_sigterm(stranger.pid())) << "of its end we would not hear";
  EXPECT_FALSE(history_.was_sent_sigterm(getpid()));
  child.end();
  take_ends();
  EXPECT_FALSE(history_.was_sent_sigterm(child.pid())) << "another may have its number";
  ASSERT_EQ(history_.deaths().size(), 1U);
  EXPECT_TRUE(history_.deaths()[0].was_asked_to);
}

TEST_F(ProcessHistoryTest, PassesNonsenseOfTermAndEndOver) {
  Child child;
  note_fork(child.pid());
  const std::string pid = std::to_string(child.pid());
  for (const std::string& text :
       {std::string("term"), "term\t" + pid + "\t", "term\t" + pid + " ", "term\t-" + pid, "term " + pid,
        std::string("term\t"), std::string("end"), "end\t" + pid, "end\t" + pid + "\t", "end\t" + pid + "\t0x9",
        "end\t" + pid + "\t9\t9", std::string("end\t0\t9"), "end\t-" + pid + "\t9",
        std::string("end\t99999999999\t9")}) {
    note(getpid(), text);
    EXPECT_FALSE(history_.was_sent_sigterm(child.pid())) << text;
    EXPECT_TRUE(history_.deaths().empty()) << text;
    EXPECT_NE(history_.fork_of(child.pid()), nullptr) << text;
  }
}

// The process that reaped it reports how it ended, which an older kernel does not.
TEST_F(ProcessHistoryTest, LearnsOfAnEndFromTheProcessThatReapedIt) {
  Child child(9);
  const pid_t pid = child.pid();
  note_fork(pid);
  child.end();
  child.reap();
  note(getpid(), "end\t" + std::to_string(pid) + "\t" + std::to_string(9 << 8));
  ASSERT_EQ(history_.deaths().size(), 1U);
  EXPECT_EQ(history_.deaths()[0].pid, pid);
  EXPECT_EQ(history_.deaths()[0].parent, getpid());
  EXPECT_TRUE(history_.deaths()[0].end_known);
  EXPECT_TRUE(history_.deaths()[0].forked);
  EXPECT_EQ(history_.deaths()[0].end.exit_code, 9);
  EXPECT_FALSE(reports_an_end()) << "an end is reported once";
  EXPECT_EQ(history_.fork_of(pid), nullptr);
  EXPECT_EQ(history_.violent_deaths(getpid(), 0), 1U);
  note(getpid(), "end\t" + std::to_string(pid) + "\t" + std::to_string(9 << 8));
  EXPECT_EQ(history_.deaths().size(), 1U);
}

TEST_F(ProcessHistoryTest, LearnsLateHowOneEndedThatWasGone) {
  Child child;
  const pid_t pid = child.pid();
  child.end();
  child.reap();
  note_fork(pid);
  ASSERT_EQ(history_.deaths().size(), 1U);
  EXPECT_FALSE(history_.deaths()[0].end_known);
  EXPECT_EQ(history_.violent_deaths(getpid(), 0), 0U) << "an unknown end is not counted";
  note(getpid(), "end\t" + std::to_string(pid) + "\t11");
  ASSERT_EQ(history_.deaths().size(), 1U);
  EXPECT_TRUE(history_.deaths()[0].end_known);
  EXPECT_TRUE(history_.deaths()[0].forked);
  EXPECT_EQ(history_.deaths()[0].end.signal, 11);
  note(getpid(), "end\t" + std::to_string(pid) + "\t0");
  EXPECT_EQ(history_.deaths()[0].end.signal, 11) << "the first report counts";
  EXPECT_EQ(history_.violent_deaths(getpid(), 0), 1U);
  EXPECT_EQ(history_.violent_deaths(getpid(), history_.deaths()[0].when + 1), 0U);
  EXPECT_EQ(history_.violent_deaths(getpid() + 1, 0), 0U);
}

TEST_F(ProcessHistoryTest, LearnsOfAnEndOfOneThatItNeverMet) {
  Child child;
  const pid_t pid = child.pid();
  child.end();
  child.reap();
  note(getpid(), "end\t" + std::to_string(pid) + "\t9");
  ASSERT_EQ(history_.deaths().size(), 1U);
  EXPECT_EQ(history_.deaths()[0].end.signal, 9);
  EXPECT_FALSE(history_.deaths()[0].forked) << "that is not known";
}

// The number of a reaped process may be reused before its parent has reported the end.
TEST_F(ProcessHistoryTest, ALateEndIsNotTakenForThatOfTheNextWithANumber) {
  Child next;
  const std::string pid = std::to_string(next.pid());
  note_fork(next.pid());
  note(getpid(), "term\t" + pid);
  note(getpid(), "end\t" + pid + "\t9");
  EXPECT_NE(history_.fork_of(next.pid()), nullptr) << "it lives";
  EXPECT_TRUE(history_.was_sent_sigterm(next.pid()));
  ASSERT_EQ(history_.deaths().size(), 1U) << "of the one before";
  EXPECT_EQ(history_.deaths()[0].end.signal, 9);
  next.end();
  take_ends();
  EXPECT_EQ(history_.deaths().size(), 2U);
}

// A worker's death must not be forgotten after many short lives that follow it.
TEST_F(ProcessHistoryTest, KeepsTheDeathsThatMatter) {
  Child killed;
  note_fork(killed.pid());
  killed.end(SIGKILL);
  take_ends();
  Child gone;
  const pid_t pid = gone.pid();
  gone.end();
  gone.reap();
  for (std::size_t i = 0; i < 2 * ProcessHistory::kMostDeaths; ++i) note_fork(pid);
  ASSERT_EQ(history_.deaths().size(), ProcessHistory::kMostDeaths);
  EXPECT_EQ(history_.deaths().front().end.signal, SIGKILL);
}

TEST_F(ProcessHistoryTest, ForgetsTheOldestOfManyViolentDeaths) {
  std::vector<pid_t> pids;
  for (std::size_t i = 0; i < ProcessHistory::kMostDeaths + 5; ++i) {
    Child child(1);
    pids.push_back(child.pid());
    note_fork(child.pid());
    child.end();
    take_ends();
  }
  ASSERT_EQ(history_.deaths().size(), ProcessHistory::kMostDeaths);
  EXPECT_EQ(history_.deaths().front().pid, pids[5]);
  EXPECT_EQ(history_.deaths().back().pid, pids.back());
}

// The readers of /proc need descriptors too.
TEST(ProcessHistory, LeavesDescriptorsToOthers) {
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  rlimit few = before;
  few.rlim_cur = 80;
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &few), 0);
  const auto proc = live_proc();
  auto history = ProcessHistory::create(proc.get());
  setrlimit(RLIMIT_NOFILE, &before);
  ASSERT_TRUE(history);
  std::vector<std::unique_ptr<Child>> children;
  int known = 0;
  for (int i = 0; i < 30; ++i) {
    children.push_back(std::make_unique<Child>());
    history->receive({children.back()->pid(), kHistoryNotes, "fork\t1\t1\t1"});
    if (history->fork_of(children.back()->pid()) != nullptr) ++known;
  }
  EXPECT_EQ(known, 20) << "a quarter of what there is";
  EXPECT_TRUE(history->deaths().empty());
}

}  // namespace
}  // namespace mprun
