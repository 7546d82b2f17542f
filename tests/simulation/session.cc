// The shell's side of a session: it receives events and carries out actions; processes.cc models the processes.
#include "session.h"

#include <algorithm>
#include <csignal>

#include "supervise/event_log.h"

namespace mprun::simulation {

Session::Session(Setup setup)
    : setup_(std::move(setup)),
      scenario_(*setup_.scenario),
      choices_(*setup_.choices),
      stats_(*setup_.stats),
      scheduler_(setup_.policy),
      oracle_(setup_.policy, scenario_.total, &setup_.ended_earlier, &scheduler_, &stats_),
      processes_(static_cast<std::size_t>(setup_.policy.workers)),
      calm_(setup_.calm) {
  stats_.saw(Seen::kSessions);
  readable_ = scenario_.slow_inputs && !calm_ ? choices_.pick(4) : scenario_.total;
}

Session::End Session::run() {
  if (setup_.log != nullptr) {
    *setup_.log += std::string(kEventLogHead) + "\n" + to_text(setup_.policy) + "\n";
  }
  post(event::Begin{});
  for (std::uint32_t step = 0; !calm_ && step < scenario_.steps && going_on(); ++step) trouble();
  if (going_on()) all_obey();
  if (failure_.empty() && !crashed_) {
    oracle_.check_end(!disk_full_);
    failure_ = oracle_.failure().value_or("");
  }
  if (!failure_.empty()) return End::kFailed;
  return crashed_ ? End::kCrashed : End::kOver;
}

void Session::note(int slot, const char* what) {
  if (setup_.log != nullptr) *setup_.log += "# slot " + std::to_string(slot) + ": " + what + "\n";
}

void Session::post(const Event& event) {
  posted_.push_back(event);
  if (stepping_) return;
  stepping_ = true;
  std::vector<Action> actions;
  std::uint64_t steps = 0;
  while (!posted_.empty() && failure_.empty() && !crashed_) {
    if (++steps > 1000 + 2 * scenario_.total) failure_ = "the scheduler and the shell go round in circles";
    const Event next = posted_.front();
    posted_.pop_front();
    actions.clear();
    stats_.saw(Seen::kSteps);
    oracle_.expect(next, now_);
    scheduler_.step(next, now_, &actions);
    if (setup_.log != nullptr) *setup_.log += step_text({now_, next}, actions);
    oracle_.check(next, actions);
    if (oracle_.failure()) {
      failure_ = *oracle_.failure();
      return;
    }
    for (const Action& action : actions) {
      if (may(scenario_.crashes, 400)) {
        crashed_ = true;  // in the middle of it
        return;
      }
      std::visit([this](const auto& wanted) { perform(wanted); }, action);
    }
  }
  stepping_ = false;
}

// --- actions ---

void Session::perform(const action::ReadInputs& wanted) {
  event::InputsRead read;
  const std::uint64_t before = next_input_;
  bool waits = false;
  while (read.count < wanted.count && !read.ended && !waits) {
    const bool at_end = next_input_ == scenario_.total;
    const bool skip = !at_end && setup_.ended_earlier[next_input_];
    if (skip && read.count > 0) break;
    if (at_end && readable_ > scenario_.total) {
      read.ended = true;
    } else if (next_input_ >= readable_) {
      waits = true;
    } else {
      ++next_input_;
      if (!skip) ++read.count;
    }
    // The end comes at once only if the inputs are not slow.
    if (next_input_ == scenario_.total && (!scenario_.slow_inputs || calm_)) readable_ = scenario_.total + 1;
  }
  read.first = next_input_ - read.count;
  stats_.saw(Seen::kSkippedTasks, read.first - before);
  if (read.count == 0) stats_.saw(Seen::kEmptyReads);
  if (waits && next_input_ == before) {
    wanted_inputs_ = wanted.count;
    stats_.saw(Seen::kInputWaits);
    return;
  }
  post(read);
}

void Session::perform(const action::StartWorker& wanted) {
  at(wanted.slot) = Process{};
  at(wanted.slot).life = Life::kQueued;
}

void Session::perform(const action::Assign& wanted) {
  Process& process = at(wanted.slot);
  process.unclaimed += static_cast<std::uint32_t>(wanted.tasks.size());
  if (!setup_.policy.process_per_task) return;
  process = Process{};
  process.life = Life::kQueued;
  process.said_ready = true;
}

void Session::perform(const action::TakeBack& wanted) {
  const std::uint32_t count = std::exchange(at(wanted.slot).unclaimed, 0);
  oracle_.took_back(wanted.slot, count);
  post(event::TakenBack{wanted.slot, count});
}

void Session::perform(const action::Retire& wanted) {
  Process& process = at(wanted.slot);
  (setup_.policy.process_per_task ? process.to_be_gone : process.stop) = true;
}

void Session::perform(const action::Signal& wanted) {
  Process& process = at(wanted.slot);
  (wanted.signal == SIGKILL ? process.kill : process.term) = true;
}

void Session::perform(const action::EndTask& wanted) {
  const std::array<Seen, 3> kinds = {Seen::kEndedOk, Seen::kEndedFailed, Seen::kEndedCancelled};
  stats_.saw(kinds[static_cast<std::size_t>(wanted.status)]);
  if (disk_full_) return;
  setup_.journal->ends.push_back({wanted.task.task, wanted.status});
  ++setup_.journal->unsynced;
}

// --- what comes from outside ---

void Session::deliver(int slot, Message message) {
  if (message == Message::kReady) {
    post(event::WorkerReady{slot});
  } else if (message == Message::kStartFailed) {
    post(event::StartFailed{});
  } else if (!oracle_.slot(slot).held.empty()) {
    const bool failed = message == Message::kFailed;
    const bool signalled = failed && setup_.policy.process_per_task && choices_.one_in(4);
    const bool died = signalled || (failed && setup_.policy.ranks && choices_.one_in(4));
    post(event::TaskDone{slot, failed, duration(), signalled, died});
  }
}

void Session::deliver_all(int slot) {
  while (!at(slot).pipe.empty() && failure_.empty() && !crashed_) {
    const Message message = at(slot).pipe.front();
    at(slot).pipe.pop_front();
    deliver(slot, message);
  }
}

Nanos Session::duration() {
  if (scenario_.big()) return scenario_.task_time;
  return choices_.one_in(8) ? scenario_.task_time * 100 : scenario_.task_time;
}

void Session::pass_time() {
  constexpr std::array<Nanos, 8> kSteps = {kNanosPerMilli,      0,
                                           kNanosPerMilli / 20, 10 * kNanosPerMilli,
                                           kNanosPerMilli,      50 * kNanosPerMilli,
                                           5 * kNanosPerMilli,  300 * kNanosPerMilli};
  now_ += kSteps[choices_.pick(kSteps.size())];
  if (!may(scenario_.clock, 60)) return;
  stats_.saw(Seen::kClockJumps);
  now_ += (1 + choices_.pick(20)) * kNanosPerSecond / 2;
}

void Session::more_input() {
  const TaskId end = scenario_.total + 1;
  readable_ = std::min<TaskId>(end, readable_ + 1 + choices_.pick(scenario_.big() ? 20'000 : 40));
  if (wanted_inputs_ > 0) perform(action::ReadInputs{std::exchange(wanted_inputs_, 0)});
}

void Session::fill_disk() {
  disk_full_ = true;
  stats_.saw(Seen::kFullDisks);
  if (scheduler_.stopping() != Cause::kNone) return;
  post(event::Interrupt{});
  post(event::Interrupt{});
}

// Mostly what the leader of all shards would decide now; when there is trouble, also a failure elsewhere, and decisions
// that come late.
void Session::leader_decides() {
  const auto [state, attempt] = scheduler_.rank_state();
  if (may(true, 8)) {
    post(event::GroupDecided{static_cast<GroupPhase>(choices_.pick(3)), static_cast<int>(choices_.pick(4))});
  } else if (may(true, 100)) {
    post(event::GroupDecided{GroupPhase::kStopped, attempt});
  } else if (may(true, 8)) {
    post(event::GroupDecided{GroupPhase::kGather, attempt + 1});
  } else if (state == RankState::kReady) {
    post(event::GroupDecided{GroupPhase::kRun, attempt});
  } else if (state == RankState::kWell) {
    post(event::GroupDecided{GroupPhase::kFinished, attempt});
  }
}

void Session::duplicate(int slot) {
  stats_.saw(Seen::kDuplicates);
  const std::uint32_t kind = choices_.pick(5);
  if (kind == 0 && at(slot).said_ready) post(event::WorkerReady{slot});
  if (kind == 1 && !oracle_.slot(slot).present) post(event::WorkerGone{slot, false});
  if (kind == 2) post(event::WorkerHung{slot});
  if (kind == 4) post(event::WorkerTooLarge{slot});
  if (kind == 3 && scheduler_.start_failed()) post(event::StartFailed{});
}

void Session::rare_trouble() {
  const std::uint32_t kind = choices_.pick(8);
  const int slot = static_cast<int>(choices_.pick(static_cast<std::uint32_t>(processes_.size())));
  if (kind == 1 && may(scenario_.interrupts, 6)) {
    post(event::Interrupt{});
  } else if (kind == 2 && may(scenario_.hangs, 12)) {
    stats_.saw(Seen::kJobsHung);
    post(event::JobHung{});
  } else if (kind == 3 && may(scenario_.full_disk && !disk_full_, 10)) {
    fill_disk();
  } else if (kind == 4 && may(scenario_.clock, 3)) {
    stats_.saw(Seen::kStoppedAndResumed);
    const Nanos stopped = (1 + choices_.pick(50)) * kNanosPerSecond / 10;
    now_ += stopped;
    post(event::Resumed{stopped});
  } else if (kind == 5 && may(scenario_.duplicates, 2)) {
    duplicate(slot);
  } else if (kind == 6 && may(scenario_.start_trouble, 60)) {
    stats_.saw(Seen::kLaunchFailures);
    post(event::StartFailed{});  // the host hung before there was any worker
  } else if (kind == 7 && may(scenario_.crashes, 12)) {
    crashed_ = true;
  }
}

void Session::trouble() {
  pass_time();
  if (setup_.policy.has_leader && choices_.one_in(4)) leader_decides();
  if (!going_on()) return;
  const std::uint32_t kind = choices_.pick(24);
  const int slot = static_cast<int>(choices_.pick(static_cast<std::uint32_t>(processes_.size())));
  if (kind == 23) {
    rare_trouble();
  } else if (kind == 22) {
    if (choices_.pick(4) == 3) {
      find_large(slot);
    } else {
      find_hang(slot);
    }
  } else if (kind == 21) {
    more_input();
  } else if (kind >= 18) {
    if (choices_.one_in(3)) setup_.journal->unsynced = 0;
    post(event::Tick{});
  } else {
    happen(slot);
  }
}

// From here on every process obeys at once. The job has to end.
void Session::all_obey() {
  calm_ = true;
  const std::uint64_t rounds = 500 + scenario_.total;
  for (std::uint64_t round = 0; going_on() && round < rounds; ++round) {
    calm_round(round < rounds / 2 ? 50 * kNanosPerMilli : 10 * kNanosPerSecond);  // delays grow
  }
  if (failure_.empty() && !crashed_ && !scheduler_.over()) failure_ = "the job does not end though all obey";
}

void Session::calm_round(Nanos passes) {
  constexpr int kMostSteps = 64;
  now_ += passes;
  setup_.journal->unsynced = 0;
  if (going_on()) post(event::Tick{});
  if (going_on() && setup_.policy.has_leader) leader_decides();
  readable_ = scenario_.total + 1;
  if (wanted_inputs_ > 0 && going_on()) more_input();
  for (int slot = 0; slot < setup_.policy.workers; ++slot) {
    const Process& process = at(slot);
    const bool limited =
        process.stop || (process.running && setup_.policy.task_limit);  // then it ends without the watch
    if (going_on() && !limited) find_hang(slot);
    for (int i = 0; i < kMostSteps && going_on(); ++i) happen(slot);
  }
}

}  // namespace mprun::simulation
