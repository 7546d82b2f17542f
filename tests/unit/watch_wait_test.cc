// The wait table: children, vfork, file locks, and what is never proved.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include "fake_proc.h"
#include "watch/sample/syscall_table.h"

namespace mprun {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

/// 10 waits for its child 11, which waits for a lock that no thread can release.
FakeProc parent_and_stuck_child() {
  FakeProc proc;
  proc.process(10).thread(10).waits_for_child(11);
  proc.process(11, 10).thread(11).waits_on(0x5000);
  return proc;
}

TEST(Wait, ForAChildEndsWithIt) {
  FakeProc proc = parent_and_stuck_child();
  const Judged all = judged(&proc);
  EXPECT_TRUE(all.is_deadlock);
  EXPECT_EQ(all.waits.at(10).kind, WaitKind::kChild);
  EXPECT_THAT(all.waits.at(10).wakers, UnorderedElementsAre(Waker{11, 0}));
  proc.processes[11].threads[11].sleeps();
  EXPECT_THAT(judged(&proc).stuck, IsEmpty());
}

TEST(Wait, ForAnyChildHasAllOfThemAsWakers) {
  for (const bool by_waitid : {false, true}) {
    FakeProc proc = parent_and_stuck_child();
    TreeThread& parent = proc.processes[10].threads[10];
    by_waitid ? parent.call(SYS_waitid, {P_ALL, 0}) : parent.waits_for_child(-1);
    EXPECT_TRUE(judged(&proc).is_deadlock);
    proc.process(12, 10).thread(12).sleeps();
    EXPECT_FALSE(judged(&proc).is_stuck(10));
    EXPECT_TRUE(judged(&proc).is_stuck(11));
  }
}

// By PR_SET_CHILD_SUBREAPER, which is not seen: a Python calls prctl() by ctypes.
TEST(Wait, ForAnyChildMayEndWithAnOrphanThatItAdopts) {
  FakeProc proc = parent_and_stuck_child();
  proc.processes[10].threads[10].waits_for_child(-1);
  proc.process(12, 11).thread(12).sleeps();
  EXPECT_TRUE(judged(&proc).is_stuck(10));
  proc.processes[10].map("r-xp", 7, "/usr/lib/python3.11/lib-dynload/_ctypes.cpython-311-x86_64-linux-gnu.so");
  EXPECT_FALSE(judged(&proc).is_stuck(10));
}

TEST(Wait, ByWaitidNamesAProcessOrAPidfd) {
  FakeProc proc = parent_and_stuck_child();
  TreeThread& parent = proc.processes[10].threads[10].call(SYS_waitid, {P_PID, 11});
  EXPECT_TRUE(judged(&proc).is_deadlock);
  parent.call(SYS_waitid, {P_PIDFD, 5});
  EXPECT_THAT(judged(&proc).waits.at(10).why_live, HasSubstr("unknown child"));
  proc.processes[10].open(5, "anon_inode:[pidfd]", O_RDWR, "Pid:\t11\n");
  EXPECT_TRUE(judged(&proc).is_deadlock);
  proc.processes[10].open(5, "anon_inode:[pidfd]", O_RDWR, "Pid:\t-1\n");
  EXPECT_FALSE(judged(&proc).is_stuck(10));
}

TEST(Wait, ForAChildThatIsNotSeenIsLive) {
  FakeProc proc = parent_and_stuck_child();
  TreeThread& parent = proc.processes[10].threads[10].waits_for_child(77);
  EXPECT_FALSE(judged(&proc).is_stuck(10));
  proc.process(11, 1);  // now a child of another process
  parent.waits_for_child(11);
  EXPECT_FALSE(judged(&proc).is_stuck(10));
  parent.waits_for_child(-1);
  EXPECT_FALSE(judged(&proc).is_stuck(10));
}

// A tracer is woken by its tracees, which need not be its children, as by children.
TEST(Wait, OfATracerForAnyChildIsLive) {
  FakeProc proc = parent_and_stuck_child();
  proc.processes[10].threads[10].waits_for_child(-1);
  proc.process(50, 0).thread(50).tracer = 10;  // outside the tree
  EXPECT_THAT(judged(&proc).waits.at(10).why_live, HasSubstr("traces"));
}

TEST(Wait, ForAVforkChildEndsWithItOrItsExec) {
  FakeProc proc;
  TreeThread& parent = proc.process(10).thread(10).call(SYS_vfork, {});
  parent.state = 'D';
  proc.process(11, 10).thread(11).waits_on(0x5000);
  EXPECT_FALSE(judged(&proc).is_stuck(10)) << "it has no child with its memory";
  proc.processes[10].memory_of = proc.processes[11].memory_of = 1;
  EXPECT_EQ(judged(&proc).waits.at(10).kind, WaitKind::kVfork);
  EXPECT_TRUE(judged(&proc).is_deadlock);
  proc.processes[11].threads[11].sleeps();
  EXPECT_THAT(judged(&proc).stuck, IsEmpty());
}

// A handler runs in any thread, and may wake the others.
TEST(Wait, OfAProcessThatCatchesTheEndOfChildrenMayEndWithAnyChild) {
  FakeProc proc;
  proc.process(10).catches(SIGCHLD).thread(10).waits_on(0x5000);
  EXPECT_TRUE(judged(&proc).is_stuck(10));
  proc.process(11, 10).thread(11).sleeps();
  EXPECT_FALSE(judged(&proc).is_stuck(10));
  proc.processes[11].threads[11].waits_on(0x5000);
  EXPECT_TRUE(judged(&proc).is_deadlock);
}

/// 10, which catches SIGCHLD and has a stuck child 11, waits for a signal in system call `number`.
FakeProc waits_for_signal(std::int64_t number = SYS_rt_sigsuspend) {
  FakeProc proc = parent_and_stuck_child();
  proc.processes[10].catches(SIGCHLD).thread(10).call(number, {0x1000, 8});
  return proc;
}

TEST(Wait, ForTheSignalOfAChildEndsWithAChild) {
  for (const std::int64_t number : {SYS_rt_sigsuspend, SYS_pause, SYS_ppoll}) {
    FakeProc proc = waits_for_signal(number);
    if (number == SYS_ppoll) proc.processes[10].threads[10].arguments = {0, 0, 0, 0, 8};
    proc.process(12, 10).thread(12).waits_on(0x5000);
    const Judged all = judged(&proc);
    EXPECT_EQ(all.waits.at(10).kind, WaitKind::kChild);
    EXPECT_THAT(all.waits.at(10).wakers, UnorderedElementsAre(Waker{11, 0}, Waker{12, 0}));
    EXPECT_TRUE(all.is_deadlock);
    EXPECT_THAT(all.assumed, IsEmpty());
    proc.processes[12].threads[12].sleeps();
    EXPECT_FALSE(judged(&proc).is_stuck(10));
  }
}

TEST(Wait, BySigwaitForTheEndOfAChildAlone) {
  constexpr std::uint64_t kChildsEnd = std::uint64_t{1} << (SIGCHLD - 1),
                          kTermination = std::uint64_t{1} << (SIGTERM - 1);
  FakeProc proc = waits_for_signal(SYS_rt_sigtimedwait);
  proc.processes[10].caught = 0;  // sigwait() needs no handler
  proc.processes[10].threads[10].arguments = {0x1000, 0, 0, 8};
  proc.processes[10].put(0x1000, kChildsEnd);
  EXPECT_EQ(judged(&proc).waits.at(10).kind, WaitKind::kChild);
  EXPECT_TRUE(judged(&proc).is_deadlock);
  proc.processes[11].threads[11].sleeps();
  EXPECT_FALSE(judged(&proc).is_stuck(10));
  proc.processes[11].threads[11].waits_on(0x5000);
  proc.process(12, 11).thread(12).sleeps();
  EXPECT_FALSE(judged(&proc).is_stuck(10)) << "any process may send the signal";
  proc.processes[12].threads[12].waits_on(0x5000);
  EXPECT_TRUE(judged(&proc).is_deadlock);
  proc.processes[10].put(0x1000, kChildsEnd | kTermination);
  EXPECT_FALSE(judged(&proc).is_stuck(10)) << "that may come from outside";
  proc.processes[10].put(0x1000, kChildsEnd);
  proc.processes[10].threads[10].arguments[2] = 0x2000;
  EXPECT_FALSE(judged(&proc).is_stuck(10)) << "it has a limit of time";
}

TEST(Wait, ForAnyOtherSignalIsLive) {
  FakeProc without_handler = waits_for_signal();
  without_handler.processes[10].caught = 0;
  FakeProc with_limit = waits_for_signal(SYS_rt_sigtimedwait);
  with_limit.processes[10].threads[10].arguments = {0x1000, 0, 0, 8};
  TreeBoundary boundary;
  boundary.assumptions.no_limit_from = kNanosPerSecond;
  for (FakeProc* proc : {&without_handler, &with_limit}) {
    for (const bool assumes : {false, true}) {
      const Judged all = judged(proc, assumes ? boundary : TreeBoundary());
      EXPECT_EQ(all.waits.at(10).kind, WaitKind::kSignal);
      EXPECT_EQ(all.waits.at(10).why_live, kOnlyASignal);
      EXPECT_THAT(all.assumed, IsEmpty());
    }
  }
}

// No thread has noticed the end of 12 yet. The signal may still be handled, and end the wait.
TEST(Wait, ForTheSignalOfAChildIsLiveWhileAnEndIsNotHeardOf) {
  FakeProc proc = waits_for_signal();
  proc.process(12, 10).thread(12).state = 'Z';
  Sample sample = take_sample(&proc, {10, 11});
  const auto why_live = [&] {
    TreeSnapshot snapshot(&proc, &sample, {});
    return decode_wait(sample.threads.at(0), &snapshot).why_live;
  };
  EXPECT_EQ(why_live(), "");
  sample.ended = {12};
  EXPECT_EQ(why_live(), kOnlyASignal);
  proc.processes[12].parent = 1;
  EXPECT_EQ(why_live(), "") << "the child of another";
}

TEST(Wait, ForTheSignalOfAChildIsLiveIfNotAllChildrenAreSeen) {
  FakeProc proc = waits_for_signal();
  proc.process(12).thread(12).waits_on(0x5000);
  proc.processes[12].hidden_descriptors = true;
  EXPECT_EQ(judged(&proc).waits.at(10).why_live, kOnlyASignal);
}

TEST(Wait, ForTheSignalOfAChildThatDoesNotExistIsEndlessIfThatIsAssumed) {
  FakeProc proc = waits_for_signal();
  proc.processes[11].parent = 1;
  EXPECT_EQ(judged(&proc).waits.at(10).why_live, kOnlyASignal);
  TreeBoundary boundary;
  boundary.assumptions.no_limit_from = kNanosPerSecond;
  const Judged all = judged(&proc, boundary);
  EXPECT_EQ(all.waits.at(10).kind, WaitKind::kSignal);
  EXPECT_THAT(all.waits.at(10).wakers, ElementsAre(Waker{10, 0}));
  EXPECT_TRUE(all.is_deadlock);
  EXPECT_THAT(all.assumed, ElementsAre("process 10 may be sent a signal"));
  proc.processes[10].thread(20).sleeps();  // it may start a child, or send the signal
  EXPECT_FALSE(judged(&proc, boundary).is_stuck(10));
}

constexpr const char* kTwoLocks =
    "1: FLOCK  ADVISORY  WRITE 11 00:2a:500 0 EOF\n"
    "1: -> FLOCK  ADVISORY  WRITE 10 00:2a:500 0 EOF\n";

FakeProc lock_cycle() {
  FakeProc proc;
  proc.process(10).open(3, "/tmp/a", O_RDWR, "ino:\t500\n").thread(10).call(SYS_flock, {3, 2});
  proc.process(11, 10).open(3, "/tmp/a", O_RDWR, "ino:\t500\n").thread(11).waits_for_child(77);
  proc.processes[11].threads[11].waits_on(0x5000);
  proc.locks = kTwoLocks;
  return proc;
}

TEST(Wait, ForAFileLockEndsByItsHolder) {
  FakeProc proc = lock_cycle();
  EXPECT_TRUE(judged(&proc).is_deadlock);
  EXPECT_EQ(judged(&proc).waits.at(10).kind, WaitKind::kFileLock);
  proc.processes[10].threads[10].call(SYS_fcntl, {3, F_SETLKW, 0x1000});
  EXPECT_TRUE(judged(&proc).is_deadlock);
  proc.processes[11].threads[11].sleeps();
  EXPECT_FALSE(judged(&proc).is_stuck(10));
}

TEST(Wait, ForAFileLockIsLiveIfItsHolderIsNotOfTheTree) {
  for (const char* locks :
       {"", "1: FLOCK ADVISORY WRITE 99 00:2a:500 0 EOF\n1: -> FLOCK ADVISORY WRITE 10 00:2a:500 0 EOF\n",
        "1: OFDLCK ADVISORY WRITE -1 00:2a:500 0 EOF\n1: -> FLOCK ADVISORY WRITE 10 00:2a:500 0 EOF\n"}) {
    FakeProc proc = lock_cycle();
    proc.locks = locks;
    EXPECT_FALSE(judged(&proc).is_stuck(10)) << locks;
  }
}

// The lock belongs to an open file that 12 has too.
TEST(Wait, ForAFileLockMayEndByAnyProcessWithTheFile) {
  FakeProc proc = lock_cycle();
  proc.process(12, 10).open(9, "/tmp/a").thread(12).sleeps();
  EXPECT_FALSE(judged(&proc).is_stuck(10));
  FakeProc inherited = lock_cycle();
  TreeBoundary boundary;
  Descriptor file = parse_descriptor(3, "/tmp/a");
  file.info_inode = 500;
  boundary.foreign.insert(identity_of(file));
  EXPECT_FALSE(judged(&inherited, boundary).is_stuck(10));
}

/// Thread 10 waits for a lock that an open file of `holder` has.
FakeProc lock_of_open_file(pid_t holder, const std::string& held = "WRITE -1 00:2a:500 100 149") {
  FakeProc proc;
  proc.process(10).open(3, "/tmp/a", O_RDWR, "ino:\t500\n").thread(10).call(SYS_fcntl, {3, F_OFD_SETLKW, 0x1000});
  proc.process(11).thread(11).waits_on(0x5000);
  proc.processes[holder].open(4, "/tmp/a", O_RDWR, "ino:\t500\nlock:\t1: OFDLCK ADVISORY  " + held + "\n");
  proc.locks =
      "1: OFDLCK ADVISORY  WRITE -1 00:2a:500 100 149\n"
      "1: -> OFDLCK ADVISORY  WRITE -1 00:2a:500 0 EOF\n";
  return proc;
}

TEST(Wait, ForALockOfAnOpenFileEndsByAProcessThatHasIt) {
  for (const pid_t holder : {10, 11}) {
    FakeProc proc = lock_of_open_file(holder);
    const Judged all = judged(&proc);
    EXPECT_TRUE(all.is_stuck(10));
    EXPECT_THAT(all.waits.at(10).wakers, testing::Contains(Waker{holder, 0}));
    proc.processes[11].threads[11].sleeps();
    EXPECT_EQ(judged(&proc).is_stuck(10), holder == 10);
  }
}

TEST(Wait, ForALockOfAnOpenFileIsLiveIfNoProcessIsKnownToHaveIt) {
  for (const char* held : {"WRITE -1 00:2a:500 0 EOF", "READ -1 00:2a:500 100 149", "WRITE -1 00:2a:501 100 149",
                           "WRITE -1 00:2b:500 100 149"}) {
    FakeProc proc = lock_of_open_file(10, held);
    EXPECT_FALSE(judged(&proc).is_stuck(10)) << held;
  }
  FakeProc shared = lock_of_open_file(10, "READ -1 00:2a:500 100 149");  // others may share it
  shared.locks.replace(shared.locks.find("WRITE"), 5, "READ ");
  EXPECT_FALSE(judged(&shared).is_stuck(10));
  FakeProc unknown = lock_of_open_file(10);
  unknown.processes[10].open(3, "/tmp/a", O_RDWR);
  EXPECT_FALSE(judged(&unknown).is_stuck(10));
}

// Two threads of 10 wait: one for a lock of 11, the other for one of a process outside.
TEST(Wait, ForAFileLockIsNotMistakenForThatOfAnotherThread) {
  FakeProc proc = lock_cycle();
  proc.processes[10].open(4, "/tmp/b", O_RDWR, "ino:\t501\n").thread(20).call(SYS_flock, {4, 2});
  proc.locks += "2: FLOCK ADVISORY WRITE 99 00:2a:501 0 EOF\n2: -> FLOCK ADVISORY WRITE 10 00:2a:501 0 EOF\n";
  const Judged all = judged(&proc);
  EXPECT_THAT(all.waits.at(10).why_live, IsEmpty());
  EXPECT_THAT(all.waits.at(20).why_live, HasSubstr("outside"));
  EXPECT_FALSE(all.is_stuck(10));
}

TEST(Wait, ThatIsNotUnderstoodIsLive) {
  const std::pair<const char*, std::int64_t> calls[] = {
      {"pause", SYS_pause},
      {"sigtimedwait", SYS_rt_sigtimedwait},
      {"sigsuspend", SYS_rt_sigsuspend},
      {"nanosleep", SYS_nanosleep},
      {"clock_nanosleep", SYS_clock_nanosleep},
      {"semop", SYS_semop},
      {"msgrcv", SYS_msgrcv},
      {"mq_timedreceive", SYS_mq_timedreceive},
      {"io_getevents", SYS_io_getevents},
      {"io_uring_enter", SYS_io_uring_enter},
      {"futex_waitv", 449},
      {"connect", SYS_connect},
      {"openat: of what is no FIFO", SYS_openat},
      {"ptrace", SYS_ptrace},
      {"restart_syscall: of an unknown call", SYS_restart_syscall},
      {"fcntl: not for a lock", SYS_fcntl},
      {"a page fault", -1},
      {"x32", SYS_futex | 0x40000000},
  };
  for (const auto& [name, number] : calls) {
    FakeProc proc = parent_and_stuck_child();
    proc.processes[11].threads[11].number = number;
    proc.processes[11].threads[11].arguments = {0, 0, 0, 0, 0, 0};
    EXPECT_THAT(judged(&proc).stuck, IsEmpty()) << name;
  }
}

TEST(Wait, InAnyOtherStateIsLive) {
  for (const char state : {'D', 'T', 't', 'R', 'I', 'P'}) {
    FakeProc proc = parent_and_stuck_child();
    proc.processes[11].threads[11].state = state;
    EXPECT_THAT(judged(&proc).stuck, IsEmpty()) << state;
  }
}

// Frozen, it does not wait for what its call says. The names are those of kernel functions.
TEST(Wait, ThatIsHeldUpIsLive) {
  for (const char* function : {"do_freezer_trap", "__refrigerator", "get_signal", "handle_userfault",
                               "seccomp_do_user_notification", "fuse_dev_do_write"}) {
    FakeProc proc = parent_and_stuck_child();
    proc.processes[11].threads[11].wchan = function;
    EXPECT_THAT(judged(&proc).waits.at(11).why_live, HasSubstr(function));
    EXPECT_THAT(judged(&proc).stuck, IsEmpty()) << function;
  }
  FakeProc proc = parent_and_stuck_child();
  proc.processes[11].threads[11].wchan = "futex_wait_queue";
  EXPECT_TRUE(judged(&proc).is_deadlock);
}

// The numbers of its calls mean other calls.
TEST(Wait, OfAProgramOf32BitsIsLive) {
  FakeProc proc = parent_and_stuck_child();
  proc.processes[11].threads[11].stack_pointer = 0xffffd000;
  EXPECT_THAT(judged(&proc).stuck, IsEmpty());
  FakeProc mixed = parent_and_stuck_child();  // int $0x80 of x86-64
  mixed.processes[11].put(kProgramCounter - 2, std::uint16_t{0x80cd});
  EXPECT_THAT(judged(&mixed).stuck, IsEmpty());
  FakeProc unreadable = parent_and_stuck_child();
  unreadable.processes[11].bytes.clear();
  EXPECT_THAT(judged(&unreadable).stuck, IsEmpty());
}

}  // namespace
}  // namespace mprun
