#include "report/doctor_findings.h"

#include <algorithm>
#include <charconv>
#include <string_view>

namespace mprun {
namespace {

// At most `most` fields; the last takes the rest, tabs included.
std::vector<std::string> split(std::string_view text, std::size_t most) {
  std::vector<std::string> fields;
  while (fields.size() + 1 < most) {
    const auto tab = text.find('\t');
    if (tab == std::string_view::npos) break;
    fields.emplace_back(text.substr(0, tab));
    text.remove_prefix(tab + 1);
  }
  fields.emplace_back(text);
  return fields;
}

template <typename Number>
bool read_number(const std::string& text, Number* number) {
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, *number);
  return error == std::errc() && stop == end;
}

bool has_kind(const ExaminedProcess& process, std::string_view kind) {
  return std::any_of(process.runtimes.begin(), process.runtimes.end(),
                     [kind](const RuntimeCopy& copy) { return copy.kind == kind; });
}

ForkVerdict libgomp_verdict(const RuntimeCopy& copy) {
  const bool adapter_on = copy.adapter_state == AdapterState::kOn;
  if (copy.can_pause && adapter_on) {
    return {AtFork::kMadeSafe,
            std::string("its threads are ended before fork(), and start again with the next parallel region") +
                (copy.team ? "" : "; it had none at that time")};
  }
  if (adapter_on) {
    return {AtFork::kMadeSafe,
            "it is too old to end its threads before fork() (no omp_pause_resource_all, GCC before 9), so its data are "
            "reset in the child; if a child hangs all the same, put libomp in its place (LD_PRELOAD=libomp.so.5)"};
  }
  const std::string why = "switched off (MPRUN_ADAPTERS)";
  if (!copy.team) return {AtFork::kSafe, why + ", but it had no threads at that time"};
  return {AtFork::kAtRisk, why + ": a child that uses OpenMP hangs"};
}

// For a runtime that uses the threads of a separate OpenMP library: the verdict of that library counts.
ForkVerdict borrowed_openmp(const ExaminedProcess& process, const std::string& who) {
  for (const RuntimeCopy& copy : process.runtimes) {
    if (copy.kind == "libgomp") {
      ForkVerdict verdict = libgomp_verdict(copy);
      verdict.explanation = who + " computes with the threads of libgomp: " + verdict.explanation;
      return verdict;
    }
  }
  return {AtFork::kSafe, who + " computes with the threads of libomp, which is safe by itself"};
}

ForkVerdict mkl_verdict(const ExaminedProcess& process) {
  for (const char* layer : {"mkl-sequential", "mkl-gnu-thread", "mkl-intel-thread", "mkl-tbb-thread"}) {
    if (has_kind(process, layer)) return {AtFork::kSafe, std::string("what counts is its threading layer, ") + layer};
  }
  if (has_kind(process, "libomp") && !has_kind(process, "libgomp")) return borrowed_openmp(process, "MKL");
  return {AtFork::kUnclear,
          "there is no adapter for MKL: after it computed with several threads, a child that uses it may hang; "
          "set MKL_NUM_THREADS=1, or use libomp (MKL_THREADING_LAYER=INTEL)"};
}

ForkVerdict switchable_verdict(const RuntimeCopy& copy, const char* done, const char* undone) {
  switch (copy.adapter_state) {
    case AdapterState::kOn:
      return {AtFork::kMadeSafe, done};
    case AdapterState::kOff:
      return {AtFork::kAtRisk, std::string("switched off (MPRUN_ADAPTERS): ") + undone};
    case AdapterState::kAbsent:
      break;
  }
  return {AtFork::kAtRisk, std::string("its adapter is not in a Python started with -I, -E or -S: ") + undone};
}

ForkVerdict tbb_verdict(const RuntimeCopy& copy) {
  return switchable_verdict(copy, "its threads are ended before fork() (tbb::finalize), and start again when needed",
                            "a child that uses it has one thread, or waits for those it lost");
}

ForkVerdict opencv_python_verdict(const RuntimeCopy& copy) {
  return switchable_verdict(copy, "its threads are ended before fork(), and start again in the parent",
                            "if it had started threads, a child that uses it may hang");
}

ForkVerdict opencv_verdict(const ExaminedProcess& process) {
  for (const RuntimeCopy& copy : process.runtimes) {
    if (copy.kind == "opencv-python") return opencv_python_verdict(copy);
  }
  return {AtFork::kUnclear,
          "it is not used through cv2, so no adapter is for it: if it had started threads, a child that uses it may "
          "hang; call cv::setNumThreads(0) before fork()"};
}

// As verdict_of(), for a process that may have lost threads.
ForkVerdict verdict_by_kind(const RuntimeCopy& copy, const ExaminedProcess& process) {
  const std::string& kind = copy.kind;
  if (kind == "libgomp") return libgomp_verdict(copy);
  if (kind == "libomp" || kind == "mkl-intel-thread") return {AtFork::kSafe, "it has fork handlers of its own"};
  if (kind == "openblas-pthread") return {AtFork::kSafe, "it has fork handlers of its own (the build with pthreads)"};
  if (kind == "openblas-serial" || kind == "mkl-sequential") return {AtFork::kSafe, "it has no threads of its own"};
  if (kind == "openblas-openmp") return borrowed_openmp(process, "OpenBLAS (the build with OpenMP)");
  if (kind == "mkl-gnu-thread") return borrowed_openmp(process, "MKL");
  if (kind == "mkl") return mkl_verdict(process);
  if (kind == "mkl-tbb-thread") return tbb_verdict(copy);
  if (kind == "tbb") return tbb_verdict(copy);
  if (kind == "tbb-classic") {
    return {AtFork::kUnclear,
            "this TBB, before oneTBB 2021.6, has no tbb::finalize: if it had started threads, a child that uses it may "
            "hang"};
  }
  if (kind == "opencv") return opencv_verdict(process);
  if (kind == "opencv-python") return opencv_python_verdict(copy);
  if (kind == "torch") {
    return switchable_verdict(copy, "where CUDA was in use, the child is put on the CPU; its threads are OpenMP's",
                              "where CUDA was in use, the child gets torch's own errors");
  }
  if (kind == "mindspore") {
    return switchable_verdict(copy, "its own fork hooks run, and the child is put on the CPU",
                              "its pipelines and threads are lost in the child");
  }
  if (kind == "python") {
    return switchable_verdict(copy, "the GIL is held across each fork()",
                              "a fork() from C code that does not hold the GIL may leave the child without it");
  }
  return {AtFork::kUnclear, "it is not known how it was built, or whether it lives through fork()"};
}

AdapterState adapter_state_of(const std::string& word) {
  if (word == "absent") return AdapterState::kAbsent;
  return word == "on" ? AdapterState::kOn : AdapterState::kOff;
}

}  // namespace

bool DoctorFindings::take(const AdapterNote& note) {
  if (note.adapter != "doctor") return false;
  if (const auto start = split(note.text, 2); start.size() == 2 && start[0] == "start") {
    if (std::find(programs_.begin(), programs_.end(), start[1]) == programs_.end()) programs_.push_back(start[1]);
    return true;
  }
  if (note.text.rfind("process\t", 0) == 0) return take_process(split(note.text, 7));
  if (note.text.rfind("runtime\t", 0) == 0) return take_runtime(split(note.text, 9));
  return false;
}

bool DoctorFindings::take_process(const std::vector<std::string>& fields) {
  ExaminedProcess noted;
  if (fields.size() != 7 || !read_number(fields[1], &noted.pid) || !read_number(fields[3], &noted.threads) ||
      !read_number(fields[4], &noted.announced)) {
    return false;
  }
  noted.forked = fields[2] == "fork";
  noted.program = fields[5];
  noted.command = fields[6];
  const auto known = std::find_if(processes_.begin(), processes_.end(), [&](const ExaminedProcess& process) {
    return process.pid == noted.pid && process.program == noted.program;
  });
  if (known == processes_.end()) {
    processes_.push_back(std::move(noted));
    return true;
  }
  known->forked |= noted.forked;
  known->threads = std::max(known->threads, noted.threads);
  known->announced = std::max(known->announced, noted.announced);
  return true;
}

bool DoctorFindings::take_runtime(const std::vector<std::string>& fields) {
  int pid = 0;
  if (fields.size() != 9 || !read_number(fields[1], &pid)) return false;
  // After an exec the pid belongs to another program: the last one noted is meant.
  const auto process = std::find_if(processes_.rbegin(), processes_.rend(),
                                    [pid](const ExaminedProcess& known) { return known.pid == pid; });
  if (process == processes_.rend()) return false;
  const bool team = fields[7] == "team";
  for (RuntimeCopy& copy : process->runtimes) {
    if (copy.kind != fields[3] || copy.path != fields[8]) continue;
    copy.team |= team;
    return true;
  }
  process->runtimes.push_back(
      {fields[3], fields[8], fields[4], adapter_state_of(fields[5]), fields[6] == "can-pause", team});
  return true;
}

ForkVerdict verdict_of(const RuntimeCopy& copy, const ExaminedProcess& process) {
  ForkVerdict verdict = verdict_by_kind(copy, process);
  if (verdict.at_fork == AtFork::kUnclear && process.threads == 1) {
    return {AtFork::kSafe, "the process had one thread only: there was none to lose"};
  }
  return verdict;
}

const char* to_string(AtFork at_fork) {
  switch (at_fork) {
    case AtFork::kSafe:
      return "safe";
    case AtFork::kMadeSafe:
      return "made safe";
    case AtFork::kUnclear:
      return "unclear";
    case AtFork::kAtRisk:
      return "at risk";
  }
  return "";
}

}  // namespace mprun
