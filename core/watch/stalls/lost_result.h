// Processes whose main thread waits for a result of a multiprocessing.Pool that will never come: read from Python
// stacks at one look. A pool looks the same for a moment when it starts and ends.
#pragma once

#include <functional>
#include <set>
#include <vector>

#include "watch/stacks/python_stack.h"

namespace mprun {

using ReadStacks = std::function<PythonStacks(pid_t)>;
/// Reads those of living processes; `proc` must outlive it.
[[nodiscard]] ReadStacks stack_reader(ProcSource* proc);

/// The main thread of the process waits for its pool.
[[nodiscard]] bool waits_for_pool(const ReadStacks& read_stacks, pid_t pid);
/// The thread of that process which waits for the results of its pool; 0: its main thread does not wait for a pool.
[[nodiscard]] pid_t receiver_of_pool(const ReadStacks& read_stacks, pid_t pid);
/// The main thread waits so, and no thread takes the pool's results: the thread for them has ended (a result could not
/// be unpickled, or a callback raised), or waits in a callback for another result of the pool.
[[nodiscard]] bool has_lost_helper(const ReadStacks& read_stacks, pid_t pid);
/// The main thread of the process waits for its pool, whose thread for results does not wait for one: it is in a
/// callback, or makes an object of a result. Returns the threads that replace ended workers; empty: it is not so.
[[nodiscard]] std::set<pid_t> keepers_beside_callback(const ReadStacks& read_stacks, pid_t pid);
/// True for a thread that has work to do: on a busy machine it may wait for a CPU for seconds.
using IsRunning = std::function<bool(pid_t tid)>;
/// The main thread of the process waits for its pool, which hands out and receives nothing, and all workers among the
/// processes `below` it wait for a task. So the pool has lost one, if a worker has died.
[[nodiscard]] bool has_lost_task(const ReadStacks& read_stacks, pid_t pid, const std::vector<pid_t>& below,
                                 const IsRunning& runs);

}  // namespace mprun
