// DoctorFindings: what `mprun doctor` learns of the processes of a program from the notes that the adapter library
// sends under MPRUN_DOCTOR (adapters/preload/doctor.c), and what it means for a fork(). cli/doctor fills it while the
// program runs; owns everything. Pure: no system calls.
#pragma once

#include <string>
#include <vector>

#include "wire/notes.h"

namespace mprun {

/// Whether an adapter works in a process. kAbsent: it is a Python module, and this Python was started with -I, -E or
/// -S, which skip it.
enum class AdapterState { kOn, kOff, kAbsent };

/// One copy of a runtime in one process.
struct RuntimeCopy {
  std::string kind;     ///< "libgomp", "openblas-pthread", ...: the table in adapters/preload/runtimes.c
  std::string path;     ///< the object that holds it
  std::string adapter;  ///< which adapter handles it; empty: none does
  AdapterState adapter_state = AdapterState::kOn;
  bool can_pause = false;  ///< it has omp_pause_resource_all
  bool team = false;       ///< libgomp: a team of threads waited in it
};

/// One process that had a runtime loaded.
struct ExaminedProcess {
  int pid = 0;
  std::string program;  ///< the executable file
  std::string command;  ///< its command line, shortened
  bool forked = false;  ///< false: the notes describe its end
  unsigned threads = 1;
  std::vector<RuntimeCopy> runtimes;
  std::size_t announced = 0;  ///< number of runtimes it had; more than there are: notes were lost
};

/// What a fork() means for the child's use of the runtime.
enum class AtFork {
  kSafe,      ///< nothing has to be done
  kMadeSafe,  ///< an adapter does it
  kUnclear,   ///< it cannot be seen from outside whether it has threads, and there is no adapter
  kAtRisk,    ///< the child hangs or fails
};

struct ForkVerdict {
  AtFork at_fork = AtFork::kSafe;
  std::string explanation;  ///< human-readable, one sentence
};

class DoctorFindings {
 public:
  /// Takes a note of adapter "doctor"; false, and nothing is done, if it is another's or malformed.
  bool take(const AdapterNote& note);

  /// The programs that ran with the adapters in them, in order of their start.
  [[nodiscard]] const std::vector<std::string>& programs() const { return programs_; }
  [[nodiscard]] const std::vector<ExaminedProcess>& processes() const { return processes_; }

 private:
  bool take_process(const std::vector<std::string>& fields);
  bool take_runtime(const std::vector<std::string>& fields);

  std::vector<std::string> programs_;
  std::vector<ExaminedProcess> processes_;
};

/// What would happen (or happened) to `copy` at a fork of its process.
[[nodiscard]] ForkVerdict verdict_of(const RuntimeCopy& copy, const ExaminedProcess& process);

/// The verdict in a word: "safe", "made safe", "unclear", "at risk".
[[nodiscard]] const char* to_string(AtFork at_fork);

}  // namespace mprun
