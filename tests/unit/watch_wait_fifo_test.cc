// Waits for FIFOs of the file system: which processes may open the other end?
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>

#include "fake_proc.h"

namespace mprun {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

constexpr std::uint64_t kPathAt = 0x9000;
const std::string kFifo = "/tmp/tmp.a1B2c3D4e5/fifo";
constexpr const char* kOutsideMayOpen = "a process outside may open FIFO /tmp/tmp.a1B2c3D4e5/fifo";
// The processes of a FakeProc started with the machine.
const Nanos kBeforeTheTree = read_clock(CLOCK_BOOTTIME) + 3600 * kNanosPerSecond;
constexpr NamedPipe kHidden{1, 1, true};

/// 10 waits for its child 11, which opens a FIFO that no process outside can see.
FakeProc fifo_opener(std::uint64_t flags = O_RDONLY) {
  FakeProc proc;
  proc.fifos[kFifo] = kHidden;
  proc.process(10).thread(10).waits_for_child(11);
  proc.process(11, 10).put_text(kPathAt, kFifo).thread(11).call(SYS_open, {kPathAt, flags});
  return proc;
}

TreeBoundary no_outside_peers() {
  TreeBoundary boundary;
  boundary.assumptions.no_outside_peers = true;
  return boundary;
}

TEST(FifoWait, IsEndedByAnyProcessOfTheTree) {
  FakeProc proc = fifo_opener();
  proc.process(12).thread(12).waits_on(0x5000);
  const Judged all = judged(&proc);
  EXPECT_EQ(all.waits.at(11).kind, WaitKind::kPipeRead);
  EXPECT_EQ(all.waits.at(11).object, "FIFO /tmp/tmp.a1B2c3D4e5/fifo");
  EXPECT_THAT(all.waits.at(11).wakers, UnorderedElementsAre(Waker{10, 0}, Waker{11, 0}, Waker{12, 0}));
  EXPECT_TRUE(all.is_deadlock);
  EXPECT_THAT(all.assumed, IsEmpty());
  proc.processes[12].threads[12].sleeps();  // it may open the FIFO when it wakes up
  EXPECT_FALSE(judged(&proc).is_stuck(11));
}

TEST(FifoWait, ToWriteIsRecognizedByTheFlags) {
  for (const std::uint64_t flags : {O_WRONLY, O_RDWR}) {
    FakeProc proc = fifo_opener(flags | O_CLOEXEC);
    EXPECT_EQ(judged(&proc).waits.at(11).kind, WaitKind::kPipeWrite) << flags;
    EXPECT_TRUE(judged(&proc).is_deadlock) << flags;
    proc.processes[11].threads[11].call(SYS_openat, {O_RDONLY, kPathAt, flags});
    EXPECT_EQ(judged(&proc).waits.at(11).kind, WaitKind::kPipeWrite) << flags;
  }
  FakeProc proc = fifo_opener(O_RDONLY | O_CLOEXEC);
  EXPECT_EQ(judged(&proc).waits.at(11).kind, WaitKind::kPipeRead);
}

TEST(FifoWait, OfAReaderThatHasItOpenForWritingTooIsLive) {
  for (const std::uint64_t flags : {O_RDONLY, O_RDWR}) {
    FakeProc proc;
    proc.fifos[kFifo] = kHidden;
    proc.process(10).open(3, kFifo, flags).thread(10).reads(3);
    EXPECT_EQ(judged(&proc).is_deadlock, flags == O_RDONLY) << flags;
    EXPECT_TRUE(judged(&proc, no_outside_peers()).is_deadlock) << "it is reported as a stall";
    proc.processes[10].open(3, kFifo, O_RDWR).thread(10).writes(3);
    EXPECT_TRUE(judged(&proc).is_deadlock) << "the pipe is full: a reader was to come";
  }
}

TEST(FifoWait, IsLiveIfOthersMayKnowTheFifo) {
  const NamedPipe older{kBeforeTheTree, 1, true}, in_older_folder{1, kBeforeTheTree, true}, in_open_folder{1, 1, false};
  for (const NamedPipe& fifo : {older, in_older_folder, in_open_folder}) {
    FakeProc proc = fifo_opener();
    proc.fifos[kFifo] = fifo;
    const Judged all = judged(&proc);
    EXPECT_EQ(all.waits.at(11).kind, WaitKind::kPipeRead);
    EXPECT_EQ(all.waits.at(11).why_live, kOutsideMayOpen);
    EXPECT_THAT(all.stuck, IsEmpty());
    EXPECT_THAT(all.assumed, IsEmpty());
  }
  FakeProc proc = fifo_opener();
  TreeBoundary boundary;
  boundary.closed = false;  // the tree's starter may know what it makes
  EXPECT_EQ(judged(&proc, boundary).waits.at(11).why_live, kOutsideMayOpen);
}

TEST(FifoWait, IsNotEndedByOthersIfThatIsAssumed) {
  FakeProc proc = fifo_opener();
  EXPECT_THAT(judged(&proc, no_outside_peers()).assumed, IsEmpty()) << "no other process could";
  for (const NamedPipe& fifo : {NamedPipe{1, 1, false}, NamedPipe{1, kBeforeTheTree, true}}) {
    proc.fifos[kFifo] = fifo;
    const Judged all = judged(&proc, no_outside_peers());
    EXPECT_TRUE(all.is_deadlock);
    EXPECT_THAT(all.waits.at(11).wakers, UnorderedElementsAre(Waker{10, 0}, Waker{11, 0}));
    EXPECT_THAT(all.assumed, ElementsAre(kOutsideMayOpen));
  }
}

TEST(FifoWait, IsLiveIfOthersMayKnowTheNameOfTheFolderBeforehand) {
  for (const char* fifo : {"/run/me/app/fifo", "/tmp/tmp/fifo", "/tmp/tmp.a/fifo", "/tmp/tmp-of-my-app/fifo"}) {
    FakeProc proc = fifo_opener();
    proc.fifos[fifo] = kHidden;
    proc.processes[11].put_text(kPathAt, fifo);
    EXPECT_EQ(judged(&proc).waits.at(11).why_live, std::string("a process outside may open FIFO ") + fifo);
    EXPECT_TRUE(judged(&proc, no_outside_peers()).is_deadlock);
  }
  FakeProc proc = fifo_opener();
  proc.fifos["/tmp/tmpa1_b2c3d/fifo"] = kHidden;  // as Python's tempfile names it
  proc.processes[11].put_text(kPathAt, "/tmp/tmpa1_b2c3d/fifo");
  EXPECT_TRUE(judged(&proc).is_deadlock);
}

// It was made for others.
TEST(FifoWait, IsLiveWhateverIsAssumedIfTheTreeHasNotMadeTheFifo) {
  FakeProc proc = fifo_opener();
  proc.fifos[kFifo] = {kBeforeTheTree, 1, true};
  const Judged all = judged(&proc, no_outside_peers());
  EXPECT_EQ(all.waits.at(11).why_live, kOutsideMayOpen);
  EXPECT_THAT(all.assumed, IsEmpty());
}

TEST(FifoWait, InATreeOfOthersIsAssumedToBeItsOwnIfTheNameIsRandom) {
  FakeProc proc = fifo_opener();
  TreeBoundary open = no_outside_peers();
  open.closed = false;
  const Judged all = judged(&proc, open);
  EXPECT_TRUE(all.is_deadlock);
  EXPECT_THAT(all.assumed, ElementsAre(kOutsideMayOpen));
  for (const NamedPipe& fifo : {NamedPipe{1, 1, false}, NamedPipe{1, kBeforeTheTree, true}}) {
    proc.fifos[kFifo] = fifo;
    EXPECT_EQ(judged(&proc, open).waits.at(11).why_live, kOutsideMayOpen);
  }
}

TEST(FifoWait, IsLiveIfNotAllOfTheTreeIsSeen) {
  FakeProc proc = fifo_opener();
  proc.process(12).thread(12).waits_on(0x5000);
  proc.processes[12].hidden_descriptors = true;
  EXPECT_EQ(judged(&proc).waits.at(11).why_live, "mprun may not look at process 12");
}

TEST(FifoWait, OfARelativePathBeginsWhereTheProcessIs) {
  FakeProc proc = fifo_opener();
  TreeProcess& child = proc.processes[11].put_text(kPathAt, "tmp.a1B2c3D4e5/fifo");
  TreeThread& thread = child.threads[11];
  const auto is_found = [&] { return judged(&proc).waits.at(11).object == "FIFO /tmp/tmp.a1B2c3D4e5/fifo"; };
  EXPECT_FALSE(is_found());
  child.cwd = "/tmp";
  EXPECT_TRUE(is_found());
  thread.call(SYS_openat, {static_cast<std::uint64_t>(AT_FDCWD), kPathAt, O_RDONLY});
  EXPECT_TRUE(is_found());
  thread.call(SYS_openat, {static_cast<std::uint32_t>(AT_FDCWD), kPathAt, O_RDONLY});
  EXPECT_TRUE(is_found()) << "an int in a register";
  child.cwd = "/home";
  EXPECT_FALSE(is_found());
}

TEST(FifoWait, OfARelativePathBeginsAtAFolderThatIsOpen) {
  FakeProc proc = fifo_opener();
  TreeProcess& child = proc.processes[11].open(5, "/tmp/tmp.a1B2c3D4e5").put_text(kPathAt, "fifo");
  TreeThread& thread = child.threads[11].call(SYS_openat, {5, kPathAt, O_RDONLY});
  EXPECT_EQ(judged(&proc).waits.at(11).object, "FIFO /tmp/tmp.a1B2c3D4e5/fifo");
  thread.call(SYS_openat, {6, kPathAt, O_RDONLY});
  EXPECT_EQ(judged(&proc).waits.at(11).why_live, "it opens a file");
  child.put_text(kPathAt, kFifo);
  EXPECT_EQ(judged(&proc).waits.at(11).object, "FIFO /tmp/tmp.a1B2c3D4e5/fifo") << "an absolute path needs no folder";
}

// Paths are read in pieces of 64 bytes. Beyond the page in which a path ends there may be nothing.
TEST(FifoWait, OfAPathThatLiesAcrossPiecesAndPages) {
  const std::string fifo = "/tmp/tmp." + std::string(150, 'x') + "/fifo";
  for (const std::uint64_t address : {0x9000UL, 0x9030UL, 0x903fUL, 0x9fc1UL, 0xa000UL - (fifo.size() + 1)}) {
    FakeProc proc = fifo_opener();
    proc.fifos[fifo] = kHidden;
    proc.processes[11].put_text(address, fifo).threads[11].arguments[0] = address;
    EXPECT_EQ(judged(&proc).waits.at(11).object, "FIFO " + fifo) << address;
  }
}

TEST(FifoWait, OfAPathThatCannotBeReadIsLive) {
  FakeProc proc = fifo_opener();
  for (const std::uint64_t address : {0UL, 0x8000UL}) {
    proc.processes[11].threads[11].arguments[0] = address;
    EXPECT_EQ(judged(&proc).waits.at(11).why_live, "it opens a file") << address;
  }
  proc.processes[11].put_text(0x10000, std::string(5000, '/')).threads[11].arguments[0] = 0x10000;
  EXPECT_EQ(judged(&proc).waits.at(11).why_live, "it opens a file") << "longer than paths are";
}

// Of a device, or on a file server that does not answer.
TEST(FifoWait, ThatIsOfNoFifoIsLive) {
  FakeProc proc = fifo_opener();
  proc.fifos.clear();
  for (const bool assumes : {false, true}) {
    const Judged all = judged(&proc, assumes ? no_outside_peers() : TreeBoundary());
    EXPECT_EQ(all.waits.at(11).kind, WaitKind::kOther);
    EXPECT_EQ(all.waits.at(11).why_live, "it opens a file");
    EXPECT_THAT(all.stuck, IsEmpty());
  }
}

TEST(FifoWait, GoesOnWhereItIsOpen) {
  FakeProc proc = fifo_opener();
  TreeProcess& child = proc.processes[11].open(3, kFifo, O_RDONLY, "ino:\t77\n");
  TreeThread& thread = child.threads[11].reads(3);
  EXPECT_EQ(judged(&proc).waits.at(11).kind, WaitKind::kPipeRead);
  EXPECT_TRUE(judged(&proc).is_deadlock);
  thread.writes(3);
  EXPECT_EQ(judged(&proc).waits.at(11).kind, WaitKind::kPipeWrite);
  child.put(0x8000, pollfd{3, POLLIN, 0});
  thread.call(SYS_poll, {0x8000, 1, ~std::uint64_t{0}});
  EXPECT_TRUE(judged(&proc).is_deadlock);
  proc.fifos[kFifo].folder_is_private = false;
  EXPECT_EQ(judged(&proc).waits.at(11).why_live, kOutsideMayOpen);
  child.open(3, kFifo + " (deleted)", O_RDONLY, "ino:\t77\n");
  EXPECT_THAT(judged(&proc).waits.at(11).why_live, HasSubstr("(deleted)")) << "it may have been another's";
}

}  // namespace
}  // namespace mprun
