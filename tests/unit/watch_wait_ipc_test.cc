// Waits for semaphores and message queues: which processes may act on them?
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/sem.h>

#include "fake_proc.h"

namespace mprun {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

constexpr std::uint64_t kOperationsAt = 0x9000, kSet = 3, kQueue = 7;
constexpr int kPrivate = 0, kKey = 0x6d70;
constexpr pid_t kOutside = 1;  // for example mprun
constexpr pid_t kGone = 77;
const std::string kOutsideUsesSet = "a process outside may use System V semaphore set 3";
const std::string kOutsideUsesQueue = "a process outside may use message queue 7";
const std::string kOutsideUsesName = "a process outside may use message queue /jobs";

/// A line of /proc/sysvipc, with its heading. `age`: seconds since it was made.
std::string semaphore_table(int key, int age = 0) {
  const auto changed = wall_now() / kNanosPerSecond - age;
  return "       key      semid perms      nsems   uid   gid  cuid  cgid      otime      ctime\n" +
         std::to_string(key) + " 3 600 2 0 0 0 0 0 " + std::to_string(changed) + "\n";
}
std::string queue_table(int key, pid_t sender, pid_t receiver, int age = 0) {
  const auto changed = wall_now() / kNanosPerSecond - age;
  return "       key      msqid perms      cbytes       qnum lspid lrpid   uid   gid  cuid  cgid      stime      rtime "
         "     "
         "ctime\n" +
         std::to_string(key) + " 7 600 0 0 " + std::to_string(sender) + " " + std::to_string(receiver) +
         " 0 0 0 0 0 0 " + std::to_string(changed) + "\n";
}

/// 10 waits for its child 11, which waits for semaphore 1 of a set.
FakeProc semaphore_waiter(int key, short flags = 0, short operation = -1) {
  FakeProc proc;
  proc.sysv_semaphores = semaphore_table(key);
  proc.semaphore_users[{kSet, 1}] = 10;
  proc.process(10).thread(10).waits_for_child(11);
  proc.process(11, 10).put(kOperationsAt, sembuf{1, operation, flags});
  proc.processes[11].thread(11).call(SYS_semtimedop, {kSet, kOperationsAt, 1, 0});
  return proc;
}

/// The same for a queue; -5: of types up to 5, 0: of any, and to send: flags.
FakeProc queue_user(std::int64_t number, int key, pid_t sender = 0, pid_t receiver = 0) {
  FakeProc proc;
  proc.sysv_queues = queue_table(key, sender, receiver);
  proc.process(10).thread(10).waits_for_child(11);
  proc.process(11, 10).thread(11).call(number, {kQueue, 0x1000, 8, 0, 0});
  return proc;
}

TreeProcess& opens_queue(TreeProcess* process, std::uint64_t flags, const std::string& name = "/jobs") {
  return process->open(5, name, flags, "ino:\t55\n");
}

/// The same for a POSIX queue, which 11 has open both ways and 10 as `partner`.
FakeProc posix_queue_user(std::int64_t number, std::uint64_t partner, const std::string& name = "/jobs") {
  FakeProc proc;
  opens_queue(&proc.process(10), partner, name).thread(10).waits_for_child(11);
  opens_queue(&proc.process(11, 10), O_RDWR, name).thread(11).call(number, {5, 0x1000, 8, 0, 0});
  return proc;
}

/// Whether an idle server may look the same.
bool may_serve(FakeProc* proc) {
  const Sample sample = take_sample(proc, process_tree(proc, 1, false));
  TreeSnapshot snapshot(proc, &sample, none_outside_acts());
  EXPECT_TRUE(judge(sample, &snapshot).is_deadlock());
  return snapshot.assumes_no_client();
}

TEST(IpcWait, ProvesNothing) {
  FakeProc semaphore = semaphore_waiter(kPrivate, SEM_UNDO);
  FakeProc queue = queue_user(SYS_msgrcv, kPrivate);
  FakeProc full = queue_user(SYS_msgsnd, kPrivate);
  FakeProc posix = posix_queue_user(SYS_mq_timedreceive, O_WRONLY, "/jobs (deleted)");
  for (FakeProc* proc : {&semaphore, &queue, &full, &posix}) {
    const Judged all = judged(proc);
    EXPECT_THAT(all.stuck, IsEmpty());
    EXPECT_THAT(all.assumed, IsEmpty());
  }
  EXPECT_EQ(judged(&semaphore).waits.at(11).why_live, kOutsideUsesSet);
  EXPECT_EQ(judged(&queue).waits.at(11).why_live, kOutsideUsesQueue);
  EXPECT_EQ(judged(&posix).waits.at(11).why_live, kOutsideUsesName);
}

TEST(IpcWait, IsEndedByAnyProcessOfTheTreeIfNoneOutsideActs) {
  FakeProc proc = semaphore_waiter(kPrivate);
  const Judged all = judged(&proc, none_outside_acts());
  EXPECT_EQ(all.waits.at(11).kind, WaitKind::kSemaphore);
  EXPECT_EQ(all.waits.at(11).object, "semaphore 1 of System V semaphore set 3");
  EXPECT_THAT(all.waits.at(11).wakers, UnorderedElementsAre(Waker{10, 0}, Waker{11, 0}));
  EXPECT_TRUE(all.is_deadlock);
  EXPECT_THAT(all.assumed, ElementsAre(kOutsideUsesSet));
  proc.process(12).thread(12).sleeps();  // it may act when it wakes up
  EXPECT_FALSE(judged(&proc, none_outside_acts()).is_stuck(11));
  proc.processes[12].threads[12].waits_on(0x5000);
  EXPECT_TRUE(judged(&proc, none_outside_acts()).is_deadlock);
  proc.processes[12].hidden_descriptors = true;
  EXPECT_EQ(judged(&proc, none_outside_acts()).waits.at(11).why_live, "mprun may not look at process 12");
}

TEST(IpcWait, InATreeOfOthersIsOfTheTreeIfNothingElseCanFindTheObject) {
  TreeBoundary open = none_outside_acts();
  open.closed = false;
  FakeProc of_tree = semaphore_waiter(kPrivate);
  EXPECT_THAT(judged(&of_tree, open).assumed, ElementsAre(kOutsideUsesSet));
  FakeProc of_anybody = semaphore_waiter(kKey);
  EXPECT_EQ(judged(&of_anybody, open).waits.at(11).why_live, kOutsideUsesSet);
}

TEST(IpcWait, IsNamedByItsCall) {
  FakeProc proc = queue_user(SYS_msgrcv, kPrivate);
  const auto wait = [&] { return judged(&proc, none_outside_acts()).waits.at(11); };
  EXPECT_EQ(wait().kind, WaitKind::kMessageRead);
  EXPECT_EQ(wait().object, "a message in message queue 7");
  proc.processes[11].threads[11].arguments[3] = 5;
  EXPECT_EQ(wait().object, "a message of type 5 in message queue 7");
  proc.processes[11].threads[11].arguments[3] = static_cast<std::uint64_t>(-5);
  EXPECT_EQ(wait().object, "a message in message queue 7");
  proc = queue_user(SYS_msgsnd, kPrivate);
  EXPECT_EQ(wait().kind, WaitKind::kMessageWrite);
  EXPECT_EQ(wait().object, "room in message queue 7");
  proc = posix_queue_user(SYS_mq_timedreceive, O_RDWR, "/jobs (deleted)");
  EXPECT_EQ(wait().kind, WaitKind::kMessageRead);
  EXPECT_EQ(wait().object, "a message in message queue /jobs");
  proc = posix_queue_user(SYS_mq_timedsend, O_RDWR);
  EXPECT_EQ(wait().kind, WaitKind::kMessageWrite);
  EXPECT_EQ(wait().object, "room in message queue /jobs");
}

TEST(IpcWait, OfSeveralSemaphores) {
  FakeProc proc = semaphore_waiter(kPrivate);
  proc.semaphore_users[{kSet, 0}] = 11;
  proc.processes[11].put(kOperationsAt, std::array<sembuf, 3>{{{0, -1, 0}, {1, 0, 0}, {9, 1, 0}}});
  proc.processes[11].threads[11].call(SYS_semop, {kSet, kOperationsAt, 3, 0x7777});  // the last is no argument
  EXPECT_EQ(judged(&proc, none_outside_acts()).waits.at(11).object, "semaphores of System V semaphore set 3");
  EXPECT_TRUE(judged(&proc, none_outside_acts()).is_deadlock);
  proc.processes[11].threads[11].arguments[2] = 1U << 30U;
  EXPECT_EQ(judged(&proc, none_outside_acts()).waits.at(11).why_live, kOutsideUsesSet);
  proc.processes[11].put(kOperationsAt, sembuf{9, 1, 0}).threads[11].arguments[2] = 1;
  EXPECT_EQ(judged(&proc, none_outside_acts()).waits.at(11).why_live, kOutsideUsesSet)
      << "it posts, and waits for nothing";
  proc.processes[11].threads[11].arguments[1] = 0x4;
  EXPECT_EQ(judged(&proc, none_outside_acts()).waits.at(11).why_live, kOutsideUsesSet) << "memory that is not there";
}

TEST(IpcWait, WithATimeLimitEndsByItself) {
  FakeProc proc = semaphore_waiter(kPrivate);
  TreeThread& thread = proc.processes[11].put(0x4000, timespec{100, 0}).threads[11];
  thread.arguments[3] = 0x4000;
  EXPECT_TRUE(judged(&proc, none_outside_acts()).waits.at(11).timed);
  EXPECT_THAT(judged(&proc, none_outside_acts()).stuck, IsEmpty());
  TreeBoundary far = none_outside_acts();
  far.assumptions.no_limit_from = 60 * kNanosPerSecond;
  EXPECT_TRUE(judged(&proc, far).is_deadlock);
  FakeProc posix = posix_queue_user(SYS_mq_timedreceive, O_WRONLY);
  posix.processes[11].put(0x4000, timespec{wall_now() / kNanosPerSecond + 100, 0}).threads[11].arguments[4] = 0x4000;
  EXPECT_THAT(judged(&posix, none_outside_acts()).stuck, IsEmpty());
  EXPECT_TRUE(judged(&posix, far).is_deadlock);
}

TEST(IpcWait, IsLiveIfTheTreeHasNotMadeTheObject) {
  constexpr int kOlder = 3600;
  TreeBoundary young = none_outside_acts();
  young.begun = wall_now() - 60 * kNanosPerSecond;
  FakeProc proc = semaphore_waiter(kPrivate, SEM_UNDO);
  EXPECT_TRUE(judged(&proc, young).is_deadlock);
  proc.sysv_semaphores = semaphore_table(kPrivate, kOlder);
  EXPECT_EQ(judged(&proc, young).waits.at(11).why_live, kOutsideUsesSet);
  proc = queue_user(SYS_msgsnd, kPrivate);
  proc.sysv_queues = queue_table(kPrivate, 0, 0, kOlder);
  EXPECT_EQ(judged(&proc, young).waits.at(11).why_live, kOutsideUsesQueue);
  proc.sysv_queues = queue_table(kPrivate, 0, 0);
  EXPECT_TRUE(judged(&proc, young).is_deadlock);
  proc.processes[11].threads[11].arguments[0] = 8;
  EXPECT_EQ(judged(&proc, young).waits.at(11).why_live, "a process outside may use message queue 8") << "there is none";
}

TEST(IpcWait, IsLiveInAnotherNamespace) {
  FakeProc proc = semaphore_waiter(kPrivate);
  proc.processes[11].ipc_namespace = "ipc:[2]";
  EXPECT_EQ(judged(&proc, none_outside_acts()).waits.at(11).why_live, kOutsideUsesSet) << "set 3 here is another one";
  proc = queue_user(SYS_msgrcv, kPrivate);
  proc.processes[11].ipc_namespace = "ipc:[2]";
  EXPECT_EQ(judged(&proc, none_outside_acts()).waits.at(11).why_live, kOutsideUsesQueue);
}

TEST(IpcWait, IsLiveIfAProcessOutsideUsesTheObject) {
  FakeProc proc = semaphore_waiter(kPrivate);
  proc.semaphore_users[{kSet, 1}] = kOutside;
  EXPECT_EQ(judged(&proc, none_outside_acts()).waits.at(11).why_live, kOutsideUsesSet);
  proc.semaphore_users.clear();
  EXPECT_EQ(judged(&proc, none_outside_acts()).waits.at(11).why_live, kOutsideUsesSet) << "its users are not known";
  for (const auto& [sender, receiver] : {std::pair{kOutside, 0}, std::pair{0, kOutside}}) {
    for (const std::int64_t number : {SYS_msgrcv, SYS_msgsnd}) {
      proc = queue_user(number, kPrivate, sender, receiver);
      EXPECT_EQ(judged(&proc, none_outside_acts()).waits.at(11).why_live, kOutsideUsesQueue);
    }
  }
  for (const std::int64_t number : {SYS_mq_timedreceive, SYS_mq_timedsend}) {
    proc = posix_queue_user(number, O_RDWR, "/jobs (deleted)");
    EXPECT_TRUE(judged(&proc, none_outside_acts()).is_deadlock);
    opens_queue(&proc.processes[1], O_RDWR, "/jobs (deleted)");
    EXPECT_EQ(judged(&proc, none_outside_acts()).waits.at(11).why_live, kOutsideUsesName);
    proc.processes[1].open(5, "/jobs (deleted)", O_RDWR, "ino:\t56\n");
    EXPECT_TRUE(judged(&proc, none_outside_acts()).is_deadlock) << "another queue that had the same name";
  }
}

// A process that takes a lock is no server, and one that sends has something to say.
TEST(IpcWait, OfWhatOnlyTheTreeKnowsIsNoServersIfItIsUrgent) {
  const auto is_urgent = [](FakeProc proc) {
    EXPECT_FALSE(may_serve(&proc));
    return judged(&proc, none_outside_acts()).waits.at(11).urgent;
  };
  EXPECT_FALSE(is_urgent(semaphore_waiter(kPrivate)));
  EXPECT_TRUE(is_urgent(semaphore_waiter(kPrivate, SEM_UNDO)));
  EXPECT_TRUE(is_urgent(semaphore_waiter(kPrivate, 0, 0))) << "until it is zero";
  EXPECT_FALSE(is_urgent(queue_user(SYS_msgrcv, kPrivate)));
  EXPECT_TRUE(is_urgent(queue_user(SYS_msgsnd, kPrivate)));
  EXPECT_FALSE(is_urgent(posix_queue_user(SYS_mq_timedreceive, O_RDWR, "/jobs (deleted)")));
  EXPECT_TRUE(is_urgent(posix_queue_user(SYS_mq_timedsend, O_RDWR, "/jobs (deleted)")));
}

TEST(IpcWait, OfWhatOthersCanFindMayBeAServersUnlessThePartnerIsInTheTree) {
  const auto serves = [](FakeProc proc) {
    const bool may = may_serve(&proc);
    EXPECT_FALSE(may && judged(&proc, none_outside_acts()).waits.at(11).urgent);
    return may;
  };
  EXPECT_TRUE(serves(semaphore_waiter(kKey))) << "10 may only have set it up";
  EXPECT_FALSE(serves(semaphore_waiter(kKey, SEM_UNDO)));
  FakeProc proc = semaphore_waiter(kKey, SEM_UNDO);
  proc.semaphore_users[{kSet, 1}] = kGone;
  EXPECT_TRUE(serves(proc)) << "perhaps a client";
  EXPECT_TRUE(serves(queue_user(SYS_msgrcv, kKey))) << "nothing has been sent yet";
  EXPECT_TRUE(serves(queue_user(SYS_msgrcv, kKey, kGone, 11)));
  EXPECT_FALSE(serves(queue_user(SYS_msgrcv, kKey, 10, 11)));
  EXPECT_TRUE(serves(queue_user(SYS_msgsnd, kKey, 11, 0)));
  EXPECT_FALSE(serves(queue_user(SYS_msgsnd, kKey, 11, 10)));
  EXPECT_TRUE(serves(posix_queue_user(SYS_mq_timedreceive, O_RDWR)));
  EXPECT_FALSE(serves(posix_queue_user(SYS_mq_timedreceive, O_WRONLY)));
  EXPECT_TRUE(serves(posix_queue_user(SYS_mq_timedsend, O_RDWR)));
  EXPECT_FALSE(serves(posix_queue_user(SYS_mq_timedsend, O_RDONLY)));
}

TEST(IpcWait, OfNoQueueIsLive) {
  FakeProc proc = posix_queue_user(SYS_mq_timedreceive, O_WRONLY);
  proc.processes[11].threads[11].arguments[0] = 9;
  EXPECT_EQ(judged(&proc, none_outside_acts()).waits.at(11).why_live, "an unknown message queue");
}

}  // namespace
}  // namespace mprun
