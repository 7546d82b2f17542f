// The inspection of a tree: a real deadlock, examined through a recorder and again from the recording; what prevents a
// look; and what counts as shared with the rest of the machine.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <functional>
#include <utility>

#include "fake_process.h"
#include "os/fd.h"
#include "watch/inspect.h"
#include "watch/judge/tree_boundary.h"

namespace mprun {
namespace {

using ::testing::HasSubstr;

/// A child process that ends with the test.
class ForkedChild {
 public:
  template <typename Body>
  explicit ForkedChild(const Body& body) : pid_(fork()) {
    if (pid_ == 0) {
      body();
      _exit(0);
    }
  }
  ~ForkedChild() {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  ForkedChild(const ForkedChild&) = delete;
  ForkedChild& operator=(const ForkedChild&) = delete;
  [[nodiscard]] pid_t pid() const { return pid_; }

 private:
  pid_t pid_;
};

#ifdef __SANITIZE_THREAD__
constexpr bool kNeverRests = true;
#else
constexpr bool kNeverRests = false;
#endif

/// Blocks forever in its own pipe.
void read_own_pipe() {
  int ends[2];
  char byte = 0;
  if (pipe(ends) == 0) (void)!read(ends[0], &byte, 1);
}

/// Looks again until the verdict is as wanted, for half a minute.
Inspection inspect_until(ProcSource* proc, pid_t pid, HangVerdict wanted) {
  for (int i = 0; i < 100; ++i) {
    auto found = inspect_process(proc, pid);
    if (found && found->hang.verdict == wanted) return std::move(*found);
    usleep(50'000);
  }
  ADD_FAILURE() << "never " << to_string(wanted);
  return {};
}

TEST(Inspect, FindsADeadlockAndFindsItAgainInTheRecording) {
  if (kNeverRests) GTEST_SKIP() << "the thread sanitizer has a thread that never rests";
  const auto live = live_proc();
  std::string recording;
  pid_t pid = 0;
  {
    const ForkedChild child(read_own_pipe);
    pid = child.pid();
    inspect_until(live.get(), pid, HangVerdict::kDeadlock);
    ProcRecorder recorder(live.get());
    const auto found = inspect_process(&recorder, pid);
    ASSERT_TRUE(found);
    EXPECT_EQ(found->hang.verdict, HangVerdict::kDeadlock);
    recording = recorder.recording();
  }
  const auto replayed = recorded_proc(recording);
  ASSERT_TRUE(replayed);
  const auto found = inspect_process(replayed->get(), pid);
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_EQ(found->hang.verdict, HangVerdict::kDeadlock);
  EXPECT_EQ(found->hang.cause.id, "pipe-never-closed");
  ASSERT_EQ(found->hang.processes.size(), 1U);
  ASSERT_EQ(found->hang.processes[0].threads.size(), 1U);
  EXPECT_EQ(found->hang.processes[0].threads[0].state, "blocked for ever");
  EXPECT_EQ(found->hang.processes[0].threads[0].wait.kind, "pipe-read");
}

TEST(Inspect, IsSureOfAProofAndOfATreeAtRest) {
  Inspection inspection;
  inspection.hang.verdict = HangVerdict::kLive;
  EXPECT_TRUE(is_sure(inspection));
  inspection.suspects_lock = true;
  EXPECT_FALSE(is_sure(inspection));
  inspection.suspects_lock = false;
  inspection.suspects_stall = true;
  EXPECT_FALSE(is_sure(inspection));
  inspection.suspects_stall = false;
  inspection.moving = true;
  EXPECT_FALSE(is_sure(inspection));
  inspection.hang.verdict = HangVerdict::kPartialDeadlock;
  EXPECT_TRUE(is_sure(inspection));
  inspection.hang.cause.looks_idle = true;
  EXPECT_FALSE(is_sure(inspection));
}

// A program that idles until a signal ends it waits for nothing in particular.
TEST(EarlyStall, MayBeIdleUnlessItWaitsForABatch) {
  Proof proof;
  proof.is_early = proof.needs_no_signal = true;
  Hang hang;
  hang.cause.looks_idle = true;
  EXPECT_TRUE(may_be_idle(proof, hang));
  hang.join.emplace().call = "multiprocessing.Process.join";
  EXPECT_TRUE(may_be_idle(proof, hang));
  proof.needs_no_signal = false;
  EXPECT_FALSE(may_be_idle(proof, hang));
  proof.needs_no_limit = true;
  EXPECT_TRUE(may_be_idle(proof, hang)) << "it does something now and then";
  hang.join->call = "torch.utils.data.dataloader._BaseDataLoaderIter.__next__";
  EXPECT_FALSE(may_be_idle(proof, hang));
}

TEST(EarlyStall, IsNotIdleIfItWaitsForAQueueThatNoOtherProcessHas) {
  Proof proof;
  proof.is_early = true;
  Hang hang;
  hang.cause.id = "pipe-never-closed";
  hang.join.emplace().call = "os.read";
  EXPECT_TRUE(may_be_idle(proof, hang));
  hang.join->call = "multiprocessing.Queue.get";
  EXPECT_FALSE(may_be_idle(proof, hang));
  proof.needs_no_signal = true;
  EXPECT_TRUE(may_be_idle(proof, hang)) << "a handler may put an item";
}

TEST(EarlyStall, OfAnUnawaitedPartNeedsACauseThatNothingIdleHas) {
  Proof proof;
  proof.verdict = HangVerdict::kStalled;
  proof.is_early = true;
  proof.judgement.stuck = {10};
  proof.judgement.live = {11};
  Hang hang;
  hang.join.emplace().call = "multiprocessing.Process.join";
  EXPECT_TRUE(may_be_idle(proof, hang)) << "the cause is not known";
  hang.cause.id = "pipe-never-closed";
  EXPECT_TRUE(may_be_idle(proof, hang));
  hang.cause.id = "collective-mismatch";
  EXPECT_FALSE(may_be_idle(proof, hang));
  hang.cause.looks_idle = true;
  EXPECT_TRUE(may_be_idle(proof, hang));
  hang.join->call = "torch.utils.data.dataloader._BaseDataLoaderIter.__next__";
  EXPECT_FALSE(may_be_idle(proof, hang));
}

TEST(EarlyStall, IsNotIdleForATimerOfRuby) {
  Proof proof;
  proof.is_early = proof.needs_only_timers = true;
  Hang hang;
  hang.cause.id = "pipe-cycle";
  hang.cause.looks_idle = true;
  EXPECT_FALSE(may_be_idle(proof, hang));
  hang.cause.id = "never-notified";
  EXPECT_TRUE(may_be_idle(proof, hang)) << "its main thread may sleep";
}

TEST(Hang, IsProvedUnlessItMayIdle) {
  Hang hang;
  for (const HangVerdict verdict :
       {HangVerdict::kDeadlock, HangVerdict::kPartialDeadlock, HangVerdict::kOrphanedLock}) {
    hang.verdict = verdict;
    EXPECT_TRUE(is_proved_hang(hang)) << to_string(verdict);
  }
  for (const HangVerdict verdict : {HangVerdict::kLive, HangVerdict::kStalled, HangVerdict::kOverdue}) {
    hang.verdict = verdict;
    EXPECT_FALSE(is_proved_hang(hang)) << to_string(verdict);
  }
  hang.cause.looks_idle = true;
  hang.verdict = HangVerdict::kPartialDeadlock;
  EXPECT_FALSE(is_proved_hang(hang));
  hang.verdict = HangVerdict::kDeadlock;
  EXPECT_TRUE(is_proved_hang(hang)) << "nothing is left that could bring work";
}

TEST(Hang, IsNoSleepOfRubysMainThread) {
  Hang hang;
  HungThread main;
  main.tid = 10;
  main.native = {"pthread_cond_wait (libc.so.6)", "rb_thread_sleep_forever (libruby-3.3.so.3)"};
  hang.processes.resize(1);
  hang.processes[0].pid = 10;
  hang.processes[0].threads = {main};
  hang.cause.looks_idle = true;
  EXPECT_FALSE(is_proved_hang(hang)) << "SIGTERM raises an exception, as a server may want to end";
  hang.processes[0].threads[0].tid = 11;
  EXPECT_TRUE(is_proved_hang(hang)) << "no signal raises one in another thread";
  hang.processes[0].threads[0].tid = 10;
  hang.cause.looks_idle = false;
  EXPECT_TRUE(is_proved_hang(hang)) << "a rule knows why";
}

TEST(Inspect, LooksUntilAMovingTreeIsStuck) {
  if (kNeverRests) GTEST_SKIP() << "the thread sanitizer has a thread that never rests";
  int ends[2];
  ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
  const ForkedChild child([&] {
    signal(SIGPIPE, SIG_IGN);
    close(ends[0]);
    const char byte = 0;
    while (write(ends[1], &byte, 1) == 1) usleep(1000);  // until the test has seen enough of it
    read_own_pipe();
  });
  close(ends[1]);
  Fd reads(ends[0]);
  const ForkedChild reader([&] {
    char byte = 0;
    for (int i = 0; i < 1000; ++i) (void)!read(reads.get(), &byte, 1);
  });
  reads.reset();
  const auto live = live_proc();
  const auto found = inspect_patiently(live.get(), child.pid(), 60 * kNanosPerSecond);
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_EQ(found->hang.verdict, HangVerdict::kDeadlock);
}

/// The live system; calls `then` when an inspection of the process has judged its samples and asks whether it is there.
class AfterALook : public ProcRecorder {
 public:
  AfterALook(ProcSource* live, pid_t pid, std::function<void()> then)
      : ProcRecorder(live), pid_(std::to_string(pid)), then_(std::move(then)) {}
  [[nodiscard]] std::optional<std::string> read(const std::string& path) override {
    if (path == pid_ + "/status" && samples_ >= 4 && then_) std::exchange(then_, nullptr)();
    return ProcRecorder::read(path);
  }
  [[nodiscard]] std::optional<std::vector<std::string>> list(const std::string& path) override {
    if (path == pid_ + "/task") ++samples_;
    return ProcRecorder::list(path);
  }
  [[nodiscard]] bool has_called() const { return !then_; }

 private:
  std::string pid_;
  std::function<void()> then_;
  int samples_ = 0;
};

TEST(Inspect, LooksTwiceBeforeItTrustsATreeAtRest) {
  if (kNeverRests) GTEST_SKIP() << "the thread sanitizer has a thread that never rests";
  int ends[2];
  ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
  const Fd reads(ends[0]);
  Fd writes(ends[1]);
  const ForkedChild child([&] {
    char byte = 0;
    if (read(reads.get(), &byte, 1) == 1) read_own_pipe();
  });
  const auto live = live_proc();
  AfterALook proc(live.get(), child.pid(), [&writes] { (void)!write(writes.get(), "", 1); });
  const auto found = inspect_patiently(&proc, child.pid(), 60 * kNanosPerSecond);
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_TRUE(proc.has_called());
  EXPECT_EQ(found->hang.verdict, HangVerdict::kDeadlock);
}

TEST(Inspect, APipeThatAnotherProcessHasToo) {
  int ends[2];
  ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
  const Fd reads(ends[0]);
  const Fd writes(ends[1]);
  const auto live = live_proc();
  const ForkedChild child([&] {
    char byte = 0;
    (void)!read(reads.get(), &byte, 1);
  });
  Inspection found;
  for (int i = 0; i < 100; ++i) {  // until it is seen to read
    auto now = inspect_process(live.get(), child.pid());
    ASSERT_TRUE(now);
    found = std::move(*now);
    ASSERT_EQ(found.hang.verdict, HangVerdict::kLive);
    if (found.hang.processes.size() == 1 && found.hang.processes[0].threads[0].wait.kind == "pipe-read") break;
    usleep(50'000);
  }
  const HungThread& thread = found.hang.processes.at(0).threads.at(0);
  EXPECT_EQ(thread.state, "blocked");
  EXPECT_EQ(thread.wait.why_live, "a pipe from outside");
  EXPECT_FALSE(found.hang.join);
}

TEST(Inspect, ATreeThatMoves) {
  const auto live = live_proc();
  const ForkedChild child([] {
    for (;;) getppid();
  });
  const auto found = inspect_process(live.get(), child.pid());
  ASSERT_TRUE(found);
  EXPECT_TRUE(found->moving);
  EXPECT_EQ(found->hang.verdict, HangVerdict::kLive);
  ASSERT_EQ(found->hang.processes.size(), 1U);
  EXPECT_EQ(found->hang.processes[0].threads.at(0).state, "running");
}

TEST(Inspect, AStoppedProcess) {
  if (kNeverRests) GTEST_SKIP() << "the thread sanitizer has a thread that never rests";
  const auto live = live_proc();
  const ForkedChild child(read_own_pipe);
  inspect_until(live.get(), child.pid(), HangVerdict::kDeadlock);
  kill(child.pid(), SIGSTOP);
  const auto found = inspect_until(live.get(), child.pid(), HangVerdict::kLive);
  EXPECT_EQ(found.hang.processes.at(0).threads.at(0).state, "stopped");
}

TEST(Inspect, OurOwnProcessIsPartOfTheTree) {
  if (kNeverRests) GTEST_SKIP() << "the thread sanitizer has a thread that never rests";
  const auto live = live_proc();
  const ForkedChild child(read_own_pipe);
  inspect_until(live.get(), child.pid(), HangVerdict::kDeadlock);
  const auto found = inspect_process(live.get(), getpid());
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_EQ(found->hang.verdict, HangVerdict::kPartialDeadlock);  // the child; we run
}

TEST(Inspect, AnEndedProcessAndNone) {
  const auto live = live_proc();
  pid_t pid = 0;
  {
    const ForkedChild child([] {});
    pid = child.pid();
    siginfo_t info{};
    waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOWAIT);
    const auto found = inspect_process(live.get(), pid);
    ASSERT_FALSE(found);
    EXPECT_THAT(found.error().message, HasSubstr("has ended; its parent, process " + std::to_string(getpid())));
  }
  const auto found = inspect_process(live.get(), pid);
  ASSERT_FALSE(found);
  EXPECT_THAT(found.error().message, HasSubstr("there is no process " + std::to_string(pid)));
  EXPECT_EQ(found.error().fault, Fault::kUsage);
}

TEST(Inspect, AProcThatShowsNothing) {
  FakeProcess hidden;
  const auto found = inspect_process(&hidden, getpid());
  ASSERT_FALSE(found);
  EXPECT_THAT(found.error().message, HasSubstr("is there, but /proc does not show it"));
}

class RestOfTheMachine : public ::testing::Test {
 protected:
  RestOfTheMachine() {
    proc_.folders["."] = {"10", "20", "30"};
    proc_.files["20/stat"] = stat(0);
    for (const char* pid : {"10", "20", "30"}) proc_.folders[std::string(pid) + "/fd"] = {};
  }
  static std::string stat(int flags) {
    std::string text = "20 (root) S 10 0 0 0 0 " + std::to_string(flags);
    for (int field = 10; field <= 52; ++field) text += " 0";
    return text + "\n";
  }
  void open(const std::string& pid, const std::string& number, const std::string& target, int flags = O_RDWR) {
    proc_.folders[pid + "/fd"].push_back(number);
    proc_.links[pid + "/fd/" + number] = target;
    proc_.files[pid + "/fdinfo/" + number] = "pos:\t0\nflags:\t0" + std::to_string(flags) + "\nmnt_id:\t1\nino:\t7\n";
  }
  TreeBoundary boundary() { return boundary_of_tree(&proc_, 20, {20}); }
  static Mapping semaphore() {
    Mapping mapping;
    mapping.shared = true;
    mapping.device = std::uint64_t{0} << 32 | 0x1a;
    mapping.inode = 99;
    mapping.path = "/dev/shm/sem.aB3 (deleted)";
    return mapping;
  }
  FakeProcess proc_;
};

TEST_F(RestOfTheMachine, WhatOthersHaveOpenIsForeign) {
  open("20", "5", "pipe:[501]");
  open("20", "6", "pipe:[502]");
  open("30", "9", "pipe:[502]");
  EXPECT_EQ(boundary().foreign, std::set<std::uint64_t>{502});
  EXPECT_FALSE(boundary().closed);
}

TEST_F(RestOfTheMachine, StandardStreamsAreForeign) {
  open("20", "2", "pipe:[501]");
  open("20", "3", "pipe:[502]");
  EXPECT_EQ(boundary().foreign, std::set<std::uint64_t>{501});
}

TEST_F(RestOfTheMachine, AStreamFromAChildIsNotForeign) {
  open("20", "0", "pipe:[501]", O_RDONLY);
  open("20", "1", "pipe:[502]", O_WRONLY);
  open("21", "1", "pipe:[501]", O_WRONLY);
  open("21", "2", "pipe:[502]", O_WRONLY);
  EXPECT_EQ(boundary_of_tree(&proc_, 20, {20, 21}).foreign, std::set<std::uint64_t>{502});
}

TEST_F(RestOfTheMachine, AllIsForeignWhereTheParentCannotBeRead) {
  proc_.folders.erase("10/fd");
  open("20", "5", "socket:[501]");
  EXPECT_EQ(boundary().foreign, std::set<std::uint64_t>{501});
}

TEST_F(RestOfTheMachine, MemoryThatOthersMap) {
  proc_.folders["20/root/dev/shm"] = {"other"};
  EXPECT_FALSE(boundary().shares_memory(semaphore()));
  proc_.files["30/maps"] = "7f0000000000-7f0000001000 rw-s 00000000 00:1a 99 /dev/shm/sem.mp\n";
  EXPECT_TRUE(boundary().shares_memory(semaphore()));
}

TEST_F(RestOfTheMachine, MemoryThatOthersCouldYetMap) {
  Mapping mapping = semaphore();
  EXPECT_TRUE(boundary().shares_memory(mapping)) << "other names are not known";
  proc_.folders["20/root/dev/shm"] = {"sem.job"};
  proc_.names[100] = {"sem.job"};
  EXPECT_FALSE(boundary().shares_memory(mapping)) << "it is another semaphore";
  proc_.names[99] = {"sem.job"};
  EXPECT_TRUE(boundary().shares_memory(mapping)) << "it is that semaphore";
  mapping.path = "/memfd:queue (deleted)";
  EXPECT_TRUE(boundary().shares_memory(mapping));
  mapping.path = "/SYSV00000000 (deleted)";
  EXPECT_TRUE(boundary().shares_memory(mapping));
}

TEST_F(RestOfTheMachine, MemoryOfAForkedProcessWhoseParentCannotBeRead) {
  constexpr int kForkedNotExecuted = 0x40;
  proc_.folders.erase("10/fd");
  EXPECT_TRUE(boundary().shares_memory);
  proc_.files["20/stat"] = stat(kForkedNotExecuted);
  EXPECT_FALSE(boundary().shares_memory);
}

}  // namespace
}  // namespace mprun
