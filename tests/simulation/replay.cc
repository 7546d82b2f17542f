#include "replay.h"

#include <optional>
#include <string>

#include "supervise/event_log.h"

namespace mprun::simulation {
namespace {

constexpr int kMostWorkers = 100'000;

/// The slot that an event refers to; 0 if it refers to none.
int slot_of(const Event& event) {
  return std::visit(
      [](const auto& e) {
        if constexpr (requires { e.slot; }) {
          return e.slot;
        } else {
          return 0;
        }
      },
      event);
}

class Replay {
 public:
  explicit Replay(std::istream& log) : log_(log) {}

  Result<Replayed> run() {
    while (next()) {
      if (line_ == kEventLogHead) {
        if (auto begun = begin_session(); !begun) return begun.error();
      } else if (auto stepped = step(); !stepped) {
        return stepped.error();
      }
    }
    if (replayed_.sessions == 0) return wrong("found no event log");
    return replayed_;
  }

 private:
  // The next line that is not a comment. Without its newline it is torn: mprun was killed while writing it.
  bool next() {
    do {
      if (!std::getline(log_, line_)) return false;
      ++number_;
      torn_ = log_.eof();
    } while (!line_.empty() && line_.front() == '#');
    return true;
  }

  [[nodiscard]] Error wrong(const std::string& what) const {
    return usage_error("line " + std::to_string(number_) + ": " + what);
  }

  Result<void> begin_session() {
    if (!next() || torn_) return tear();
    auto policy = parse_policy(line_);
    if (!policy) return wrong(policy.error().message);
    if (policy->workers < 1 || policy->workers > kMostWorkers) return wrong("a wrong number of workers");
    workers_ = policy->workers;
    scheduler_.emplace(*policy);
    ++replayed_.sessions;
    return {};
  }

  Result<void> step() {
    if (torn_) return tear();
    if (!scheduler_) return wrong("found no " + std::string(kEventLogHead));
    const auto event = parse_event(line_);
    if (!event) return wrong(event.error().message);
    if (slot_of(event->event) < 0 || slot_of(event->event) >= workers_) return wrong("there is no such slot");
    std::vector<Action> actions;
    scheduler_->step(event->event, event->at, &actions);
    ++replayed_.events;
    for (const Action& action : actions) {
      const std::string expected = to_text(action);
      if (!next()) return tear();
      if (torn_ && expected.compare(0, line_.size(), line_) == 0) return tear();
      if (line_ != expected) return wrong("found    \"" + line_ + "\"\n  expected \"" + expected + "\"");
      ++replayed_.actions;
    }
    return {};
  }

  Result<void> tear() {
    replayed_.torn = true;
    return {};
  }

  std::istream& log_;
  std::string line_;
  std::uint64_t number_ = 0;
  bool torn_ = false;
  int workers_ = 0;
  std::optional<Scheduler> scheduler_;
  Replayed replayed_;
};

}  // namespace

Result<Replayed> replay(std::istream& log) { return Replay(log).run(); }

}  // namespace mprun::simulation
