// A pool of threads, made of a condition variable, is used before fork and in the child.
#include <sys/wait.h>
#include <unistd.h>

#include <condition_variable>
#include <cstdio>
#include <functional>
#include <mutex>
#include <queue>
#include <thread>

namespace {

class Pool {
 public:
  Pool() : thread_([this] { work(); }) {}

  void run(std::function<void()> task) {
    std::unique_lock lock(mutex_);
    tasks_.push(std::move(task));
    ++left_;
    has_task_.notify_one();
    is_done_.wait(lock, [this] { return left_ == 0; });  // blocks here
  }

 private:
  void work() {
    std::unique_lock lock(mutex_);
    while (true) {
      has_task_.wait(lock, [this] { return !tasks_.empty(); });
      tasks_.front()();
      tasks_.pop();
      if (--left_ == 0) is_done_.notify_all();
    }
  }

  std::mutex mutex_;
  std::condition_variable has_task_, is_done_;
  std::queue<std::function<void()>> tasks_;
  int left_ = 0;
  std::thread thread_;
};

}  // namespace

int main() {
  auto* const pool = new Pool;
  pool->run([] {});
  const pid_t child = fork();
  if (child == 0) {
    pool->run([] {});
    _exit(0);
  }
  waitpid(child, nullptr, 0);  // hangs here
  std::puts("done");
  _exit(0);
}
