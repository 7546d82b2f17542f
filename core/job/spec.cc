#include "job/spec.h"

namespace mprun {

CpuList cpus_of(const JobSpec& spec, int slot) {
  return spec.worker_cpus.empty() ? CpuList() : spec.worker_cpus[static_cast<std::size_t>(slot)];
}

std::vector<int> nodes_of(const JobSpec& spec, int slot) {
  return spec.worker_nodes.empty() ? std::vector<int>() : spec.worker_nodes[static_cast<std::size_t>(slot)];
}

const char* to_string(StartMethod method) {
  switch (method) {
    case StartMethod::kFork:
      return "fork";
    case StartMethod::kSpawn:
      return "spawn";
    case StartMethod::kForkserver:
      return "forkserver";
  }
  return "?";
}

const char* to_string(JobKind kind) {
  switch (kind) {
    case JobKind::kFunction:
      return "function";
    case JobKind::kRanks:
      return "ranks";
    case JobKind::kCommand:
      return "command";
  }
  return "?";
}

const char* to_string(Order order) { return order == Order::kInput ? "input" : "completion"; }

const char* to_string(TensorFormat format) { return format == TensorFormat::kNpy ? "npy" : "safetensors"; }

const char* to_string(CallStyle call) {
  switch (call) {
    case CallStyle::kItem:
      return "item";
    case CallStyle::kArgs:
      return "args";
    case CallStyle::kKwargs:
      return "kwargs";
  }
  return "?";
}

}  // namespace mprun
