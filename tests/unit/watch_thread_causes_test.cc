// Causes among the threads of one process: a tree in which each rule fires, and a similar one.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cause_evidence.h"

namespace mprun {
namespace {

using testing::HasSubstr;

constexpr std::uint64_t kLockWord = 0x5000;
const std::string kLib = "/usr/lib/python3.11/";
const PythonFrame kJoin{kLib + "threading.py", 1112, "Thread.join"};
const PythonFrame kUser{"/home/anna/run.py", 7, "main"};

TEST(ThreadCauses, ThreadsJoinEachOther) {
  CauseEvidence evidence;
  TreeProcess& process = evidence.proc.process(kParent);
  for (const pid_t tid : {kParent, kChild, kThird}) {
    process.thread(tid).waits_on(kLockWord);
    evidence.python[tid] = {kJoin, kUser};
  }
  const HangCause cause = evidence.of_hang();
  EXPECT_EQ(cause.id, "lock-cycle");
  EXPECT_THAT(cause.explanation, HasSubstr("every thread of process 5000010 waits for the end of another one"));
  EXPECT_THAT(cause.explanation, HasSubstr("5000020 at /home/anna/run.py:7"));
  evidence.python[kThird] = {{"/home/anna/run.py", 9, "work"}};
  EXPECT_EQ(evidence.of_hang().explanation.find("for the end of another one"), std::string::npos)
      << "that one could let the others go on";
}

TEST(ThreadCauses, LockOfCachedProperty) {
  CauseEvidence evidence;
  evidence.proc.process(kParent).thread(kParent).waits_on(kLockWord);
  evidence.proc.processes[kParent].thread(kThird).waits_on(kLockWord);
  for (const pid_t tid : {kParent, kThird}) {
    evidence.waits[tid] = {WaitKind::kFutex, "futex 0x5000", {}, {{kParent, 0}}};
    evidence.waits[tid].semaphore = true;
  }
  evidence.python[kParent] = {kJoin, kUser};
  evidence.python[kThird] = {{kLib + "functools.py", 989, "cached_property.__get__"}, kUser};
  EXPECT_EQ(evidence.of_hang().id, "lock-cycle");
  evidence.python[kThird] = {{kLib + "functools.py", 989, "singledispatch.<locals>.wrapper"}, kUser};
  EXPECT_NE(evidence.of_hang().id, "lock-cycle");
}

TEST(ThreadCauses, ClosedWhileWaiting) {
  CauseEvidence evidence;
  TreeProcess& process = evidence.proc.process(kParent).pipe(4, 70, O_WRONLY);
  process.thread(kParent).waits_on(kLockWord);
  process.thread(kThird).reads(3);
  evidence.python[kParent] = {kJoin, kUser};
  evidence.python[kThird] = {{"/home/anna/run.py", 9, "serve"}};
  EXPECT_EQ(evidence.of_hang().id, "no-waker") << "what it waits for cannot be seen";
  evidence.boundary.assumptions.no_outside_peers = true;
  const HangCause cause = evidence.of_hang();
  EXPECT_EQ(cause.id, "closed-while-waiting");
  EXPECT_THAT(cause.explanation, HasSubstr("waits at /home/anna/run.py:9 for descriptor 3"));
  process.pipe(3, 70, O_RDONLY);
  EXPECT_NE(evidence.of_hang().id, "closed-while-waiting");
}

TEST(ThreadCauses, ReaderIsJoined) {
  CauseEvidence evidence;
  TreeProcess& process = evidence.proc.process(kParent).pipe(3, 70, O_RDONLY).pipe(4, 70, O_WRONLY);
  process.thread(kParent).waits_on(kLockWord);
  process.thread(kThird).reads(3);
  evidence.python[kParent] = {kJoin, kUser};
  evidence.python[kThird] = {{"/home/anna/run.py", 9, "serve"}};
  const HangCause cause = evidence.of_hang();
  EXPECT_EQ(cause.id, "input-never-closed");
  EXPECT_THAT(cause.explanation, HasSubstr("thread 5000030 of process 5000010 reads pipe 70"));
  EXPECT_THAT(cause.explanation, HasSubstr("waits for the end of a thread at /home/anna/run.py:7"));
  EXPECT_THAT(cause.fix, HasSubstr("shut it down"));
  evidence.python[kThird].insert(evidence.python[kThird].begin(),
                                 {"/usr/lib/python3.11/multiprocessing/queues.py", 103, "Queue.get"});
  EXPECT_EQ(evidence.of_hang().id, "input-never-closed");
  EXPECT_THAT(evidence.of_hang().fix, HasSubstr("such as None"));
  evidence.proc.process(kChild, kParent).pipe(4, 70, O_WRONLY).thread(kChild).waits_on(kLockWord);
  EXPECT_NE(evidence.of_hang().id, "input-never-closed") << "another process was to write";
}

TEST(ThreadCauses, LoopWaitsForFuture) {
  CauseEvidence evidence;
  evidence.proc.process(kParent).thread(kParent).waits_on(kLockWord);
  evidence.python[kParent] = {{kLib + "threading.py", 320, "Condition.wait"},
                              {kLib + "concurrent/futures/_base.py", 451, "Future.result"},
                              kUser,
                              {kLib + "asyncio/base_events.py", 1909, "BaseEventLoop._run_once"}};
  const HangCause cause = evidence.of_hang();
  EXPECT_EQ(cause.id, "task-waits-in-own-pool");
  EXPECT_THAT(cause.explanation,
              HasSubstr("waits in its event loop for a future (Future.result at /home/anna/run.py:7)"));
  evidence.proc.processes[kParent].thread(kThird).waits_on(kLockWord);
  evidence.python[kThird] = {{"/home/anna/run.py", 9, "work"},
                             {kLib + "concurrent/futures/thread.py", 58, "_WorkItem.run"}};
  EXPECT_NE(evidence.of_hang().id, "task-waits-in-own-pool") << "that task would set the future";
}

}  // namespace
}  // namespace mprun
