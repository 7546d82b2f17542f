#include "watch/alarm.h"

#include <algorithm>

#include "procfs/elf_symbols.h"
#include "procfs/process_facts.h"
#include "wire/alarms.h"

namespace mprun {
namespace {

constexpr std::size_t kMostRead = std::size_t{1} << 20U;  // of one library's tables
constexpr const char* kAsked = "has asked for an alarm";
constexpr const char* kUnknown = "may have asked for an alarm";

/// The mappings with an ELF header of our libraries: of every mprun that a process is below.
std::vector<Mapping> libraries_in(std::string_view maps) {
  std::string lines;
  for (std::size_t at = maps.find(MPRUN_PRELOAD_NAME); at != std::string_view::npos;
       at = maps.find(MPRUN_PRELOAD_NAME, at)) {
    const std::size_t begin = maps.rfind('\n', at) + 1;
    const std::size_t end = std::min(maps.find('\n', at), maps.size());
    lines.append(maps.substr(begin, end - begin)).push_back('\n');
    at = end;
  }
  std::vector<Mapping> mappings = parse_maps(lines);
  std::erase_if(mappings, [](const Mapping& mapping) { return mapping.offset != 0; });
  return mappings;
}

std::string why_by_library(ProcSource* proc, pid_t tid, const Mapping& library) {
  ProcessMemory memory(proc, tid, kMostRead);
  auto image = ElfImage::open(&memory, library.begin);
  const auto symbol = image ? image->find(MPRUN_ALARM_SYMBOL) : std::nullopt;
  const auto asked = symbol ? memory.read<std::int32_t>(symbol->address) : std::nullopt;
  if (!asked) return kUnknown;
  return *asked != 0 ? kAsked : "";
}

std::string why_by_environment(ProcSource* proc, pid_t pid, pid_t tid) {
  const auto environment = proc->read(std::to_string(tid) + "/environ");
  if (!environment) return kUnknown;
  const std::string wanted = std::string(1, '\0') + MPRUN_ALARM_VARIABLE "=" + std::to_string(pid) + '\0';
  return (std::string(1, '\0') + *environment).find(wanted) != std::string::npos ? kAsked : "";
}

}  // namespace

std::string why_alarm_may_come(ProcSource* proc, pid_t pid, pid_t tid) {
  const auto maps = proc->read(std::to_string(tid) + "/maps");
  if (!maps) return kUnknown;
  const std::vector<Mapping> libraries = libraries_in(*maps);
  if (libraries.empty()) return why_by_environment(proc, pid, tid);
  for (const Mapping& library : libraries) {
    if (std::string why = why_by_library(proc, tid, library); !why.empty()) return why;
  }
  return {};
}

}  // namespace mprun
