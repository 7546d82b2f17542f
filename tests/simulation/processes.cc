// What the processes of a session do, and when mprun learns of it.
#include <algorithm>

#include "session.h"

namespace mprun::simulation {

void Session::happen(int slot) {
  Process& process = at(slot);
  if (process.to_be_gone) {
    process = Process{};
    post(event::WorkerGone{slot, false});
  } else if (process.life == Life::kQueued) {
    happen_queued(slot);
  } else if (process.life == Life::kAlive) {
    if (setup_.policy.process_per_task) {
      happen_process(slot);
    } else {
      happen_alive(slot);
    }
  } else if (process.life == Life::kDead && setup_.policy.process_per_task) {
    process.life = Life::kNone;
    deliver_all(slot);
  } else if (process.life == Life::kDead) {  // mprun learns of it
    deliver_all(slot);
    if (!failure_.empty() || crashed_) return;
    const bool started = at(slot).running;
    const bool signalled = at(slot).signalled;
    at(slot) = Process{};
    post(event::WorkerGone{slot, started, signalled});
  }
}

// The watch takes a look. It may be wrong: a passed deadline is not proof.
void Session::find_hang(int slot) {
  const Process& process = at(slot);
  if (process.life != Life::kAlive || (!process.hung && !may(scenario_.hangs, 10))) return;
  stats_.saw(Seen::kHangsFound);
  post(event::WorkerHung{slot});
}

void Session::find_large(int slot) {
  if (at(slot).life != Life::kAlive || setup_.policy.process_per_task || !may(scenario_.large, 3)) return;
  stats_.saw(Seen::kTooLarge);
  post(event::WorkerTooLarge{slot});
}

void Session::happen_queued(int slot) {
  Process& process = at(slot);
  if (!process.said_ready && setup_.policy.process_per_task) {  // a slot without a process
    process.life = Life::kNone;
    process.said_ready = true;
    post(event::WorkerReady{slot});
    return;
  }
  if (process.term || process.kill) {
    if (choices_.pick(2) == 0) {
      process.life = Life::kAlive;  // it was launched after all
    } else if (setup_.policy.process_per_task) {
      end_process(slot, true);
    } else {
      process = Process{};
      post(event::WorkerGone{slot, false});
    }
    return;
  }
  if (may(scenario_.start_trouble, 40)) return launch_fails();
  if (setup_.policy.process_per_task && may(scenario_.errors, 10)) {
    stats_.saw(Seen::kSpawnFailures);
    return end_process(slot, true);
  }
  process.life = Life::kAlive;
}

// Fork fails, or the host is gone: no worker will ever start.
void Session::launch_fails() {
  if (setup_.policy.process_per_task && !setup_.policy.ranks) return;
  stats_.saw(Seen::kLaunchFailures);
  post(event::StartFailed{});
  for (Process& process : processes_) {
    if (process.life == Life::kNone || (setup_.policy.process_per_task && !process.said_ready)) continue;
    process.term = process.term || process.life == Life::kQueued || setup_.policy.process_per_task;
  }
}

// --- commands and ranks: one process per task ---

void Session::end_process(int slot, bool failed) {
  Process& process = at(slot);
  process = Process{};
  process.said_ready = true;
  process.life = Life::kDead;
  process.pipe.push_back(failed ? Message::kFailed : Message::kOk);
}

void Session::happen_process(int slot) {
  Process& process = at(slot);
  if (process.kill) return end_process(slot, true);
  if (process.term) {
    process.term = false;
    if (!may(scenario_.stubborn, 2)) return end_process(slot, !may(scenario_.stubborn, 4));
    stats_.saw(Seen::kTermIgnored);
    note(slot, "ignores TERM");
    return;
  }
  if (process.hung) return;
  if (may(scenario_.hangs, 12)) {
    stats_.saw(Seen::kHangs);
    note(slot, "hangs");
    process.hung = true;
  } else if (calm_ || choices_.pick(2) == 0) {
    end_process(slot, may(scenario_.errors, 4));
  }
}

// --- workers ---

void Session::die(int slot) {
  Process& process = at(slot);
  stats_.saw(process.running      ? Seen::kDeathsMidTask
             : process.stop       ? Seen::kDeathsRetiring
             : process.said_ready ? Seen::kDeathsReady
                                  : Seen::kDeathsStarting);
  note(slot, "dies");
  process.life = Life::kDead;
  process.signalled = process.kill || process.term || may(scenario_.killer, 2);
}

void Session::happen_alive(int slot) {
  Process& process = at(slot);
  if (process.kill) return die(slot);
  if (!process.pipe.empty() && (calm_ || choices_.pick(3) != 2)) {
    const std::size_t all = process.pipe.size();
    const std::uint32_t some =
        calm_ || scenario_.big() ? static_cast<std::uint32_t>(all) : 1 + choices_.pick(static_cast<std::uint32_t>(all));
    for (std::uint32_t i = 0; i < some && going_on() && !at(slot).pipe.empty(); ++i) {
      const Message message = at(slot).pipe.front();
      at(slot).pipe.pop_front();
      deliver(slot, message);
    }
    return;
  }
  if (process.term) return obey_signal(slot);
  if (may(scenario_.deaths, 24)) return die(slot);
  if (process.hung) return;
  if (!process.said_ready) return happen_starting(slot);
  if (process.running) return happen_in_task(slot);
  happen_idle(slot);
}

void Session::obey_signal(int slot) {
  Process& process = at(slot);
  process.term = false;
  if (process.running && !process.hung && may(scenario_.stubborn, 3)) {
    stats_.saw(Seen::kTermRaised);
    note(slot, "raises in its task because of TERM");
    process.running = false;
    process.pipe.push_back(Message::kFailed);
  } else if (may(scenario_.stubborn, 2)) {
    stats_.saw(Seen::kTermIgnored);
    note(slot, "ignores TERM");
  } else {
    die(slot);
  }
}

void Session::happen_starting(int slot) {
  Process& process = at(slot);
  if (may(scenario_.start_trouble, 12)) {
    const std::uint32_t kind = choices_.pick(4);
    if (kind == 0) {
      stats_.saw(Seen::kStartFailures);
      process.pipe.push_back(Message::kStartFailed);
    }
    process.hung = kind == 1;
    if (process.hung) stats_.saw(Seen::kHangs);
    if (!process.hung) die(slot);
    return;
  }
  process.said_ready = true;
  process.pipe.push_back(Message::kReady);
}

void Session::happen_in_task(int slot) {
  Process& process = at(slot);
  if (may(scenario_.hangs, 30)) {
    stats_.saw(Seen::kHangs);
    note(slot, "hangs");
    process.hung = true;
    return;
  }
  // Fast workers end many tasks before mprun looks.
  std::uint32_t more = scenario_.big() ? 1000 : choices_.pick(8) == 7 ? choices_.pick(40) : 0;
  for (;; --more) {
    process.running = false;
    process.pipe.push_back(may(scenario_.errors, 6) ? Message::kFailed : Message::kOk);
    if (more == 0 || process.unclaimed == 0) return;
    --process.unclaimed;
    process.running = true;
  }
}

void Session::happen_idle(int slot) {
  Process& process = at(slot);
  if (process.unclaimed > 0) {
    --process.unclaimed;
    process.running = true;
  } else if (process.stop) {
    if (may(scenario_.hangs, 6)) {
      stats_.saw(Seen::kHangs);
      note(slot, "hangs at its end");
      process.hung = true;
    } else {
      note(slot, "exits");
      process.life = Life::kDead;
    }
  }
}

}  // namespace mprun::simulation
