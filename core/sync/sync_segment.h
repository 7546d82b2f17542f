// mprun's side of the memory that the processes of a job share by name (sync.h). The supervisor creates it, wakes
// waiters that a dead process may have left asleep, and reports which processes died with a lock; the watch asks what a
// thread waits for there. The watched processes write its content, which may be anything; mprun only initializes it.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "os/shared_memory.h"
#include "sync/sync.h"

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
  bool is_due = false;   ///< what is waited for is there: wake_forgotten() will wake the sleepers
  std::uint32_t value = 0;
  pid_t owner = 0;  ///< the thread that holds the lock; 0: none, or one that has died
  mprun_sync_holder holder{};
};

class SyncSegment {
 public:
  /// Smaller than MPRUN_SYNC_BYTES where the limits of file size or address space require it.
  [[nodiscard]] static Result<SyncSegment> create();

  /// The path by which the processes below find it, for MPRUN_SYNC; valid as long as the segment lives.
  [[nodiscard]] std::string path() const;
  /// A process has died: wakes all waiters, so that they look again. Returns the locks of dead holders, each once.
  [[nodiscard]] std::vector<SyncLoss> on_death();
  /// Wakes threads that sleep although what they wait for is there, because the process that was to wake them has died,
  /// perhaps unreported. It disturbs no others and is cheap enough for several calls a second.
  void wake_forgotten() const;
  /// Makes the objects what they were at the first call: none that was made since is left. No process may be using
  /// them.
  void renew();
  /// The word at an offset; nullopt: threads cannot wait for that.
  [[nodiscard]] std::optional<SyncWord> find_word(std::uint64_t offset) const;
  /// Whether a mapping in /proc/PID/maps maps this memory.
  [[nodiscard]] bool is_mapping(std::uint64_t device, std::uint64_t inode) const {
    return memory_.is_mapping(device, inode);
  }
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
  std::vector<char> first_;                          ///< the memory at the first renew()
  std::map<std::uint64_t, std::uint64_t> reported_;  ///< by lock: the turn whose holder's death was reported
};

/// "worker 3 (pid 4711)", "rank 0 (pid 4712)", "process 4713".
[[nodiscard]] std::string to_string(const mprun_sync_holder& holder);

/// "worker 3 (pid 4711) ended in task 17 while it held the lock "log"; the next one who asks gets it".
[[nodiscard]] std::string to_string(const SyncLoss& loss);

/// "lock", "queue", ...; "memory" for 0.
[[nodiscard]] const char* sync_kind_name(std::uint32_t kind);

}  // namespace mprun
