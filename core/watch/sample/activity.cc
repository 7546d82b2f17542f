#include "watch/sample/activity.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <unordered_map>

#include "os/fd.h"
#include "os/process.h"
#include "os/uninterrupted.h"
#include "procfs/text_scan.h"
#include "watch/sample/syscall_table.h"

namespace mprun {
namespace {

// At most so many threads that move are asked whether they only wait for a GIL.
constexpr std::size_t kMostGilWaiters = 64;
// The share of a CPU that asking 200 times a second may take.
constexpr double kMostLoadAtGil = 0.05;
// The same for waking up ten times a second.
constexpr double kMostLoadOfTicks = 0.05;

std::optional<std::string> read_small(const std::string& path) {
  const Fd file = open_fd(path, O_RDONLY);
  std::array<char, 512> text{};
  const ssize_t n = file ? uninterrupted([&] { return read(file.get(), text.data(), text.size()); }) : -1;
  if (n <= 0) return std::nullopt;
  return std::string(text.data(), static_cast<std::size_t>(n));
}

// The readers of /proc need descriptors too.
std::size_t most_open() {
  const rlimit files = limits_of(RLIMIT_NOFILE);
  return std::min<std::size_t>(ActivityMeter::kMostOpen, files.rlim_cur / 4);
}

}  // namespace

ActivityMeter::ActivityMeter(std::string root) : root_(std::move(root)), most_open_(most_open()) {}

void ActivityMeter::set_threads(const Sample& sample, Nanos now) {
  std::unordered_map<pid_t, Watched> known;
  for (Watched& thread : threads_) known.emplace(thread.tid, std::move(thread));
  threads_.clear();
  last_mover_ = 0;
  for (const ThreadSample& sampled : sample.threads) {
    const auto same = known.find(sampled.tid);
    if (same != known.end() && same->second.pid == sampled.pid) {
      threads_.push_back(std::move(same->second));
      Watched& thread = threads_.back();
      thread.ticks = thread.ticks || sampled.ticks;
      if (thread.runs != sampled.runs && !thread.ticks) thread.moved = now;
      thread.runs = sampled.runs;
      continue;
    }
    Watched thread;
    thread.pid = sampled.pid;
    thread.tid = sampled.tid;
    thread.folder = root_ + "/" + std::to_string(thread.pid) + "/task/" + std::to_string(thread.tid) + "/";
    thread.runs = sampled.runs;
    thread.ticks = sampled.ticks;
    thread.moved = now;
    if (threads_.size() < most_open_) {
      thread.schedstat = open_fd(thread.folder + "schedstat", O_RDONLY);
    }
    threads_.push_back(std::move(thread));
  }
}

bool ActivityMeter::has_moved(Nanos now, bool all, bool ask) {
  mover_wants_gil_ = false;
  bool moved = false;
  if (!all && last_mover_ < threads_.size()) {
    Watched& mover = threads_[last_mover_];
    const Nanos before = mover.moved;
    moved = has_moved(&mover, now);
    mover_wants_gil_ = all = ask && moved && !mover.ended && seems_to_wait_for_gil(&mover);
    if (all) mover.moved = before;
    if (moved && !mover.ended && !all) return true;
  }
  // Looks at all of them, or each look would find one more that ran long ago.
  std::size_t gil_waiters = 0;
  for (std::size_t i = 0; i < threads_.size(); ++i) {
    Watched& thread = threads_[i];
    const Nanos before = thread.moved;
    if (!has_moved(&thread, now)) continue;
    moved = true;
    last_mover_ = i;
    if (!all || thread.ended || gil_waiters >= kMostGilWaiters) continue;
    ++gil_waiters;
    if (seems_to_wait_for_gil(&thread)) thread.moved = before;
  }
  if (std::erase_if(threads_, [](const Watched& thread) { return thread.ended; }) > 0) last_mover_ = 0;
  return moved;
}

bool ActivityMeter::has_moved(Watched* thread, Nanos now) {
  std::array<char, 96> text{};
  const Fd opened = thread->schedstat ? Fd() : open_fd(thread->folder + "schedstat", O_RDONLY);
  const int fd = thread->schedstat ? thread->schedstat.get() : opened.get();
  const ssize_t n = uninterrupted([&] { return pread(fd, text.data(), text.size(), 0); });
  const std::string_view schedstat(text.data(), static_cast<std::size_t>(std::max<ssize_t>(n, 0)));
  const auto runs = parse_run_count(schedstat);
  Nanos cpu = 0;
  if (runs && TextScan(schedstat).number(&cpu) && now > thread->looked) {
    thread->load =
        thread->looked == 0 ? 1 : static_cast<double>(cpu - thread->cpu) / static_cast<double>(now - thread->looked);
    thread->cpu = cpu;
    thread->looked = now;
  }
  thread->ended = !runs;
  const bool only_ticks = thread->ticks && thread->load < kMostLoadOfTicks;
  const bool moved = !runs || (*runs != thread->runs && !only_ticks);
  if (moved) thread->moved = now;
  if (runs) thread->runs = *runs;
  return moved;
}

// Such a thread wakes up every 5 ms; where CPUs are scarce, it is mostly found waiting for one.
bool ActivityMeter::seems_to_wait_for_gil(Watched* thread) {
  const auto text = read_small(thread->folder + "syscall");
  const auto line = text ? parse_syscall(*text) : std::nullopt;
  if (line && line->running) return thread->at_gil && thread->load < kMostLoadAtGil;
  const bool waits = line && call_of(line->number) == Call::kFutex && line->arguments[3] != 0;
  thread->at_gil = waits && (static_cast<int>(line->arguments[1]) & FUTEX_CMD_MASK) == FUTEX_WAIT_BITSET;
  return thread->at_gil;
}

std::set<pid_t> ActivityMeter::resting_since(Nanos since) const {
  std::set<pid_t> resting;
  for (const Watched& thread : threads_) resting.insert(thread.pid);
  for (const Watched& thread : threads_) {
    if (thread.moved > since) resting.erase(thread.pid);
  }
  return resting;
}

bool ActivityMeter::all_rest_since(Nanos since) const {
  return !threads_.empty() && std::none_of(threads_.begin(), threads_.end(),
                                           [since](const Watched& thread) { return thread.moved > since; });
}

std::set<pid_t> ActivityMeter::with_resting_main_since(Nanos since) const {
  std::set<pid_t> rest;
  for (const Watched& thread : threads_) {
    if (thread.tid == thread.pid && thread.moved <= since) rest.insert(thread.pid);
  }
  return rest;
}

std::set<pid_t> ActivityMeter::run_beside_main_since(Nanos since) const {
  const std::set<pid_t> rest = with_resting_main_since(since);
  std::set<pid_t> run;
  for (const Watched& thread : threads_) {
    if (thread.moved > since && rest.count(thread.pid) != 0) run.insert(thread.pid);
  }
  return run;
}

double ActivityMeter::load() const {
  double sum = 0;
  for (const Watched& thread : threads_) sum += thread.load;
  return sum;
}

std::map<pid_t, Nanos> ActivityMeter::last_moves() const {
  std::map<pid_t, Nanos> moves;
  for (const Watched& thread : threads_) moves[thread.tid] = thread.moved;
  return moves;
}

}  // namespace mprun
