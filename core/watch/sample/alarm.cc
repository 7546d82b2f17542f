#include "watch/sample/alarm.h"

#include <array>

#include "watch/sample/preload_library.h"
#include "wire/alarms.h"

namespace mprun {
namespace {

constexpr std::size_t kMostRead = std::size_t{1} << 20U;  // of one library's tables
// On a busy machine a signal may be late.
constexpr Nanos kLate = 2 * kNanosPerSecond;
constexpr const char* kAsked = "has asked for an alarm";
constexpr const char* kUnknown = "may have asked for an alarm";

std::string why_by_library(ProcSource* proc, pid_t tid, const Mapping& library, Nanos now) {
  ProcessMemory memory(proc, tid, kMostRead);
  const auto address = variable_of(library, MPRUN_ALARM_SYMBOL, &memory);
  const auto asked = address ? memory.read<std::int32_t>(*address) : std::nullopt;
  if (!asked) return kUnknown;
  if (*asked == 0) return "";
  const auto last_address = variable_of(library, MPRUN_LAST_ALARM_SYMBOL, &memory);
  const auto last = last_address ? memory.read<std::int64_t>(*last_address) : std::nullopt;
  return last && *last < now - kLate ? "" : kAsked;
}

std::string why_by_environment(ProcSource* proc, pid_t pid, pid_t tid) {
  const auto environment = proc->read(std::to_string(tid) + "/environ");
  if (!environment) return kUnknown;
  const std::string wanted = std::string(1, '\0') + MPRUN_ALARM_VARIABLE "=" + std::to_string(pid) + '\0';
  return (std::string(1, '\0') + *environment).find(wanted) != std::string::npos ? kAsked : "";
}

// It may have withdrawn the request since.
std::string why_by_calls(ProcSource* proc, pid_t tid, const std::vector<Mapping>& maps) {
  constexpr std::array<std::string_view, 3> kRequests{"alarm", "setitimer", "ualarm"};
  for (const Mapping& mapping : maps) {
    if (mapping.offset != 0 || mapping.inode == 0) continue;
    ProcessMemory memory(proc, tid, kMostRead);
    auto image = ElfImage::open(&memory, mapping.begin);
    if (image && image->has_called(kRequests)) return kUnknown;
  }
  return {};
}

}  // namespace

std::string why_alarm_may_come(ProcSource* proc, pid_t pid, pid_t tid, Nanos now) {
  const auto maps = proc->read(std::to_string(tid) + "/maps");
  if (!maps) return kUnknown;
  const std::vector<Mapping> libraries = preload_libraries(*maps);
  if (libraries.empty()) {
    const std::string why = why_by_environment(proc, pid, tid);
    return why.empty() ? why_by_calls(proc, tid, parse_maps(*maps)) : why;
  }
  for (const Mapping& library : libraries) {
    if (std::string why = why_by_library(proc, tid, library, now); !why.empty()) return why;
  }
  return {};
}

}  // namespace mprun
