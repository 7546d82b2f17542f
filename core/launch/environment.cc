#include "launch/environment.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <iterator>
#include <string_view>
#include <utility>

#include "cluster/allocation.h"
#include "os/fd.h"
#include "os/service_notifier.h"
#include "sync/sync.h"
#include "wire/deadlines.h"

namespace mprun {
namespace {

// The variables by which the common runtimes learn how many threads to start (joblib sets the same ones).
constexpr std::array kThreadVariables = {"OMP_NUM_THREADS",       "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS",
                                         "BLIS_NUM_THREADS",      "NUMEXPR_NUM_THREADS",  "NUMBA_NUM_THREADS",
                                         "VECLIB_MAXIMUM_THREADS"};

// glibc returns memory to the kernel as soon as more is free at the end of the heap than twice the largest block it
// ever mapped. With the tensors of a small net that may be after every batch, and the next one faults in all its pages
// again: a third of the time of batch evaluation, or none, depending on the layout of the heap. So these set the
// largest value that glibc would choose by itself for blocks, and keep 128 MiB at the end (mallopt(3); every 64-bit
// glibc reads them).
constexpr std::array<std::pair<const char*, const char*>, 2> kKeepMemory = {
    {{"MALLOC_MMAP_THRESHOLD_", "33554432"}, {"MALLOC_TRIM_THRESHOLD_", "134217728"}}};

[[nodiscard]] bool tunes_malloc(const Environment& environment) {
  for (const char* name :
       {"MALLOC_MMAP_THRESHOLD_", "MALLOC_TRIM_THRESHOLD_", "MALLOC_TOP_PAD_", "MALLOC_MMAP_MAX_", "GLIBC_TUNABLES"}) {
    if (environment.count(name) != 0) return true;
  }
  return false;
}

/// Puts a path before those of a variable.
void put_first(Environment* environment, const char* name, const std::string& path) {
  std::string& variable = (*environment)[name];
  variable = variable.empty() ? path : path + ":" + variable;
}

}  // namespace

Environment own_environment() {
  Environment result;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const auto equals = text.find('=');
    if (equals != std::string_view::npos) result.emplace(text.substr(0, equals), text.substr(equals + 1));
  }
  // These belong to another mprun that examines us; the processes that we start report to us.
  for (const char* name : {"MPRUN_DOCTOR", MPRUN_DEADLINES_VARIABLE, MPRUN_SYNC_VARIABLE}) result.erase(name);
  for (const std::string_view name : kServiceVariables) result.erase(std::string(name));
  return result;
}

Environment job_environment(const JobSpec& spec, const Environment& base, const std::string& run_dir) {
  Environment result = base;
  // The variables that say which of several mpruns this is do not hold for its children.
  for (auto variable = result.begin(); variable != result.end();) {
    variable = names_a_place(variable->first) ? result.erase(variable) : std::next(variable);
  }
  for (const char* name : kThreadVariables) {
    const auto [given, is_new] = result.try_emplace(name);
    const bool of_all_workers =
        spec.allocation.threads_are_cpus && given->second == std::to_string(*spec.allocation.cpus);
    if (spec.threads_explicit || is_new || of_all_workers) given->second = std::to_string(spec.threads_per_worker);
  }
  const bool by_glibc = spec.allocator_library.empty();
  if (by_glibc && spec.kind != JobKind::kCommand && !tunes_malloc(base))
    result.insert(kKeepMemory.begin(), kKeepMemory.end());
  // With a seed, sets of strings must iterate alike in every interpreter too.
  if (spec.seed && result.count("PYTHONHASHSEED") == 0) {
    result["PYTHONHASHSEED"] = std::to_string(*spec.seed & 0xffffffffU);
  }
  if (spec.kind == JobKind::kRanks) add_rank_defaults(&result);
  for (const auto& [name, value] : spec.env) result[name] = value;
  if (!by_glibc) put_first(&result, "LD_PRELOAD", spec.allocator_library);
  result["MPRUN_RUN_DIR"] = run_dir;
  result["MPRUN_WORKERS"] = std::to_string(spec.processes);
  for (const char* name : {"MPRUN_TASK", "MPRUN_ATTEMPT", "MPRUN_WORKER", "MPRUN_CPUS"}) result.erase(name);
  return result;
}

void add_adapters(Environment* environment, const AdapterFiles& files, const std::vector<std::string>& off) {
  put_first(environment, "LD_PRELOAD", files.preload);
  put_first(environment, "PYTHONPATH", files.site);
  (*environment)["MPRUN_NOTES"] = files.notes;
  if (!files.deadlines.empty()) (*environment)[MPRUN_DEADLINES_VARIABLE] = files.deadlines;
  if (!files.sync.empty()) (*environment)[MPRUN_SYNC_VARIABLE] = files.sync;
  for (const std::string& name : off) {
    std::string& adapters = (*environment)["MPRUN_ADAPTERS"];
    adapters += (adapters.empty() ? "-" : ",-") + name;
  }
}

Environment slot_environment(const JobSpec& spec, int slot) {
  Environment result{{"MPRUN_WORKER", std::to_string(slot)}};
  if (const CpuList cpus = cpus_of(spec, slot); !cpus.empty()) result["MPRUN_CPUS"] = to_string(cpus);
  if (spec.device.kind == DeviceKind::kCpu || spec.device.names.empty()) return result;
  const Device& device = spec.device;
  const auto each = static_cast<std::size_t>(device.each);
  std::string names;
  for (std::size_t i = 0; i < each; ++i) {
    const std::string& name = device.names[(static_cast<std::size_t>(slot) * each + i) % device.names.size()];
    names += (names.empty() ? "" : ",") + name;
  }
  const bool cuda = device.kind == DeviceKind::kCuda;
  result["MPRUN_DEVICE"] = (cuda ? "cuda:" : "ascend:") + names;
  result["MPRUN_DEVICE_INDEX"] = names;
  result[cuda ? "CUDA_VISIBLE_DEVICES" : "ASCEND_RT_VISIBLE_DEVICES"] = names;
  return result;
}

void add_rank_defaults(Environment* environment) { environment->emplace("USE_LIBUV", "0"); }

Environment rank_environment(int local, int each, int port, Shard shard, const std::string& address) {
  const auto ranks = static_cast<std::uint64_t>(each);
  const std::string rank = std::to_string(shard.index * ranks + static_cast<std::uint64_t>(local));
  const std::string size = std::to_string(shard.count * ranks);
  return {{"RANK", rank},
          {"LOCAL_RANK", std::to_string(local)},
          {"WORLD_SIZE", size},
          {"LOCAL_WORLD_SIZE", std::to_string(each)},
          {"GROUP_RANK", std::to_string(shard.index)},
          {"ROLE_RANK", rank},
          {"ROLE_WORLD_SIZE", size},
          {"GROUP_WORLD_SIZE", std::to_string(shard.count)},
          {"ROLE_NAME", "default"},
          {"MASTER_ADDR", address},
          {"MASTER_PORT", std::to_string(port)}};
}

Environment rank_environment(const JobSpec& spec, int local, int port) {
  if (!spec.shard || spec.shard->count == 1) return rank_environment(local, spec.processes, port);
  return rank_environment(local, spec.processes, port, *spec.shard, spec.allocation.first_host);
}

int find_free_port() {
  const Fd socket_fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  if (!socket_fd || bind(socket_fd.get(), generic, size) != 0 || getsockname(socket_fd.get(), generic, &size) != 0) {
    return 29500;  // torch's own default
  }
  return ntohs(address.sin_port);
}

std::vector<std::string> flatten(const Environment& base, const Environment& more) {
  Environment left = more;
  left.insert(base.begin(), base.end());
  std::vector<std::string> result;
  result.reserve(left.size());
  const auto add = [&result](const std::string& name, const std::string& value) {
    result.emplace_back(name).append("=").append(value);
  };
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    if (const auto found = left.extract(std::string(text.substr(0, text.find('=')))); !found.empty()) {
      add(found.key(), found.mapped());
    }
  }
  for (const auto& [name, value] : left) add(name, value);
  return result;
}

}  // namespace mprun
