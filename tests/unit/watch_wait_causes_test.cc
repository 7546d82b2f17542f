// Causes that follow from which thread waits for which: a tree in which each rule fires, and a similar one.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>

#include "cause_evidence.h"

namespace mprun {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr std::uint64_t kAddress = 0x5000;
const std::string kLibrary = "/usr/lib/python3.11/";
const PythonFrame kCondition{kLibrary + "threading.py", 320, "Condition.wait"};
const PythonFrame kOwn{"/home/anna/run.py", 7, "main"};

/// Opens a FIFO that only the tree can see.
void opens_fifo(CauseEvidence* evidence, pid_t pid, const std::string& path, std::uint64_t flags) {
  evidence->proc.fifos[path] = {1, 1, true};
  evidence->proc.processes[pid].put_text(0x9000, path).thread(pid).call(SYS_open, {0x9000, flags});
}

/// The first thread polls one descriptor, without a limit.
void polls_descriptor(TreeProcess* process, int fd, short events) {
  process->put(0x9000, pollfd{fd, events, 0}).thread(process->pid).call(SYS_poll, {0x9000, 1, ~std::uint64_t{0}});
}

TEST(WaitCauses, FifoNotOpened) {
  CauseEvidence evidence;
  evidence.proc.process(kParent).thread(kParent).waits_for_child(kChild);
  TreeProcess& child = evidence.proc.process(kChild, kParent);
  opens_fifo(&evidence, kChild, "/tmp/tmp.a1B2c3D4e5/a", O_RDONLY);
  const std::string of_child = "process 5000020 waits until a process opens FIFO /tmp/tmp.a1B2c3D4e5/a to write";
  HangCause cause = evidence.of_hang();
  EXPECT_EQ(cause.id, "fifo-not-opened");
  EXPECT_EQ(cause.explanation, of_child);
  EXPECT_TRUE(cause.looks_idle) << "a server that waits for its first client";
  child.thread(kThird) = child.thread(kChild);
  child.thread(kThird).tid = kThird;
  cause = evidence.of_hang();
  EXPECT_EQ(cause.explanation, of_child) << "a process is named once";
  EXPECT_TRUE(cause.looks_idle);
  opens_fifo(&evidence, kParent, "/tmp/tmp.a1B2c3D4e5/b", O_WRONLY);
  cause = evidence.of_hang();
  EXPECT_EQ(cause.explanation,
            "process 5000010 waits until a process opens FIFO /tmp/tmp.a1B2c3D4e5/b to read; " + of_child);
  EXPECT_FALSE(cause.looks_idle) << "both want to go on";
}

TEST(WaitCauses, ChildSignalMissed) {
  CauseEvidence evidence;
  evidence.boundary.assumptions.no_limit_from = kNanosPerSecond;
  TreeThread& thread = evidence.proc.process(kParent).catches(SIGCHLD).thread(kParent);
  thread.call(SYS_rt_sigsuspend, {0x1000, 8});
  const HangCause cause = evidence.of_hang();
  EXPECT_EQ(cause.id, "child-signal-missed");
  EXPECT_THAT(cause.explanation, HasSubstr("process 5000010 waits for the signal of a child's end, and has no child"));
  evidence.boundary.assumptions.handlers_release_no_thread = true;
  evidence.proc.processes[kParent].catches(SIGUSR1);
  EXPECT_NE(evidence.of_hang().id, "child-signal-missed") << "it may wait for another signal";
  evidence.proc.processes[kParent].caught = 0;
  evidence.proc.processes[kParent].catches(SIGCHLD);
  evidence.proc.process(kChild, kParent).thread(kChild).waits_on(kAddress);
  EXPECT_EQ(evidence.of_hang().id, "no-waker") << "the child has not ended";
}

TEST(WaitCauses, QueueNotDrainedWhenPollingToWrite) {
  CauseEvidence evidence;
  evidence.proc.process(kParent).pipe(3, 70, O_RDONLY).thread(kParent).waits_for_child(kChild);
  TreeProcess& child = evidence.proc.process(kChild, kParent).pipe(4, 70, O_WRONLY);
  polls_descriptor(&child, 4, POLLOUT);
  const HangCause cause = evidence.of_hang();
  EXPECT_EQ(cause.id, "queue-not-drained");
  EXPECT_THAT(cause.explanation, HasSubstr("process 5000020 cannot end before its output (pipe 70) is read"));
  child.pipe(4, 70, O_RDWR);
  EXPECT_EQ(evidence.of_hang().id, "no-waker") << "it may want to read";
}

// multiprocessing's fork server waits for requests and for the ends of its children.
TEST(WaitCauses, QueueNotDrainedUnderAForkServer) {
  CauseEvidence evidence;
  TreeProcess& parent =
      evidence.proc.process(kParent).pipe(3, 70, O_RDONLY).pipe(5, 80, O_RDONLY).pipe(6, 90, O_WRONLY);
  polls_descriptor(&parent, 5, POLLIN);
  TreeProcess& server = evidence.proc.process(kThird, kParent).pipe(5, 80, O_WRONLY).pipe(6, 90, O_RDONLY);
  server.catches(SIGCHLD).thread(kThird).reads(6);
  evidence.proc.process(kChild, kThird).pipe(4, 70, O_WRONLY).thread(kChild).writes(4);
  EXPECT_NE(evidence.of_hang().id, "queue-not-drained") << "it talks";
  evidence.python[kThird] = {{kLibrary + "selectors.py", 415, "SelectSelector.select"},
                             {kLibrary + "multiprocessing/forkserver.py", 229, "main"}};
  EXPECT_EQ(evidence.of_hang().id, "queue-not-drained");
}

/// kParent, which waits for the end of kChild, and kChild each have one end of a pair of sockets.
CauseEvidence sockets_to_child() {
  CauseEvidence evidence;
  evidence.proc.process(kParent).socket(3, 70).thread(kParent).waits_for_child(kChild);
  evidence.proc.process(kChild, kParent).socket(3, 71);
  evidence.proc.sockets = {{70, 71, false, "", false}, {71, 70, false, "", false}};
  return evidence;
}

TEST(WaitCauses, OfSocketsFollowFromTheCall) {
  CauseEvidence evidence = sockets_to_child();
  TreeProcess& child = evidence.proc.processes[kChild];
  child.thread(kChild).call(SYS_sendto, {3});
  EXPECT_EQ(evidence.of_hang().id, "queue-not-drained");
  child.thread(kChild).call(SYS_recvfrom, {3});
  EXPECT_EQ(evidence.of_hang().id, "input-never-closed");
  polls_descriptor(&child, 3, POLLOUT);
  EXPECT_EQ(evidence.of_hang().id, "no-waker") << "it may want to read or to write";
}

TEST(WaitCauses, PipeCycle) {
  CauseEvidence evidence;
  evidence.proc.process(kParent).pipe(3, 70, O_RDONLY).pipe(4, 71, O_WRONLY).thread(kParent).reads(3);
  TreeProcess& child = evidence.proc.process(kChild, kParent).pipe(3, 71, O_RDONLY).pipe(4, 70, O_WRONLY);
  child.thread(kChild).reads(3);
  const HangCause cause = evidence.of_hang();
  EXPECT_EQ(cause.id, "pipe-cycle");
  EXPECT_TRUE(cause.looks_idle) << "a server and its idle client look the same";
  evidence.python[kChild] = {{kLibrary + "multiprocessing/queues.py", 364, "SimpleQueue.get"},
                             {kLibrary + "multiprocessing/pool.py", 114, "worker"}};
  EXPECT_EQ(evidence.of_hang().id, "no-waker") << "a worker of a pool that waits for a task";
  evidence.python.clear();
  child.thread(kChild).waits_on(kAddress);
  EXPECT_EQ(evidence.of_hang().id, "no-waker");
}

// A process in epoll and its peer wait for each other; some bytes are unread.
TEST(WaitCauses, EdgeMissed) {
  for (const char* const events : {"80000019", "19"}) {
    for (const std::uint32_t unread : {4096U, 0U}) {
      CauseEvidence evidence;
      evidence.proc.sockets = {{70, 71, false, "", false, unread}, {71, 70, false, ""}};
      TreeProcess& parent = evidence.proc.process(kParent).socket(3, 70);
      parent.open(9, "anon_inode:[eventpoll]", O_RDWR,
                  "tfd: 3 events: " + std::string(events) + " data: 3 pos:0 ino:46 sdev:f\n");
      parent.thread(kParent).call(SYS_epoll_wait, {9, 0x1000, 8, ~0ULL});
      evidence.proc.process(kChild, kParent).socket(3, 71).thread(kChild).call(SYS_recvfrom, {3});
      const HangCause cause = evidence.of_hang();
      const bool is_missed = unread != 0 && std::string_view(events) != "19";
      EXPECT_EQ(cause.id, is_missed ? "edge-missed" : "pipe-cycle") << events << ' ' << unread;
      if (is_missed) {
        EXPECT_THAT(cause.explanation, HasSubstr("descriptor 3, and 4096 bytes are there"));
      }
    }
  }
}

// Which process had the lock is not known, and may have ended.
TEST(WaitCauses, NoWakerOfAManagersLockIsNotIdle) {
  CauseEvidence evidence;
  evidence.boundary.assumptions.no_outside_peers = true;
  evidence.proc.private_folders = {"/tmp/pymp-x"};
  evidence.proc.sockets = {{70, 71, false, ""}, {71, 70, false, ""}, {72, 0, true, "/tmp/pymp-x/listener-y"}};
  evidence.proc.process(kParent).socket(3, 70).thread(kParent).call(SYS_recvfrom, {3});
  TreeProcess& server = evidence.proc.process(kChild, kParent).socket(3, 71).socket(4, 72);
  server.thread(kChild).waits_on(kAddress);
  server.thread(kThird).call(SYS_accept, {4});
  HangCause cause = evidence.of_hang();
  EXPECT_EQ(cause.id, "no-waker");
  EXPECT_TRUE(cause.looks_idle);
  evidence.python[kParent] = {{kLibrary + "multiprocessing/managers.py", 1052, "AcquirerProxy.acquire"}};
  cause = evidence.of_hang();
  EXPECT_EQ(cause.id, "lock-cycle");
  EXPECT_THAT(cause.explanation, HasSubstr("waits for a lock of a manager that only processes that wait themselves"));
  EXPECT_FALSE(cause.looks_idle);
}

TEST(WaitCauses, ServerAsksItself) {
  CauseEvidence evidence;
  evidence.proc.sockets = {{70, 72, false, ""}, {72, 0, true, "/tmp/server"}};
  evidence.proc.process(kParent).socket(3, 70).socket(4, 72).thread(kParent).call(SYS_recvfrom, {3});
  EXPECT_EQ(evidence.of_hang().id, "server-asks-itself");
  evidence.proc.process(kChild, kParent).socket(3, 70).socket(4, 72).thread(kChild).call(SYS_recvfrom, {3});
  evidence.proc.processes[kParent] = {};
  evidence.proc.process(kParent).socket(4, 72).thread(kParent).waits_on(kAddress);
  EXPECT_EQ(evidence.of_hang().id, "no-waker") << "it has inherited the listener";
}

// A server's thread waits for the client's greeting, and the client, in the same process, for the server's.
TEST(WaitCauses, TwoThreadsReadFromTheEndsOfOneConnection) {
  CauseEvidence evidence;
  TreeProcess& process = evidence.proc.process(kParent).socket(3, 70).socket(4, 71);
  process.thread(kParent).call(SYS_recvfrom, {3});
  process.thread(kThird).call(SYS_read, {4});
  for (const bool by_tcp : {false, true}) {
    evidence.proc.sockets.clear();
    if (by_tcp) {
      evidence.proc.tcp = tcp_line(kClient, kServer, kEstablished, 70) + tcp_line(kServer, kClient, kEstablished, 71);
    } else {
      evidence.proc.sockets = {{70, 71, false, ""}, {71, 70, false, ""}};
    }
    const HangCause cause = evidence.of_hang();
    EXPECT_EQ(cause.id, "pipe-cycle") << by_tcp;
    EXPECT_THAT(cause.explanation, HasSubstr("two threads wait for each other: process 5000010 waits to read from "
                                             "socket 70, and thread 5000030 of process 5000010 from the other end"));
  }
  process.thread(kThird).waits_on(kAddress);
  EXPECT_EQ(evidence.of_hang().id, "no-waker") << "it does not read";
}

TEST(WaitCauses, OutputThatOnlyItsOwnProcessCouldRead) {
  CauseEvidence evidence;
  TreeProcess& process = evidence.proc.process(kParent).pipe(3, 70, O_RDONLY).pipe(4, 70, O_WRONLY);
  process.thread(kParent).writes(4);
  const HangCause cause = evidence.of_hang();
  EXPECT_EQ(cause.id, "queue-not-drained");
  EXPECT_THAT(cause.explanation, HasSubstr("process 5000010 writes to pipe 70, which is full"));
  EXPECT_THAT(cause.fix, HasSubstr("64 KiB"));
  evidence.proc.process(kChild, kParent).pipe(3, 70, O_RDONLY).thread(kChild).waits_on(kAddress);
  EXPECT_EQ(evidence.of_hang().id, "no-waker") << "another process could read it, too";
}

TEST(WaitCauses, PipeNeverClosedInRuby) {
  CauseEvidence evidence;
  TreeProcess& reader = evidence.proc.process(kParent).pipe(3, 70, O_RDONLY).pipe(4, 70, O_WRONLY);
  polls_descriptor(&reader, 3, POLLIN);
  EXPECT_EQ(evidence.of_hang().id, "no-waker") << "a thread may poll a pipe to be woken by others";
  evidence.native[kParent] = {"poll (libc.so.6)", "rb_thread_io_blocking_region (libruby-3.1.so.3)"};
  EXPECT_EQ(evidence.of_hang().id, "pipe-never-closed");
}

// Ruby waits so for its own threads.
TEST(WaitCauses, PipeCycleNamesThePipeRatherThanACounter) {
  CauseEvidence evidence;
  TreeProcess& parent = evidence.proc.process(kParent).pipe(3, 70, O_RDONLY).pipe(4, 71, O_WRONLY).eventfd(5, 9);
  evidence.proc.process(kChild, kParent)
      .pipe(3, 71, O_RDONLY)
      .pipe(4, 70, O_WRONLY)
      .eventfd(5, 9)
      .thread(kChild)
      .reads(3);
  polls_descriptor(&parent, 5, POLLIN);
  parent.thread(kThird).reads(3);
  const HangCause cause = evidence.of_hang();
  EXPECT_EQ(cause.id, "pipe-cycle");
  EXPECT_THAT(cause.explanation, HasSubstr("thread 5000030 of process 5000010 waits to read from pipe 70"));
}

TEST(WaitCauses, PipeCycleIsNotClosedByAServerForAll) {
  CauseEvidence evidence;
  evidence.proc.process(kParent).pipe(3, 70, O_RDONLY).pipe(4, 71, O_WRONLY).thread(kParent).reads(3);
  evidence.proc.process(kChild, kParent).pipe(3, 71, O_RDONLY).pipe(4, 70, O_WRONLY).thread(kChild).reads(3);
  evidence.python[kChild] = {{kLibrary + "multiprocessing/resource_sharer.py", 138, "_ResourceSharer._serve"}};
  EXPECT_EQ(evidence.of_hang().id, "no-waker");
}

TEST(WaitCauses, PipeCycleOfWriters) {
  CauseEvidence evidence;
  evidence.proc.process(kParent).pipe(3, 70, O_WRONLY).pipe(4, 71, O_RDONLY).thread(kParent).writes(3);
  evidence.proc.process(kChild, kParent).pipe(3, 71, O_WRONLY).pipe(4, 70, O_RDONLY).thread(kChild).writes(3);
  const HangCause cause = evidence.of_hang();
  EXPECT_EQ(cause.id, "pipe-cycle");
  EXPECT_FALSE(cause.looks_idle) << "a writer is not idle";
}

/// kParent talks to kThird, a child of kChild, which waits for its end: a coprocess.
CauseEvidence cycle_through_child(std::uint64_t mode_of_ends, std::uint64_t mode_of_others) {
  CauseEvidence evidence;
  evidence.proc.process(kParent).pipe(3, 70, mode_of_ends).pipe(4, 71, mode_of_others);
  evidence.proc.process(kChild, kParent).pipe(4, 70, mode_of_others).thread(kChild).waits_for_child(kThird);
  evidence.proc.process(kThird, kChild).pipe(3, 71, mode_of_ends);
  return evidence;
}

TEST(WaitCauses, PipeCycleThroughAWaitForAChild) {
  CauseEvidence evidence = cycle_through_child(O_RDONLY, O_WRONLY);
  evidence.proc.processes[kParent].thread(kParent).reads(3);
  evidence.proc.processes[kThird].thread(kThird).reads(3);
  const HangCause cause = evidence.of_hang();
  EXPECT_EQ(cause.id, "pipe-cycle");
  EXPECT_EQ(cause.explanation,
            "processes wait for each other: process 5000010 waits to read from pipe 70 from 5000020, process 5000020 "
            "waits for the end of 5000030, process 5000030 waits to read from pipe 71 from 5000010");
  EXPECT_TRUE(cause.looks_idle);
  evidence.proc.processes[kChild].thread(kChild).waits_on(kAddress);
  EXPECT_EQ(evidence.of_hang().id, "no-waker") << "it waits for no child";
}

TEST(WaitCauses, PipeCycleOfWritersThroughAWaitForAChild) {
  CauseEvidence evidence = cycle_through_child(O_WRONLY, O_RDONLY);
  evidence.proc.processes[kParent].thread(kParent).writes(3);
  evidence.proc.processes[kThird].thread(kThird).writes(3);
  const HangCause cause = evidence.of_hang();
  EXPECT_EQ(cause.id, "pipe-cycle");
  EXPECT_THAT(cause.explanation, HasSubstr("process 5000010 waits until pipe 70 is read by 5000020"));
  EXPECT_FALSE(cause.looks_idle);
}

TEST(WaitCauses, InputNeverClosedWhenPolling) {
  CauseEvidence evidence;
  evidence.proc.process(kParent).pipe(4, 70, O_WRONLY).thread(kParent).waits_for_child(kChild);
  polls_descriptor(&evidence.proc.process(kChild, kParent).pipe(3, 70, O_RDONLY), 3, POLLIN);
  const HangCause cause = evidence.of_hang();
  EXPECT_EQ(cause.id, "input-never-closed");
  EXPECT_THAT(cause.explanation, HasSubstr("process 5000020 reads pipe 70, which process 5000010 has open"));
  evidence.proc.processes[kParent].thread(kParent).waits_on(kAddress);
  EXPECT_EQ(evidence.of_hang().id, "no-waker") << "no thread waits for its end";
}

TEST(WaitCauses, InputNeverClosed) {
  CauseEvidence evidence;
  TreeProcess& parent = evidence.proc.process(kParent).pipe(4, 70, O_WRONLY);
  parent.thread(kParent).waits_for_child(kChild);
  evidence.proc.process(kChild, kParent).pipe(3, 70, O_RDONLY).thread(kChild).reads(3);
  EXPECT_EQ(evidence.of_hang().id, "input-never-closed");
  parent.thread(kParent).waits_on(kAddress);
  EXPECT_EQ(evidence.of_hang().id, "no-waker") << "no thread waits for its end";
}

// Any process of the tree could open the FIFO, and yet the parent may have nothing to do with it.
TEST(WaitCauses, OfAFifoBlameOnlyProcessesThatHaveItOpen) {
  const std::string fifo = "/tmp/tmp.a1B2c3D4e5/fifo";
  for (const bool writes : {false, true}) {
    CauseEvidence evidence;
    evidence.proc.fifos[fifo] = {1, 1, true};
    TreeProcess& parent = evidence.proc.process(kParent);
    parent.open(3, "/tmp/tmp.a1B2c3D4e5/other").thread(kParent).waits_for_child(kChild);
    TreeThread& child =
        evidence.proc.process(kChild, kParent).open(3, fifo, writes ? O_WRONLY : O_RDONLY).thread(kChild);
    writes ? child.writes(3) : child.reads(3);
    EXPECT_EQ(evidence.of_hang().id, "no-waker") << writes;
    parent.open(4, fifo, O_RDWR);
    EXPECT_EQ(evidence.of_hang().id, writes ? "queue-not-drained" : "input-never-closed");
  }
}

TEST(WaitCauses, PipeKeptByGrandchild) {
  CauseEvidence evidence;
  evidence.proc.process(kParent).pipe(3, 70, O_RDONLY).thread(kParent).reads(3);
  evidence.proc.process(kThird, 1).pipe(1, 70, O_WRONLY).thread(kThird).waits_on(kAddress);
  evidence.python[kParent] = {{kLibrary + "subprocess.py", 1200, "Popen.communicate"}, kOwn};
  const HangCause cause = evidence.of_hang();
  EXPECT_EQ(cause.id, "pipe-kept-by-grandchild");
  EXPECT_THAT(cause.explanation, HasSubstr("process " + std::to_string(kThird)));
  evidence.proc.process(kChild, kParent).pipe(1, 70, O_WRONLY).thread(kChild).waits_on(kAddress);
  EXPECT_EQ(evidence.of_hang().id, "no-waker") << "a child of its own may write, too";
}

TEST(WaitCauses, PipeOfEventLoopKeptByGrandchild) {
  CauseEvidence evidence;
  TreeProcess& parent = evidence.proc.process(kParent).pipe(3, 70, O_RDONLY);
  polls_descriptor(&parent, 3, POLLIN);
  evidence.proc.process(kThird, 1).pipe(1, 70, O_WRONLY).thread(kThird).waits_on(kAddress);
  evidence.python[kParent] = {{kLibrary + "asyncio/base_events.py", 1909, "BaseEventLoop._run_once"}, kOwn};
  const HangCause cause = evidence.of_hang();
  EXPECT_EQ(cause.id, "pipe-kept-by-grandchild");
  EXPECT_THAT(cause.explanation, HasSubstr("reads pipe 70 in its event loop to its end"));
  evidence.proc.process(kChild, kParent).pipe(1, 70, O_WRONLY).thread(kChild).waits_on(kAddress);
  EXPECT_EQ(evidence.of_hang().id, "never-notified") << "a child of its own may write, too";
}

TEST(WaitCauses, SharedLockTakenInALibrary) {
  CauseEvidence evidence;
  evidence.proc.process(kParent).thread(kParent).waits_for_child(kChild);
  evidence.proc.process(kChild, kParent).thread(kChild).waits_on(kAddress);
  evidence.waits[kChild] = {WaitKind::kSharedFutex, "lock in shared memory", {}, {{kParent, 0}}};
  evidence.python[kChild] = {{"/usr/lib/python3/dist-packages/tqdm/std.py", 108, "TqdmDefaultWriteLock.acquire"}, kOwn};
  EXPECT_EQ(evidence.of_hang().id, "lock-cycle");
  evidence.python[kChild] = {{kLibrary + "multiprocessing/queues.py", 100, "Queue.get"}, kOwn};
  EXPECT_EQ(evidence.of_hang().id, "no-waker") << "it waits for its turn";
}

// Two workers get items of one queue: one reads the pipe, the other waits for the lock that the first has meanwhile.
TEST(WaitCauses, TurnToReadFromAQueueIsNoCycle) {
  CauseEvidence evidence;
  evidence.proc.process(kParent).pipe(4, 70, O_WRONLY).thread(kParent).waits_for_child(kChild);
  evidence.proc.process(kChild, kParent).thread(kChild).waits_on(kAddress);
  evidence.waits[kChild] = {WaitKind::kSharedFutex, "lock in shared memory", {}, {{kThird, 0}}};
  const PythonFrame gets{kLibrary + "multiprocessing/queues.py", 102, "Queue.get"};
  evidence.python[kChild] = {{kLibrary + "multiprocessing/synchronize.py", 95, "SemLock.__enter__"}, gets, kOwn};
  evidence.proc.process(kThird, kParent).pipe(3, 70, O_RDONLY).thread(kThird).reads(3);
  evidence.python[kThird] = {{kLibrary + "multiprocessing/connection.py", 378, "Connection._recv"}, gets, kOwn};
  EXPECT_NE(evidence.of_hang().id, "lock-cycle");
  evidence.python[kThird] = {{kLibrary + "socket.py", 706, "SocketIO.readinto"}, kOwn};
  EXPECT_EQ(evidence.of_hang().id, "lock-cycle") << "it reads something else";
}

TEST(WaitCauses, NeverNotifiedInALibraryAlone) {
  CauseEvidence evidence;
  TreeProcess& process = evidence.proc.process(kParent);
  process.thread(kParent).waits_on(kAddress);
  process.thread(kThird).waits_on(kAddress);
  evidence.python[kParent] = {{kLibrary + "threading.py", 1112, "Thread.join"}, kOwn};
  evidence.python[kThird] = {kCondition, {kLibrary + "queue.py", 171, "Queue.get"}};
  const HangCause cause = evidence.of_hang();
  EXPECT_EQ(cause.id, "never-notified");
  EXPECT_THAT(cause.explanation, HasSubstr("waits in queue.Queue.get"));
  evidence.python[kThird] = {kCondition, {kLibrary + "multiprocessing/pool.py", 114, "worker"}};
  EXPECT_EQ(evidence.of_hang().id, "no-waker") << "a thread of a pool that has nothing to do";
}

/// A pool that waits for a result, and has one thread of its own, in that function.
void has_pool(CauseEvidence* evidence, const std::string& function) {
  TreeProcess& process = evidence->proc.process(kParent);
  process.thread(kParent).waits_on(kAddress);
  process.thread(kThird).waits_on(kAddress);
  const std::string pool = kLibrary + "multiprocessing/pool.py";
  evidence->python[kParent] = {kCondition, {pool, 768, "ApplyResult.get"}, kOwn};
  evidence->python[kThird] = {kCondition, {pool, 500, function}};
}

TEST(WaitCauses, PoolHelperLost) {
  CauseEvidence evidence;
  has_pool(&evidence, "Pool._handle_workers");
  EXPECT_EQ(evidence.of_hang().id, "pool-helper-lost");
  evidence.proc.processes[kParent].thread(kChild).waits_on(kAddress);
  evidence.python[kChild] = {{kLibrary + "multiprocessing/pool.py", 579, "Pool._handle_results"}};
  EXPECT_EQ(evidence.of_hang().id, "never-notified");
}

// terminate() of another pool has ended workers too, and it may not be known that it sent the signal.
TEST(WaitCauses, PoolHelperLostWhoeverDied) {
  for (const auto& [function, cause] :
       {std::pair{"Pool._handle_workers", "pool-helper-lost"}, std::pair{"Pool._handle_results", "worker-died"}}) {
    CauseEvidence evidence;
    has_pool(&evidence, function);
    evidence.forked(kChild, kParent, 1);
    evidence.ended(kChild, kParent, SIGTERM);
    EXPECT_EQ(evidence.of_hang().id, cause);
  }
}

// Of a tree that mprun has not watched no death is known, but no worker has what the pool waits for.
TEST(WaitCauses, TaskOfAPoolThatNoWorkerHas) {
  CauseEvidence evidence;
  const std::string pool = kLibrary + "multiprocessing/pool.py", queues = kLibrary + "multiprocessing/queues.py";
  TreeProcess& parent = evidence.proc.process(kParent).pipe(3, 70, O_RDONLY).pipe(4, 71, O_WRONLY);
  for (const pid_t tid : {kParent, kParent + 1, kParent + 2}) parent.thread(tid).waits_on(kAddress);
  parent.thread(kParent + 3).reads(3);
  evidence.proc.process(kChild, kParent).pipe(3, 71, O_RDONLY).pipe(4, 70, O_WRONLY).thread(kChild).reads(3);
  evidence.python[kParent] = {kCondition, {pool, 768, "ApplyResult.get"}, kOwn};
  evidence.python[kParent + 1] = {{pool, 502, "Pool._handle_workers"}};
  evidence.python[kParent + 2] = {{pool, 531, "Pool._handle_tasks"}};
  evidence.python[kParent + 3] = {{pool, 579, "Pool._handle_results"}};
  evidence.python[kChild] = {{queues, 365, "SimpleQueue.get"}, {pool, 114, "worker"}};
  const HangCause cause = evidence.of_hang();
  EXPECT_EQ(cause.id, "worker-died");
  EXPECT_THAT(cause.explanation, HasSubstr("the pool of process 5000010 waits for a result, and no worker has a task"));
  evidence.python[kChild] = {{queues, 365, "SimpleQueue.get"}, kOwn, {pool, 114, "worker"}};
  EXPECT_EQ(evidence.of_hang().id, "never-notified") << "a task waits for an item of a queue";
  evidence.python[kChild] = {{queues, 365, "SimpleQueue.get"}, {pool, 114, "worker"}};
  evidence.forked(kChild, kParent, 1);
  EXPECT_NE(evidence.of_hang().id, "worker-died") << "mprun has watched it, and no worker has died";
}

// A worker that replaces another one is forked by the thread of the pool.
TEST(WaitCauses, AForkedWorkerIsNoPool) {
  CauseEvidence evidence;
  evidence.proc.process(kParent).thread(kParent).waits_on(kAddress);
  const std::string pool = kLibrary + "multiprocessing/pool.py";
  evidence.python[kParent] = {kCondition,
                              {pool, 114, "worker"},
                              {kLibrary + "multiprocessing/process.py", 314, "BaseProcess._bootstrap"},
                              {pool, 521, "Pool._handle_workers"}};
  EXPECT_EQ(evidence.of_hang().id, "no-waker");
}

TEST(WaitCauses, TaskWaitsInOwnPool) {
  CauseEvidence evidence;
  evidence.proc.process(kParent).thread(kParent).waits_on(kAddress);
  const PythonFrame result{kLibrary + "concurrent/futures/_base.py", 451, "Future.result"};
  const PythonFrame worker{kLibrary + "concurrent/futures/thread.py", 58, "_WorkItem.run"};
  evidence.python[kParent] = {kCondition, result, kOwn, worker};
  EXPECT_EQ(evidence.of_hang().id, "task-waits-in-own-pool");
  evidence.proc.processes[kParent].thread(kThird).waits_on(kAddress);
  evidence.python[kThird] = {kCondition, {kLibrary + "threading.py", 622, "Event.wait"}, kOwn, worker};
  EXPECT_EQ(evidence.of_hang().id, "never-notified") << "the task that it waits for waits for something else";
  evidence.python[kThird] = {kCondition, result, kOwn, worker};
  EXPECT_EQ(evidence.of_hang().id, "task-waits-in-own-pool");
  evidence.proc.processes[kParent].threads.erase(kThird);
  evidence.python[kParent] = {kCondition, result, kOwn};
  EXPECT_EQ(evidence.of_hang().id, "never-notified") << "it runs no task";
}

TEST(WaitCauses, ExitHandlerWaits) {
  CauseEvidence evidence;
  TreeProcess& process = evidence.proc.process(kParent);
  process.thread(kParent).waits_on(kAddress);
  process.thread(kThird).waits_on(kAddress);
  evidence.python[kParent] = {{kLibrary + "threading.py", 1583, "_shutdown"}};
  evidence.python[kThird] = {kCondition, kOwn};
  const HangCause cause = evidence.of_hang();
  EXPECT_EQ(cause.id, "exit-handler-waits");
  EXPECT_THAT(cause.explanation, HasSubstr("thread " + std::to_string(kThird)));
}

TEST(WaitCauses, AFunctionGivenToAtexitWaits) {
  CauseEvidence evidence;
  evidence.proc.process(kParent).thread(kParent).waits_on(kAddress);
  evidence.python[kParent] = {{kLibrary + "threading.py", 1112, "Thread.join"}};
  EXPECT_EQ(evidence.of_hang().id, "no-waker");
  evidence.native[kParent] = {"PyThread_acquire_lock_timed (python3.11)", "Py_FinalizeEx (python3.11)"};
  EXPECT_EQ(evidence.of_hang().id, "exit-handler-waits");
  for (const auto& native : std::vector<std::vector<std::string>>{
           {"libc.so.6+0x1", "python3.14+0x1234", "_Py_Finalize.part.0 (python3.14)", "Py_BytesMain (python3.14)"},
           {"libc.so.6+0x1", "python3.13+0x1234", "Py_RunMain (python3.13)"}}) {
    evidence.native[kParent] = native;
    EXPECT_EQ(evidence.of_hang().id, "exit-handler-waits") << native[2];
  }
  for (const auto& [file, function] :
       {std::pair{"/home/anna/run.py", "<module>"}, std::pair{"<frozen runpy>", "main"}}) {
    evidence.python[kParent].push_back({file, 7, function});
    EXPECT_EQ(evidence.of_hang().id, "no-waker") << file;
    evidence.python[kParent].pop_back();
  }
}

TEST(WaitCauses, AGreenletIsNoFunctionGivenToAtexit) {
  CauseEvidence evidence;
  evidence.proc.process(kParent).thread(kParent).waits_on(kAddress);
  evidence.python[kParent] = {{kLibrary + "site-packages/gevent/hub.py", 647, "Hub.run"}};
  evidence.native[kParent] = {"ev_run (libev.so.4)", "PyEval_EvalCode (python3.11)", "Py_RunMain (python3.11)"};
  EXPECT_EQ(evidence.of_hang().id, "no-waker") << "the main module runs below it";
}

TEST(WaitCauses, NeverNotifiedNamesWhereItWaits) {
  CauseEvidence evidence;
  evidence.proc.process(kParent).thread(kParent).waits_on(kAddress);
  evidence.python[kParent] = {kCondition, {kLibrary + "threading.py", 622, "Event.wait"}, kOwn};
  const HangCause cause = evidence.of_hang();
  EXPECT_EQ(cause.id, "never-notified");
  EXPECT_TRUE(cause.looks_idle);
  EXPECT_THAT(cause.explanation, HasSubstr("threading.Event.wait at /home/anna/run.py:7"));
}

TEST(WaitCauses, NeverNotifiedBecauseATaskOfAPoolWaits) {
  CauseEvidence evidence;
  evidence.proc.process(kParent).thread(kParent).waits_on(kAddress);
  evidence.proc.process(kChild, kParent).pipe(3, 70, O_RDONLY).thread(kChild).reads(3);
  evidence.proc.process(kThird, kParent).pipe(4, 70, O_WRONLY).thread(kThird).waits_on(kAddress);
  const PythonFrame worker{kLibrary + "multiprocessing/pool.py", 125, "worker"};
  evidence.python[kParent] = {kCondition, {kLibrary + "multiprocessing/pool.py", 768, "ApplyResult.wait"}, kOwn};
  evidence.python[kChild] = {{"/home/anna/run.py", 3, "task"}, worker};
  evidence.python[kThird] = {{kLibrary + "multiprocessing/connection.py", 378, "Connection._recv"}, worker};
  const HangCause cause = evidence.of_hang();
  EXPECT_EQ(cause.id, "never-notified");
  EXPECT_THAT(cause.explanation, HasSubstr("worker, process 5000020, waits at /home/anna/run.py:3 for pipe 70"));
  evidence.python[kChild] = evidence.python[kThird];
  EXPECT_THAT(evidence.of_hang().explanation, Not(HasSubstr("worker"))) << "no worker has a task";
}

// It polls a pipe to itself, through which other threads would wake it.
TEST(WaitCauses, NeverNotifiedInAnEventLoop) {
  CauseEvidence evidence;
  polls_descriptor(&evidence.proc.process(kParent).pipe(3, 70, O_RDONLY).pipe(4, 70, O_WRONLY), 3, POLLIN);
  const PythonFrame selector{kLibrary + "selectors.py", 468, "EpollSelector.select"};
  const PythonFrame loop{kLibrary + "asyncio/base_events.py", 1884, "BaseEventLoop._run_once"};
  evidence.python[kParent] = {selector, loop, kOwn};
  const HangCause cause = evidence.of_hang();
  EXPECT_EQ(cause.id, "never-notified");
  EXPECT_THAT(cause.explanation, HasSubstr("at /home/anna/run.py:7"));
  evidence.python[kParent] = {selector, loop};
  EXPECT_THAT(evidence.of_hang().explanation, HasSubstr("waits in asyncio.base_events.BaseEventLoop._run_once"))
      << "that of a library";
  evidence.python[kParent] = {selector, kOwn};
  EXPECT_EQ(evidence.of_hang().id, "no-waker") << "no event loop";
}

/// Two ranks, whose parent waits for them.
CauseEvidence two_ranks(std::vector<PythonFrame> first, std::vector<PythonFrame> second) {
  CauseEvidence evidence;
  evidence.proc.process(kParent).thread(kParent).waits_for_child(-1);
  evidence.proc.process(kChild, kParent).thread(kChild).waits_on(kAddress);
  evidence.proc.process(kThird, kParent).thread(kThird).waits_on(kAddress);
  evidence.python[kParent] = {{kLibrary + "multiprocessing/popen_fork.py", 27, "Popen.poll"}, kOwn};
  evidence.python[kChild] = std::move(first);
  evidence.python[kThird] = std::move(second);
  return evidence;
}

const std::string kTorch = kLibrary + "site-packages/torch/";
const std::string kDistributedFile = kTorch + "distributed/distributed_c10d.py";
const PythonFrame kLogged{kTorch + "distributed/c10d_logger.py", 72, "wrapper"};
const PythonFrame kTrain{"/home/anna/train.py", 12, "train"}, kSave{"/home/anna/train.py", 30, "save"};

TEST(WaitCauses, CollectiveMismatch) {
  const PythonFrame gather{kDistributedFile, 2000, "all_gather"};
  const PythonFrame gather_object{kDistributedFile, 2300, "all_gather_object"};
  CauseEvidence evidence = two_ranks({gather, kLogged, gather_object, kLogged, kTrain}, {kCondition, kSave});
  const HangCause cause = evidence.of_hang();
  EXPECT_EQ(cause.id, "collective-mismatch");
  EXPECT_THAT(cause.explanation, HasSubstr("process 5000020 waits in all_gather_object at /home/anna/train.py:12; "
                                           "process 5000030 takes part in none, and waits at /home/anna/train.py:30"));
  EXPECT_THAT(cause.explanation, Not(HasSubstr(std::to_string(kParent)))) << "it is no rank";
  evidence.python[kThird] = {{kDistributedFile, 3600, "barrier"}, kLogged, kSave};
  EXPECT_EQ(evidence.of_hang().id, "collective-mismatch");
  evidence.python[kThird] = {{kDistributedFile, 900, "init_process_group"}, kSave};
  EXPECT_EQ(evidence.of_hang().id, "collective-mismatch") << "one has met the others before";
}

TEST(WaitCauses, CollectiveMismatchOfArgumentsAndMessages) {
  const PythonFrame broadcast{kDistributedFile, 1400, "broadcast"};
  EXPECT_THAT(two_ranks({broadcast, kTrain}, {broadcast, kTrain}).of_hang().explanation,
              HasSubstr("wait in one collective, with other arguments"));
  const PythonFrame receive{kDistributedFile, 1200, "recv"}, send{kDistributedFile, 1100, "send"};
  for (const PythonFrame& other : {receive, send}) {
    const HangCause cause = two_ranks({receive, kTrain}, {other, kTrain}).of_hang();
    EXPECT_EQ(cause.id, "collective-mismatch");
    EXPECT_THAT(cause.explanation, HasSubstr("send and receive what does not match"));
    EXPECT_THAT(cause.fix, HasSubstr("the same rank and tag"));
  }
}

TEST(WaitCauses, CollectiveMismatchOfAModelThatAllRanksShare) {
  const PythonFrame forward{kTorch + "nn/parallel/distributed.py", 1026, "DistributedDataParallel.forward"};
  const PythonFrame barrier{kDistributedFile, 3600, "barrier"};
  EXPECT_THAT(two_ranks({forward, kTrain}, {barrier, kTrain}).of_hang().explanation,
              HasSubstr("process 5000020 waits in DistributedDataParallel.forward at /home/anna/train.py:12"));
}

TEST(WaitCauses, RankMissing) {
  const PythonFrame barrier{kDistributedFile, 700, "_store_based_barrier"};
  const PythonFrame begin{kDistributedFile, 900, "init_process_group"};
  const HangCause cause = two_ranks({barrier, begin, kTrain}, {barrier, begin, kTrain}).of_hang();
  EXPECT_EQ(cause.id, "rank-missing");
  EXPECT_THAT(cause.explanation, HasSubstr("process 5000030 waits in init_process_group at /home/anna/train.py:12"));
}

TEST(WaitCauses, RankMissingOfNodes) {
  const PythonFrame node{kTorch + "distributed/elastic/rendezvous/static_tcp_rendezvous.py", 55,
                         "StaticTCPRendezvous.next_rendezvous"};
  const HangCause cause = two_ranks({node}, {node}).of_hang();
  EXPECT_EQ(cause.id, "rank-missing");
  EXPECT_THAT(cause.explanation, HasSubstr("process 5000020 (torchrun) waits for other nodes"));
  EXPECT_THAT(cause.fix, HasSubstr("--node_rank"));
}

TEST(WaitCauses, ShutdownOfRemoteCallsLeftOut) {
  const PythonFrame barrier{kTorch + "distributed/rpc/api.py", 271, "_barrier"};
  const PythonFrame shutdown{kTorch + "distributed/rpc/api.py", 309, "shutdown"};
  const HangCause cause = two_ranks({kCondition, barrier, shutdown, kTrain}, {kCondition, kSave}).of_stall();
  EXPECT_EQ(cause.id, "collective-mismatch");
  EXPECT_THAT(cause.explanation, HasSubstr("process 5000020 waits in rpc.shutdown at /home/anna/train.py:12; process "
                                           "5000030 takes part in none, and waits at /home/anna/train.py:30"));
  EXPECT_THAT(cause.fix, HasSubstr("call rpc.shutdown() in all workers"));
  EXPECT_EQ(two_ranks({shutdown, kTrain}, {shutdown, kTrain}).of_stall().id, "unknown") << "none was left out";
}

TEST(WaitCauses, ARemoteCallWaitsForAnother) {
  const PythonFrame call{kTorch + "distributed/rpc/api.py", 800, "rpc_sync"};
  const PythonFrame task{kTorch + "distributed/rpc/internal.py", 190, "_run_function"};
  const HangCause cause = two_ranks({call, kTrain, task}, {call, kTrain}).of_stall();
  EXPECT_EQ(cause.id, "task-waits-in-own-pool");
  EXPECT_THAT(cause.explanation, HasSubstr("process 5000020 runs a remote function of torch.distributed.rpc, and waits "
                                           "in it at /home/anna/train.py:12"));
  EXPECT_EQ(two_ranks({call, kTrain}, {call, kTrain}).of_stall().id, "unknown") << "no remote function waits";
}

TEST(WaitCauses, NoCollectiveIsMismatchedWithoutTorch) {
  const PythonFrame other{"/home/anna/distributed_c10d.py", 700, "all_reduce"};
  const PythonFrame data{kTorch + "utils/data/dataloader.py", 700, "_next"};
  EXPECT_EQ(two_ranks({kCondition, kTrain}, {kCondition, kSave}).of_hang().id, "never-notified");
  EXPECT_EQ(two_ranks({other, kTrain}, {data, kSave}).of_hang().id, "no-waker");
}

// kChild serves the store and is a client of it: socket 70 asks, socket 71 answers.
TEST(WaitCauses, StoreKeyMissing) {
  CauseEvidence evidence;
  evidence.boundary.assumptions.no_outside_peers = true;
  evidence.proc.process(kParent).thread(kParent).waits_for_child(kChild);
  TreeProcess& child = evidence.proc.process(kChild, kParent).socket(4, 72).socket(5, 70).socket(6, 71);
  child.map("r-xp", 9, kTorch + "lib/libtorch_cpu.so").thread(kThird).call(SYS_accept, {4});
  evidence.proc.tcp = tcp_line("00000000:1F90", "00000000:0000", kListening, 72) +
                      tcp_line(kClient, kServer, kEstablished, 70) + tcp_line(kServer, kClient, kEstablished, 71);
  child.thread(kChild).call(SYS_recvfrom, {5});
  EXPECT_EQ(evidence.of_hang().id, "store-key-missing");
  polls_descriptor(&child, 5, POLLIN);
  EXPECT_EQ(evidence.of_hang().id, "store-key-missing");
  polls_descriptor(&child, 6, POLLIN);
  EXPECT_NE(evidence.of_hang().id, "store-key-missing") << "a server waits to be asked";
}

// A thread that no other waits for is not what a person waits for.
TEST(WaitCauses, AreNotFoundBesideTheChain) {
  CauseEvidence evidence;
  TreeProcess& parent = evidence.proc.process(kParent).pipe(3, 70, O_RDONLY).pipe(4, 71, O_WRONLY);
  parent.thread(kParent).reads(3);
  parent.thread(kThird).waits_on(kAddress);
  evidence.python[kThird] = {kCondition, kOwn};
  evidence.proc.process(kChild, kParent).pipe(3, 71, O_RDONLY).pipe(4, 70, O_WRONLY).thread(kChild).reads(3);
  EXPECT_EQ(evidence.of_hang().id, "pipe-cycle");
}

TEST(WaitCauses, NeverNotifiedByACounterOrAFutureOfTorch) {
  CauseEvidence evidence;
  TreeProcess& process = evidence.proc.process(kParent).eventfd(5, 9);
  process.thread(kParent).reads(5);
  evidence.python[kParent] = {kOwn};
  EXPECT_EQ(evidence.of_hang().id, "never-notified");
  process.thread(kParent).waits_on(kAddress);
  EXPECT_EQ(evidence.of_hang().id, "no-waker") << "whatever it waits for";
  evidence.python[kParent] = {{kTorch + "futures/__init__.py", 76, "Future.wait"}, kOwn};
  EXPECT_EQ(evidence.of_hang().id, "never-notified");
}

TEST(WaitCauses, TheLastRuleNamesWhatCouldAct) {
  CauseEvidence evidence;
  evidence.proc.process(kParent).thread(kParent).waits_for_child(kChild);
  evidence.proc.process(kChild, kParent).thread(kChild).waits_on(kAddress);
  const HangCause cause = evidence.of_hang();
  EXPECT_EQ(cause.id, "no-waker");
  EXPECT_THAT(cause.explanation, HasSubstr("which only " + std::to_string(kChild) + " could end"));
  EXPECT_THAT(cause.explanation, HasSubstr("which only threads that wait themselves could end"));
}

}  // namespace
}  // namespace mprun
