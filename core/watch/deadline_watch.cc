#include "watch/deadline_watch.h"

#include <algorithm>

#include "procfs/process_facts.h"
#include "watch/sample/sample.h"

namespace mprun {
namespace {

constexpr std::size_t kMostGaps = 64;

// On the clock of the deadlines. At most a tick early; too early if the machine has slept since.
Nanos start_of(const StatLine& thread) { return monotonic_now() - age_of(thread); }

}  // namespace

Result<DeadlineWatch> DeadlineWatch::create(ProcSource* proc) {
  auto board = DeadlineBoard::create();
  if (!board) return board.error();
  return DeadlineWatch(proc, std::move(*board));
}

Nanos DeadlineWatch::lost_since(Nanos begin) const {
  Nanos lost = 0;
  for (const Gap& gap : gaps_) lost += std::clamp<Nanos>(gap.end - begin, 0, gap.length);
  return lost;
}

bool DeadlineWatch::is_real(const Deadline& deadline) const {
  const std::string folder = std::to_string(deadline.pid);
  const auto stat_text = proc_->read(folder + "/task/" + std::to_string(deadline.tid) + "/stat");
  const auto stat = stat_text ? parse_stat(*stat_text) : std::nullopt;
  if (!stat || stat->state == 'Z' || stat->state == 'X') return false;
  if (start_of(*stat) > deadline.due - deadline.limit) return false;  // another thread has its number now
  // After an exec it is another program, which does not know deadlines, or has cleared those it found.
  const auto maps = parse_maps(proc_->read(folder + "/maps").value_or(""));
  return std::any_of(maps.begin(), maps.end(),
                     [this](const Mapping& mapping) { return board_.is_mapping(mapping.device, mapping.inode); });
}

std::optional<Deadline> DeadlineWatch::look(Nanos now) {
  if (last_look_ != 0 && now - last_look_ >= kStoppedAfter) {
    if (gaps_.size() == kMostGaps) gaps_.erase(gaps_.begin());
    gaps_.push_back({now, now - last_look_});
  }
  last_look_ = now;
  for (Deadline& deadline : board_.read()) {
    if (now < deadline.due || now < deadline.due + lost_since(deadline.due - deadline.limit)) continue;
    Nanos& done_with = done_with_[deadline.line];
    if (done_with == deadline.due) continue;
    done_with = deadline.due;
    if (is_real(deadline)) return std::move(deadline);
  }
  return std::nullopt;
}

}  // namespace mprun
