// FakeTree: processes with their memory and CPU time, from a made-up /proc.
#pragma once

#include <string>

#include "fake_process.h"

namespace mprun {

inline constexpr std::uint64_t kMiB = std::uint64_t{1} << 20U;

/// Counts the processes that are walked through.
class FakeTree : public FakeProcess {
 public:
  int walks = 0;
  char state = 'S';             ///< of processes made from now on
  std::uint64_t cpu_ticks = 0;  ///< the same

  void process(pid_t pid, pid_t parent, pid_t group, std::uint64_t resident_mib, std::uint64_t faults = 0) {
    std::string line =
        std::to_string(pid) + " (a) b) " + state + " " + std::to_string(parent) + " " + std::to_string(group);
    for (int field = 6; field <= 52; ++field) {
      const std::uint64_t value = field == 10   ? faults
                                  : field == 15 ? cpu_ticks
                                  : field == 22 ? 7
                                  : field == 24 ? resident_mib * 256
                                                : 0;
      line += " " + std::to_string(value);
    }
    const std::string name = std::to_string(pid);
    if (files.count(name + "/stat") == 0) folders["."].push_back(name);
    files[name + "/stat"] = line + "\n";
  }
  void pages(pid_t pid, std::uint64_t anonymous_mib, std::uint64_t shmem_mib, std::uint64_t only_its_mib) {
    const auto kib = [](std::uint64_t mib) { return std::to_string(mib * 1024) + " kB\n"; };
    files[std::to_string(pid) + "/smaps_rollup"] =
        "00400000-7ffea8f13000 ---p 00000000 00:00 0  [rollup]\nRss: 1 kB\nPss: " +
        kib(anonymous_mib + shmem_mib + 50) + "Pss_Anon: " + kib(anonymous_mib) + "Pss_File: " + kib(50) +
        "Pss_Shmem: " + kib(shmem_mib) + "Private_Clean: " + kib(50) + "Private_Dirty: " + kib(only_its_mib) +
        "SwapPss: 0 kB\n";
  }
  std::optional<std::string> read(const std::string& path) override {
    if (path.find("smaps_rollup") != std::string::npos) ++walks;
    return FakeProcess::read(path);
  }
};

}  // namespace mprun
