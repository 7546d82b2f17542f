#include "watch/activity.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <unordered_map>

namespace mprun {
namespace {

// The readers of /proc need descriptors too.
std::size_t most_open() {
  rlimit files{};
  getrlimit(RLIMIT_NOFILE, &files);
  return std::min<std::size_t>(ActivityMeter::kMostOpen, files.rlim_cur / 4);
}

}  // namespace

ActivityMeter::ActivityMeter(std::string root) : root_(std::move(root)), most_open_(most_open()) {}

void ActivityMeter::set_threads(const Sample& sample) {
  std::unordered_map<pid_t, Fd> open;
  for (Watched& thread : threads_) {
    if (thread.schedstat) open.emplace(thread.tid, std::move(thread.schedstat));
  }
  threads_.clear();
  last_mover_ = 0;
  for (const ThreadSample& sampled : sample.threads) {
    Watched thread;
    thread.path = root_ + "/" + std::to_string(sampled.pid) + "/task/" + std::to_string(sampled.tid) + "/schedstat";
    thread.tid = sampled.tid;
    thread.runs = sampled.runs;
    const auto kept = open.find(thread.tid);
    if (kept != open.end()) {
      thread.schedstat = std::move(kept->second);
    } else if (threads_.size() < most_open_) {
      thread.schedstat = Fd(::open(thread.path.c_str(), O_RDONLY | O_CLOEXEC));
    }
    threads_.push_back(std::move(thread));
  }
}

bool ActivityMeter::has_moved() {
  if (last_mover_ < threads_.size() && has_moved(&threads_[last_mover_]) && !threads_[last_mover_].ended) return true;
  // All of them, or each look would find one more that had run long ago.
  bool moved = false;
  for (std::size_t i = 0; i < threads_.size(); ++i) {
    if (!has_moved(&threads_[i])) continue;
    last_mover_ = i;
    moved = true;
  }
  if (std::erase_if(threads_, [](const Watched& thread) { return thread.ended; }) > 0) last_mover_ = 0;
  return moved;
}

bool ActivityMeter::has_moved(Watched* thread) {
  std::array<char, 96> text{};
  const Fd opened(thread->schedstat ? -1 : ::open(thread->path.c_str(), O_RDONLY | O_CLOEXEC));
  const ssize_t n = pread(thread->schedstat ? thread->schedstat.get() : opened.get(), text.data(), text.size(), 0);
  const auto runs = n > 0 ? parse_run_count({text.data(), static_cast<std::size_t>(n)}) : std::nullopt;
  thread->ended = !runs;
  const bool moved = !runs || *runs != thread->runs;
  if (runs) thread->runs = *runs;
  return moved;
}

}  // namespace mprun
