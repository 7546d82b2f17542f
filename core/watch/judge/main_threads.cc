#include "watch/judge/main_threads.h"

#include <algorithm>
#include <string_view>

namespace mprun {
namespace {

bool has_python_timer(pid_t pid, TreeSnapshot* snapshot) {
  const auto is_timer = [](const PythonFrame& frame) {
    constexpr std::string_view kModule = "/threading.py";
    return frame.function == "Timer.run" && frame.file.size() > kModule.size() &&
           frame.file.compare(frame.file.size() - kModule.size(), kModule.size(), kModule) == 0;
  };
  const PythonStacks stacks = read_python_stacks(snapshot->proc(), pid, snapshot->maps(pid));
  return std::any_of(stacks.threads.begin(), stacks.threads.end(), [&](const PythonThread& thread) {
    return std::any_of(thread.frames.begin(), thread.frames.end(), is_timer);
  });
}

class Search {
 public:
  Search(const Judgement& judgement, TreeSnapshot* snapshot)
      : judgement_(judgement), snapshot_(snapshot), found_(judgement.stuck) {}

  std::set<pid_t> find() {
    for (std::size_t count = found_.size() + 1; count != found_.size();) {
      count = found_.size();
      for (const JudgedThread& thread : judgement_.threads) consider(thread);
    }
    return std::move(found_);
  }

 private:
  void consider(const JudgedThread& thread) {
    const pid_t pid = thread.sample->pid;
    const bool is_main = thread.sample->tid == pid && thread.wait.kind != WaitKind::kEnded;
    if (!is_main || found_.count(pid) != 0 || !is_blocked_for_ever(thread)) return;
    if (!has_timer(pid)) found_.insert(pid);
  }

  [[nodiscard]] bool is_blocked_for_ever(const JudgedThread& thread) const {
    if (!thread.live) return true;
    const Wait& wait = thread.wait;
    return wait.kind == WaitKind::kChild && wait.why_live.empty() &&
           std::all_of(wait.wakers.begin(), wait.wakers.end(),
                       [this](const Waker& waker) { return found_.count(waker.pid) != 0; });
  }

  [[nodiscard]] bool has_timer(pid_t pid) {
    const auto [known, is_new] = timers_.try_emplace(pid);
    if (is_new) known->second = has_python_timer(pid, snapshot_);
    return known->second;
  }

  const Judgement& judgement_;
  TreeSnapshot* snapshot_;
  std::set<pid_t> found_;
  std::map<pid_t, bool> timers_;
};

}  // namespace

std::set<pid_t> processes_that_cannot_return(const Judgement& judgement, TreeSnapshot* snapshot) {
  return Search(judgement, snapshot).find();
}

void mark_main_threads(Judgement* judgement) {
  for (JudgedThread& thread : judgement->threads) {
    const bool is_main = thread.sample->tid == thread.sample->pid;
    if (is_main && judgement->cannot_return.count(thread.sample->pid) != 0) thread.live = false;
  }
}

}  // namespace mprun
