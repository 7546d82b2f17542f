// Ranks of torch.distributed that wait for each other: rules of the table.
#include <algorithm>
#include <array>

#include "watch/causes/cause_rules.h"
#include "watch/causes/joins.h"
#include "watch/judge/library_waits.h"
#include "watch/stacks/python_code.h"

namespace mprun {
namespace {

constexpr std::string_view kCollectives = "/torch/distributed/distributed_c10d.py";
constexpr std::string_view kParallel = "/torch/nn/parallel/distributed.py";
constexpr std::string_view kRendezvous = "init_process_group", kTorchrun = "torchrun";
constexpr std::string_view kRpc = "/torch/distributed/rpc/api.py", kRpcTask = "/torch/distributed/rpc/internal.py";
constexpr std::string_view kRpcShutdown = "rpc.shutdown";
constexpr std::string_view kAsyncCollective = "a collective with async_op=True";
constexpr std::size_t kMostRanksListed = 8;

bool is_of_torch(const PythonFrame& frame) { return frame.file.find("/torch/") != std::string::npos; }

// The outermost function of torch.distributed that a stack is in: what the user has called. A DistributedDataParallel
// calls collectives in C++.
std::string collective_of(const std::vector<PythonFrame>& frames) {
  const bool in_shutdown = std::any_of(frames.begin(), frames.end(), [](const PythonFrame& frame) {
    return frame.function == "shutdown" && frame.file.ends_with(kRpc);
  });
  if (in_shutdown) return std::string(kRpcShutdown);
  if (meets_other_nodes(frames)) return std::string(kTorchrun);
  for (const std::string_view file : {kCollectives, kParallel}) {
    const auto outermost = std::find_if(frames.rbegin(), frames.rend(),
                                        [&](const PythonFrame& frame) { return frame.file.ends_with(file); });
    if (outermost != frames.rend()) return outermost->function;
  }
  return "";
}

// What a thread waits for that has called wait() of what a function of torch.distributed returned.
std::string work_of(const std::vector<std::string>& native) {
  const auto wait = std::find_if(native.begin(), native.end(),
                                 [](const std::string& function) { return is_wait_for_work_of_ranks(function); });
  if (wait == native.end()) return "";
  if (wait->find("SendWork") != std::string::npos) return "isend";
  return wait->find("RecvWork") == std::string::npos ? std::string(kAsyncCollective) : "irecv";
}

// The user's line, as in " at train.py:12".
std::string place_of(const std::vector<PythonFrame>& frames) {
  const auto own = std::find_if(frames.begin(), frames.end(), [](const PythonFrame& frame) {
    return !is_of_torch(frame) && !is_library_file(frame.file) && !frame.file.starts_with('<');
  });
  return own == frames.end() ? "" : " at " + own->file + ":" + std::to_string(own->line);
}

struct Rank {
  pid_t pid = 0, parent = 0;
  std::string collective, place;  ///< collective: "" if it takes part in none
};

// The processes that are in a collective, and their siblings.
std::vector<Rank> ranks_of(const Evidence& evidence) {
  std::vector<Rank> ranks;
  std::set<pid_t> parents;
  for (const auto& [pid, process] : evidence.snapshot->processes()) {
    Rank rank{pid, process.parent, {}, {}};
    for (const pid_t tid : process.threads) {
      const auto frames = evidence.python.find(tid);
      if (frames == evidence.python.end() || !rank.collective.empty()) continue;
      rank.collective = collective_of(frames->second);
      const auto native = evidence.native.find(tid);
      if (rank.collective.empty() && native != evidence.native.end()) rank.collective = work_of(native->second);
      if (tid == pid || !rank.collective.empty()) rank.place = place_of(frames->second);
    }
    if (!rank.collective.empty()) parents.insert(rank.parent);
    ranks.push_back(std::move(rank));
  }
  std::erase_if(ranks, [&](const Rank& rank) {
    return parents.count(rank.parent) == 0 || (rank.collective.empty() && rank.place.empty());
  });
  return ranks;
}

bool all_are_in(std::string_view function, const std::vector<Rank>& ranks) {
  return !ranks.empty() &&
         std::all_of(ranks.begin(), ranks.end(), [&](const Rank& rank) { return rank.collective == function; });
}

bool all_send_or_receive(const std::vector<Rank>& ranks) {
  constexpr std::array<std::string_view, 5> kCalls = {"send", "recv", "isend", "irecv", "batch_isend_irecv"};
  return std::all_of(ranks.begin(), ranks.end(), [&](const Rank& rank) {
    return std::find(kCalls.begin(), kCalls.end(), rank.collective) != kCalls.end();
  });
}

bool all_call_the_same(const std::vector<Rank>& ranks) {
  return !ranks.front().collective.empty() && all_are_in(ranks.front().collective, ranks);
}

std::string text_of(const std::vector<Rank>& ranks) {
  std::string text;
  for (std::size_t i = 0; i < std::min(ranks.size(), kMostRanksListed); ++i) {
    const Rank& rank = ranks[i];
    text += (i == 0 ? "process " : "; process ") + std::to_string(rank.pid) +
            (rank.collective.empty() ? " takes part in none, and waits" : " waits in " + rank.collective) + rank.place;
  }
  return text + (ranks.size() > kMostRanksListed ? "; and so on" : "");
}

// The one descriptor that a thread reads, or polls before it reads it.
std::optional<std::int64_t> read_by(const JudgedThread& thread) {
  if (thread.wait.kind == WaitKind::kSocket) return static_cast<int>(thread.sample->call.arguments[0]);
  if (thread.wait.kind == WaitKind::kPoll && thread.wait.polled.size() == 1) return thread.wait.polled.front();
  return std::nullopt;
}

// True if the thread reads an answer of the store.
bool asks_store(const JudgedThread& thread, TreeSnapshot* snapshot) {
  const auto number = read_by(thread);
  if (!number) return false;
  const pid_t pid = thread.sample->pid;
  const Descriptor* descriptor = snapshot->descriptor(pid, *number);
  const auto& sockets = snapshot->tcp_sockets(pid);
  const auto own = std::find_if(sockets.begin(), sockets.end(), [&](const TcpSocket& socket) {
    return descriptor != nullptr && socket.inode == descriptor->inode;
  });
  if (own == sockets.end()) return false;
  const auto port = std::string_view(own->remote).substr(own->remote.find(':'));
  return std::any_of(snapshot->processes().begin(), snapshot->processes().end(),
                     [&](const auto& process) { return serves_store(process.first, port, snapshot); });
}

}  // namespace

std::optional<Explanation> message_never_sent(const Evidence& evidence) {
  std::string text;
  std::size_t listed = 0;
  for (const JudgedThread& thread : evidence.judgement->threads) {
    if (!thread.wait.object.starts_with(kMessagesOf) || ++listed > kMostRanksListed) continue;
    const auto frames = evidence.python.find(thread.sample->tid);
    text += (text.empty() ? "process " : "; process ") + std::to_string(thread.sample->pid) + " waits in " +
            thread.wait.object.substr(kMessagesOf.size()) +
            (frames == evidence.python.end() ? "" : place_of(frames->second));
  }
  if (text.empty()) return std::nullopt;
  return Explanation{"ranks of MPI wait, each with a CPU that it keeps busy, for what none of them sends: " + text};
}

std::optional<Explanation> store_key_missing(const Evidence& evidence) {
  for (const JudgedThread& thread : evidence.judgement->threads) {
    if (thread.live || !asks_store(thread, evidence.snapshot)) continue;
    const auto frames = evidence.python.find(thread.sample->tid);
    const std::string place = frames == evidence.python.end() ? "" : place_of(frames->second);
    return Explanation{"process " + std::to_string(thread.sample->pid) + " waits" + place +
                       " for a key of torch.distributed's store that no rank has set, and those who could set it wait"};
  }
  return std::nullopt;
}

std::optional<Explanation> rank_missing(const Evidence& evidence) {
  const auto ranks = ranks_of(evidence);
  if (all_are_in(kTorchrun, ranks)) {
    return Explanation{
        "process " + std::to_string(ranks.front().pid) + " (torchrun) waits for other nodes, which have not come",
        "start torchrun on as many machines as --nnodes says, each with its own --node_rank and the same "
        "--master_addr and --master_port, or --rdzv_endpoint and --rdzv_id"};
  }
  if (!all_are_in(kRendezvous, ranks)) return std::nullopt;
  return Explanation{"ranks wait for others that have not come: " + text_of(ranks)};
}

std::optional<Explanation> collective_mismatch(const Evidence& evidence) {
  const auto ranks = ranks_of(evidence);
  if (ranks.empty()) return std::nullopt;
  if (all_send_or_receive(ranks)) {
    return Explanation{"ranks send and receive what does not match (by rank, tag or number): " + text_of(ranks),
                       "match each recv with a send of the same rank and tag, and let one of two ranks that exchange "
                       "data receive first"};
  }
  if (all_are_in(kAsyncCollective, ranks)) {
    return Explanation{"ranks wait in collectives that do not match, by call, order, arguments or group: " +
                       text_of(ranks)};
  }
  if (all_call_the_same(ranks)) {
    return Explanation{
        "ranks wait in one collective, with other arguments (source, shapes, group), in another order, or "
        "for a rank that is not seen: " +
        text_of(ranks)};
  }
  return Explanation{"ranks wait in collectives that not all ranks of their group have called: " + text_of(ranks)};
}

// torch.distributed.rpc keeps a CPU busy while it waits, so that this is never proved.
std::optional<Explanation> rpc_shutdown_left_out(const Evidence& evidence) {
  const auto ranks = ranks_of(evidence);
  const auto in_shutdown =
      std::count_if(ranks.begin(), ranks.end(), [](const Rank& rank) { return rank.collective == kRpcShutdown; });
  if (in_shutdown == 0 || static_cast<std::size_t>(in_shutdown) == ranks.size()) return std::nullopt;
  return collective_mismatch(evidence);
}

// A remote function waits for another, which waits for a thread that runs remote functions.
std::optional<Explanation> rpc_in_rpc(const Evidence& evidence) {
  const JudgedThread* waits = find_thread(evidence, [&](const JudgedThread& thread) {
    const pid_t tid = thread.sample->tid;
    return thread.wait.kind == WaitKind::kFutex && evidence.is_in(tid, kRpcTask, "_run_function") &&
           evidence.is_in(tid, kRpc, "rpc_sync");
  });
  if (waits == nullptr) return std::nullopt;
  return Explanation{thread_text(*waits) + " runs a remote function of torch.distributed.rpc, and waits in it" +
                     place_of(evidence.python.at(waits->sample->tid)) +
                     " for another one; those who could run that may wait in the same way"};
}

}  // namespace mprun
