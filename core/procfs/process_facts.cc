#include "procfs/process_facts.h"

#include <unistd.h>

#include <algorithm>
#include <ctime>

#include "procfs/text_scan.h"

namespace mprun {
namespace {

constexpr std::uint64_t kForkedNotExecuted = 0x40;  ///< PF_FORKNOEXEC of the kernel's include/linux/sched.h

/// The fields of /proc/PID/status that are needed; each has to be there.
struct StatusField {
  std::string_view name;
  std::uint64_t StatusFile::*value;
  int base;
};
constexpr std::array<StatusField, 5> kStatusNumbers{{
    {"SigBlk", &StatusFile::blocked, 16},
    {"SigIgn", &StatusFile::ignored, 16},
    {"SigCgt", &StatusFile::caught, 16},
    {"voluntary_ctxt_switches", &StatusFile::voluntary_switches, 10},
    {"nonvoluntary_ctxt_switches", &StatusFile::involuntary_switches, 10},
}};
constexpr unsigned kStatusFields = kStatusNumbers.size() + 6;

/// Takes one field; true if it is one that is needed and makes sense.
bool take_status_field(std::string_view name, TextScan value, StatusFile* status) {
  if (name == "State") {
    const std::string_view state = value.word();
    if (!state.empty()) status->state = state.front();
    return !state.empty();
  }
  if (name == "TracerPid") return value.number(&status->tracer);
  if (name == "Threads") return value.number(&status->threads);
  if (name == "Uid") {
    std::uint64_t real = 0;
    return value.number(&real) && value.number(&status->uid);
  }
  if (name == "NSpid") {  // before Linux 4.1 there is none
    pid_t number = 0;
    for (status->namespaces = 0; value.number(&number);) ++status->namespaces;
    return false;
  }
  if (name == "SigPnd" || name == "ShdPnd") {
    std::uint64_t set = 0;
    const bool good = value.number(&set, 16);
    status->pending |= set;
    return good;
  }
  for (const StatusField& field : kStatusNumbers) {
    if (name == field.name) return value.number(&(status->*field.value), field.base);
  }
  return false;
}

}  // namespace

std::optional<SyscallLine> parse_syscall(std::string_view text) {
  TextScan scan(text);
  SyscallLine line;
  if (scan.word() == "running") return line;
  line.running = false;
  scan = TextScan(text);
  if (!scan.number(&line.number)) return std::nullopt;
  if (line.number >= 0) {
    for (std::uint64_t& argument : line.arguments) {
      if (!scan.prefixed_hex(&argument)) return std::nullopt;
    }
  } else {
    line.number = -1;
  }
  if (!scan.prefixed_hex(&line.stack_pointer) || !scan.prefixed_hex(&line.program_counter)) return std::nullopt;
  if (!scan.at_end() && !scan.literal("\n")) return std::nullopt;
  return line;
}

std::optional<StatLine> parse_stat(std::string_view text) {
  constexpr int kGroup = 5, kFlags = 9, kMinorFaults = 10, kUserTime = 14, kChildrensSystemTime = 17, kThreads = 20,
                kStartTime = 22, kResident = 24, kExitCode = 52;  // as proc(5) counts them
  StatLine stat;
  TextScan scan(text);
  if (!scan.number(&stat.id) || !scan.literal(" (")) return std::nullopt;
  const std::size_t name_end = scan.rest().rfind(')');  // the name itself may hold parentheses, blanks and newlines
  if (name_end == std::string_view::npos) return std::nullopt;
  stat.name = scan.rest().substr(0, name_end);
  scan = TextScan(scan.rest().substr(name_end + 1));
  const std::string_view state = scan.word();
  if (state.size() != 1 || !scan.number(&stat.parent)) return std::nullopt;
  stat.state = state[0];
  for (int field = 5; field <= kExitCode; ++field) {
    bool good = true;
    if (field == kGroup) {
      good = scan.number(&stat.group);
    } else if (field == kMinorFaults) {
      good = scan.number(&stat.minor_faults);
    } else if (field >= kUserTime && field <= kChildrensSystemTime) {
      std::uint64_t ticks = 0;
      good = scan.number(&ticks);
      stat.cpu_ticks += ticks;
    } else if (field == kThreads) {
      good = scan.number(&stat.threads);
    } else if (field == kResident) {
      good = scan.number(&stat.resident_pages);
    } else if (field == kFlags) {
      std::uint64_t flags = 0;
      good = scan.number(&flags);
      stat.forked = (flags & kForkedNotExecuted) != 0;
    } else if (field == kStartTime) {
      good = scan.number(&stat.start_ticks);
    } else if (field == kExitCode) {
      good = scan.number(&stat.exit_code);
    } else {
      good = !scan.word().empty();
    }
    if (!good) return std::nullopt;
  }
  return stat;
}

Nanos age_of(const StatLine& stat) {
  const Nanos tick = kNanosPerSecond / sysconf(_SC_CLK_TCK);
  return read_clock(CLOCK_BOOTTIME) - static_cast<Nanos>(stat.start_ticks) * tick;
}

std::optional<StatusFile> parse_status(std::string_view text) {
  StatusFile status;
  std::array<std::string_view, kStatusFields> taken;
  auto* taken_end = taken.begin();
  for (TextScan scan(text); !scan.at_end();) {
    const std::string_view line = scan.line();
    const std::size_t colon = line.find(':');
    if (colon == std::string_view::npos) continue;
    const std::string_view name = line.substr(0, colon);
    if (!take_status_field(name, TextScan(line.substr(colon + 1)), &status)) continue;
    if (std::find(taken.begin(), taken_end, name) == taken_end) *taken_end++ = name;  // only those needed are taken
  }
  return taken_end == taken.end() ? std::optional(status) : std::nullopt;
}

std::optional<std::uint64_t> parse_run_count(std::string_view text) {
  TextScan scan(text);
  std::uint64_t number = 0;
  for (int field = 0; field < 3; ++field) {
    if (!scan.number(&number)) return std::nullopt;
  }
  return number;
}

std::optional<std::vector<int>> signals_of_timers(ProcSource* proc, pid_t pid) {
  const auto timers = proc->read(std::to_string(pid) + "/timers");
  if (!timers) return std::nullopt;
  std::vector<int> signals;
  for (TextScan lines(*timers); !lines.at_end();) {
    TextScan scan(lines.line());
    if (scan.literal("ID:")) {
      signals.push_back(0);
    } else if (scan.literal("signal:") && !signals.empty()) {
      scan.number(&signals.back());
    }
  }
  if (signals.empty() && !timers->empty()) signals.push_back(0);
  return signals;
}

}  // namespace mprun
