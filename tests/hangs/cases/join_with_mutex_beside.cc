// A destructor joins the thread of its object while it holds the mutex that this thread needs. Main goes on with its
// work.
#include <chrono>
#include <iostream>
#include <mutex>
#include <thread>

class Cache {
 public:
  Cache() : cleaner_([this] { clean(); }) {}
  ~Cache() {
    const std::lock_guard<std::mutex> lock(mutex_);
    stopping_ = true;
    cleaner_.join();  // blocks here
  }

 private:
  void clean() {
    for (bool done = false; !done;) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
      const std::lock_guard<std::mutex> lock(mutex_);  // and here
      done = stopping_;
    }
  }

  std::mutex mutex_;
  bool stopping_ = false;
  std::thread cleaner_;
};

int main() {
  std::thread([] { const Cache cache; }).detach();
  for (int i = 0; i < 3000; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(100));
  std::cout << "done" << std::endl;
}
