#include "watch/lost_result_watch.h"

#include <algorithm>
#include <set>
#include <vector>

#include "procfs/process_table.h"
#include "watch/judge/time_limit.h"
#include "watch/stacks/python_processes.h"
#include "watch/stalls/lost_result.h"

namespace mprun {
namespace {

constexpr Nanos kLookAtResultsEvery = kNanosPerSecond;
// How long the main thread must have waited while others ran.
constexpr Nanos kMainRests = kNanosPerSecond;
// So many workers that end badly within that time, while none is older, are no accident.
constexpr std::size_t kManyDeadWorkers = 5;
constexpr Nanos kDeadWorkersWithin = 10 * kNanosPerSecond;
constexpr Nanos kWithoutResult = kNanosPerSecond;

}  // namespace

LostResultWatch::LostResultWatch(const WatchedTree* tree)
    : tree_(tree),
      lost_helpers_([tree](pid_t pid) { return has_lost_helper(stack_reader(tree->proc()), pid); }),
      lost_tasks_([this](pid_t pid) { return has_lost_task(pid); }),
      dying_workers_([this](pid_t pid) { return lacks_lasting_child(pid) && replaces_dying_workers(pid); }),
      callbacks_(tree) {}

std::set<pid_t> LostResultWatch::with_many_deaths(Nanos now) const {
  std::set<pid_t> found;
  for (const auto& [tid, moved] : moves_) {
    if (tree_->deaths(tid, now - kDeadWorkersWithin).all >= kManyDeadWorkers) found.insert(tid);
  }
  return found;
}

// Its main thread waits for a pool, to which no result has come for some time before the workers died. While workers
// only end badly, each has brought a result just before.
bool LostResultWatch::replaces_dying_workers(pid_t pid) const {
  const pid_t receiver = receiver_of_pool(stack_reader(tree_->proc()), pid);
  const auto moved = moves_.find(receiver);
  if (moved == moves_.end()) return false;
  const Nanos since = std::max(moved->second + kWithoutResult, monotonic_now() - kDeadWorkersWithin);
  return tree_->deaths(pid, since).all >= kManyDeadWorkers;
}

// None of its children is old.
bool LostResultWatch::lacks_lasting_child(pid_t pid) const {
  const auto below = process_tree(tree_->proc(), pid, false);
  return std::all_of(below.begin(), below.end(), [this](pid_t child) {
    const std::string folder = std::to_string(child);
    const auto text = tree_->proc()->read(folder + "/stat");
    const auto stat = text ? parse_stat(*text) : std::nullopt;
    if (!stat || age_of(*stat) < kDeadWorkersWithin) return true;
    const std::string command = tree_->proc()->read(folder + "/cmdline").value_or("");
    return command.find("multiprocessing.resource_tracker") != std::string::npos || is_forkserver(tree_->proc(), child);
  });
}

bool LostResultWatch::has_lost_task(pid_t pid) const {
  const auto below = process_tree(tree_->proc(), pid, false);
  std::vector<pid_t> all = below;
  all.insert(all.begin(), pid);
  const Sample sample = take_sample(tree_->proc(), all);
  if (sample.threads.empty() || without_limit(sample.threads.front())) return false;
  std::set<pid_t> running;
  for (const ThreadSample& thread : sample.threads) {
    if (thread.call.running) running.insert(thread.tid);
  }
  return mprun::has_lost_task(stack_reader(tree_->proc()), pid, below,
                              [&running](pid_t tid) { return running.count(tid) != 0; });
}

// Processes of which a child has died, and whose main thread has waited ever since something was last reported, for so
// long that what is proved of it would have been reported.
std::set<pid_t> LostResultWatch::may_have_lost_task(const ActivityMeter& activity, Nanos last_found, Nanos now) const {
  const auto moves = activity.last_moves();
  std::set<pid_t> found = activity.with_resting_main_since(now - kMainRests);
  // If all workers die as soon as they start, that is the cause, not the loss of one task.
  const auto many_died = with_many_deaths(now);
  std::erase_if(found, [&](pid_t pid) {
    if (moves.at(pid) <= last_found || tree_->deaths(pid, 0).all == 0) return true;
    return many_died.count(pid) != 0 && lacks_lasting_child(pid);
  });
  return found;
}

pid_t LostResultWatch::find_lost_task_now(const ActivityMeter& activity, Nanos last_found, Nanos now) const {
  return lost_tasks_.find_now(may_have_lost_task(activity, last_found, now));
}

// Early, and again when it has lasted for as long as a stall. 0: none.
pid_t LostResultWatch::find_lost_task(const ActivityMeter& activity, Nanos last_found, Nanos now) {
  const std::set<pid_t> processes = may_have_lost_task(activity, last_found, now);
  const auto moves = activity.last_moves();
  const auto is_long = [&](pid_t pid) { return now - moves.at(pid) >= tree_->options().stall; };
  std::erase_if(reported_early_, [&](pid_t pid) { return processes.count(pid) == 0; });
  const pid_t found = lost_tasks_.look(processes, now);
  if (found != 0 && !is_long(found)) reported_early_.insert(found);
  if (found != 0) return found;
  const auto late = std::find_if(reported_early_.begin(), reported_early_.end(), is_long);
  if (late == reported_early_.end()) return 0;
  const pid_t pid = reported_early_.extract(late).value();
  return has_lost_task(pid) ? pid : 0;
}

std::optional<Proof> LostResultWatch::look(const ActivityMeter& activity, Nanos last_found, Nanos now) {
  if (now - last_look_ < kLookAtResultsEvery) return std::nullopt;
  last_look_ = now;
  const std::set<pid_t> beside_main = activity.run_beside_main_since(now - kMainRests);
  const pid_t helper = lost_helpers_.look(beside_main, now);
  moves_ = activity.last_moves();
  const pid_t dying = helper != 0 ? 0 : dying_workers_.look(with_many_deaths(now), now);
  const pid_t task = helper != 0 || dying != 0 ? 0 : find_lost_task(activity, last_found, now);
  const pid_t found = helper != 0 ? helper : dying;
  if (found == 0 && task == 0) return callbacks_.look(beside_main, moves_, now);
  Proof proof = tree_->as_stall(tree_->sample());
  proof.respawner = dying;
  proof.lost_helper = helper;
  proof.lost_task = task;
  // The next worker may find what the others lacked.
  proof.is_early = reported_early_.count(task) != 0 || (dying != 0 && tree_->options().stall > kEarlyStall);
  // When its main thread began to wait for the pool, which wakes up whenever a worker dies in some versions of glibc:
  // the last result that it could have got.
  if (helper != 0) proof.last_moved = moves_[helper];
  if (dying != 0) proof.last_moved = moves_[receiver_of_pool(stack_reader(tree_->proc()), dying)];
  return proof;
}

}  // namespace mprun
