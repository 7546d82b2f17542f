// Waits in futex(2): locks of one process, of several, ends of threads.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fake_proc.h"
#include "watch/sample/architecture.h"

namespace mprun {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

constexpr std::uint64_t kFutexWord = FakeProc::kMapped + 0x40;

TEST(Futex, OfOneProcessIsEndedByIt) {
  FakeProc proc;
  proc.process(10).thread(10).waits_on(0x5000);
  proc.process(11).thread(11).sleeps();  // has nothing to do with it
  Judged all = judged(&proc);
  EXPECT_EQ(all.waits.at(10).kind, WaitKind::kFutex);
  EXPECT_EQ(all.waits.at(10).address, 0x5000U);
  EXPECT_TRUE(all.is_stuck(10));
  EXPECT_FALSE(all.is_deadlock);
  proc.processes[10].thread(20).sleeps();
  EXPECT_FALSE(judged(&proc).is_stuck(10));
}

TEST(Futex, WithATimeLimitIsLive) {
  FakeProc proc;
  proc.process(10).thread(10).waits_on(0x5000).arguments[3] = 0x7ffc0000;
  EXPECT_TRUE(judged(&proc).waits.at(10).timed);
  EXPECT_THAT(judged(&proc).stuck, IsEmpty());
}

TEST(Futex, OperationThatIsNotKnownIsLive) {
  FakeProc proc;
  for (const unsigned operation : {FUTEX_WAKE, FUTEX_REQUEUE, 77}) {
    proc.process(10).thread(10).call(SYS_futex, {0x5000, operation | FUTEX_PRIVATE_FLAG, 0, 0});
    EXPECT_THAT(judged(&proc).stuck, IsEmpty()) << operation;
  }
}

TEST(Futex, OfAMutexNamesItsOwner) {
  FakeProc proc;
  proc.process(10).waits_for_mutex(10, 0x5000, 20);
  const Wait wait = judged(&proc).waits.at(10);
  EXPECT_EQ(wait.kind, WaitKind::kMutex);
  EXPECT_EQ(wait.owner, 20);
  EXPECT_THAT(wait.wakers, UnorderedElementsAre(Waker{10, 0}));
}

// A lock of another library, which also uses 2 for "waited for", with any number in the memory after it.
TEST(Futex, OfAnotherLibraryHasNoOwner) {
  FakeProc other_code;
  other_code.process(10).put(0x5000, std::array<std::int32_t, 10>{2, 0, 20, 1});
  other_code.processes[10].thread(10).call(SYS_futex, {0x5000, FUTEX_WAIT_PRIVATE, 2, 0});
  FakeProc other_words;
  other_words.process(10).waits_for_mutex(10, 0x5000, 20);
  other_words.processes[10].put(0x500c, std::int32_t{0});  // no thread uses it
  for (FakeProc* proc : {&other_code, &other_words}) {
    const Wait wait = judged(proc).waits.at(10);
    EXPECT_EQ(wait.kind, WaitKind::kFutex);
    EXPECT_EQ(wait.owner, 0);
    EXPECT_THAT(wait.object, testing::Not(HasSubstr("mutex")));
  }
}

// clone(CLONE_VM): one space of futexes, whichever is the parent of which.
TEST(Futex, IsEndedByAnyProcessThatSharesTheMemory) {
  for (const pid_t parent : {10, 1}) {
    FakeProc proc;
    proc.process(10).thread(10).waits_on(0x5000);
    proc.process(11, parent).thread(11).sleeps();
    EXPECT_TRUE(judged(&proc).is_stuck(10));
    proc.processes[10].memory_of = proc.processes[11].memory_of = 1;
    EXPECT_FALSE(judged(&proc).is_stuck(10)) << "a child of " << parent;
  }
}

TEST(Futex, MayBeEndedByProcessesThatMightShareTheMemory) {
  FakeProc proc;
  proc.process(10).thread(10).waits_on(0x5000);
  proc.process(11, 10).thread(11).sleeps();
  proc.knows_kcmp = false;
  EXPECT_FALSE(judged(&proc).is_stuck(10));
  proc.processes[11].statm = "101 5 1 1 0 1 0";  // another size: another memory
  EXPECT_TRUE(judged(&proc).is_stuck(10));
}

// While it runs, its size changes between two looks.
TEST(Futex, IsEndedByAProcessThatSharesTheMemoryAndRuns) {
  FakeProc proc;
  proc.process(10).thread(10).waits_on(0x5000);
  proc.process(11).thread(11).waits_on(0x6000);
  proc.processes[10].memory_of = proc.processes[11].memory_of = 1;
  proc.processes[11].statm = "101 5 1 1 0 1 0";
  Sample sample = take_sample(&proc, {10, 11});
  sample.threads[1].moved = true;
  TreeSnapshot snapshot(&proc, &sample, {});
  EXPECT_THAT(judge(sample, &snapshot).stuck, IsEmpty());
}

/// glibc's pthread_join(): a futex that is not private, in private memory, that holds the number of a thread.
FakeProc join() {
  FakeProc proc;
  TreeProcess& process = proc.process(10);
  process.map("rw-p", 0, "").put(kFutexWord, std::uint32_t{20});
  process.thread(10).call(SYS_futex, {kFutexWord, FUTEX_WAIT_BITSET | FUTEX_CLOCK_REALTIME, 20, 0});
  process.thread(20).waits_on(0x5000);
  return proc;
}

TEST(Futex, OfPthreadJoinIsEndedByThatThread) {
  FakeProc proc = join();
  Judged all = judged(&proc);
  EXPECT_EQ(all.waits.at(10).kind, WaitKind::kThreadEnd);
  EXPECT_THAT(all.waits.at(10).wakers, UnorderedElementsAre(Waker{10, 20}));
  EXPECT_TRUE(all.is_deadlock);
  proc.processes[10].threads[20].sleeps();
  EXPECT_THAT(judged(&proc).stuck, IsEmpty());
}

/// That of glibc 2.43: the futex is a state in the struct pthread of the thread.
TEST(Futex, OfPthreadJoinIsFoundByTheThreadItLiesIn) {
  constexpr architecture::PthreadLayout kLayout = architecture::kPthread;
  if (kLayout.join_state == 0) GTEST_SKIP() << "not known for this processor";
  constexpr std::uint64_t kPthread = kFutexWord, kState = kPthread + kLayout.join_state;
  FakeProc proc = join();
  TreeProcess& process = proc.processes[10];
  process.put(kPthread + kLayout.self, kPthread + kLayout.self_target).put(kPthread + kLayout.tid, std::int32_t{20});
  process.put(kState, std::uint32_t{2});
  process.thread(10).call(SYS_futex, {kState, FUTEX_WAIT_BITSET | FUTEX_CLOCK_REALTIME, 2, 0});
  EXPECT_THAT(judged(&proc).waits.at(10).wakers, UnorderedElementsAre(Waker{10, 20}));
  process.put(kPthread + kLayout.self, kPthread + 8);
  EXPECT_EQ(judged(&proc).waits.at(10).kind, WaitKind::kFutex) << "it is no struct pthread";
}

TEST(Futex, InUnknownMemoryIsLive) {
  FakeProc unmapped = join();
  unmapped.processes[10].threads[10].arguments[0] = 0x1234;
  EXPECT_THAT(judged(&unmapped).stuck, IsEmpty());
  FakeProc unread = join();
  unread.processes[10].bytes.erase(kFutexWord);
  EXPECT_THAT(judged(&unread).stuck, IsEmpty());
  FakeProc in_file = join();
  in_file.processes[10].maps = "7e0000000000-7e0000001000 r--p 00000000 00:01 7 /usr/share/x\n";
  EXPECT_THAT(judged(&in_file).stuck, IsEmpty());
}

/// 10 and its child 11 share a page without a file, and a lock in it; 12 does not.
FakeProc shared_page(const std::string& path = "/dev/zero (deleted)") {
  FakeProc proc;
  proc.process(10).map("rw-s", 900, path).thread(10).waits_on(kFutexWord, false);
  proc.process(11, 10).map("rw-s", 900, path).thread(11).waits_on(kFutexWord, false);
  proc.process(12).map("rw-s", 901, path).thread(12).sleeps();
  return proc;
}

TEST(SharedFutex, IsEndedByAnyProcessThatMapsTheSameFile) {
  FakeProc proc = shared_page();
  Judged all = judged(&proc);
  EXPECT_EQ(all.waits.at(10).kind, WaitKind::kSharedFutex);
  EXPECT_THAT(all.waits.at(10).wakers, UnorderedElementsAre(Waker{10, 0}, Waker{11, 0}));
  EXPECT_TRUE(all.is_stuck(10) && all.is_stuck(11));
  proc.processes[11].threads[11].sleeps();
  EXPECT_FALSE(judged(&proc).is_stuck(10));
}

TEST(SharedFutex, OnAnotherDeviceIsAnother) {
  FakeProc proc = shared_page();
  proc.process(13).map("rw-s", 900, "/dev/zero (deleted)", "00:02").thread(13).sleeps();
  EXPECT_TRUE(judged(&proc).is_stuck(10));
}

TEST(SharedFutex, WithInheritanceOfPriorityIsLive) {
  FakeProc proc = shared_page();
  proc.processes[10].threads[10].call(SYS_futex, {kFutexWord, FUTEX_LOCK_PI, 0, 0});
  EXPECT_FALSE(judged(&proc).is_stuck(10));
}

TEST(SharedFutex, IsLiveIfMappingsOfAProcessCannotBeRead) {
  FakeProc proc = shared_page();
  proc.process(13).thread(13).waits_on(0x5000);
  proc.processes[13].maps.clear();
  EXPECT_FALSE(judged(&proc).is_stuck(10));
}

TEST(SharedFutex, OfATreeThatIsNotOursIsLive) {
  FakeProc proc = shared_page();
  TreeBoundary boundary;
  boundary.closed = false;
  EXPECT_FALSE(judged(&proc, boundary).is_stuck(10));
}

TEST(SharedFutex, IsLiveWhereOthersMayKnowItsMemory) {
  for (const char* path : {"/memfd:fence (deleted)", "/SYSV00000000 (deleted)", "/dev/shm/sem.mine",
                           "/tmp/locks (deleted)", "/tmp/locks", "/dev/shm/psm_1234", "/i915", ""}) {
    FakeProc proc = shared_page(path);
    EXPECT_FALSE(judged(&proc).is_stuck(10)) << path;
  }
}

// How a semaphore of multiprocessing looks to its maker after its last name was removed; and with spawn.
TEST(SharedFutex, OfMultiprocessingIsItsOwn) {
  FakeProc unlinked = shared_page("/dev/shm/sem.Xy12Ab (deleted)");
  EXPECT_TRUE(judged(&unlinked).is_stuck(10));
  FakeProc named = shared_page("/dev/shm/sem.mp-a1b2c3d4");
  named.processes.erase(12);
  named.names[900] = {"sem.mp-a1b2c3d4"};
  EXPECT_TRUE(judged(&named).is_stuck(10));
  FakeProc loky = shared_page("/dev/shm/sem.Xy12Ab (deleted)");
  loky.processes.erase(12);
  loky.names[900] = {"sem.loky-77-xyz"};
  EXPECT_TRUE(judged(&loky).is_stuck(10));
}

// A worker started by spawn opens it when it gets that far.
TEST(SharedFutex, WithANameMayBeEndedByAllOfTheTree) {
  FakeProc proc = shared_page("/dev/shm/sem.mp-a1b2c3d4");
  proc.processes[12].threads[12].waits_on(0x5000);
  EXPECT_TRUE(judged(&proc).is_stuck(10));
  proc.processes[12].threads[12].sleeps();
  EXPECT_FALSE(judged(&proc).is_stuck(10));
}

TEST(SharedFutex, MayBeEndedByProcessesThatHaveTheFileOpen) {
  FakeProc proc = shared_page("/dev/shm/torch_1 (deleted)");
  EXPECT_TRUE(judged(&proc).is_stuck(10));
  proc.processes[12].open(7, "/dev/shm/torch_1 (deleted)", O_RDWR, "ino:\t900\n");
  EXPECT_FALSE(judged(&proc).is_stuck(10));
}

// sem_open() removes the name under which it mapped a new semaphore; the requested name is another.
TEST(SharedFutex, MayHaveANameThoughItsMappingSaysDeleted) {
  FakeProc proc = shared_page("/dev/shm/sem.Xy12Ab (deleted)");
  proc.names[900] = {"sem.known_to_all"};
  EXPECT_THAT(judged(&proc).waits.at(10).why_live, HasSubstr("name"));
  EXPECT_FALSE(judged(&proc).is_stuck(10));
  proc.names.clear();
  proc.knows_names = false;
  EXPECT_FALSE(judged(&proc).is_stuck(10));
}

// It was opened while it had a name.
TEST(SharedFutex, IsLiveIfAProcessOutsideMapsIt) {
  FakeProc proc = shared_page("/dev/shm/sem.Xy12Ab (deleted)");
  proc.process(50, 0).map("rw-s", 900, "/dev/shm/sem.x (deleted)").thread(50).sleeps();
  EXPECT_THAT(judged(&proc).waits.at(10).why_live, HasSubstr("outside"));
  EXPECT_FALSE(judged(&proc).is_stuck(10));
}

/// The same, if no process outside opens what it could; 11 waits for another lock in the same file.
constexpr const char* kKnownPath = "/home/user/locks";
const std::string kOpenedOutside = "a process outside may open the memory of the lock, /home/user/locks";

FakeProc known_page() {
  FakeProc proc = shared_page(kKnownPath);
  proc.processes.erase(12);
  proc.processes[11].threads[11].waits_on(kFutexWord + 0x40, false);
  return proc;
}

TEST(KnownSharedFutex, IsOfTheTreeIfNoProcessOutsideOpensIt) {
  FakeProc proc = known_page();
  EXPECT_FALSE(judged(&proc).is_stuck(10));
  const Judged all = judged(&proc, none_outside_acts());
  EXPECT_THAT(all.waits.at(10).wakers, UnorderedElementsAre(Waker{10, 0}, Waker{11, 0}));
  EXPECT_TRUE(all.is_stuck(10) && all.is_stuck(11));
  EXPECT_THAT(all.assumed, ElementsAre(kOpenedOutside));
  proc.process(12).thread(12).sleeps();  // it may open the file
  EXPECT_FALSE(judged(&proc, none_outside_acts()).is_stuck(10));
  proc.processes.erase(12);
  proc.process(50, 0).map("rw-s", 900, kKnownPath).thread(50).sleeps();
  EXPECT_THAT(judged(&proc, none_outside_acts()).waits.at(10).why_live, HasSubstr("outside has the lock"));
}

// Processes that all wait for the same semaphore, and those that wait for their ends, may be a server and its workers.
TEST(KnownSharedFutex, IsUrgentIfTheTreeWaitsForTwo) {
  const auto is_urgent = [](FakeProc proc) { return judged(&proc, none_outside_acts()).waits.at(10).urgent; };
  EXPECT_TRUE(is_urgent(known_page()));
  FakeProc same = known_page();
  same.processes[11].threads[11].waits_on(kFutexWord, false);
  EXPECT_FALSE(is_urgent(same));
  FakeProc elsewhere = known_page();  // in memory that nothing outside can find, as that of a pool of workers
  elsewhere.processes[11].maps.clear();
  elsewhere.processes[11].map("rw-s", 901, "/dev/zero (deleted)");
  EXPECT_FALSE(is_urgent(elsewhere));
  FakeProc supervised = known_page();
  supervised.processes[11].threads[11].waits_for_child(10);
  EXPECT_FALSE(is_urgent(supervised));
}

// Whoever waits for a mutex is no server: some thread has locked it.
TEST(KnownSharedFutex, OfAMutexNamesItsOwner) {
  FakeProc proc = shared_page(kKnownPath);
  proc.processes.erase(11);
  proc.processes.erase(12);
  constexpr std::int32_t kShared = 128;
  proc.processes[10].waits_for_mutex(10, kFutexWord, 77, kShared);
  proc.processes[10].threads[10].arguments[1] = FUTEX_WAIT;
  const Wait wait = judged(&proc, none_outside_acts()).waits.at(10);
  EXPECT_EQ(wait.owner, 77);
  EXPECT_TRUE(wait.urgent);
  EXPECT_THAT(wait.object, HasSubstr("a mutex of thread 77"));
  proc.processes[10].pid_namespace = "pid:[2]";  // 77 is a number of another namespace
  EXPECT_EQ(judged(&proc, none_outside_acts()).waits.at(10).owner, 0);
}

}  // namespace
}  // namespace mprun
