// The numbers of threads as glibc keeps them, read from the memory of this process.
#include "watch/sample/thread_ids.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <thread>

namespace mprun {
namespace {

pid_t number_of_this_thread() {
  const auto proc = live_proc();
  ProcessMemory memory(proc.get(), getpid(), 1024);
  return ThreadIds(proc.get(), getpid()).of_pthread(pthread_self(), &memory);
}

TEST(ThreadIds, ReadTheNumberOfAThreadFromGlibc) {
  EXPECT_EQ(number_of_this_thread(), gettid());
  pid_t found = 0, own = 0;
  std::thread other([&] {
    found = number_of_this_thread();
    own = gettid();
  });
  other.join();
  EXPECT_EQ(found, own);
}

TEST(ThreadIds, ReadTheNewNumberInAForkedChild) {
  const pid_t child = fork();
  if (child == 0) _exit(number_of_this_thread() == getpid() ? 0 : 1);
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST(ThreadIds, ReadNothingFromOtherMemory) {
  const auto proc = live_proc();
  ProcessMemory memory(proc.get(), getpid(), 4096);
  const std::array<std::uint64_t, 128> words{};
  EXPECT_EQ(ThreadIds(proc.get(), getpid()).of_pthread(reinterpret_cast<std::uint64_t>(words.data()), &memory), 0);
}

}  // namespace
}  // namespace mprun
