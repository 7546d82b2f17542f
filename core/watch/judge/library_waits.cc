#include "watch/judge/library_waits.h"

#include <algorithm>
#include <array>

#include "watch/sample/syscall_table.h"

namespace mprun {
namespace {

constexpr std::array kPolls = {
    // torch 1.13 to 2.14; MP_STATUS_CHECK_INTERVAL is 5 s.
    LibraryPoll{"/torch/utils/data/dataloader.py", "_MultiProcessingDataLoaderIter._try_get_data",
                "whether its workers live", true, false, true},
    LibraryPoll{"/torch/utils/data/_utils/worker.py", "_worker_loop", "whether its parent lives", false, true, false},
    LibraryPoll{"/torch/utils/data/_utils/pin_memory.py", "_pin_memory_loop", "whether it is to end", false, false,
                false},
    LibraryPoll{"/torch/utils/data/_utils/pin_memory.py", "_pin_memory_loop.<locals>.do_one_step",
                "whether it is to end", false, false, false},
    // CPython 3.8 to 3.14, every second.
    LibraryPoll{"/multiprocessing/managers.py", "Server.serve_forever", "whether it is to end", false, false, false},
    // pytest-xdist 3: every 2 s.
    LibraryPoll{"/xdist/dsession.py", "DSession.loop_once", "whether a worker has sent anything", false, false, false},
    // tqdm 4: every 10 s; redraws bars.
    LibraryPoll{"/tqdm/_monitor.py", "TMonitor.run", "whether a bar is late", false, false, false},
    // trio 0.22: _MAX_TIMEOUT of _run.py, an int; the time until a timer that is due before is a float.
    LibraryPoll{"/trio/_core/_io_epoll.py", "EpollIOManager.get_events", "whether a timer is due", false, false, false,
                86400},
    // eventlet 0.33: default_sleep() of hubs/hub.py. Without a descriptor to poll, its loop sleeps for so long.
    LibraryPoll{"/eventlet/hubs/epolls.py", "Hub.do_poll", "whether a timer is due", false, false, false, 60},
    LibraryPoll{"/eventlet/hubs/poll.py", "Hub.wait", "whether a timer is due", false, false, false, 60},
};

// The files whose functions a poll consists of.
constexpr std::array<std::string_view, 5> kWaitingFiles = {"/selectors.py", "/multiprocessing/connection.py",
                                                           "/multiprocessing/queues.py", "/queue.py", "/threading.py"};

struct Function {
  std::string_view file, name;
};
struct SleepLoop {
  Function function;
  const char* looks_at;
};
constexpr std::array kSleepLoops = {
    // torch 1.13: every 10 ms.
    SleepLoop{{"/torch/distributed/distributed_c10d.py", "_store_based_barrier"}, kLooksForRanks},
    SleepLoop{{"/torch/distributed/rendezvous.py", "_create_c10d_store"}, kLooksForRanks},
    // With a store in a file, in which gloo looks for the addresses of other ranks every 10 ms (FileStore.cpp).
    SleepLoop{{"/torch/distributed/distributed_c10d.py", "_new_process_group_helper"}, kLooksForRanks},
    SleepLoop{{"/torch/distributed/distributed_c10d.py", "_create_gloo_process_group"}, kLooksForRanks},  // torch 2.14
    // torchrun: every second; the second one for --rdzv_backend=c10d.
    SleepLoop{{"/torch/distributed/elastic/rendezvous/static_tcp_rendezvous.py", "StaticTCPRendezvous.next_rendezvous"},
              kLooksForNodes},
    SleepLoop{{"/torch/distributed/elastic/rendezvous/utils.py", "_delay"}, kLooksForNodes},
    // filelock 3: every 50 ms.
    SleepLoop{{"/filelock/_api.py", "BaseFileLock.acquire"}, kLooksForFileLock},
    SleepLoop{{"/filelock.py", "BaseFileLock.acquire"}, kLooksForFileLock},
    // fasteners 0.18, portalocker 2.
    SleepLoop{{"/fasteners/_utils.py", "retry"}, kLooksForFileLock},
    SleepLoop{{"/portalocker/utils.py", "LockBase._timeout_generator"}, kLooksForFileLock},
    // joblib 1.3: every 10 ms.
    SleepLoop{{"/joblib/parallel.py", "Parallel._retrieve"}, "whether a result has come"},
};
constexpr std::array kRendezvousOfNodes = {
    Function{"/torch/distributed/elastic/rendezvous/static_tcp_rendezvous.py", "StaticTCPRendezvous.next_rendezvous"},
    Function{"/torch/distributed/elastic/rendezvous/dynamic_rendezvous.py", "DynamicRendezvousHandler.next_rendezvous"},
};
constexpr std::array kHelpers = {
    Function{"/multiprocessing/queues.py", "Queue._feed"},
    Function{"/multiprocessing/resource_sharer.py", "_ResourceSharer._serve"},
    Function{"/tqdm/_monitor.py", "TMonitor.run"},
    Function{"/torch/utils/data/_utils/pin_memory.py", "_pin_memory_loop"},
};

// execnet 1.9 to 2.1: the thread of a worker that receives what its controller sends, and what runs a worker's tests.
// Messages only end waits for them, in execnet itself or in pytest-xdist.
constexpr std::array kMessageReceivers = {Function{"/execnet/gateway_base.py", "BaseGateway._thread_receiver"}};
constexpr std::array kMessageWorkers = {Function{"/execnet/gateway_base.py", "WorkerGateway.serve"}};
constexpr std::array<std::string_view, 2> kMessagePackages = {"/execnet/", "/xdist/"};

constexpr std::array kListenersForRelatives = {
    Function{"/multiprocessing/resource_sharer.py", "_ResourceSharer._serve"},
};
constexpr Function kForkserver{"/multiprocessing/forkserver.py", "main"};  // of its children too, further out
constexpr std::array kListenersForTree = {
    kForkserver,
    Function{"/multiprocessing/managers.py", "BaseManager._run_server"},
};

// Both are below the server of a manager that was forked: its parent was there then.
constexpr std::array kStartOfManager = {Function{"/multiprocessing/managers.py", "BaseManager.start"}};
constexpr std::array kMakerOfManager = {Function{"/multiprocessing/context.py", "BaseContext.Manager"}};

template <std::size_t kCount>
bool is_in_any(const std::array<Function, kCount>& functions, const std::vector<PythonFrame>& frames) {
  return std::any_of(frames.begin(), frames.end(), [&](const PythonFrame& frame) {
    return std::any_of(functions.begin(), functions.end(), [&](const Function& one) {
      return frame.function == one.name && frame.file.ends_with(one.file);
    });
  });
}

template <std::size_t kCount>
bool is_any_in(const std::array<Function, kCount>& functions, const std::vector<PythonThread>& threads) {
  return std::any_of(threads.begin(), threads.end(),
                     [&](const PythonThread& thread) { return is_in_any(functions, thread.frames); });
}

bool is_of_waiting_file(const PythonFrame& frame) {
  return std::any_of(kWaitingFiles.begin(), kWaitingFiles.end(),
                     [&frame](std::string_view file) { return frame.file.ends_with(file); });
}

auto caller_of_wait(const PythonThread& thread) {
  return std::find_if_not(thread.frames.begin(), thread.frames.end(), is_of_waiting_file);
}

bool is_forkserver(const PythonThread& thread) {
  const auto caller = caller_of_wait(thread);
  return caller != thread.frames.end() && caller->function == kForkserver.name &&
         caller->file.ends_with(kForkserver.file);
}

bool waits_for_message(const PythonThread& thread) {
  const auto caller = caller_of_wait(thread);
  return caller != thread.frames.end() &&
         std::any_of(kMessagePackages.begin(), kMessagePackages.end(),
                     [&](std::string_view package) { return caller->file.find(package) != std::string::npos; });
}

}  // namespace

const LibraryPoll* find_library_poll(const std::vector<PythonFrame>& frames) {
  for (const PythonFrame& frame : frames) {
    for (const LibraryPoll& poll : kPolls) {
      if (frame.function == poll.function && frame.file.ends_with(poll.file)) return &poll;
    }
    if (!is_of_waiting_file(frame)) return nullptr;
  }
  return nullptr;
}

const char* looks_between_sleeps(const std::vector<PythonFrame>& frames) {
  if (frames.empty()) return nullptr;
  const PythonFrame& frame = frames.front();
  const auto loop = std::find_if(kSleepLoops.begin(), kSleepLoops.end(), [&](const SleepLoop& one) {
    return frame.function == one.function.name && frame.file.ends_with(one.function.file);
  });
  return loop == kSleepLoops.end() ? nullptr : loop->looks_at;
}

bool is_idle_libev(const ThreadSample& thread) {
  constexpr std::uint64_t kLongestBlock = 59743;
  return call_of(thread.call.number) == Call::kEpollWait && thread.call.arguments[3] == kLongestBlock;
}

RankPhase rank_phase(const std::vector<PythonThread>& threads) {
  auto phase = RankPhase::kNone;
  for (const PythonThread& thread : threads) {
    if (is_in_any(kRendezvousOfNodes, thread.frames)) return RankPhase::kMeets;
    for (const PythonFrame& frame : thread.frames) {
      if (!frame.file.ends_with("/torch/distributed/distributed_c10d.py")) continue;
      if (frame.function == "init_process_group") return RankPhase::kMeets;
      phase = RankPhase::kMet;
    }
  }
  return phase;
}

// PyTorch's torch/csrc/distributed/c10d: Work::wait() and its overrides, such as ProcessGroupGloo::RecvWork::wait().
bool is_wait_for_work_of_ranks(std::string_view function) {
  return function.starts_with("c10d::") && function.find("Work::wait(") != std::string_view::npos;
}

bool meets_other_nodes(const std::vector<PythonFrame>& frames) { return is_in_any(kRendezvousOfNodes, frames); }

bool asks_whether_all_have_come(const std::vector<PythonThread>& threads) {
  constexpr std::array kBarrier = {Function{"/torch/distributed/distributed_c10d.py", "_store_based_barrier"}};
  return std::any_of(threads.begin(), threads.end(),
                     [&](const PythonThread& thread) { return is_in_any(kBarrier, thread.frames); });
}

bool receives_for_nobody(pid_t receiver, const std::vector<PythonThread>& threads) {
  bool is_worker = false;
  int receivers = 0;
  for (const PythonThread& thread : threads) {
    if (is_in_any(kMessageReceivers, thread.frames)) {
      ++receivers;
      if (thread.tid != receiver) return false;
    } else if (waits_for_message(thread)) {
      return false;
    }
    is_worker = is_worker || is_in_any(kMessageWorkers, thread.frames);
  }
  return is_worker && receivers == 1;
}

bool is_library_helper(const std::vector<PythonFrame>& frames) { return is_in_any(kHelpers, frames); }

// multiprocessing.Manager() makes a random key. A program that starts a manager of its own may choose one that others
// know. Which of them has started one by spawn or a forkserver is not seen.
Clients clients_of_listener(const std::vector<PythonThread>& threads) {
  if (threads.size() == 1 && is_forkserver(threads.front())) return Clients::kYounger;
  if (is_any_in(kStartOfManager, threads) && !is_any_in(kMakerOfManager, threads)) return Clients::kAnybody;
  if (is_any_in(kListenersForTree, threads)) return Clients::kTree;
  return is_any_in(kListenersForRelatives, threads) ? Clients::kRelatives : Clients::kAnybody;
}

}  // namespace mprun
