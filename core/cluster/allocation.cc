#include "cluster/allocation.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "cluster/host_list.h"

namespace mprun {
namespace {

// Below the ephemeral ports, above those of services.
constexpr std::uint64_t kFirstPort = 15'000, kPorts = 15'000;

class Reader {
 public:
  explicit Reader(const Variables& variables) : variables_(variables) {}
  [[nodiscard]] std::string text(const char* name) const {
    const auto found = variables_.find(name);
    return found == variables_.end() ? "" : found->second;
  }
  [[nodiscard]] std::optional<std::uint64_t> number(const char* name) const {
    const std::string value = text(name);
    std::uint64_t number = 0;
    const char* const end = value.data() + value.size();
    const auto [stop, error] = std::from_chars(value.data(), end, number);
    return error == std::errc() && stop == end ? std::optional(number) : std::nullopt;
  }
  [[nodiscard]] bool has(const char* name) const { return variables_.count(name) != 0; }

 private:
  const Variables& variables_;
};

struct Found {
  Shard shard;
  const char* source = "";
};

std::optional<Found> numbers(const Reader& env, const char* index, const char* count) {
  const auto i = env.number(index);
  const auto n = env.number(count);
  if (!i || !n || *n < 1 || *i >= *n) return std::nullopt;
  return Found{{*i, *n}, index};
}

/// The number of the step of Slurm; a batch script has none, or one of those that stand for something else: -5 since
/// Slurm 26.05 (SLURM_BATCH_SCRIPT of slurm.h).
std::optional<std::uint64_t> step_of(const Reader& env) {
  constexpr std::uint64_t kFirstSpecial = 0xffff'fff0;
  const auto step = env.number("SLURM_STEP_ID");
  return step && *step < kFirstSpecial ? step : std::nullopt;
}

/// An element of a job array; `*fault` says why its number makes no shard.
std::optional<Found> array_element(const Reader& env, std::string* fault) {
  const auto id = env.number("SLURM_ARRAY_TASK_ID");
  const auto count = env.number("SLURM_ARRAY_TASK_COUNT");
  if (!id || !count || *count < 1) return std::nullopt;
  const std::uint64_t first = env.number("SLURM_ARRAY_TASK_MIN").value_or(0);
  const std::uint64_t step = std::max<std::uint64_t>(1, env.number("SLURM_ARRAY_TASK_STEP").value_or(1));
  const std::uint64_t last = env.number("SLURM_ARRAY_TASK_MAX").value_or(first + (*count - 1) * step);
  if (*id < first || (*id - first) % step != 0 || (*id - first) / step >= *count ||
      last != first + (*count - 1) * step) {
    *fault = "the elements of the job array are no evenly spaced numbers";
    return std::nullopt;
  }
  return Found{{(*id - first) / step, *count}, "SLURM_ARRAY_TASK_ID"};
}

/// One of the tasks that srun, mpirun or another launcher started. A batch script has SLURM_PROCID too, and is alone.
std::optional<Found> launched(const Reader& env) {
  if (auto found = numbers(env, "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE")) return found;
  if (step_of(env)) {
    if (auto found = numbers(env, "SLURM_PROCID", "SLURM_STEP_NUM_TASKS")) return found;
    if (auto found = numbers(env, "SLURM_PROCID", "SLURM_NTASKS")) return found;
    if (auto found = numbers(env, "SLURM_NODEID", "SLURM_NNODES")) return found;
  }
  return numbers(env, "PMI_RANK", "PMI_SIZE");
}

/// In an array whose elements are steps of several tasks each, every task is a shard.
void find_shard(const Reader& env, Allocation* place) {
  const auto element = array_element(env, &place->shard_fault);
  const auto task = launched(env);
  if (!place->shard_fault.empty()) return;
  Found found = element ? *element : task.value_or(Found{});
  if (element && task) {
    found.shard = {element->shard.index * task->shard.count + task->shard.index,
                   element->shard.count * task->shard.count};
  }
  if (found.shard.count > kMostShards) {
    place->shard_fault = "there are more than " + std::to_string(kMostShards) + " mpruns";
    return;
  }
  if (found.shard.count == 1) return;
  place->shard = found.shard;
  place->shard_source = found.source;
}

/// "slurm-12" of a batch job, "slurm-12.0" of a step of it.
void find_run_name(const Reader& env, Allocation* place) {
  const bool by_mpi = env.has("OMPI_COMM_WORLD_SIZE");
  if (place->slurm) {
    const auto step = step_of(env);
    place->run_name = "slurm-" + place->job_id + (!step || by_mpi ? "" : "." + std::to_string(*step));
    place->same_after_requeue = true;
  } else if (!env.text("PMIX_NAMESPACE").empty()) {
    place->run_name = "mpi-" + env.text("PMIX_NAMESPACE");
    const auto plain = [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || c == '-'; };
    std::replace_if(
        place->run_name.begin(), place->run_name.end(), [&](char c) { return !plain(c); }, '-');
  }
}

/// The first number of "4(x2),2", a list with one number for each node or run of nodes.
std::optional<int> first_number(const std::string& text) {
  int number = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && stop != text.data() && number > 0 ? std::optional(number) : std::nullopt;
}

/// How many tasks of the step are on this node; `list` is "1(x2),3".
std::uint64_t tasks_here(const Reader& env) {
  if (!step_of(env)) return 1;
  std::string list = env.text("SLURM_STEP_TASKS_PER_NODE");
  std::uint64_t skip = env.number("SLURM_NODEID").value_or(0);
  while (!list.empty()) {
    const auto comma = list.find(',');
    const std::string entry = list.substr(0, comma);
    const auto times = entry.find("(x");
    const std::uint64_t nodes = times == std::string::npos ? 1 : first_number(entry.substr(times + 2)).value_or(1);
    if (skip < nodes) return static_cast<std::uint64_t>(first_number(entry).value_or(1));
    skip -= nodes;
    list = comma == std::string::npos ? "" : list.substr(comma + 1);
  }
  return 1;
}

// A task has the CPUs that --cpus-per-task asked for; else the job's tasks on the node share the job's CPUs there.
void find_cpus(const Reader& env, Allocation* place) {
  const auto fits = [](std::uint64_t cpus) { return static_cast<int>(std::min<std::uint64_t>(cpus, 4096)); };
  const auto per_task = env.number("SLURM_CPUS_PER_TASK");
  const auto on_node = env.number("SLURM_CPUS_ON_NODE");
  if (per_task && *per_task > 0 && step_of(env)) {
    place->cpus = fits(*per_task);
    place->cpus_source = "SLURM_CPUS_PER_TASK";
  } else if (on_node && *on_node > 0) {
    place->cpus = fits(std::max<std::uint64_t>(1, *on_node / tasks_here(env)));
    place->cpus_source = "SLURM_CPUS_ON_NODE";
  }
  const std::string all = env.text("SLURM_JOB_CPUS_PER_NODE");
  place->uneven_cpus = all.find(',') != std::string::npos && !per_task;
}

// HTCondor sets the numbers of threads of common runtimes to the CPUs of the job.
void find_condor_cpus(const Reader& env, Allocation* place) {
  const auto cpus = env.text("BATCH_SYSTEM") == "HTCondor" ? first_number(env.text("OMP_NUM_THREADS")) : std::nullopt;
  if (!cpus) return;
  place->cpus = cpus;
  place->cpus_source = "OMP_NUM_THREADS of HTCondor";
  place->threads_are_cpus = true;
}

}  // namespace

Allocation recognise(const Variables& environment) {
  const Reader env(environment);
  Allocation place;
  place.slurm = env.has("SLURM_JOB_ID");
  place.job_id = env.has("SLURM_ARRAY_JOB_ID") ? env.text("SLURM_ARRAY_JOB_ID") : env.text("SLURM_JOB_ID");
  place.node = env.text("SLURMD_NODENAME");
  find_shard(env, &place);
  find_run_name(env, &place);
  if (place.slurm) find_cpus(env, &place);
  if (!place.slurm) find_condor_cpus(env, &place);
  const std::string nodes = env.has("SLURM_STEP_NODELIST") ? "SLURM_STEP_NODELIST" : "SLURM_JOB_NODELIST";
  const auto hosts = expand_hosts(env.text(nodes.c_str()), 2);
  if (!hosts.empty()) place.first_host = hosts.front();
  const bool same_mpi_host =
      env.has("OMPI_COMM_WORLD_SIZE") && env.text("OMPI_COMM_WORLD_LOCAL_SIZE") == env.text("OMPI_COMM_WORLD_SIZE");
  place.one_host = hosts.size() == 1 || same_mpi_host;
  // Steps of one job, and jobs that follow each other, get different ports.
  std::uint64_t number = env.number("SLURM_JOB_ID").value_or(0) * 7 + step_of(env).value_or(0);
  if (!place.slurm) {
    for (const char c : place.run_name) number = number * 31 + static_cast<unsigned char>(c);
  }
  if (place.slurm || !place.run_name.empty()) place.master_port = static_cast<int>(kFirstPort + number % kPorts);
  return place;
}

bool names_a_place(std::string_view variable) {
  constexpr std::array kBeginnings = {"PMI_",      "PMIX_",          "OMPI_COMM_WORLD_",
                                      "OMPI_MCA_", "OMPI_UNIVERSE_", "SLURM_ARRAY_TASK_",
                                      "SLURM_PMI", "SLURM_STEP"};
  constexpr std::array kNames = {"SLURM_PROCID", "SLURM_LOCALID",  "SLURM_NTASKS",    "SLURM_NPROCS",
                                 "SLURM_GTIDS",  "SLURM_TASK_PID", "OMPI_FIRST_RANKS"};
  return std::any_of(kBeginnings.begin(), kBeginnings.end(),
                     [&](std::string_view begin) { return variable.substr(0, begin.size()) == begin; }) ||
         std::find(kNames.begin(), kNames.end(), variable) != kNames.end();
}

}  // namespace mprun
