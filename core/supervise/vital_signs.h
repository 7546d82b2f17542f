// VitalSigns: what the workers of a job use, and which of them use too much memory. The supervisor asks at every step;
// looks are rare enough to take one part in a hundred of mprun's time.
#pragma once

#include <sys/types.h>

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/process_end.h"
#include "job/spec.h"
#include "procfs/memory_use.h"
#include "procfs/oom_kills.h"
#include "supervise/usage.h"

namespace mprun {

class VitalSigns {
 public:
  explicit VitalSigns(const JobSpec& spec);

  /// True if it has looked what workers use. `workers`: their processes, with their slots.
  [[nodiscard]] bool look_at_usage(const std::map<pid_t, int>& workers, Nanos now);
  /// The workers that use more memory than limits.memory_per_worker.
  [[nodiscard]] std::vector<MemoryUse::Excess> look_at_memory(const std::map<pid_t, int>& workers, Nanos now);
  /// A worker has ended, and is not reaped yet.
  void process_ended(int slot, pid_t pid) { usage_.process_ended(slot, pid); }

  /// As it was in the last look, of which measured() is the wall clock.
  [[nodiscard]] const Usage::Slot& of(int slot) const { return usage_.at(slot); }
  [[nodiscard]] Nanos measured() const { return measured_; }
  /// ", and the machine ran out of memory" where the kernel has killed for that since the last such end; else "".
  [[nodiscard]] std::string memory_text(ProcessEnd end);

 private:
  const ProcessTable& processes(Nanos now);

  std::unique_ptr<ProcSource> proc_ = live_proc();
  ProcessTable processes_;
  Nanos listed_ = 0;
  Usage usage_;
  Nanos next_usage_look_ = 0;
  Nanos measured_ = 0;
  std::optional<MemoryUse> memory_;  ///< where a limit is set
  Nanos next_memory_look_ = 0;
  OomKills oom_kills_ = oom_kills();  ///< when we looked last
};

}  // namespace mprun
