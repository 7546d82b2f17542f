// A singleton that is asked for while it is made: std::call_once waits for the function that it runs.
#include <mutex>
#include <thread>

namespace {

std::once_flag made;

void get(int depth) {
  std::call_once(made, [depth] {  // blocks here
    if (depth == 0) get(depth + 1);
  });
}

}  // namespace

int main() {
  std::thread first(get, 0);
  first.join();  // hangs here
  return 0;
}
