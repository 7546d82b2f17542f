// A pool of threads is a static object: its destructor runs at exit and joins a thread that nobody has asked to end.
#include <condition_variable>
#include <mutex>
#include <thread>

namespace {

struct Pool {
  std::mutex mutex;
  std::condition_variable asked;
  bool stop = false;
  std::thread worker{[this] {
    std::unique_lock lock(mutex);
    asked.wait(lock, [this] { return stop; });
  }};
  ~Pool() { worker.join(); }
};

Pool pool;

}  // namespace

int main() {}
