// Suspects: processes of which something is suspected that one look does not show for certain, because others look the
// same for a moment. Three looks a second apart must agree. Lives in the watcher.
#pragma once

#include <sys/types.h>

#include <functional>
#include <map>
#include <set>

#include "base/clock.h"

namespace mprun {

class Suspects {
 public:
  /// Whether it is so now; a look costs some milliseconds.
  using IsSo = std::function<bool(pid_t)>;

  explicit Suspects(IsSo is_so) : is_so_(std::move(is_so)) {}

  /// Such a process, not reported before; 0: none. `processes`: those that may be one now; what is known of others is
  /// forgotten.
  [[nodiscard]] pid_t look(const std::set<pid_t>& processes, Nanos now);
  /// One of them that one look finds so; 0: none. Changes nothing.
  [[nodiscard]] pid_t find_now(const std::set<pid_t>& processes) const;

 private:
  struct Suspect {
    int agreed = 0;   ///< looks in a row
    Nanos pause = 0;  ///< until the next one, if nothing was found
    Nanos next_look = 0;
    bool reported = false;
  };

  IsSo is_so_;
  std::map<pid_t, Suspect> suspects_;
};

}  // namespace mprun
