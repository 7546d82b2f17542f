// The snapshot around a sample: which threads act alone, and what is not known for certain.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fake_proc.h"

namespace mprun {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

FakeProc stuck_process() {
  FakeProc proc;
  proc.process(10).thread(10).waits_on(0x5000);
  return proc;
}

TEST(TreeSnapshot, LetsAProcessWithAHandlerForASignalActAlone) {
  for (const int signal : {SIGALRM, SIGUSR1, SIGUSR2, SIGTERM, SIGHUP, SIGQUIT, SIGINT, SIGIO, SIGVTALRM, SIGPROF,
                           SIGCONT, SIGWINCH, SIGURG, 34, 64}) {
    FakeProc proc = stuck_process();
    proc.processes[10].catches(signal);
    const Judged all = judged(&proc);
    EXPECT_THAT(all.stuck, IsEmpty()) << signal;
    EXPECT_THAT(all.waits.at(10).why_live, HasSubstr("signal " + std::to_string(signal)));
  }
}

// As the signal of a handler is that a thread is in, unless it was installed with SA_NODEFER.
TEST(TreeSnapshot, KnowsThatNoHandlerRunsWhoseSignalAllThreadsBlock) {
  FakeProc proc = stuck_process();
  proc.processes[10].catches(SIGALRM).thread(10).blocks(SIGALRM);
  EXPECT_TRUE(judged(&proc).is_deadlock);
  proc.processes[10].thread(11).waits_on(0x5000);
  EXPECT_FALSE(judged(&proc).is_deadlock);
  proc.processes[10].threads[11].blocks(SIGALRM);
  EXPECT_TRUE(judged(&proc).is_deadlock);
  proc.processes[10].catches(SIGUSR1);
  EXPECT_FALSE(judged(&proc).is_deadlock);
}

TEST(TreeSnapshot, ExpectsHandlersOfFaultsAndOfGlibc) {
  FakeProc proc = stuck_process();
  for (const int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGCHLD, 32, 33}) proc.processes[10].catches(signal);
  EXPECT_TRUE(judged(&proc).is_deadlock);
}

// As faulthandler does. A process outside may be meant to send any of them.
TEST(TreeSnapshot, ExpectsAHandlerOfAbortsOnlyBesideThoseOfFaults) {
  for (const int signal : {SIGABRT, SIGTRAP, SIGSYS, SIGPIPE}) {
    FakeProc proc = stuck_process();
    proc.processes[10].catches(signal).catches(SIGSEGV);
    EXPECT_FALSE(judged(&proc).is_deadlock) << signal;
    proc.processes[10].catches(SIGBUS).catches(SIGFPE).catches(SIGILL);
    EXPECT_TRUE(judged(&proc).is_deadlock) << signal;
  }
}

// Both have a handler in every program, which says nothing of what it waits for.
TEST(TreeSnapshot, ExpectsTheHandlersForInterruptsOfPythonAndShells) {
  FakeProc proc = stuck_process();
  proc.processes[10].is_python();
  EXPECT_TRUE(judged(&proc).is_deadlock);
  for (const char* shell : {"/usr/bin/bash", "/bin/dash"}) {
    FakeProc in_shell = stuck_process();
    in_shell.processes[10].catches(SIGINT).exe = shell;
    EXPECT_TRUE(judged(&in_shell).is_deadlock) << shell;
  }
  proc.processes[10].catches(SIGTERM);
  EXPECT_FALSE(judged(&proc).is_deadlock);
}

TEST(TreeSnapshot, KnowsTheHandlersOfProgramsThatHaveOnlyTheirOwn) {
  FakeProc proc = stuck_process();
  proc.processes[10].catches(SIGTERM).catches(SIGINT).exe = "/usr/bin/sort";
  EXPECT_TRUE(judged(&proc).is_deadlock);
  proc.processes[10].exe = "/usr/bin/program";
  EXPECT_FALSE(judged(&proc).is_deadlock);
}

TEST(TreeSnapshot, LetsAProcessWithATimerActAlone) {
  FakeProc timer = stuck_process();
  timer.processes[10].timers = "ID: 0\nsignal: 14/0000000000000000\n";
  EXPECT_THAT(judged(&timer).stuck, IsEmpty());
  TreeBoundary tame;
  tame.assumptions.handlers_release_no_thread = true;
  EXPECT_THAT(judged(&timer, tame).stuck, IsEmpty()) << "whose handler is not known";
  FakeProc alarm = stuck_process();
  TreeBoundary boundary;
  pid_t alarmed = 10;
  boundary.why_alarm_may_come = [&](pid_t pid, pid_t tid) {
    EXPECT_EQ(pid, tid);
    return pid == alarmed ? "has asked for an alarm" : "";
  };
  const Judged all = judged(&alarm, boundary);
  EXPECT_THAT(all.stuck, IsEmpty());
  EXPECT_THAT(all.waits.at(10).why_live, HasSubstr("has asked for an alarm"));
  alarmed = 11;
  EXPECT_TRUE(judged(&alarm, boundary).is_deadlock);
}

TEST(TreeSnapshot, KnowsWhichProcessesAreOfOneProgram) {
  FakeProc proc;
  for (const auto& [pid, parent] : {std::pair(10, 1), {11, 10}, {12, 11}, {13, 10}, {14, 13}, {15, 9}}) {
    proc.process(pid, parent).thread(pid).sleeps();
    proc.processes[pid].command = "program";
  }
  proc.processes[11].forked = proc.processes[12].forked = proc.processes[14].forked = true;
  proc.processes[15].forked = true;  // from one that has ended
  const Sample sample = take_sample(&proc, {10, 11, 12, 13, 14, 15});
  const TreeSnapshot snapshot(&proc, &sample, {});
  EXPECT_THAT(snapshot.relatives_of(12), ElementsAre(10, 11, 12, 15));
  EXPECT_THAT(snapshot.relatives_of(14), ElementsAre(13, 14, 15));
  proc.processes[13].command = "python -c from multiprocessing.spawn import spawn_main";
  EXPECT_THAT(snapshot.relatives_of(12), ElementsAre(10, 11, 12, 13, 14, 15));
}

TEST(TreeSnapshot, KnowsThatTimersDoNothingWhoseSignalIsIgnoredOrBlocked) {
  TreeBoundary alarm;
  alarm.why_alarm_may_come = [](pid_t, pid_t) { return "has asked for an alarm"; };
  for (const bool ignores : {true, false}) {
    FakeProc proc = stuck_process();
    TreeProcess& process = proc.processes[10];
    if (ignores) {
      process.ignored = std::uint64_t{1} << (SIGALRM - 1);
    } else {
      process.thread(10).blocks(SIGALRM);
    }
    EXPECT_TRUE(judged(&proc, alarm).is_deadlock);
    process.timers = "ID: 0\nsignal: 14/0000000000000000\n";
    EXPECT_TRUE(judged(&proc, alarm).is_deadlock);
    process.timers = "ID: 0\nsignal: 10/0000000000000000\n";
    EXPECT_FALSE(judged(&proc, alarm).is_deadlock);
    process.timers = "ID: 0\nsignal: 0/0000000000000000\n";
    EXPECT_FALSE(judged(&proc).is_deadlock);
  }
}

TEST(TreeSnapshot, LetsAProcessActAloneThatIsTraced) {
  FakeProc proc = stuck_process();
  proc.processes[10].thread(20).waits_on(0x5000).tracer = 50;
  EXPECT_THAT(judged(&proc).stuck, IsEmpty());
}

TEST(TreeSnapshot, LetsAProcessActAloneThatHasKernelsWorkForIt) {
  for (const char* target : {"anon_inode:[io_uring]", "anon_inode:[userfaultfd]"}) {
    FakeProc proc = stuck_process();
    proc.processes[10].open(3, target, O_RDWR);
    EXPECT_THAT(judged(&proc).stuck, IsEmpty()) << target;
  }
}

TEST(TreeSnapshot, LetsNoProcessActAloneWhoseIoUringHasNothingToDo) {
  FakeProc proc = stuck_process();
  proc.processes[10].ring(3, 500);
  EXPECT_TRUE(judged(&proc).is_deadlock);
  proc.processes[10].ring(3, 500, 1);
  EXPECT_THAT(judged(&proc).stuck, IsEmpty());
}

// A repeating timeout has completed once, and will again.
TEST(TreeSnapshot, TrustsTheCountersOfAnIoUringOnlyWhereLibuvHasUsedIt) {
  FakeProc proc = stuck_process();
  proc.processes[10].ring(3, 500, 1, 1);
  EXPECT_THAT(judged(&proc).stuck, IsEmpty());
  proc.processes[10].map("r-xp", 7, "/usr/lib/x86_64-linux-gnu/libuv.so.1.0.0");
  EXPECT_TRUE(judged(&proc).is_deadlock);
  proc.processes[10].ring(3, 500, 2, 1);
  EXPECT_THAT(judged(&proc).stuck, IsEmpty());
}

// What acts alone may wake others.
TEST(TreeSnapshot, CountsWhatActsAloneAsAWaker) {
  FakeProc proc = stuck_process();
  proc.processes[10].thread(10).waits_for_child(11);
  proc.process(11, 10).catches(SIGUSR1).thread(11).waits_on(0x5000);
  EXPECT_THAT(judged(&proc).stuck, IsEmpty());
}

/// 10 and 11 wait for each other's end of a pipe, a lock in shared memory and any child; 12 has nothing to do with it.
FakeProc all_kinds() {
  FakeProc proc;
  proc.process(10).pipe(3, 77, O_RDONLY).thread(10).reads(3);
  proc.process(11).pipe(3, 77, O_WRONLY).map("rw-s", 900, "/dev/zero (deleted)");
  proc.process(11).thread(11).waits_on(FakeProc::kMapped, false);
  proc.process(12).thread(12).waits_on(0x5000);
  proc.process(13).thread(13).waits_for_child(-1);
  proc.process(14, 13).thread(14).waits_on(0x5000);
  return proc;
}

TEST(TreeSnapshot, ProvesNothingOfWhatIsHeldIfOneMayNotBeLookedAt) {
  FakeProc proc = all_kinds();
  EXPECT_TRUE(judged(&proc).is_deadlock);
  proc.processes[12].hidden_descriptors = true;
  EXPECT_THAT(judged(&proc).stuck, UnorderedElementsAre(14));
}

TEST(TreeSnapshot, ProvesNothingOfWhatIsHeldIfProcessesMayBeHidden) {
  FakeProc proc = all_kinds();
  proc.hides_others = true;
  proc.tells_children = false;
  EXPECT_THAT(judged(&proc, {10, 11, 12, 13, 14}, {}).stuck, UnorderedElementsAre(12, 14));
}

// The children of a thread are reported even where they are hidden.
TEST(TreeSnapshot, ProvesAllIfNoneOfTheHiddenIsOfTheTree) {
  FakeProc proc = all_kinds();
  proc.hides_others = true;
  proc.process(50, 49).of_another = true;
  EXPECT_TRUE(judged(&proc, {10, 11, 12, 13, 14}, {}).is_deadlock);
}

TEST(TreeSnapshot, ProvesNothingOfWhatIsHeldIfAChildIsHidden) {
  for (const pid_t parent : {1, 12, 14}) {
    FakeProc proc = all_kinds();
    proc.hides_others = true;
    proc.process(50, parent).of_another = true;
    const Judged all = judged(&proc, {10, 11, 12, 13, 14}, {});
    EXPECT_THAT(all.stuck, UnorderedElementsAre(12, 14)) << parent;
    EXPECT_EQ(all.waits.at(10).why_live, "process 50 is hidden (another user's)");
  }
}

// Any process may see that it exists, rests and has children, but not what it does.
TEST(TreeSnapshot, LetsAProcessActAloneThatMayNotBeLookedAt) {
  FakeProc proc = all_kinds();
  proc.processes[14].readable = false;
  const Judged all = judged(&proc);
  EXPECT_THAT(all.stuck, UnorderedElementsAre(12));
  EXPECT_EQ(all.waits.at(14).why_live, "mprun may not look at it");
  EXPECT_EQ(all.waits.at(10).why_live, "mprun may not look at process 14");
}

// The numbers in its calls belong to another namespace.
TEST(TreeSnapshot, LetsAProcessActAloneThatIsInAPidNamespaceOfItsOwn) {
  FakeProc proc = stuck_process();
  proc.processes[10].namespace_ids = "NSpid:\t10\n";
  EXPECT_TRUE(judged(&proc).is_deadlock);
  proc.processes[10].namespace_ids = "NSpid:\t10\t1\n";
  EXPECT_THAT(judged(&proc).stuck, IsEmpty());
}

// The process that receives it can write to a pipe that only its readers seem to hold.
TEST(TreeSnapshot, ProvesNothingOfWhatIsHeldWhileADescriptorIsOnItsWay) {
  FakeProc proc = all_kinds();
  proc.processes[12].open(3, "socket:[500]", O_RDWR, "ino:\t500\nscm_fds: 0\n");
  EXPECT_TRUE(judged(&proc).is_deadlock);
  proc.processes[12].open(3, "socket:[500]", O_RDWR, "ino:\t500\nscm_fds: 1\n");
  const Judged all = judged(&proc);
  EXPECT_THAT(all.stuck, UnorderedElementsAre(12, 14));
  for (const pid_t tid : {10, 11, 13}) EXPECT_THAT(all.waits.at(tid).why_live, HasSubstr("on its way")) << tid;
}

TEST(TreeSnapshot, ProvesNothingOfWhatIsHeldIfAnIoUringKeepsFiles) {
  FakeProc proc = all_kinds();
  proc.processes[12].ring(3, 500);
  EXPECT_TRUE(judged(&proc).is_deadlock);
  proc.processes[12].descriptors[3].info += "UserFiles:\t1\n";
  const Judged all = judged(&proc);
  EXPECT_THAT(all.stuck, UnorderedElementsAre(12, 14));
  for (const pid_t tid : {10, 11, 13}) EXPECT_THAT(all.waits.at(tid).why_live, HasSubstr("io_uring")) << tid;
}

// 12 was started by 11; whoever is older than it, but for 11, cannot know what 11 has made for it.
TEST(TreeSnapshot, KnowsWhoIsYoungerThanAProcess) {
  FakeProc proc;
  std::uint64_t started = 100;
  for (const auto& [pid, parent] : std::map<pid_t, pid_t>{{9, 1}, {10, 9}, {11, 9}, {12, 11}, {13, 9}, {14, 12}}) {
    proc.process(pid, parent).started = started++;
    proc.processes[pid].thread(pid).sleeps();
  }
  const Sample sample = take_sample(&proc, {9, 10, 11, 12, 13, 14});
  const auto younger = [&] { return TreeSnapshot(&proc, &sample, {}).parent_and_younger(12); };
  EXPECT_THAT(younger(), UnorderedElementsAre(11, 12, 13, 14));
  proc.processes[10].started = proc.processes[12].started;
  EXPECT_THAT(younger(), UnorderedElementsAre(10, 11, 12, 13, 14)) << "in the same tick";
  proc.processes[9].started = 0;
  EXPECT_THAT(younger(), UnorderedElementsAre(9, 10, 11, 12, 13, 14));
}

TEST(TreeSnapshot, KnowsWhoHasStartedAChildOfAForkserver) {
  FakeProc proc;
  const std::string command = "python3 -c from multiprocessing.forkserver import main; main(6)";
  for (const auto& [pid, parent] : std::map<pid_t, pid_t>{{10, 1}, {11, 10}, {12, 11}, {13, 10}, {14, 12}}) {
    proc.process(pid, parent).thread(pid).sleeps();
    proc.processes[pid].command = pid == 10 || pid == 13 ? "python3 train.py" : command;
    proc.processes[pid].forked = pid == 12 || pid == 13 || pid == 14;
  }
  const Sample sample = take_sample(&proc, {10, 11, 12, 13, 14});
  TreeSnapshot snapshot(&proc, &sample, {});
  EXPECT_TRUE(snapshot.is_forkserver(*snapshot.process(11)));
  for (const pid_t other : {10, 12, 13, 14}) EXPECT_FALSE(snapshot.is_forkserver(*snapshot.process(other))) << other;
  EXPECT_EQ(snapshot.starter_of(*snapshot.process(12)), 10);
  EXPECT_EQ(snapshot.starter_of(*snapshot.process(11)), 10);
  EXPECT_EQ(snapshot.starter_of(*snapshot.process(13)), 10);
  EXPECT_EQ(snapshot.starter_of(*snapshot.process(14)), 12);
  EXPECT_THAT(snapshot.started_by(10), UnorderedElementsAre(11, 12, 13));
  EXPECT_THAT(snapshot.started_by(11), IsEmpty());
}

// unshare(CLONE_FILES): what such a thread holds is not in /proc/PID/fd.
TEST(TreeSnapshot, ProvesNothingOfWhatIsHeldIfAThreadHasItsOwnDescriptors) {
  for (const bool knows_kcmp : {true, false}) {
    FakeProc proc = all_kinds();
    proc.processes[12].open(3, "/tmp/a").thread(20).waits_on(0x5000);
    proc.knows_kcmp = knows_kcmp;
    proc.processes[12].statm = "1 1";
    EXPECT_TRUE(judged(&proc).is_deadlock) << knows_kcmp;
    proc.processes[12].threads[20].own_descriptors = true;
    EXPECT_FALSE(judged(&proc).is_stuck(10)) << knows_kcmp;
    EXPECT_FALSE(judged(&proc).is_stuck(11)) << knows_kcmp;
  }
}

// /proc/PID/fd of a first thread that has ended is empty.
TEST(TreeSnapshot, SeesWhatAProcessHoldsWhoseFirstThreadHasEnded) {
  FakeProc proc;
  proc.process(10).pipe(3, 77, O_RDONLY).pipe(4, 77, O_WRONLY).thread(10).reads(3);
  proc.process(11).pipe(4, 77, O_WRONLY).thread(11).state = 'Z';
  proc.processes[11].thread(12).sleeps();
  EXPECT_FALSE(judged(&proc).is_stuck(10));
  proc.processes[11].threads[12].reads(3);
  proc.processes[11].pipe(3, 77, O_RDONLY);
  EXPECT_TRUE(judged(&proc).is_deadlock);
}

}  // namespace
}  // namespace mprun
