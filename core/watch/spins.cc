#include "watch/spins.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <array>
#include <memory>

#include "procfs/text_scan.h"
#include "watch/native_stack.h"
#include "watch/python_stack.h"

namespace mprun {
namespace {

/// A library whose calls wait in a loop that never sleeps.
struct SpinningLibrary {
  std::string_view file;    ///< a prefix of its name
  std::string_view prefix;  ///< of the functions that a program calls
  const char* what;
};
constexpr std::array kLibraries = {
    SpinningLibrary{"libmpi.so", "MPI_", "Open MPI: opal_progress() until a request is complete"},
    SpinningLibrary{"libmpich.so", "MPI_", "MPICH: MPID_Progress_wait()"},
};
constexpr int kEnoughLooks = 3;
// Calls that only look whether there is something: the program goes on if there is nothing.
constexpr std::array<std::string_view, 4> kOnlyLooks{"Test", "Iprobe", "Improbe", "I"};

bool has_library(const std::vector<Mapping>& maps, std::string_view file) {
  return std::any_of(maps.begin(), maps.end(), [file](const Mapping& mapping) {
    return std::string_view(mapping.path).substr(mapping.path.rfind('/') + 1).starts_with(file);
  });
}

// "MPI_Recv (libmpi.so.40)", or "PMPI_Recv (...)".
std::string call_in(std::string_view frame) {
  for (const SpinningLibrary& library : kLibraries) {
    const std::size_t file = frame.find(" (");
    if (file == frame.npos || !frame.substr(file + 2).starts_with(library.file)) continue;
    std::string_view function = frame.substr(0, file);
    if (function.starts_with('P')) function.remove_prefix(1);
    if (!function.starts_with(library.prefix)) continue;
    const std::string_view verb = function.substr(library.prefix.size());
    const auto looks = [&](std::string_view name) {
      return verb.starts_with(name) && (name != "I" || (verb != "Init" && verb != "Init_thread"));
    };
    return std::any_of(kOnlyLooks.begin(), kOnlyLooks.end(), looks) ? "" : std::string(function);
  }
  return {};
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

}  // namespace

std::string call_that_spins(const std::vector<std::string>& frames) {
  for (auto frame = frames.rbegin(); frame != frames.rend(); ++frame) {  // the outermost is what was called
    const bool is_of_library = std::any_of(kLibraries.begin(), kLibraries.end(), [&](const SpinningLibrary& library) {
      return frame->find("(" + std::string(library.file)) != frame->npos;
    });
    if (is_of_library) return call_in(*frame);
  }
  return {};
}

bool may_spin(const std::vector<Mapping>& maps) {
  return std::any_of(kLibraries.begin(), kLibraries.end(),
                     [&](const SpinningLibrary& library) { return has_library(maps, library.file); });
}

bool is_mpi_launcher(const std::vector<Mapping>& maps) {
  return !may_spin(maps) && (has_library(maps, "libopen-rte.so") || has_library(maps, "libprrte.so"));
}

SpinMeter::SpinMeter(ProcSource* proc, CallOf call_of) : proc_(proc), call_of_(std::move(call_of)) {
  if (call_of_) return;
  call_of_ = [](const ThreadSample& thread) {
    return call_that_spins(NativeStacks(thread.pid).of_running(thread.tid).frames);
  };
}

// What a thread is in now; its call is empty if it is in none that spins.
SpinMeter::Spin SpinMeter::look(const ThreadSample& thread, Nanos now) const {
  const auto text = proc_->read(std::to_string(thread.pid) + "/maps");
  const auto maps = text ? parse_maps(*text) : std::vector<Mapping>();
  if (!may_spin(maps)) return {};
  Spin spin;
  spin.since = now;
  spin.call = call_of_(thread);
  if (spin.call.empty()) return {};
  const auto messages = fingerprint_of_messages(proc_, thread.pid, maps);
  if (!messages) return {};
  spin.messages = *messages;
  for (const PythonThread& one : read_python_progress(proc_, thread.pid).threads) {
    if (one.tid == thread.tid) spin.locals = one.locals.fingerprint;
  }
  return spin;
}

void SpinMeter::take(const Sample& sample, Nanos now) {
  std::map<pid_t, Spin> found;
  for (const ThreadSample& thread : sample.threads) {
    if (!thread.call.running || thread.state == 'Z') continue;
    Spin spin = look(thread, now);
    if (spin.call.empty()) {  // one computes: no thread is stuck
      found.clear();
      break;
    }
    const auto known = spins_.find(thread.tid);
    if (known != spins_.end() && spin.is_where(known->second)) {
      spin.since = known->second.since;
      spin.looks = known->second.looks + 1;
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
