// Threads of CUDA's driver. That threads of the program wait elsewhere is read from their stacks, which these processes
// do not have: tests/hangs has cases and controls.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/syscall.h>

#include "fake_proc.h"

namespace mprun {
namespace {

using testing::HasSubstr;
using testing::UnorderedElementsAre;

constexpr std::uint64_t kDevices = 0x9000, kOfHandler = 100, kWithoutLimit = ~std::uint64_t{0};

/// 10 waits on a futex; 11 and 12 are threads of the driver, which poll a device.
FakeProc user_of_cuda(const std::string& driver = "/usr/lib/libcuda.so.580.159.04") {
  FakeProc proc;
  TreeProcess& process = proc.process(10).open(3, "/dev/nvidia0", O_RDWR).put(kDevices, pollfd{3, POLLIN, 0});
  if (!driver.empty()) process.map("r-xp", 44, driver);
  process.thread(10).waits_on(0x5000);
  process.thread(11).call(SYS_poll, {kDevices, 1, kWithoutLimit}).name = "cuda00001400006";
  process.thread(12).call(SYS_poll, {kDevices, 1, kOfHandler}).name = "cuda-EvtHandlr";
  return proc;
}

TreeBoundary none_calls_back() {
  TreeBoundary boundary;
  boundary.assumptions.handlers_release_no_thread = true;
  return boundary;
}

TEST(CudaWait, OfTheDriversThreadsIsEndedByTheirProcessIfTheyCallNoFunction) {
  FakeProc proc = user_of_cuda();
  const Judged all = judged(&proc, none_calls_back());
  for (const pid_t tid : {11, 12}) {
    EXPECT_EQ(all.waits.at(tid).kind, WaitKind::kPoll);
    EXPECT_EQ(all.waits.at(tid).why_live, "");
    EXPECT_THAT(all.waits.at(tid).wakers, UnorderedElementsAre(Waker{10, 0}));
    EXPECT_NE(judged(&proc).waits.at(tid).why_live, "") << "they may call one";
  }
  EXPECT_THAT(all.assumed, testing::Contains(HasSubstr("CUDA may call a function of process 10")));
}

TEST(CudaWait, OfAThreadWithoutAStackMayBeEndedByTheGpu) {
  FakeProc proc = user_of_cuda();
  const Judged all = judged(&proc, none_calls_back());
  EXPECT_THAT(all.waits.at(10).why_live, HasSubstr("GPU"));
  EXPECT_FALSE(all.is_deadlock);
}

// On arm64 poll() is the system call ppoll.
TEST(CudaWait, IsTheSameInPpoll) {
  FakeProc proc = user_of_cuda();
  TreeProcess& process = proc.processes[10].put(0x9100, timespec{0, 100'000'000});
  process.threads[11].call(SYS_ppoll, {kDevices, 1, 0});
  process.threads[12].call(SYS_ppoll, {kDevices, 1, 0x9100});
  const Judged all = judged(&proc, none_calls_back());
  for (const pid_t tid : {11, 12}) EXPECT_EQ(all.waits.at(tid).why_live, "") << tid;
}

// They look the same and are none.
TEST(CudaWait, OfOtherThreadsIsLive) {
  for (const char* driver : {"", "/usr/lib/libcudart.so.13"}) {
    FakeProc proc = user_of_cuda(driver);
    for (const pid_t tid : {11, 12}) EXPECT_NE(judged(&proc, none_calls_back()).waits.at(tid).why_live, "") << driver;
  }
  FakeProc proc = user_of_cuda();
  for (const char* name : {"x", "cuda-prefetch", "cuda0000140000", "cudax0001400006"}) {
    proc.processes[10].threads[11].name = name;
    EXPECT_NE(judged(&proc, none_calls_back()).waits.at(11).why_live, "") << name;
  }
}

TEST(CudaWait, IsOfNoInterestInAForkedChild) {
  FakeProc proc = user_of_cuda();
  proc.processes[10].threads.erase(11);
  proc.processes[10].threads.erase(12);
  EXPECT_TRUE(judged(&proc).is_deadlock) << "it has the driver, but not its threads";
}

}  // namespace
}  // namespace mprun
