// Why a tree hangs, rule by rule: a tree in which the rule fires, and similar ones in which it must not.
#include "watch/causes/causes.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/sem.h>

#include <csignal>

#include "cause_evidence.h"

namespace mprun {
namespace {

// Threads: a mutex names none beyond the kernel's PID_MAX_LIMIT.
constexpr pid_t kOne = 4'194'001, kTwo = 4'194'002, kThree = 4'194'003;
constexpr std::uint64_t kLock = 0x5000, kOtherLock = 0x6000;
const std::string kLib = "/usr/lib/python3.11/";

TEST(Causes, NameWhatCouldActWhereNoRuleIsSure) {
  CauseEvidence evidence;
  evidence.proc.process(kParent).thread(kParent).waits_on(kLock);
  const HangCause cause = evidence.of_hang();
  EXPECT_EQ(cause.id, "no-waker");
  EXPECT_FALSE(cause.explanation.empty());
}

TEST(Causes, HaveACureWhereAProofMayHaveThem) {
  for (const CauseRule& rule : rules_of(RuleSet::kStuck)) {
    EXPECT_TRUE(*rule.cure != '\0' || rule.find == stopped_for_ever) << rule.id.name << ": that one names a process";
  }
  EXPECT_STREQ(rules_of(RuleSet::kStuck).back().id.name, "no-waker") << "a proof is never without a cause";
  EXPECT_STREQ(rules_of(RuleSet::kOrphanedLock).back().id.name, "no-waker");
}

TEST(Causes, OpenMPAfterFork) {
  CauseEvidence evidence;
  evidence.proc.process(kParent).thread(kParent).waits_for_child(kChild);
  TreeProcess& child = evidence.proc.process(kChild, kParent);
  child.maps += "7f0000000000-7f0000001000 r-xp 00000000 08:01 5 /usr/lib/libgomp.so.1\n";
  child.forked = true;
  child.thread(kChild).waits_on(kLock);
  EXPECT_EQ(evidence.of_hang().id, "openmp-after-fork");
  child.forked = false;
  EXPECT_EQ(evidence.of_hang().id, "no-waker");
  child.forked = true;
  child.thread(kThird).waits_on(kLock);
  EXPECT_EQ(evidence.of_hang().id, "no-waker") << "it has a team";
  child.threads.erase(kThird);
  child.thread(kChild).program_counter += 0x1000;
  child.put_code("", child.threads[kChild].program_counter);
  EXPECT_EQ(evidence.of_hang().id, "no-waker") << "other code waits";
  for (const char* caller : {"gomp_team_barrier_wait_end (libgomp.so.1)", "libgomp.so.1+0x1e2f4"}) {
    evidence.native[kChild] = {"syscall (libc.so.6)", caller};
    EXPECT_EQ(evidence.of_hang().id, "openmp-after-fork");
  }
  evidence.native[kChild] = {"syscall (libc.so.6)", "wait (libother.so)", "GOMP_parallel (libgomp.so.1)"};
  EXPECT_EQ(evidence.of_hang().id, "no-waker");
}

TEST(Causes, LockCycle) {
  CauseEvidence evidence;
  TreeProcess& process = evidence.proc.process(kParent);
  process.waits_for_mutex(kOne, kLock, kTwo);
  process.waits_for_mutex(kTwo, kOtherLock, kThree);
  process.waits_for_mutex(kThree, 0x7000, kOne);
  HangCause cause = evidence.of_hang();
  EXPECT_EQ(cause.id, "lock-cycle");
  EXPECT_NE(cause.explanation.find("4194001 for 4194002 for 4194003 for 4194001"), std::string::npos)
      << cause.explanation;
  process.thread(kThree).waits_on(0x8000);
  EXPECT_EQ(evidence.of_hang().id, "no-waker") << "a chain";
  process.waits_for_mutex(kThree, 0x7000, kTwo);
  cause = evidence.of_hang();
  EXPECT_EQ(cause.explanation.find(std::to_string(kOne)), std::string::npos) << "it only waits for the cycle";
  process.threads.erase(kTwo);
  process.threads.erase(kThree);
  process.waits_for_mutex(kOne, kLock, kOne);
  cause = evidence.of_hang();
  EXPECT_EQ(cause.id, "lock-cycle");
  EXPECT_NE(cause.explanation.find("locked itself"), std::string::npos) << cause.explanation;
}

class FileLockCycle : public testing::Test {
 protected:
  // `pid` waits for the file lock that `holder` has.
  void add(pid_t pid, pid_t holder) {
    const std::string inode = std::to_string(500 + pid % 100);
    evidence_.proc.process(pid)
        .open(3, "/tmp/" + inode, O_RDWR, "ino:\t" + inode + "\n")
        .thread(pid)
        .call(SYS_fcntl, {3, F_SETLKW, 0x1000});
    const std::string number = std::to_string(pid % 100) + ": ";
    const auto line = [&](pid_t of) {
      return "POSIX  ADVISORY  WRITE " + std::to_string(of) + " 00:2a:" + inode + " 0 EOF\n";
    };
    evidence_.proc.locks += number + line(holder) + number + "-> " + line(pid);
  }
  CauseEvidence evidence_;
};

TEST_F(FileLockCycle, OfTwo) {
  add(kParent, kChild);
  add(kChild, kParent);
  const HangCause cause = evidence_.of_hang();
  EXPECT_EQ(cause.id, "lock-cycle");
  EXPECT_NE(cause.explanation.find("5000010 for 5000020 for 5000010"), std::string::npos) << cause.explanation;
}

TEST_F(FileLockCycle, OfThree) {
  constexpr pid_t kWaitsForThem = kParent - 1;
  add(kWaitsForThem, kParent);
  add(kParent, kChild);
  add(kChild, kThird);
  add(kThird, kParent);
  const HangCause cause = evidence_.of_hang();
  EXPECT_NE(cause.explanation.find(": 5000010 for 5000020 for 5000030 for 5000010"), std::string::npos)
      << cause.explanation;
}

TEST_F(FileLockCycle, IsNoneInAChain) {
  add(kParent, kChild);
  add(kChild, kThird);
  evidence_.proc.process(kThird).thread(kThird).waits_on(kLock);
  EXPECT_EQ(evidence_.of_hang().id, "no-waker");
}

TEST(Causes, OwnFileLock) {
  CauseEvidence evidence;
  const std::string lock = "FLOCK  ADVISORY  WRITE " + std::to_string(kParent) + " 00:2a:500 0 EOF\n";
  const auto open = [&](int inode, bool locked) {
    const std::string info = "ino:\t" + std::to_string(inode) + '\n';
    evidence.proc.process(kParent).open(4, "/tmp/a", O_RDWR, locked ? info + "lock:\t1: " + lock : info);
  };
  evidence.proc.process(kParent).open(3, "/tmp/a", O_RDWR, "ino:\t500\n").thread(kParent).call(SYS_flock, {3, 2});
  evidence.proc.locks = "1: " + lock + "1: -> " + lock;
  open(500, true);
  const HangCause cause = evidence.of_hang();
  EXPECT_EQ(cause.id, "lock-cycle");
  EXPECT_NE(cause.explanation.find("locked itself"), std::string::npos) << cause.explanation;
  open(500, false);
  EXPECT_EQ(evidence.of_hang().id, "no-waker") << "another process may have got the open file from it";
  open(501, true);
  EXPECT_EQ(evidence.of_hang().id, "no-waker") << "another file";
}

// The parent has locked the file, and waits for a child that locks it, too.
TEST(Causes, AFileLockThatWasInherited) {
  CauseEvidence evidence;
  const std::string lock = "FLOCK  ADVISORY  WRITE " + std::to_string(kParent) + " 00:2a:500 0 EOF\n";
  const std::string locked = "ino:\t500\nlock:\t1: " + lock;
  evidence.proc.process(kParent).open(4, "/tmp/a", O_RDWR, locked).thread(kParent).waits_for_child(kChild);
  evidence.proc.process(kChild, kParent)
      .open(4, "/tmp/a", O_RDWR, locked)
      .open(3, "/tmp/a", O_RDWR, "ino:\t500\n")
      .thread(kChild)
      .call(SYS_flock, {3, 2});
  evidence.proc.locks = "1: " + lock + "1: -> FLOCK  ADVISORY  WRITE " + std::to_string(kChild) + " 00:2a:500 0 EOF\n";
  const HangCause cause = evidence.of_hang();
  EXPECT_EQ(cause.id, "lock-cycle");
  EXPECT_NE(cause.explanation.find("process " + std::to_string(kParent) + " has"), std::string::npos)
      << cause.explanation;
  EXPECT_NE(cause.fix.find("before you wait"), std::string::npos) << cause.fix;
}

// In sem_wait(), like threading.Lock.acquire().
void waits_for_python_lock(CauseEvidence* evidence, TreeProcess* process, pid_t tid, std::uint64_t address,
                           const std::string& file = "/home/me/score.py", const std::string& function = "score") {
  process->put(address, std::uint64_t{1} << 32U);
  process->thread(tid).call(SYS_futex, {address, FUTEX_WAIT_BITSET | FUTEX_PRIVATE_FLAG | FUTEX_CLOCK_REALTIME, 0, 0});
  evidence->python[tid] = {{file, 6, function}};
}

TEST(Causes, ALockOfPythonThatIsTakenTwice) {
  CauseEvidence evidence;
  TreeProcess& process = evidence.proc.process(kParent);
  waits_for_python_lock(&evidence, &process, kParent, kLock);
  HangCause cause = evidence.of_hang();
  EXPECT_EQ(cause.id, "lock-cycle");
  EXPECT_NE(cause.explanation.find("no other thread"), std::string::npos) << cause.explanation;
  process.put(kLock, std::uint64_t{0});
  EXPECT_EQ(evidence.of_hang().id, "no-waker") << "no semaphore: a condition, say";
  waits_for_python_lock(&evidence, &process, kParent, kLock, kLib + "threading.py", "Condition.wait");
  EXPECT_EQ(evidence.of_hang().id, "never-notified") << "it waits for a message";
  waits_for_python_lock(&evidence, &process, kParent, kLock, kLib + "multiprocessing/pool.py", "Pool._handle_tasks");
  EXPECT_EQ(evidence.of_hang().id, "no-waker") << "it may be a queue of C";
  waits_for_python_lock(&evidence, &process, kParent, kLock);
  process.forked = true;
  EXPECT_EQ(evidence.of_hang().id, "no-waker") << "it is not known which threads were lost at the fork";
  process.forked = false;
  evidence.python.clear();
  EXPECT_EQ(evidence.of_hang().id, "never-notified") << "a semaphore of a program without Python";
}

TEST(Causes, ALockOfALibraryWhoseFunctionWasCalledWithinItself) {
  CauseEvidence evidence;
  TreeProcess& process = evidence.proc.process(kParent);
  waits_for_python_lock(&evidence, &process, kParent, kLock, kLib + "threading.py", "Condition.__enter__");
  auto& frames = evidence.python[kParent];
  const PythonFrame put{kLib + "multiprocessing/queues.py", 92, "Queue.put"};
  frames.push_back(put);
  EXPECT_EQ(evidence.of_hang().id, "no-waker");
  frames.push_back({kLib + "logging/__init__.py", 1644, "Logger.handle"});
  frames.push_back(put);
  const HangCause cause = evidence.of_hang();
  EXPECT_EQ(cause.id, "lock-cycle");
  EXPECT_NE(cause.explanation.find("Queue.put, which was called while it had not returned"), std::string::npos)
      << cause.explanation;
  EXPECT_NE(cause.fix.find("call Queue.put while it runs"), std::string::npos) << cause.fix;

  waits_for_python_lock(&evidence, &process, kChild, kOtherLock, kLib + "threading.py", "Condition.wait");
  const HangCause beside = evidence.of_hang();
  EXPECT_EQ(beside.id, "lock-cycle") << "the other thread waits for an item of the queue";
  EXPECT_NE(beside.explanation.find("this thread has the lock itself"), std::string::npos) << beside.explanation;
  EXPECT_EQ(beside.fix, cause.fix);
  waits_for_python_lock(&evidence, &process, kChild, kOtherLock);
  EXPECT_NE(evidence.of_hang().explanation.find("wait for locks"), std::string::npos) << "it may be that of the other";
  process.threads.erase(kChild);
  frames.front().function = "Condition.wait";
  EXPECT_EQ(evidence.of_hang().id, "never-notified") << "a notice";
}

TEST(Causes, ALockThatAnotherGreenletHas) {
  CauseEvidence evidence;
  TreeProcess& process = evidence.proc.process(kParent);
  waits_for_python_lock(&evidence, &process, kParent, kLock);
  evidence.native[kParent] = {"PyThread_acquire_lock_timed (python3.11)", "ev_run (libev.so.4)"};
  const HangCause cause = evidence.of_hang();
  EXPECT_EQ(cause.id, "lock-cycle");
  EXPECT_NE(cause.explanation.find("no other greenlet runs"), std::string::npos) << cause.explanation;
  EXPECT_NE(cause.fix.find("patch_all"), std::string::npos) << cause.fix;
}

TEST(Causes, ACycleOfPythonsLocks) {
  CauseEvidence evidence;
  TreeProcess& process = evidence.proc.process(kParent);
  waits_for_python_lock(&evidence, &process, kParent, 0x4000, kLib + "threading.py", "Thread._wait_for_tstate_lock");
  waits_for_python_lock(&evidence, &process, kChild, kLock);
  waits_for_python_lock(&evidence, &process, kThird, kOtherLock);
  HangCause cause = evidence.of_hang();
  EXPECT_EQ(cause.id, "lock-cycle");
  EXPECT_NE(cause.explanation.find("threads 5000020 and 5000030 of process 5000010 wait for locks"), std::string::npos)
      << cause.explanation;
  process.thread(kThird).sleeps();
  EXPECT_EQ(evidence.of_hang().id, "no-waker") << "one may still free the locks: nothing is stuck";
  process.threads.erase(kThird);
  cause = evidence.of_hang();
  EXPECT_NE(cause.explanation.find("unless one that has ended left it locked"), std::string::npos) << cause.explanation;
  EXPECT_NE(cause.fix.find("after an error"), std::string::npos) << cause.fix;
  for (const char* function : {"Handler.acquire", "Handler.handle"}) {  // the latter since 3.13
    waits_for_python_lock(&evidence, &process, kChild, kLock, kLib + "logging/__init__.py", function);
    EXPECT_EQ(evidence.of_hang().id, "lock-cycle") << "a lock of logging";
  }
}

TEST(Causes, MutexHeldAtFork) {
  CauseEvidence evidence;
  evidence.proc.process(kParent).thread(kParent).waits_for_child(kChild);
  TreeProcess& child = evidence.proc.process(kChild, kParent);
  child.forked = true;
  child.waits_for_mutex(kChild, kLock, kOne);
  const HangCause cause = evidence.of_hang();
  EXPECT_EQ(cause.id, "lock-held-at-fork");
  EXPECT_NE(cause.explanation.find("thread " + std::to_string(kOne)), std::string::npos) << cause.explanation;
  child.thread(kOne).waits_on(kOtherLock);
  EXPECT_EQ(evidence.of_hang().id, "no-waker") << "its owner is here";
  child.threads.erase(kOne);
  child.forked = false;
  EXPECT_EQ(evidence.of_hang().id, "mutex-owner-ended");
}

// Threads get rising numbers.
TEST(Causes, MutexOfAThreadThatTheForkedProcessHasStartedItself) {
  constexpr pid_t kEarlyChild = kOne - 1;
  CauseEvidence evidence;
  evidence.proc.process(kParent).thread(kParent).waits_for_child(kEarlyChild);
  TreeProcess& child = evidence.proc.process(kEarlyChild, kParent);
  child.forked = true;
  child.waits_for_mutex(kEarlyChild, kLock, kOne);
  EXPECT_EQ(evidence.of_hang().id, "mutex-owner-ended");
  evidence.proc.processes[kParent].thread(kOne).waits_on(kOtherLock);
  EXPECT_EQ(evidence.of_hang().id, "lock-held-at-fork") << "it is a thread of the parent";
}

TEST(Causes, QueueNotDrained) {
  CauseEvidence evidence;
  TreeProcess& parent = evidence.proc.process(kParent).pipe(3, 70, O_RDONLY);
  parent.thread(kParent).waits_for_child(kChild);
  evidence.proc.process(kChild, kParent).pipe(4, 70, O_WRONLY).thread(kChild).writes(4);
  HangCause cause = evidence.of_hang();
  EXPECT_EQ(cause.id, "queue-not-drained");
  EXPECT_NE(cause.explanation.find("process " + std::to_string(kChild)), std::string::npos) << cause.explanation;
  EXPECT_EQ(cause.fix.find("queue"), std::string::npos) << "a plain pipe: " << cause.fix;
  EXPECT_NE(cause.fix.find("read all of the output"), std::string::npos) << cause.fix;
  evidence.python[kChild] = {{kLib + "subprocess.py", 1200, "Popen.communicate"}};
  EXPECT_EQ(evidence.of_hang().fix, cause.fix);
  evidence.python[kChild] = {{kLib + "multiprocessing/connection.py", 368, "Connection._send"},
                             {kLib + "multiprocessing/queues.py", 250, "Queue._feed"}};
  cause = evidence.of_hang();
  EXPECT_EQ(cause.id, "queue-not-drained");
  EXPECT_NE(cause.fix.find("queue.get()"), std::string::npos) << cause.fix;
  evidence.forked(kOne, kParent, 1);
  evidence.ended(kOne, kParent, 1 << 8);
  cause = evidence.of_hang();
  EXPECT_EQ(cause.id, "queue-not-drained");
  EXPECT_NE(cause.explanation.find(std::to_string(kOne) + " ended with exit code 1"), std::string::npos)
      << "it may have been meant to read: " << cause.explanation;
  parent.thread(kParent).waits_on(kLock);
  EXPECT_EQ(evidence.of_hang().id, "no-waker") << "no thread waits for its end";
  parent.thread(kParent).waits_for_child(kChild);
  parent.descriptors.clear();
  evidence.proc.process(kThird, kParent).pipe(3, 70, O_RDONLY).thread(kThird).waits_on(kLock);
  EXPECT_EQ(evidence.of_hang().id, "no-waker") << "another could read it";
}

TEST(Causes, PipeNeverClosed) {
  CauseEvidence evidence;
  TreeProcess& process = evidence.proc.process(kParent).pipe(3, 70, O_RDONLY).pipe(4, 70, O_WRONLY);
  process.thread(kParent).reads(3);
  EXPECT_EQ(evidence.of_hang().id, "pipe-never-closed");
  evidence.forked(kOne, kParent, 1);
  evidence.ended(kOne, kParent, 1 << 8);
  const HangCause cause = evidence.of_hang();
  EXPECT_EQ(cause.id, "pipe-never-closed");
  EXPECT_NE(cause.explanation.find(std::to_string(kOne) + " ended with exit code 1"), std::string::npos)
      << cause.explanation;
  process.thread(kThird).waits_on(kOtherLock);
  EXPECT_EQ(evidence.of_hang().id, "no-waker") << "the other thread was to write";
  evidence.python[kParent] = {{"/home/anna/train.py", 7, "read"}};
  EXPECT_EQ(evidence.of_hang().id, "pipe-never-closed") << "it is of a library";
  evidence.python[kThird] = {{"/home/anna/train.py", 9, "write"}};
  EXPECT_NE(evidence.of_hang().id, "pipe-never-closed");
  process.threads.erase(kThird);
  evidence.python.clear();
  evidence.proc.process(kChild, kParent).pipe(4, 70, O_WRONLY).thread(kChild).waits_on(kLock);
  EXPECT_EQ(evidence.of_hang().id, "no-waker") << "the child, too, could write";
}

TEST(Causes, APairOfSocketsWhoseOtherEndOnlyTheReaderHas) {
  CauseEvidence evidence;
  evidence.proc.sockets = {{70, 71, false, "", false}, {71, 70, false, "", false}};
  evidence.proc.process(kParent).socket(3, 70).socket(4, 71).thread(kParent).reads(3);
  EXPECT_EQ(evidence.of_hang().id, "pipe-never-closed");
  evidence.proc.process(kChild, kParent).socket(4, 71).thread(kChild).waits_on(kLock);
  EXPECT_EQ(evidence.of_hang().id, "no-waker") << "the child, too, could write";
}

TEST(Causes, AQueueIntoWhichNoProcessPuts) {
  CauseEvidence evidence;
  evidence.proc.process(kParent).pipe(3, 70, O_RDONLY).pipe(4, 70, O_WRONLY).thread(kParent).reads(3);
  evidence.python[kParent] = {{kLib + "multiprocessing/connection.py", 378, "Connection._recv"},
                              {kLib + "multiprocessing/queues.py", 103, "Queue.get"}};
  const HangCause cause = evidence.of_hang();
  EXPECT_EQ(cause.id, "pipe-never-closed");
  EXPECT_NE(cause.fix.find("what cannot be pickled is not put"), std::string::npos) << cause.fix;
  constexpr std::uint64_t kPolled = 0x9000, kNoLimit = ~std::uint64_t{0};
  TreeProcess& process = evidence.proc.process(kParent).put(kPolled, pollfd{3, POLLIN, 0});
  process.thread(kParent).call(SYS_poll, {kPolled, 1, kNoLimit});
  EXPECT_EQ(evidence.of_hang().id, "pipe-never-closed") << "get(timeout=...)";
}

TEST(Causes, AQueueThatIsFull) {
  CauseEvidence evidence;
  for (const pid_t pid : {kParent, kChild}) {
    evidence.proc.process(pid, pid == kParent ? 1 : kParent).map("rw-s", 60, "/dev/zero (deleted)").thread(pid);
  }
  evidence.proc.processes[kParent].thread(kParent).waits_for_child(kChild);
  evidence.proc.processes[kChild].thread(kChild).waits_on(FakeProc::kMapped, false);
  evidence.python[kChild] = {{kLib + "multiprocessing/queues.py", 89, "Queue.put"}, {"/home/anna/train.py", 7, "run"}};
  const HangCause cause = evidence.of_hang();
  EXPECT_EQ(cause.id, "queue-not-drained");
  EXPECT_NE(cause.explanation.find("the queue is full"), std::string::npos) << cause.explanation;
  evidence.python[kChild].front().function = "Queue.get";
  EXPECT_NE(evidence.of_hang().id, "queue-not-drained");
}

TEST(Causes, AQueueOfThreadsThatIsFullForTheCallbackOfAPool) {
  CauseEvidence evidence;
  evidence.proc.process(kParent).thread(kParent).waits_on(0x5000);
  constexpr pid_t kReceiver = kParent + 1;
  evidence.proc.processes[kParent].thread(kReceiver).waits_on(0x6000);
  const std::string pool = kLib + "multiprocessing/pool.py";
  evidence.python[kParent] = {{pool, 665, "Pool.join"}, {"/home/anna/train.py", 7, "<module>"}};
  evidence.python[kReceiver] = {{kLib + "threading.py", 320, "Condition.wait"},
                                {kLib + "queue.py", 140, "Queue.put"},
                                {pool, 579, "Pool._handle_results"}};
  const HangCause cause = evidence.of_hang();
  EXPECT_EQ(cause.id, "queue-not-drained");
  EXPECT_NE(cause.explanation.find("every thread that could take an item out waits"), std::string::npos)
      << cause.explanation;
}

TEST(Causes, AJobserverWithoutTokens) {
  CauseEvidence evidence;
  evidence.proc.process(kParent).pipe(4, 70, O_WRONLY).thread(kParent).waits_for_child(kChild);
  TreeProcess& child = evidence.proc.process(kChild, kParent).pipe(3, 70, O_RDONLY);
  child.thread(kChild).reads(3);
  EXPECT_EQ(evidence.of_hang().fix.find("token"), std::string::npos);
  child.environ = "MAKEFLAGS= -j2 --jobserver-auth=3,4";
  const HangCause cause = evidence.of_hang();
  EXPECT_EQ(cause.id, "input-never-closed");
  EXPECT_NE(cause.explanation.find("a token of make's jobserver"), std::string::npos) << cause.explanation;
  EXPECT_NE(cause.fix.find("take no more tokens"), std::string::npos) << cause.fix;
}

TEST(Causes, AJobserverThatIsAFifo) {
  constexpr std::uint64_t kPolled = 0x7e0000000000;
  const std::string fifo = "/tmp/tmp.a1B2c3D4e5/GMfifo20";
  CauseEvidence evidence;
  evidence.proc.fifos[fifo] = {1, 1, true};
  evidence.proc.process(kParent).open(4, fifo, O_RDWR).thread(kParent).waits_for_child(kChild);
  TreeProcess& child = evidence.proc.process(kChild, kParent).open(3, fifo, O_RDONLY);
  child.environ = "MAKEFLAGS= -j2 --jobserver-auth=fifo:" + fifo;
  child.put(kPolled, pollfd{3, POLLIN, 0}).thread(kChild).call(SYS_poll, {kPolled, 1, ~std::uint64_t{0}});
  const HangCause cause = evidence.of_hang();
  EXPECT_EQ(cause.id, "input-never-closed");
  EXPECT_NE(cause.explanation.find("a token of make's jobserver"), std::string::npos) << cause.explanation;
}

TEST(Causes, GilHeld) {
  CauseEvidence evidence;
  TreeProcess& process = evidence.proc.process(kParent);
  process.thread(kParent).waits_on(kLock);
  process.thread(kChild).waits_on(kOtherLock);
  evidence.waits[kParent] = {WaitKind::kGil, "the GIL", {}, {{kParent, kChild}}};
  evidence.python[kChild] = {{"/home/anna/train.py", 7, "call"}};
  const HangCause cause = evidence.of_hang();
  EXPECT_EQ(cause.id, "gil-held");
  EXPECT_NE(cause.explanation.find("train.py:7"), std::string::npos) << cause.explanation;
  evidence.python.clear();
  EXPECT_EQ(evidence.of_hang().id, "gil-held") << "even where its stack is not known";
  evidence.native[kParent] = {"pthread_cond_timedwait (libc.so.6)",
                              "c10::impl::PyObjectSlot::maybe_destroy_pyobj() (libc10.so)"};
  EXPECT_NE(evidence.of_hang().fix.find("keep a reference to the tensors"), std::string::npos);
  evidence.waits[kParent].wakers = {{kParent, kThird}};
  EXPECT_EQ(evidence.of_hang().id, "no-waker") << "the holder is not known";
}

TEST(Causes, WorkerDiedOfAPool) {
  for (const int status : {9, 3 << 8, 0}) {
    CauseEvidence evidence;
    evidence.proc.process(kParent).thread(kParent).waits_on(kLock);
    evidence.python[kParent] = {{kLib + "threading.py", 320, "Condition.wait"},
                                {kLib + "multiprocessing/pool.py", 768, "ApplyResult.get"}};
    evidence.ended(kThird, kParent, status);
    EXPECT_EQ(evidence.of_hang().id, "no-waker") << "it was no worker";
    evidence.forked(kChild, kParent, 1);
    evidence.ended(kChild, kParent, status);
    EXPECT_EQ(evidence.of_hang().id, status == 0 ? "no-waker" : "worker-died");
    evidence.python.clear();
    EXPECT_EQ(evidence.of_hang().id, "no-waker") << "nothing shows that a thread misses it";
  }
}

// A worker of the pool before this one, or a process that was none at all.
TEST(Causes, WorkerDiedOfAPoolNotWhileALivingOneHasATask) {
  CauseEvidence evidence;
  evidence.proc.process(kParent).thread(kParent).waits_on(kLock);
  evidence.proc.process(kThird, kParent).thread(kThird).waits_on(kOtherLock);
  evidence.python[kParent] = {{kLib + "threading.py", 320, "Condition.wait"},
                              {kLib + "multiprocessing/pool.py", 768, "ApplyResult.get"}};
  evidence.python[kThird] = {{kLib + "multiprocessing/pool.py", 114, "worker"}};
  evidence.forked(kChild, kParent, 1);
  evidence.ended(kChild, kParent, SIGTERM);
  EXPECT_EQ(evidence.of_hang().id, "worker-died");
  evidence.python[kThird] = {{"/home/anna/train.py", 7, "task"}, {kLib + "multiprocessing/pool.py", 125, "worker"}};
  EXPECT_NE(evidence.of_hang().id, "worker-died");
}

// While one worker reads from their queue, the others wait for its lock.
TEST(Causes, WorkerDiedWithALockNotWhileALivingOneHasIt) {
  CauseEvidence evidence;
  evidence.proc.process(kParent).pipe(4, 70, O_WRONLY).thread(kParent).waits_on(kLock);
  evidence.proc.process(kThird, kParent).map("rw-s", 60, "/dev/zero (deleted)").thread(kThird);
  evidence.proc.processes[kThird].thread(kThird).waits_on(FakeProc::kMapped, false);
  evidence.proc.process(kThird + 1, kParent).map("rw-s", 60, "/dev/zero (deleted)").pipe(3, 70, O_RDONLY);
  evidence.proc.processes[kThird + 1].thread(kThird + 1).reads(3);
  evidence.python[kThird] = {{kLib + "multiprocessing/queues.py", 365, "SimpleQueue.get"}};
  evidence.forked(kChild, kParent, 1);
  evidence.ended(kChild, kParent, SIGKILL);
  EXPECT_EQ(evidence.of_hang().id, "worker-died");
  evidence.python[kThird + 1] = {{kLib + "multiprocessing/queues.py", 366, "SimpleQueue.get"}};
  EXPECT_NE(evidence.of_hang().id, "worker-died");
  constexpr std::uint64_t kPolled = 0x7e0000000000;
  TreeProcess& polls = evidence.proc.processes[kThird + 1].put(kPolled, pollfd{3, POLLIN, 0});
  polls.thread(kThird + 1).call(SYS_poll, {kPolled, 1, ~std::uint64_t{0}});
  EXPECT_NE(evidence.of_hang().id, "worker-died");
}

TEST(Causes, WorkerDiedWithALock) {
  CauseEvidence evidence;
  for (const pid_t pid : {kParent, kThird}) {
    evidence.proc.process(pid, pid == kParent ? 1 : kParent).map("rw-s", 60, "/dev/zero (deleted)").thread(pid);
  }
  evidence.proc.processes[kParent].thread(kParent).waits_for_child(kThird);
  evidence.proc.processes[kThird].thread(kThird).waits_on(FakeProc::kMapped, false);
  EXPECT_EQ(evidence.of_hang().id, "no-waker") << "no process has died";
  evidence.forked(kChild, kParent, 1);
  evidence.ended(kChild, kParent, SIGKILL);
  const HangCause cause = evidence.of_hang();
  EXPECT_EQ(cause.id, "worker-died");
  EXPECT_NE(cause.explanation.find(std::to_string(kChild) + " ended with signal 9"), std::string::npos);
  evidence.proc.processes[kThird].thread(kThird).waits_on(kLock);
  EXPECT_EQ(evidence.of_hang().id, "no-waker") << "the lock of one process";
}

TEST(Causes, WorkerDiedBeforeItConnected) {
  CauseEvidence evidence;
  evidence.boundary.assumptions.no_outside_peers = true;
  evidence.proc.sockets = {{70, 0, true, "/tmp/pymp-x/listener-y"}};
  evidence.proc.private_folders = {"/tmp/pymp-x"};
  evidence.proc.process(kParent).socket(3, 70).thread(kParent).call(SYS_accept4, {3});
  EXPECT_EQ(evidence.of_hang().id, "no-waker") << "no process has died";
  evidence.forked(kChild, kParent, 1);
  evidence.ended(kChild, kParent, SIGKILL);
  const HangCause cause = evidence.of_hang();
  EXPECT_EQ(cause.id, "worker-died");
  EXPECT_TRUE(cause.looks_idle) << "a server that has lost a child looks the same";
}

TEST(Causes, WorkerDiedWithASystemVSemaphore) {
  CauseEvidence evidence;
  evidence.boundary.assumptions.no_outside_peers = true;
  evidence.proc.sysv_semaphores = "key semid ctime\n0 3 " + std::to_string(wall_now() / kNanosPerSecond) + "\n";
  evidence.proc.semaphore_users[{3, 0}] = kParent;
  evidence.proc.process(kParent).put(kLock, sembuf{0, -1, 0}).thread(kParent).call(SYS_semop, {3, kLock, 1});
  evidence.forked(kChild, kParent, 1);
  evidence.ended(kChild, kParent, SIGKILL);
  EXPECT_EQ(evidence.of_hang().id, "no-waker") << "the dead has not changed it";
  evidence.proc.semaphore_users[{3, 0}] = kChild;
  const HangCause cause = evidence.of_hang();
  EXPECT_EQ(cause.id, "worker-died");
  EXPECT_NE(cause.explanation.find("waits for semaphore 0 of System V semaphore set 3"), std::string::npos);
  EXPECT_NE(cause.fix.find("SEM_UNDO"), std::string::npos);
}

TEST(Causes, NoWakerLooksIdleUnlessAWaitIsUrgent) {
  CauseEvidence evidence;
  evidence.boundary.assumptions.no_outside_peers = true;
  evidence.proc.sysv_semaphores = "key semid ctime\n0 3 " + std::to_string(wall_now() / kNanosPerSecond) + "\n";
  evidence.proc.semaphore_users[{3, 0}] = kParent;
  TreeProcess& process = evidence.proc.process(kParent);
  process.put(kLock, sembuf{0, -1, 0}).thread(kParent).call(SYS_semop, {3, kLock, 1});
  EXPECT_EQ(evidence.of_hang().id, "no-waker");
  EXPECT_TRUE(evidence.of_hang().looks_idle);
  process.put(kLock, sembuf{0, -1, SEM_UNDO});
  EXPECT_FALSE(evidence.of_hang().looks_idle);
}

// A forked child, alone, whose parent had threads.
class LonelyChild : public testing::Test {
 protected:
  LonelyChild() {
    evidence_.proc.process(kParent).thread(kParent).waits_for_child(pid_);
    TreeProcess& child = evidence_.proc.process(pid_, kParent);
    child.forked = true;
    child.thread(pid_).waits_on(kLock);
    child.put(kLock, std::uint64_t{1} << 32U);  // a semaphore, like Python's locks: value 0, one waiter
    evidence_.forked(pid_, kParent, 4);
    waits_in("threading.py", "Condition.wait");
  }
  void waits_in(const std::string& file, const std::string& function) {
    evidence_.python[pid_] = {{kLib + file, 320, function}, {"/home/anna/train.py", 7, "call"}};
  }
  /// It polls a pipe that leads to itself.
  void polls_itself(std::uint64_t milliseconds) {
    TreeProcess& child = evidence_.proc.processes[pid_].pipe(3, 70, O_RDONLY).pipe(4, 70, O_WRONLY);
    child.open(9, "anon_inode:[eventpoll]", O_RDWR, "tfd: 3 events: 19 data: 3 pos:0 ino:46 sdev:f\n");
    child.thread(pid_).call(SYS_epoll_wait, {9, 0x1000, 8, milliseconds});
  }
  CauseEvidence evidence_;
  pid_t pid_ = evidence_.alive;
};

TEST_F(LonelyChild, LostAThreadIfItWaitsForNotice) {
  EXPECT_EQ(evidence_.of_hang().id, "thread-lost-at-fork");
  waits_in("queue.py", "Queue.get");
  EXPECT_EQ(evidence_.of_hang().id, "thread-lost-at-fork");
  waits_in("threading.py", "Thread._wait_for_tstate_lock");
  const HangCause cause = evidence_.of_hang();
  EXPECT_EQ(cause.id, "thread-lost-at-fork");
  EXPECT_NE(cause.explanation.find("4 threads"), std::string::npos) << cause.explanation;
}

TEST_F(LonelyChild, LostAThreadIfItsEventLoopWaits) {
  polls_itself(~std::uint64_t{0});
  waits_in("selectors.py", "EpollSelector.select");
  EXPECT_EQ(evidence_.of_hang().id, "no-waker") << "it may poll for anything";
  auto& frames = evidence_.python[pid_];
  frames.insert(frames.begin() + 1, {kLib + "asyncio/base_events.py", 1884, "BaseEventLoop._run_once"});
  EXPECT_EQ(evidence_.of_hang().id, "thread-lost-at-fork");
  evidence_.proc.processes[pid_].thread(kThird).waits_on(kOtherLock);
  EXPECT_EQ(evidence_.of_hang().id, "never-notified") << "it has another thread";
}

TEST_F(LonelyChild, LostAThreadIfItsLoopOfUvloopWaits) {
  polls_itself(~std::uint64_t{0});
  waits_in("asyncio/runners.py", "Runner.run");
  evidence_.native[pid_] = {"epoll_pwait (libc.so.6)", "uv_run (libuv.so.1)"};
  EXPECT_EQ(evidence_.of_hang().id, "thread-lost-at-fork");
  evidence_.native[pid_] = {"epoll_pwait (libc.so.6)", "loop.cpython-311-x86_64-linux-gnu.so+0x12345"};
  EXPECT_EQ(evidence_.of_hang().id, "thread-lost-at-fork") << "a wheel has libuv built in";
  evidence_.native[pid_] = {"epoll_pwait (libc.so.6)", "run (libmine.so)"};
  EXPECT_EQ(evidence_.of_hang().id, "no-waker");
}

TEST_F(LonelyChild, LostAThreadIfTheHubOfGeventWaits) {
  constexpr std::uint64_t kLongestBlock = 59743;
  polls_itself(kLongestBlock);
  waits_in("site-packages/gevent/hub.py", "Hub.run");
  EXPECT_EQ(evidence_.of_hang().id, "thread-lost-at-fork");
  evidence_.python.clear();
  const HangCause cause = evidence_.of_hang();
  EXPECT_EQ(cause.id, "thread-lost-at-fork") << "libev without Python";
  EXPECT_NE(cause.explanation.find("waits for another thread to notify it"), std::string::npos) << cause.explanation;
  polls_itself(~std::uint64_t{0});
  EXPECT_EQ(evidence_.of_hang().id, "no-waker") << "no libev";
  waits_in("site-packages/gevent/hub.py", "Hub.run");
  EXPECT_EQ(evidence_.of_hang().id, "no-waker");
}

TEST_F(LonelyChild, CopiedALockIfItWaitsForOne) {
  waits_in("logging/__init__.py", "Handler.acquire");
  EXPECT_EQ(evidence_.of_hang().id, "lock-held-at-fork");
  waits_in("threading.py", "RLock.acquire");
  EXPECT_EQ(evidence_.of_hang().id, "lock-held-at-fork");
}

// Python is in a C++ library, which waits on a condition variable.
TEST_F(LonelyChild, LostAThreadIfItWaitsForACondition) {
  waits_in("torch/jit.py", "wait");
  EXPECT_EQ(evidence_.of_hang().id, "lock-held-at-fork");
  evidence_.proc.processes[pid_].put(kLock, std::uint64_t{2});
  EXPECT_EQ(evidence_.of_hang().id, "thread-lost-at-fork");
}

TEST_F(LonelyChild, IsNotSoIfItsParentHadNoThreads) {
  evidence_.forked(pid_, kParent, 1);
  EXPECT_EQ(evidence_.of_hang().id, "never-notified");
  waits_in("logging/__init__.py", "Handler.acquire");
  EXPECT_EQ(evidence_.of_hang().id, "lock-cycle") << "its only thread has the lock";
}

TEST_F(LonelyChild, IsNotSoIfItHasAnotherThread) {
  evidence_.proc.processes[pid_].thread(kThird).waits_on(kOtherLock);
  EXPECT_EQ(evidence_.of_hang().id, "never-notified");
}

TEST_F(LonelyChild, IsNotSoIfItIsAnotherProgram) {
  evidence_.proc.processes[pid_].forked = false;
  EXPECT_EQ(evidence_.of_hang().id, "never-notified");
}

TEST(Causes, BarrierShort) {
  CauseEvidence evidence;
  evidence.proc.process(kParent).thread(kParent).waits_on(kLock);
  evidence.python[kParent] = {{kLib + "threading.py", 320, "Condition.wait"},
                              {kLib + "threading.py", 668, "Barrier.wait"}};
  EXPECT_EQ(evidence.of_hang().id, "barrier-short");
  evidence.python[kParent][1].file = "/home/anna/my_threading.py";
  EXPECT_EQ(evidence.of_hang().id, "never-notified") << "the user's own barrier";
  evidence.python[kParent][1].file = kLib + "threading.py";
  evidence.proc.processes[kParent].thread(kParent).sleeps();
  EXPECT_EQ(evidence.of_hang().id, "no-waker") << "it is not stuck";
}

}  // namespace
}  // namespace mprun
