// Real threads that wait for a mutex and for a lock that looks like one, in glibc's code of this machine.
#include "watch/judge/glibc_mutex.h"

#include <gtest/gtest.h>
#include <linux/futex.h>
#include <pthread.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <functional>
#include <thread>

#include "watch/sample/syscall_numbers.h"

namespace mprun {
namespace {

/// Who owns what `wait` waits for, once its thread waits as for a mutex.
pid_t owner_while(const std::function<void()>& wait, const std::function<void()>& let_go,
                  MutexScope scope = MutexScope::kPrivate) {
  std::atomic<pid_t> tid = 0;
  std::thread waiter([&] {
    tid = gettid();
    wait();
  });
  const auto proc = live_proc();
  ThreadSample sample;
  sample.pid = getpid();
  pid_t owner = -1;
  for (int tries = 0; tries < 30'000 && owner < 0; ++tries) {
    sample.tid = tid;
    if (sample.tid != 0 && sample_thread(proc.get(), &sample) && seems_to_wait_for_mutex(sample, scope)) {
      owner = owner_of_mutex(proc.get(), sample, scope);
    }
    usleep(1'000);
  }
  let_go();
  waiter.join();
  return owner;
}

TEST(GlibcMutex, NamesItsOwner) {
  std::array<pthread_mutex_t, 4> mutexes{{PTHREAD_MUTEX_INITIALIZER, PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP,
                                          PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP,
                                          PTHREAD_ADAPTIVE_MUTEX_INITIALIZER_NP}};
  for (pthread_mutex_t& mutex : mutexes) {
    pthread_mutex_lock(&mutex);
    const auto wait = [&] {
      pthread_mutex_lock(&mutex);
      pthread_mutex_unlock(&mutex);
    };
    EXPECT_EQ(owner_while(wait, [&] { pthread_mutex_unlock(&mutex); }), gettid()) << &mutex - mutexes.data();
  }
}

TEST(GlibcMutex, NamesItsOwnerIfItIsShared) {
  pthread_mutexattr_t attributes;
  pthread_mutexattr_init(&attributes);
  pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
  pthread_mutex_t mutex;
  pthread_mutex_init(&mutex, &attributes);
  pthread_mutex_lock(&mutex);
  const auto wait = [&] {
    pthread_mutex_lock(&mutex);
    pthread_mutex_unlock(&mutex);
  };
  EXPECT_EQ(owner_while(
                wait, [&] { pthread_mutex_unlock(&mutex); }, MutexScope::kShared),
            gettid());
}

// Every word of it is that of a mutex, but it is waited for by a call of syscall().
TEST(GlibcMutex, IsNotTheLockOfAnotherLibrary) {
  struct {
    std::atomic<std::int32_t> lock = 2;
    std::int32_t rest[11] = {0, gettid(), 1};
  } other;
  const auto wait = [&] {
    while (other.lock == 2) syscall(SYS_futex, &other, FUTEX_WAIT_PRIVATE, 2, nullptr, nullptr, 0);
  };
  const auto let_go = [&] {
    other.lock = 0;
    syscall(SYS_futex, &other, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
  };
  EXPECT_EQ(owner_while(wait, let_go), 0);
}

}  // namespace
}  // namespace mprun
