// Threads wait for a lock or an initialiser that another has for some seconds. Arguments: seconds, and which.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <thread>

namespace {

std::chrono::duration<double> quiet;

struct Slow {
  Slow() { std::this_thread::sleep_for(quiet); }
  int value = 1;
};

// The writer waits for a reader, and the second reader for the writer.
void read_write_lock() {
  std::shared_mutex lock;
  std::thread reads([&] {
    const std::shared_lock guard(lock);
    std::this_thread::sleep_for(quiet);
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  std::thread writes([&] { const std::unique_lock guard(lock); });
  { const std::shared_lock guard(lock); }
  writes.join();
  reads.join();
}

void once() {
  std::once_flag flag;
  const auto run = [&] { std::call_once(flag, [] { std::this_thread::sleep_for(quiet); }); };
  std::thread other(run);
  run();
  other.join();
}

void static_variable() {
  const auto use = [] {
    static Slow slow;
    return slow.value;
  };
  std::thread other(use);
  (void)use();
  other.join();
}

// A thread is joined by the holder of a mutex, which another needs, and ends without it.
void join_with_mutex() {
  std::mutex mutex;
  std::unique_lock guard(mutex);
  std::thread sleeps([] { std::this_thread::sleep_for(quiet); });
  std::thread needs([&] { const std::unique_lock inner(mutex); });
  sleeps.join();
  guard.unlock();
  needs.join();
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 3) return 2;
  quiet = std::chrono::duration<double>(std::atof(arguments[1]));
  const std::string which = arguments[2];
  if (which == "read-write-lock") read_write_lock();
  if (which == "once") once();
  if (which == "static-variable") static_variable();
  if (which == "join-with-mutex") join_with_mutex();
  std::puts("done");
  return 0;
}
