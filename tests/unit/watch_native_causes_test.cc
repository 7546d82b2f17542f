// Locks and notices in native code, rule by rule: a tree in which the rule fires, and similar ones in which it must
// not.
#include <gtest/gtest.h>

#include "cause_evidence.h"

namespace mprun {
namespace {

constexpr std::uint64_t kNativeLock = 0x5000;

// In pthread_join().
void waits_for_end(TreeProcess* process, pid_t tid, pid_t of) {
  constexpr std::uint64_t kWord = 0x600000000000;
  process->maps += "600000000000-600000001000 rw-p 00000000 00:00 0\n";
  process->put(kWord, static_cast<std::uint32_t>(of));
  process->thread(tid).call(SYS_futex, {kWord, FUTEX_WAIT, static_cast<std::uint64_t>(of), 0});
}

class NativeCauses : public testing::Test {
 protected:
  // The thread waits for a futex; `frames`: innermost first.
  void waits_in(pid_t tid, const std::vector<std::string>& frames, std::uint64_t value = 2) {
    process_.thread(tid).call(SYS_futex, {kNativeLock, FUTEX_WAIT_PRIVATE, value, 0});
    evidence_.native[tid] = frames;
  }
  CauseEvidence evidence_;
  TreeProcess& process_ = evidence_.proc.process(kParent);
};

TEST_F(NativeCauses, AReadWriteLock) {
  waits_in(kParent, {"libc.so.6+0x85e96", "pthread_rwlock_rdlock (libc.so.6)", "main (a)"});
  waits_in(kChild, {"libc.so.6+0x85e96", "pthread_rwlock_wrlock (libc.so.6)", "work (a)"});
  const HangCause cause = evidence_.of_hang();
  EXPECT_EQ(cause.id, "lock-cycle");
  EXPECT_NE(cause.explanation.find("process 5000010 waits for a read-write lock, to read"), std::string::npos);
  EXPECT_NE(cause.explanation.find("thread 5000020 of process 5000010 waits for a read-write lock, to write"),
            std::string::npos)
      << cause.explanation;
  waits_in(kThird, {"pthread_barrier_wait (libc.so.6)", "work (a)"});
  EXPECT_EQ(evidence_.of_hang().id, "no-waker") << "that one may have the lock, and waits for something else";
}

TEST_F(NativeCauses, ALockFurtherOutIsNotWaitedFor) {
  waits_in(kParent, {"syscall (libc.so.6)", "wait (a)", "callback (a)", "pthread_rwlock_rdlock (libc.so.6)"});
  EXPECT_EQ(evidence_.of_hang().id, "no-waker");
}

TEST_F(NativeCauses, AMutexOfRustThatAThreadLocksTwice) {
  waits_in(kParent,
           {"syscall (libc.so.6)", "_RNvMNtNtNtNtCs_3std3sys4sync5mutex5futexNtB2_5Mutex14lock_contended (a)"});
  const HangCause cause = evidence_.of_hang();
  EXPECT_EQ(cause.id, "lock-cycle");
  EXPECT_NE(cause.explanation.find("has no other thread"), std::string::npos) << cause.explanation;
  EXPECT_NE(cause.fix.find("drop the guard"), std::string::npos) << cause.fix;
  process_.forked = true;
  EXPECT_EQ(evidence_.of_hang().id, "no-waker") << "a thread that was lost at the fork may have it";
}

TEST_F(NativeCauses, ACondvarOfRust) {
  for (const char* const wait : {"std::sys::unix::locks::futex::Condvar::wait::h5f917b05b5a5d56c (a)",
                                 "std::sys::sync::condvar::futex::Condvar::wait (a)",
                                 "_RNvMNtNtNtNtCs_3std3sys4sync7condvar5futexNtB2_7Condvar4wait (a)"}) {
    waits_in(kParent, {"syscall (libc.so.6)", "std::sys::unix::futex::futex_wait::hef1e4b99 (a)", wait});
    const HangCause cause = evidence_.of_hang();
    EXPECT_EQ(cause.id, "never-notified") << wait;
    EXPECT_NE(cause.explanation.find("a Condvar of Rust"), std::string::npos) << cause.explanation;
  }
}

TEST_F(NativeCauses, LocksAndNoticesOfQt) {
  waits_in(kParent, {"QBasicMutex::lockInternal() (libQt5Core.so.5)", "main (a)"});
  const HangCause lock = evidence_.of_hang();
  EXPECT_EQ(lock.id, "lock-cycle");
  EXPECT_NE(lock.explanation.find("a QMutex of Qt"), std::string::npos) << lock.explanation;
  waits_in(kParent, {"QSemaphore::acquire(int) (libQt6Core.so.6)", "main (a)"});
  EXPECT_EQ(evidence_.of_hang().id, "never-notified");
}

TEST_F(NativeCauses, ALockWhoseHolderWaitsForAMutexOfAThreadThatHasEnded) {
  constexpr pid_t kHolder = 4'194'001, kEnded = 4'194'002;  // a mutex names no greater number
  waits_in(kParent, {"libc.so.6+0x85e96", "pthread_rwlock_rdlock (libc.so.6)", "main (a)"});
  process_.waits_for_mutex(kHolder, 0x6000, kEnded);
  EXPECT_EQ(evidence_.of_hang().id, "mutex-owner-ended");
}

TEST_F(NativeCauses, AStaticVariable) {
  waits_in(kParent, {"syscall (libc.so.6)", "__cxa_guard_acquire (libstdc++.so.6)", "s() (a)"});
  const HangCause cause = evidence_.of_hang();
  EXPECT_EQ(cause.id, "lock-cycle");
  EXPECT_NE(cause.explanation.find("initialiser of a static variable"), std::string::npos) << cause.explanation;
}

TEST_F(NativeCauses, AFunctionThatIsCalledOnce) {
  constexpr std::uint64_t kInProgress = 5;  // of the second generation of forks
  waits_in(kParent, {"libc.so.6+0x8dff1", "get(int) (a)"}, kInProgress);
  EXPECT_EQ(evidence_.of_hang().id, "lock-cycle");
  waits_in(kParent, {"libc.so.6+0x97879", "pthread_once (libc.so.6)", "get(int) (a)"}, kInProgress);  // glibc 2.41
  EXPECT_EQ(evidence_.of_hang().id, "lock-cycle");
  waits_in(kParent, {"libc.so.6+0x8dff1", "get(int) (a)"}, 2);
  EXPECT_EQ(evidence_.of_hang().id, "no-waker") << "another lock of libc";
  waits_in(kParent, {"libc.so.6+0x8dff1", "mq_notify (libc.so.6)"}, kInProgress);
  EXPECT_EQ(evidence_.of_hang().id, "no-waker") << "a function of libc that has a name";
}

TEST_F(NativeCauses, ACondition) {
  waits_for_end(&process_, kParent, kChild);
  waits_in(kChild, {"libc.so.6+0x85f16", "pthread_cond_wait (libc.so.6)", "work (a)"});
  const HangCause cause = evidence_.of_hang();
  EXPECT_EQ(cause.id, "never-notified");
  EXPECT_NE(cause.explanation.find("thread 5000020 of process 5000010 waits to be notified (a condition variable)"),
            std::string::npos)
      << cause.explanation;
  waits_in(kChild, {"libc.so.6+0x9a72e", "libc.so.6+0x8f388", "libc.so.6+0x8f9ac", "pthread_cond_wait (libc.so.6)"});
  EXPECT_EQ(evidence_.of_hang().id, "never-notified") << "glibc 2.41";
  waits_in(kParent, {"syscall (libc.so.6)", "main (a)"});
  EXPECT_EQ(evidence_.of_hang().id, "no-waker") << "main does not wait for that thread, which may be idle";
}

TEST_F(NativeCauses, ABarrier) {
  waits_for_end(&process_, kParent, kChild);
  waits_in(kChild, {"pthread_barrier_wait (libc.so.6)", "work (a)"});
  EXPECT_EQ(evidence_.of_hang().id, "barrier-short");
}

TEST_F(NativeCauses, ASemaphore) {
  constexpr std::uint64_t kOneWaiter = std::uint64_t{1} << 32;
  waits_for_end(&process_, kParent, kChild);
  process_.put(kNativeLock, kOneWaiter)
      .thread(kChild)
      .call(SYS_futex, {kNativeLock, FUTEX_WAIT_BITSET | FUTEX_PRIVATE_FLAG, 0, 0});
  const HangCause cause = evidence_.of_hang();
  EXPECT_EQ(cause.id, "never-notified");
  EXPECT_NE(cause.explanation.find("(a semaphore)"), std::string::npos) << cause.explanation;
}

TEST_F(NativeCauses, ALockOfOpenmp) {
  constexpr std::uint64_t kContended = 0xffffffff;
  process_.maps += "7f0000000000-7f0000001000 r-xp 00000000 08:01 5 /usr/lib/libgomp.so.1\n";
  waits_in(kParent, {"libgomp.so.1+0x1f823", "main (a)"}, kContended);
  EXPECT_EQ(evidence_.of_hang().id, "lock-cycle");
  waits_in(kParent, {"libgomp.so.1+0x1f823", "main (a)"});
  EXPECT_EQ(evidence_.of_hang().id, "no-waker") << "a barrier";
}

TEST_F(NativeCauses, ABarrierOfOpenmp) {
  constexpr std::uint64_t kContended = 0xffffffff;
  const std::vector<std::string> frames{"libgomp.so.1+0x1f823", "main (a)"};
  process_.maps += "7f0000000000-7f0000001000 r-xp 00000000 08:01 5 /usr/lib/libgomp.so.1\n";
  waits_in(kParent, frames);
  waits_in(kChild, frames);
  const HangCause cause = evidence_.of_hang();
  EXPECT_EQ(cause.id, "barrier-short");
  EXPECT_NE(cause.explanation.find("all 2 threads"), std::string::npos) << cause.explanation;
  waits_in(kChild, frames, kContended);
  EXPECT_EQ(evidence_.of_hang().id, "lock-cycle") << "one of them needs a lock to get there";
}

TEST_F(NativeCauses, ABarrierOfLlvmsOpenmp) {
  const std::vector<std::string> at_barrier{"pthread_cond_wait (libc.so.6)", "libomp.so.5+0x9a210", "work (a)"};
  waits_in(kParent, at_barrier);
  waits_in(kChild, at_barrier);
  EXPECT_EQ(evidence_.of_hang().id, "barrier-short");
  waits_in(kChild, {"pthread_cond_wait (libc.so.6)", "work (a)", "__kmpc_fork_call (libomp.so.5)"});
  EXPECT_EQ(evidence_.of_hang().id, "never-notified") << "the region's own code waits";
}

TEST_F(NativeCauses, AnAtomic) {
  waits_for_end(&process_, kParent, kChild);
  waits_in(kChild, {"syscall (libc.so.6)", "void std::__detail::__platform_wait<int>(int const*, int) (a)",
                    "std::__detail::__waiter_pool::_M_do_wait(int const*, int) (a)", "work (a)"});
  EXPECT_EQ(evidence_.of_hang().id, "never-notified");
}

TEST_F(NativeCauses, AFunctionThatRunsAtExit) {
  waits_for_end(&process_, kParent, kChild);
  waits_in(kChild, {"pthread_cond_wait (libc.so.6)", "work (a)"});
  evidence_.native[kParent] = {"Pool::~Pool() (a)", "exit (libc.so.6)", "_start (a)"};
  EXPECT_EQ(evidence_.of_hang().id, "exit-handler-waits");
}

TEST_F(NativeCauses, AnEventfd) {
  process_.eventfd(3, 9).thread(kParent).reads(3);
  const HangCause cause = evidence_.of_hang();
  EXPECT_EQ(cause.id, "never-notified");
  EXPECT_NE(cause.explanation.find("waits to be notified (eventfd 9)"), std::string::npos) << cause.explanation;
}

TEST(MutexCycle, ClosedByAWaitForTheEndOfAThread) {
  constexpr pid_t kJoins = 4'194'001, kLocks = 4'194'002;  // a mutex names no greater number
  CauseEvidence evidence;
  TreeProcess& process = evidence.proc.process(kJoins);
  waits_for_end(&process, kJoins, kLocks);
  process.waits_for_mutex(kLocks, kNativeLock, kJoins);
  HangCause cause = evidence.of_hang();
  EXPECT_EQ(cause.id, "lock-cycle");
  EXPECT_NE(cause.explanation.find("waits for the end of a thread while"), std::string::npos) << cause.explanation;
  EXPECT_NE(cause.fix.find("while you hold a lock"), std::string::npos) << cause.fix;
  evidence.native[kLocks] = {"libc.so.6+0x8612b", "pthread_mutex_lock (libc.so.6)", "ld-linux-x86-64.so.2+0xb59e"};
  cause = evidence.of_hang();
  EXPECT_NE(cause.explanation.find("the lock of the dynamic loader"), std::string::npos) << cause.explanation;
  EXPECT_NE(cause.fix.find("constructor of a library"), std::string::npos) << cause.fix;
}

}  // namespace
}  // namespace mprun
