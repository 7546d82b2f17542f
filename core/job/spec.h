// JobSpec: one job, fully resolved: every field has its final value and every path is absolute. Made by resolve() from
// the layers (defaults, user config, spec file, command line); read by the supervisor, the launchers and the records.
// Plain data, owns everything it names.
#pragma once

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "cluster/allocation.h"
#include "cluster/blocks.h"
#include "json/json_fwd.h"
#include "placement/cpu_list.h"

namespace mprun {

enum class JobKind {
  kFunction,  ///< `function` is called once per task in long-lived Python workers
  kRanks,     ///< every process runs `script` (or the program) once
  kCommand,   ///< `command` is executed once per task
};
enum class StartMethod { kFork, kSpawn, kForkserver };
enum class Order { kInput, kCompletion };
/// How far the results on disk may lag behind those that arrived, if the machine loses power.
enum class Durability {
  kNone,   ///< as far as the kernel likes
  kBatch,  ///< a second or 1,000 results, and what arrives while the disk writes
  kEach,   ///< not at all: each result is on disk before it counts
};
enum class CallStyle { kItem, kArgs, kKwargs };
enum class DeviceKind { kCpu, kCuda, kAscend };
/// How tensors returned by tasks are kept.
enum class TensorFormat {
  kNpy,          ///< gathered, one .npy for each name; what does not fit goes to a .safetensors file
  kSafetensors,  ///< one .safetensors file a task
};
/// Tensors of one name may differ in shape: each is put into a row of this shape.
struct Padding {
  std::vector<std::int64_t> shape;
  std::string fill;  ///< JSON: a number, or "NaN", "Infinity", "-Infinity"
};
enum class ProgressMode { kAuto, kAlways, kNever };
enum class ViewMode { kSummary, kWorkers };  ///< of progress on a terminal

struct Device {
  DeviceKind kind = DeviceKind::kCpu;
  std::vector<std::string> names;  ///< as CUDA_VISIBLE_DEVICES has them: "0", "GPU-1234"; empty for cpu
  int each = 1;                    ///< worker k has as many as this from names[k * each % size] on
};

struct RetryPolicy {
  int on_error = 0;                 ///< extra attempts after the task raised or exited non-zero
  int on_death = 1;                 ///< extra attempts after its worker died or was killed by a time limit
  int on_hang = 1;                  ///< extra attempts after its worker hung
  double delay = 0;                 ///< seconds before the next attempt
  double backoff = 1;               ///< by which the delay grows from one attempt to the next
  std::optional<double> max_delay;  ///< seconds

  /// The most further attempts, whatever the cause.
  [[nodiscard]] int most() const { return std::max({on_error, on_death, on_hang}); }
};

struct Limits {
  std::optional<double> task_seconds;              ///< one attempt of one task
  std::optional<double> job_seconds;               ///< the whole job
  double join_seconds = 30;                        ///< for a worker to end after it was asked to
  double grace_seconds = 5;                        ///< between TERM and KILL
  double heartbeat_seconds = 60;                   ///< without one a shard counts as dead (Balance::kDynamic)
  std::optional<int> tasks_per_worker;             ///< the worker is then replaced
  std::optional<std::uint64_t> memory_per_worker;  ///< bytes of its own, with its descendants; more: it is ended
};

enum class OnHang {
  kRetry,   ///< the stuck worker is ended, and a new one tries its task again
  kKill,    ///< everything is ended, and mprun exits with 124
  kReport,  ///< the hang is reported, and everything goes on
};

/// What to do about a hang.
struct WatchPolicy {
  OnHang on_hang = OnHang::kReport;
  double stall_seconds = 300;  ///< all threads stood still for so long: reported, though nothing is proved
  std::string hang_report;     ///< absolute path of an additional JSON report; empty: none
};

/// Where tasks come from; paths are absolute, "-" is standard input.
struct ItemsInput {
  std::shared_ptr<const Json> items;  ///< an array
};
struct RangeInput {
  std::int64_t start = 0, stop = 0, step = 1;
};
struct LinesInput {
  std::string path;
};
struct JsonlInput {
  std::string path;
};
struct GlobInput {
  std::string pattern;
};
struct GridInput {
  std::shared_ptr<const Json> axes;  ///< an object, name → array of values; the last axis varies fastest
};
/// One array that workers map: a .npy file, or one tensor of a .safetensors file.
struct InputArray {
  std::string name;       ///< of the keyword argument; empty: the array is the only argument
  std::string path;       ///< absolute
  std::int64_t rows = 0;  ///< of its first axis, as its header said when the job was resolved
  std::string dtype;      ///< of a tensor: as numpy writes it ("<f4"), or "bfloat16"; empty: a .npy file, which has it
  std::vector<std::int64_t> shape;  ///< of a tensor
  std::uint64_t offset = 0;         ///< of a tensor's first byte, in the file
};
struct ArraysInput {
  std::vector<InputArray> arrays;
  bool one_by_one = false;  ///< files of a folder or pattern, one after the other; else a task has rows of every array
  std::optional<std::int64_t> batch;
};
using InputSpec =
    std::variant<std::monostate, ItemsInput, RangeInput, LinesInput, JsonlInput, GlobInput, GridInput, ArraysInput>;

/// A CPU tensor that all processes of the job map and may write to: part of one memory file.
struct SharedTensor {
  std::string name;                 ///< a plain file name
  std::string dtype;                ///< as numpy writes it ("<f4", "|b1"), or "bfloat16"
  std::vector<std::int64_t> shape;  ///< no length is negative
  bool fortran_order = false;
  std::uint64_t bytes = 0;
  std::uint64_t offset = 0;       ///< of its first byte in the memory file; a multiple of the page size
  std::string path;               ///< absolute, of the file with its initial values; empty: zeros
  std::uint64_t path_offset = 0;  ///< of the first byte in that file
};

struct JobSpec {
  JobKind kind = JobKind::kFunction;
  std::string name;               ///< of the run directory: the spec's or script's file name, no suffix
  std::string script;             ///< absolute; empty for command jobs
  bool script_is_python = false;  ///< else an executable (ranks only)
  std::string function;
  std::vector<std::string> command;  ///< argv with {} {#} {%} not yet replaced
  StartMethod start_method = StartMethod::kFork;
  int processes = 1;
  Device device;
  std::string python;  ///< absolute path or a name found on PATH; empty if none is needed
  std::vector<std::string> args;
  std::map<std::string, std::string> env;  ///< added to mprun's own environment
  std::vector<std::string> redact;         ///< patterns of names in `env` whose values are kept secret
  std::string working_directory;           ///< absolute; where workers start
  std::string setup;
  std::string worker_setup;
  std::vector<std::string> preload;
  InputSpec inputs;
  std::string inputs_place;          ///< how errors about them begin: "job.json:3: /inputs/range: "
  std::vector<SharedTensor> shared;  ///< in the order of their names
  CallStyle call = CallStyle::kItem;
  std::optional<int> chunk_size;  ///< nullopt: adaptive
  Order order = Order::kInput;
  Durability durability = Durability::kBatch;
  bool stop_on_error = false;
  std::optional<std::int64_t> max_failures;
  std::optional<std::uint64_t> seed;
  RetryPolicy retries;
  Limits limits;
  WatchPolicy watch;
  int threads_per_worker = 1;
  std::vector<CpuList> worker_cpus;            ///< what each slot is bound to, in their order; empty: none is bound
  std::vector<std::vector<int>> worker_nodes;  ///< memory nodes that each slot's memory comes from; empty: any
  std::vector<int> interleave_nodes;      ///< over which the memory that all workers read is spread; empty: as it comes
  bool hugetlb = false;                   ///< shared tensors lie in huge pages of the kernel's reserved pool
  std::string binding_reason;             ///< why they are bound so, or are not, human-readable
  bool threads_explicit = false;          ///< threads_per_worker was set: it overrides OMP_NUM_THREADS and the like
  std::string allocator_library;          ///< absolute path of what is preloaded; empty: the C library allocates
  bool goes_on = false;                   ///< if there is a run in output_dir, this continues it
  std::vector<std::string> adapters_off;  ///< runtimes that are left alone around fork
  std::string output_dir;                 ///< absolute run directory; empty: runs/<name>/<timestamp>
  std::string results;                    ///< extra copy in the requested order: absolute path, "-" stdout, empty none
  std::string metrics;                    ///< absolute path of a file with the figures of the running job; empty: none
  TensorFormat tensors = TensorFormat::kNpy;
  ProgressMode progress = ProgressMode::kAuto;
  ViewMode view = ViewMode::kSummary;
  std::map<std::string, Padding> pad;  ///< by name of the tensors
  std::optional<Shard> shard;          ///< of several mprun; output_dir is then the shard's own
  Balance balance = Balance::kStatic;  ///< how tasks are balanced between shards
  Allocation allocation;               ///< where mprun runs
};

/// The memory nodes that a slot's memory comes from; empty: any.
[[nodiscard]] std::vector<int> nodes_of(const JobSpec& spec, int slot);

/// The processors that a slot is bound to; empty: all that mprun may use.
[[nodiscard]] CpuList cpus_of(const JobSpec& spec, int slot);

[[nodiscard]] const char* to_string(StartMethod method);
[[nodiscard]] const char* to_string(JobKind kind);
[[nodiscard]] const char* to_string(Order order);
[[nodiscard]] const char* to_string(CallStyle call);
[[nodiscard]] const char* to_string(TensorFormat format);

}  // namespace mprun
