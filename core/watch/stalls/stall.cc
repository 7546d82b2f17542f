#include "watch/stalls/stall.h"

#include <algorithm>

namespace mprun {
void StallMeter::take(const Sample& sample, Nanos now, const ProgressOf& progress_of) {
  std::map<pid_t, Stay> stays;
  one_runs_ = !sample.whole;
  for (const ThreadSample& thread : sample.threads) {
    const auto before = stays_.extract(thread.tid);
    const bool stopped = thread.state == 'T' || thread.state == 't';
    if (thread.call.running && thread.state != 'Z' && !stopped) {
      one_runs_ = true;
      continue;
    }
    Place place{thread.pid, stopped ? 'T' : 'S', thread.call.number, thread.call.stack_pointer,
                thread.call.program_counter};
    if (thread.hidden) place.program_counter = thread.runs;  // all that is known is that it rests
    const bool stays_there = before && before.mapped().place == place;
    Stay stay{place, now, thread.runs, thread.runs, {}};
    if (stays_there) stay = before.mapped();
    if (progress_of && (!stays_there || thread.runs != stay.runs)) {
      const std::uint64_t progress = progress_of(thread);
      if (std::find(stay.progress.begin(), stay.progress.end(), progress) == stay.progress.end()) {
        stay.since = now;
        stay.first_runs = thread.runs;
        stay.progress.push_back(progress);
        if (stay.progress.size() > kMostStatesOfLoop) stay.progress.pop_front();
      }
    }
    stay.runs = thread.runs;
    stays[thread.tid] = stay;
  }
  if (!stays_.empty()) last_end_ = now;  // those that are left have ended
  stays_ = std::move(stays);
}

Nanos StallMeter::of_all(Nanos now) const {
  if (one_runs_ || stays_.empty()) return 0;
  Nanos latest = last_end_;
  for (const auto& [tid, stay] : stays_) latest = std::max(latest, stay.since);
  return now - latest;
}

Nanos StallMeter::of_thread(pid_t tid, Nanos now) const {
  const auto it = stays_.find(tid);
  return it == stays_.end() ? 0 : now - it->second.since;
}

bool StallMeter::has_woken(pid_t tid) const {
  const auto it = stays_.find(tid);
  return it != stays_.end() && it->second.runs != it->second.first_runs;
}

}  // namespace mprun
