#include "watch/stalls/progress.h"

#include <algorithm>
#include <bit>

#include "base/xxhash.h"
#include "procfs/process_facts.h"
#include "watch/judge/time_limit.h"
#include "watch/sample/syscall_table.h"

namespace mprun {
namespace {

// Lines of /proc/PID/task/TID/io, in this order: the bytes that it has read and written. The next ones count calls, of
// which a look around may make many in vain.
std::string_view bytes_of(std::string_view io, bool with_read) {
  const std::size_t begin = with_read ? 0 : std::min(io.find("wchar"), io.size());
  return io.substr(begin, std::min(io.find("syscr"), io.size()) - begin);
}

bool wakes_by_itself(const ThreadSample& thread) {
  return call_of(thread.call.number) == Call::kSleep || without_limit(thread).has_value();
}

// An event loop waits until its next timer is due: it has come to another one if that takes much longer.
std::uint64_t magnitude_of_limit(const ThreadSample& thread) {
  constexpr int kBits = 4;  // times 16
  return static_cast<std::uint64_t>(std::bit_width(limit_in_milliseconds(thread).value_or(0)) / kBits);
}

}  // namespace

bool Progress::has_sqlite(pid_t pid) {
  const auto [it, is_new] = has_sqlite_.try_emplace(pid, false);
  if (is_new) {
    const auto maps = parse_maps(proc_->read(std::to_string(pid) + "/maps").value_or(""));
    it->second = std::any_of(maps.begin(), maps.end(),
                             [](const Mapping& one) { return one.path.find("sqlite3") != std::string::npos; });
  }
  return it->second;
}

std::uint64_t Progress::of(const ThreadSample& thread) {
  const std::string folder = std::to_string(thread.pid) + "/task/" + std::to_string(thread.tid);
  const std::string io = proc_->read(folder + "/io").value_or("");
  const bool sleeps = !thread.hidden && wakes_by_itself(thread);
  const std::string_view bytes = bytes_of(io, !sleeps || !has_sqlite(thread.pid));
  std::uint64_t fingerprint = XXH3_64bits(bytes.data(), bytes.size());
  if (!sleeps) return fingerprint;
  fingerprint += magnitude_of_limit(thread);
  const auto [python, is_new] = python_.try_emplace(thread.pid);
  if (is_new) python->second = read_python_progress(proc_, thread.pid);
  for (const PythonThread& one : python->second.threads) {
    if (one.tid != thread.tid) continue;
    return XXH3_64bits_withSeed(&one.locals.fingerprint, sizeof one.locals.fingerprint, fingerprint);
  }
  return fingerprint;
}

}  // namespace mprun
