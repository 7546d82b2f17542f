#include "watch/stalls/spins.h"

#include <algorithm>
#include <memory>

#include "base/xxhash.h"
#include "procfs/text_scan.h"
#include "watch/judge/spinning_calls.h"
#include "watch/sample/syscall_table.h"
#include "watch/stacks/native_stack.h"
#include "watch/stacks/python_stack.h"

namespace mprun {
namespace {

constexpr int kEnoughLooks = 3;
constexpr Nanos kEnoughCpu = 2'000'000;  // thousands of polls

// How long a thread has had a CPU.
Nanos cpu_time(ProcSource* proc, const ThreadSample& thread) {
  const auto text = proc->read(std::to_string(thread.pid) + "/task/" + std::to_string(thread.tid) + "/schedstat");
  Nanos cpu = 0;
  return text && TextScan(*text).number(&cpu) ? cpu : 0;
}

// Messages go through memory that processes share, or through calls that read and write. nullopt: they go through
// something that cannot be read, such as a device.
std::optional<std::uint64_t> fingerprint_of_messages(ProcSource* proc, pid_t pid, const std::vector<Mapping>& maps) {
  constexpr std::size_t kMostShared = std::size_t{64} << 20U;
  std::size_t left = kMostShared;
  std::set<std::pair<std::uint64_t, std::uint64_t>> seen;
  const auto io = proc->read(std::to_string(pid) + "/io");
  if (!io) return std::nullopt;
  std::uint64_t fingerprint = XXH3_64bits(io->data(), io->size());
  for (const Mapping& mapping : maps) {
    if (!mapping.shared || !mapping.writable || !seen.insert({mapping.device, mapping.inode}).second) continue;
    const std::string_view path = mapping.path;
    const std::size_t size = mapping.end - mapping.begin;
    if ((path.starts_with("/dev/") && !path.starts_with("/dev/shm/")) || size > left) return std::nullopt;
    left -= size;
    std::vector<char> bytes(size);
    if (!proc->memory(pid, mapping.begin, bytes.data(), size)) return std::nullopt;
    fingerprint = XXH3_64bits_withSeed(bytes.data(), size, fingerprint);
  }
  return fingerprint;
}

// A thread that sleeps for a moment at a time is not stopped: its stack is read until it has slept meanwhile.
std::string call_between_sleeps(ProcSource* proc, ThreadSample thread, NativeStacks* stacks) {
  constexpr int kTries = 10;
  for (int i = 0; i < kTries; ++i) {
    const auto stack = stacks->of_thread(thread.tid, thread.call.stack_pointer, thread.call.program_counter);
    if (std::string call = call_that_spins(stack.frames); !call.empty()) return call;
    const std::uint64_t runs = thread.runs;
    if (!sample_thread(proc, &thread) || thread.call.running || thread.runs == runs) return {};
  }
  return {};
}

bool sleeps(const ThreadSample& thread) {
  return !thread.call.running && !thread.hidden && call_of(thread.call.number) == Call::kSleep;
}

}  // namespace

SpinMeter::SpinMeter(ProcSource* proc, CallOf call_of) : proc_(proc), call_of_(std::move(call_of)) {
  if (call_of_) return;
  call_of_ = [proc](const ThreadSample& thread) -> std::optional<std::string> {
    NativeStacks stacks(thread.pid);
    if (!thread.call.running) return call_between_sleeps(proc, thread, &stacks);
    const NativeStack stack = stacks.of_running(thread.tid);
    std::string call = call_that_spins(stack.frames);
    if (call.empty() && stack.approximate) return std::nullopt;
    return call;
  };
}

// Nothing is known of the callers of some functions, as those in assembly by which Open MPI reads the clock.
std::string SpinMeter::call_that_spins_of(const ThreadSample& thread) const {
  constexpr int kTries = 5;
  for (int i = 0; i < kTries; ++i) {
    if (std::optional<std::string> call = call_of_(thread)) return *call;
  }
  return {};
}

// What a thread is in now; its call is empty if it is in none that spins.
SpinMeter::Spin SpinMeter::look(const ThreadSample& thread, Nanos now) const {
  const auto text = proc_->read(std::to_string(thread.pid) + "/maps");
  const auto maps = text ? parse_maps(*text) : std::vector<Mapping>();
  if (!may_spin(maps)) return {};
  Spin spin;
  spin.since = now;
  spin.call = call_that_spins_of(thread);
  if (spin.call.empty()) return {};
  const auto messages = fingerprint_of_messages(proc_, thread.pid, maps);
  if (!messages) return {};
  spin.messages = *messages;
  spin.cpu = cpu_time(proc_, thread);
  for (const PythonThread& one : read_python_progress(proc_, thread.pid).threads) {
    if (one.tid == thread.tid) spin.locals = one.locals.fingerprint;
  }
  return spin;
}

void SpinMeter::take(const Sample& sample, Nanos now) {
  std::map<pid_t, Spin> found;
  for (const ThreadSample& thread : sample.threads) {
    if ((!thread.call.running && !sleeps(thread)) || thread.state == 'Z') continue;
    Spin spin = look(thread, now);
    if (spin.call.empty() && sleeps(thread)) continue;  // the judge takes it for live
    if (spin.call.empty()) {                            // one computes: no thread is stuck
      found.clear();
      break;
    }
    const auto known = spins_.find(thread.tid);
    if (known != spins_.end() && spin.is_where(known->second)) {
      const bool has_run = spin.cpu - known->second.cpu >= kEnoughCpu;
      spin.since = known->second.since;
      spin.looks = known->second.looks + (has_run ? 1 : 0);
      if (!has_run) spin.cpu = known->second.cpu;
    }
    found[thread.tid] = std::move(spin);
  }
  spins_ = std::move(found);
}

Nanos SpinMeter::since() const {
  Nanos latest = 0;
  for (const auto& [tid, spin] : spins_) {
    if (spin.looks < kEnoughLooks) return 0;
    latest = std::max(latest, spin.since);
  }
  return latest;
}

std::map<pid_t, std::string> SpinMeter::spins() const {
  std::map<pid_t, std::string> calls;
  for (const auto& [tid, spin] : spins_) calls[tid] = spin.call;
  return calls;
}

}  // namespace mprun
