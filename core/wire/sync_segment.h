// The memory that the processes of a job share by name (sync.h), as mprun holds it: the supervisor makes it, wakes who
// may have missed the waking of one that died, and says who died with a lock; the watch asks what a thread waits for
// there. What it holds was written by the watched processes, and may be anything; nothing is written here.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "os/shared_memory.h"
#include "wire/sync.h"

namespace mprun {

/// A lock that a process held when it died.
struct SyncLoss {
  std::string name;
  mprun_sync_holder holder;
};

/// A word of the memory that a thread can wait for.
struct SyncWord {
  std::uint32_t kind = 0;  ///< MPRUN_SYNC_LOCK, ...; 0: the memory's own lock
  std::string name;
  bool is_lock = false;  ///< only its owner will change it
  bool is_due = false;   ///< what is waited for is there: who sleeps will be woken by wake_forgotten()
  std::uint32_t value = 0;
  pid_t owner = 0;  ///< the thread that has the lock; 0: nobody, or one that has died
  mprun_sync_holder holder{};
};

class SyncSegment {
 public:
  /// Smaller than MPRUN_SYNC_BYTES where the limits of file sizes or address space ask for that.
  [[nodiscard]] static Result<SyncSegment> create();

  /// Where the processes below find it, for MPRUN_SYNC; good for as long as the segment lives.
  [[nodiscard]] std::string path() const;
  /// A process has died: everybody who waits looks again. The locks that somebody held who died, each told once.
  [[nodiscard]] std::vector<SyncLoss> on_death();
  /// Wakes those who sleep although what they wait for is there: whoever was to wake them has died, perhaps unheard of.
  /// Nobody else is disturbed, and it is cheap: for several times a second.
  void wake_forgotten() const;
  /// What is waited for at an offset; nullopt: that is no word to wait for.
  [[nodiscard]] std::optional<SyncWord> find_word(std::uint64_t offset) const;
  /// Whether a mapping of a process, as /proc/PID/maps tells it, is of this memory.
  [[nodiscard]] bool is_mapping(std::uint64_t device, std::uint64_t inode) const;
  /// For tests: the memory itself.
  [[nodiscard]] mprun_sync* memory() const { return static_cast<mprun_sync*>(memory_.data()); }

 private:
  struct Named {
    std::uint32_t kind;
    std::uint64_t body;
    std::string name;
  };
  SyncSegment(SharedMemory memory, std::uint64_t size) : memory_(std::move(memory)), size_(size) {}
  [[nodiscard]] std::vector<Named> names() const;
  template <typename Body>
  [[nodiscard]] Body* at(std::uint64_t offset) const;
  [[nodiscard]] bool is_over(const Named& named, const mprun_sync_barrier& barrier) const;
  template <typename Visit>
  void visit_words(const Named& named, const Visit& visit) const;

  SharedMemory memory_;
  std::uint64_t size_;
  std::map<std::uint64_t, std::uint64_t> told_;  ///< by lock: the turn whose holder's death was told
};

/// "worker 3 (pid 4711)", "rank 0 (pid 4712)", "process 4713".
[[nodiscard]] std::string to_string(const mprun_sync_holder& holder);

/// "worker 3 (pid 4711) ended in task 17 while it held the lock "log"; the next one who asks gets it".
[[nodiscard]] std::string to_string(const SyncLoss& loss);

/// "lock", "queue", ...; "memory" for 0.
[[nodiscard]] const char* sync_kind_name(std::uint32_t kind);

}  // namespace mprun
