// mprun_large: what a run of a thousand nodes costs: some of its nodes, then the merge of all. See README.md.
#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "node.h"
#include "os/fd.h"
#include "record/merge.h"
#include "record/shard_progress.h"
#include "supervise/scheduler.h"

namespace mprun::simulation {
namespace {

constexpr const char* kUsage =
    "usage: mprun_large [--nodes N] [--tasks-per-node T] [--workers W] [--task-milliseconds M]\n"
    "                   [--sampled S] [--shards N] [--rows-per-shard R] [--folder DIR]\n";

struct Options {
  std::uint64_t nodes = 1000, tasks = 1'000'000, workers = 64, milliseconds = 1000;
  std::uint64_t sampled = 3, shards = 1000, rows = 1000;
  std::string folder = "/tmp";
};

// What no run may exceed: a higher need calls for another design, see core/cluster/CAPACITY.md.
constexpr std::uint64_t kMostBytesPerTask = 24;          // of memory on a node
constexpr std::uint64_t kMostNodeMemory = 16U << 20U;    // in addition
constexpr std::uint64_t kMostWritesPerSecond = 50'000;   // of all nodes
constexpr std::uint64_t kMostMergeMemory = 128U << 20U;  // for any number of rows
constexpr rlim_t kFewFiles = 32;                         // open ones, for a merge of any number of shards

bool read_options(const std::vector<std::string>& args, Options* options) {
  const std::vector<std::pair<const char*, std::uint64_t*>> numbers = {
      {"--nodes", &options->nodes},         {"--tasks-per-node", &options->tasks},
      {"--workers", &options->workers},     {"--task-milliseconds", &options->milliseconds},
      {"--sampled", &options->sampled},     {"--shards", &options->shards},
      {"--rows-per-shard", &options->rows},
  };
  for (std::size_t i = 0; i + 1 < args.size(); i += 2) {
    if (args[i] == "--folder") {
      options->folder = args[i + 1];
      continue;
    }
    const auto found = std::find_if(numbers.begin(), numbers.end(), [&](auto& each) { return args[i] == each.first; });
    if (found == numbers.end()) return false;
    const char* end = args[i + 1].data() + args[i + 1].size();
    const auto [stop, error] = std::from_chars(args[i + 1].data(), end, *found->second);
    if (error != std::errc() || stop != end || *found->second == 0) return false;
  }
  return args.size() % 2 == 0;
}

/// Calls `work` in a separate process with its own memory, and returns what it found.
template <typename T>
bool apart(const std::function<bool(T*)>& work, T* found) {
  auto pipe = make_pipe();
  if (!pipe) return false;
  const pid_t pid = fork();
  if (pid == 0) {
    T mine{};
    const bool done = work(&mine);
    const bool reported = write_all(pipe->write.get(), {reinterpret_cast<const char*>(&mine), sizeof mine}).has_value();
    _exit(done && reported ? 0 : 1);
  }
  pipe->write.reset();
  const auto text = read_all(pipe->read.get());
  int status = 0;
  if (pid < 0 || waitpid(pid, &status, 0) != pid || status != 0 || !text || text->size() != sizeof *found) return false;
  std::memcpy(found, text->data(), sizeof *found);
  return true;
}

double millions(std::uint64_t bytes) { return static_cast<double>(bytes) / 1e6; }
double per(std::uint64_t count, double seconds) { return seconds > 0 ? static_cast<double>(count) / seconds : 0; }

bool within(const char* what, double value, double most) {
  if (value <= most) return true;
  fmt::print("TOO MUCH: {}: {:.0f}, where {:.0f} is the most\n", what, value, most);
  return false;
}

// --- nodes ---

bool simulate_apart(const NodeLoad& load, NodeFigures* found) {
  const auto simulate = [&load](NodeFigures* figures) {
    const auto simulated = simulate_node(load);
    if (!simulated) std::fprintf(stderr, "%s\n", simulated.error().message.c_str());
    if (simulated) *figures = *simulated;
    return simulated.has_value();
  };
  return apart<NodeFigures>(simulate, found);
}

bool sample_node(const Options& options, std::uint64_t index) {
  NodeLoad load;
  load.run_dir = options.folder + "/sampled";
  load.shard = {index, options.nodes};
  load.tasks = options.nodes * options.tasks;
  load.workers = static_cast<int>(options.workers);
  load.task_seconds = static_cast<double>(options.milliseconds) / 1000;
  NodeFigures found;
  if (!simulate_apart(load, &found)) return false;
  const auto of = [&found](const Action& action) { return found.actions[action.index()]; };
  const auto tasks = static_cast<double>(found.tasks);
  const double ops = per(found.writes + found.syncs, found.seconds), all = static_cast<double>(options.nodes);
  const double bytes = millions(found.bytes) / found.seconds;
  fmt::print(
      "node {}: {} tasks, {} tried again, in {:.0f} s of its own time\n"
      "  scheduler: {} events; assigned {} times, took back {}, read inputs {}, started {} workers; at most {} tasks "
      "known at once\n"
      "  {:.1f} us of processor time a task for scheduler, records and model\n"
      "  memory: {:.1f} MB, {:.1f} bytes a task\n"
      "  files while tasks run: {:.1f} writes and {:.2f} syncs a second, {:.3f} MB a second\n"
      "  files at its end: {} reads, {} writes\n"
      "  all {} nodes: {:.0f} operations and {:.1f} MB a second\n",
      index + 1, found.tasks, found.retried, found.seconds, found.events, of(action::Assign{}), of(action::TakeBack{}),
      of(action::ReadInputs{}), of(action::StartWorker{}), found.most_held, found.processor_seconds * 1e6 / tasks,
      millions(found.memory), static_cast<double>(found.memory) / tasks, per(found.writes, found.seconds),
      per(found.syncs, found.seconds), bytes, found.end_reads, found.end_writes, options.nodes, ops * all, bytes * all);
  bool fits = found.tasks == options.tasks;
  const std::uint64_t most_memory = kMostNodeMemory + kMostBytesPerTask * found.tasks;
  fits &= within("memory of a node", static_cast<double>(found.memory), static_cast<double>(most_memory));
  fits &= within("operations a second", ops * all, kMostWritesPerSecond);
  fits &= within("reads to put results in order", static_cast<double>(found.end_reads), tasks / 10);
  return fits;
}

// --- merging them ---

struct MergeFigures {
  double seconds = 0, looking = 0;
  std::uint64_t memory = 0, bytes = 0;
};

bool make_shards(const Options& options, const std::string& run_dir, bool counted, Order order) {
  NodeFigures figures;
  for (std::uint64_t index = 0; index < options.shards; ++index) {
    NodeLoad load;
    load.run_dir = run_dir;
    load.shard = {index, options.shards};
    load.tasks = options.shards * options.rows;
    load.counted = counted;
    load.workers = static_cast<int>(options.workers);
    load.order = order;
    if (!simulate_apart(load, &figures) || figures.tasks != options.rows) return false;
  }
  return true;
}

std::uint64_t peak_memory() {
  rusage use{};
  getrusage(RUSAGE_SELF, &use);
  return static_cast<std::uint64_t>(use.ru_maxrss) * 1024;
}

bool merge_all(const Options& options, const std::string& run_dir, MergeFigures* found) {
  const rlimit few{kFewFiles, kFewFiles};
  setrlimit(RLIMIT_NOFILE, &few);
  const std::uint64_t tasks = options.shards * options.rows;
  Nanos began = monotonic_now();
  ShardProgress progress(run_dir, options.shards, "1");
  do {
    (void)progress.update();
  } while (progress.is_behind());
  found->looking = to_seconds(monotonic_now() - began);
  const std::uint64_t memory = peak_memory();
  began = monotonic_now();
  const auto merged = merge_shards(run_dir);
  found->seconds = to_seconds(monotonic_now() - began);
  found->memory = peak_memory() - memory;
  if (!merged) std::fprintf(stderr, "%s\n", merged.error().message.c_str());
  for (const std::string& reason : merged ? merged->unfinished : std::vector<std::string>()) {
    std::fprintf(stderr, "%s\n", reason.c_str());
  }
  if (!merged || !merged->unfinished.empty() || merged->counts.ok + merged->counts.failed != tasks) return false;
  std::error_code error;
  found->bytes = std::filesystem::file_size(run_dir + "/results.jsonl", error);
  return progress.all_ended() && progress.done() == tasks && !error;
}

bool measure_merge(const Options& options, const char* what, bool counted, Order order) {
  const std::string run_dir = options.folder + "/merged";
  MergeFigures found;
  const bool merged =
      make_shards(options, run_dir, counted, order) &&
      apart<MergeFigures>([&](MergeFigures* mine) { return merge_all(options, run_dir, mine); }, &found);
  std::error_code error;
  std::filesystem::remove_all(run_dir, error);
  if (!merged) {
    fmt::print("FAILED: the merge of {}\n", what);
    return false;
  }
  const auto rows = static_cast<double>(options.shards * options.rows);
  fmt::print(
      "merge of {} shards, {}: {:.0f} rows in {:.2f} s, {:.0f} a second; {:.1f} MB of memory\n"
      "  10^9 rows at that rate: {:.0f} minutes, {:.0f} GB of results; submit --wait reads {:.0f} rows a second\n",
      options.shards, what, rows, found.seconds, rows / found.seconds, millions(found.memory),
      1e9 / rows * found.seconds / 60, millions(found.bytes) / rows * 1e6, rows / found.looking);
  return within("memory of a merge", static_cast<double>(found.memory), kMostMergeMemory);
}

int run(const std::vector<std::string>& args) {
  Options options;
  if (!read_options(args, &options)) {
    std::fputs(kUsage, stderr);
    return 2;
  }
  setvbuf(stdout, nullptr, _IOLBF, 0);  // printed as it is found, and nothing twice after a fork
  std::string folder = options.folder + "/mprun-large-XXXXXX";
  if (mkdtemp(folder.data()) == nullptr) {
    std::perror(folder.c_str());
    return 2;
  }
  options.folder = folder;
  bool fits = true;
  for (std::uint64_t i = 0; i < options.sampled; ++i) {
    fits &= sample_node(options, i * (options.nodes - 1) / std::max<std::uint64_t>(1, options.sampled - 1));
  }
  fits &= measure_merge(options, "blocks", true, Order::kInput);
  fits &= measure_merge(options, "blocks, in order of completion", true, Order::kCompletion);
  fits &= measure_merge(options, "tasks dealt out in turn", false, Order::kInput);
  std::error_code error;
  std::filesystem::remove_all(folder, error);
  fmt::print("{}\n", fits ? "all within the limits" : "not within the limits");
  return fits ? 0 : 1;
}

}  // namespace
}  // namespace mprun::simulation

int main(int argc, char** argv) { return mprun::simulation::run({argv + 1, argv + argc}); }
