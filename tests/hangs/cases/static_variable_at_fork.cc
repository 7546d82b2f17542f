// A thread initialises a static variable when its process forks; the child needs the variable.
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <semaphore>
#include <thread>

namespace {

std::binary_semaphore begun(0), forked(0);

struct Table {
  Table() {
    begun.release();
    forked.acquire();
  }
};

Table& table() {
  static Table made;
  return made;
}

}  // namespace

int main() {
  std::thread first([] { table(); });
  begun.acquire();
  const pid_t child = fork();
  if (child == 0) {
    table();  // blocks here
    _exit(0);
  }
  forked.release();
  first.join();
  waitpid(child, nullptr, 0);  // hangs here
  std::puts("done");
}
