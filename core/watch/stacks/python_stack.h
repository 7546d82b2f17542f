// Reads the Python stacks of a watched process from its memory alone: the process is neither stopped nor signalled, and
// may hold the GIL or not. Called by the watch for processes that are blocked; for one that runs, inconsistent parts
// are left out. CPython 3.9 to 3.15, free-threaded ones too; for any other, `reason` is set.
#pragma once

#include <set>
#include <span>

#include "procfs/process_facts.h"
#include "watch/hang.h"
#include "watch/stacks/python_beat.h"
#include "watch/stacks/python_loop.h"

namespace mprun {

struct PythonThread {
  pid_t tid = 0;
  std::vector<PythonFrame> frames;  ///< innermost first; none: it executes no Python
  bool whole = true;                ///< no frame is missing at the end
  PythonLocals locals;              ///< of frames of the user's own code; only read_python_progress() fills it
  /// What the innermost of these waits for in a loop that ends only by that (python_loop.h); nullopt: not known.
  std::optional<AwaitedInLoop> awaited;
  /// When the time of its wait is up, the program's own code may go on by something that is not seen
  /// (BetweenWaits::kMayDecide), or an event loop may run it. Only read_python_progress() tells.
  bool may_decide = false;
  std::optional<PythonBeat> beat = {};  ///< it only beats; only read_python_progress() tells
};

/// The innermost of these frames, down to where multiprocessing has forked the process: the rest is what the parent's
/// thread was doing then.
[[nodiscard]] std::span<const PythonFrame> own_frames(const std::vector<PythonFrame>& frames);

/// A global interpreter lock; with subinterpreters there may be several. Its waiters wait on a futex with a timeout of
/// 5 ms, again and again.
struct PythonGil {
  bool locked = false;
  pid_t last_holder = 0;                       ///< tid; the holder while it is locked; 0: not known
  std::uint64_t switch_number = 0;             ///< changes when another thread gets it
  std::uint64_t wait_begin = 0, wait_end = 0;  ///< addresses of the futexes of its waiters
};

struct PythonStacks {
  std::string version;  ///< "3.11.2"; empty: no Python, or not known
  std::string reason;   ///< of a Python: why the rest is empty; empty: it is not
  std::vector<PythonThread> threads;
  bool finalizing = false;                           ///< exit handlers have run, the interpreter is being taken down
  pid_t finalizing_tid = 0;                          ///< the thread that does so
  std::vector<PythonGil> gils;                       ///< the main interpreter's last
  std::uint64_t runtime_begin = 0, runtime_end = 0;  ///< addresses of _PyRuntime
};

/// Costs about ten reads of memory for each function not seen before: 2 ms for 10 threads of 20 frames.
[[nodiscard]] PythonStacks read_python_stacks(ProcSource* proc, pid_t pid);
/// The same, for a caller that has the process's mappings: with torch loaded, the kernel takes 2 ms to list them.
[[nodiscard]] PythonStacks read_python_stacks(ProcSource* proc, pid_t pid, const std::vector<Mapping>& mappings);
/// The stacks with the locals of the threads, which show whether they get anywhere.
[[nodiscard]] PythonStacks read_python_progress(ProcSource* proc, pid_t pid);
/// Whether the first argument with a default still is the default object, in the innermost frame of `function` on a
/// thread's stack; nullopt: not known, or there is no such frame.
[[nodiscard]] std::optional<bool> first_default_is_used(ProcSource* proc, pid_t pid, pid_t tid,
                                                        std::string_view function);
/// The number that the first argument after `self` is, in the innermost frame of `function` on a thread's stack;
/// nullopt: not known, or it is none.
[[nodiscard]] std::optional<double> first_number(ProcSource* proc, pid_t pid, pid_t tid, std::string_view function);
/// The pids of the multiprocessing.Process objects in lists of `self`, and perhaps other numbers, in the innermost
/// frame of `function` on a thread's stack; nullopt: there are none, or not all can be read.
[[nodiscard]] std::optional<std::set<pid_t>> numbers_of_own_processes(ProcSource* proc, pid_t pid, pid_t tid,
                                                                      std::string_view function);
/// How many callbacks the event loop of asyncio that runs on a thread has ready; nullopt: not known.
[[nodiscard]] std::optional<std::size_t> callbacks_of_loop(ProcSource* proc, pid_t pid, pid_t tid);

}  // namespace mprun
