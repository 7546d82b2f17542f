#include "engine/engine.h"

#include <unistd.h>

#include <cerrno>
#include <csignal>

#include "base/exit_codes.h"
#include "launch/teardown.h"
#include "os/uninterrupted.h"

namespace mprun {
namespace {

// Notes of a program that starts others all the time are read in batches: each read costs it processor time, too. The
// pauses are short, because a box of notes may hold no more than ten.
constexpr Nanos kPause = 2 * kNanosPerMilli;
constexpr Nanos kWakeEvery = 100 * kNanosPerMilli;

}  // namespace

Result<std::unique_ptr<Engine>> Engine::create(Setup setup, EngineOwner* owner) {
  auto loop = EventLoop::create();
  if (!loop) return loop.error();
  auto notes = NoteBox::open();
  if (!notes) return notes.error();
  auto sync = SyncSegment::create();
  if (!sync) return sync.error();
  std::unique_ptr<Engine> engine(
      new Engine(std::move(setup), owner, std::move(*loop), std::move(*notes), std::move(*sync)));
  if (auto listens = engine->listen(); !listens) return listens.error();
  return engine;
}

Result<void> Engine::listen() {
  const sigset_t taken = taken_signals(setup_.of_program);
  sigprocmask(SIG_BLOCK, &taken, nullptr);
  signals_ = Fd(signalfd(-1, &taken, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!signals_) return system_error("cannot receive signals", errno);
  setup_.watch->watch_sync(&sync_);
  auto added = loop_.add(signals_.get(), EPOLLIN, [this](std::uint32_t) { read_signals(); });
  if (added) {
    added = loop_.add(setup_.guard.alive_fd, 0, [](std::uint32_t) {
      kill_descendants(kKillSeconds);  // the guard was killed: nothing may outlive it
      _exit(exit_code_of_signal(SIGKILL));
    });
  }
  if (added) {
    added = loop_.add(notes_.fd(), EPOLLIN, [this](std::uint32_t) {
      take_notes();
      rest();
    });
  }
  if (added) {
    added = loop_.add(setup_.watch->fd(), EPOLLIN, [this](std::uint32_t) {
      setup_.watch->take_ends();
      settle_locks();
      rest();
    });
  }
  return added;
}

void Engine::complete(AdapterFiles* files) const {
  files->notes = notes_.address();
  files->deadlines = setup_.watch->deadlines();
  files->sync = sync_.path();
}

Result<void> Engine::run_once(Nanos patience) {
  if (auto waited = loop_.run_once(patience); !waited) return waited;
  if (const Nanos now = monotonic_now(); now >= next_waking_) {
    next_waking_ = now + kWakeEvery;
    sync_.wake_forgotten();
  }
  return {};
}

void Engine::read_signals() {
  std::vector<signalfd_siginfo> all;
  signalfd_siginfo one{};
  ssize_t size = 0;
  while ((size = uninterrupted([&] { return read(signals_.get(), &one, sizeof one); })) == sizeof one) {
    all.push_back(one);
  }
  const int fault = size < 0 ? errno : EIO;
  if (!all.empty()) owner_->on_signals(all);
  if (fault != EAGAIN) owner_->on_signals_lost(system_error("cannot receive signals", fault));
}

void Engine::take_notes() {
  bool of_a_process = false;
  for (const AdapterNote& note : notes_.take()) {
    if (setup_.watch->receive(note)) {
      of_a_process = true;
    } else {
      owner_->on_note(note);
    }
  }
  if (of_a_process) settle_locks();  // it may have been short-lived, and be gone
}

void Engine::begin() {
  service_.ready();
  if (service_.alive_every() > 0) say_alive();
}

void Engine::stand_still(const std::vector<pid_t>& stuck) {
  for (const pid_t pid : stuck) {
    if (auto process = ProcessRef::open(pid)) stuck_.push_back(std::move(*process));
  }
}

bool Engine::moves() {
  std::erase_if(stuck_, [](const ProcessRef& process) { return process.has_ended(); });
  return stuck_.empty();
}

void Engine::say_alive() {
  if (moves()) service_.alive();
  loop_.at(monotonic_now() + service_.alive_every(), [this] { say_alive(); });
}

void Engine::settle_locks() {
  for (const SyncLoss& loss : sync_.on_death()) owner_->on_lost_lock(loss);
}

void Engine::rest() {
  if (rests_ || !setup_.batches_notes) return;
  rests_ = true;
  const auto listen_for = [this](std::uint32_t events) {
    loop_.modify(notes_.fd(), events);
    loop_.modify(setup_.watch->fd(), events);
  };
  listen_for(0);
  loop_.at(monotonic_now() + kPause, [this, listen_for] {
    rests_ = false;
    listen_for(EPOLLIN);
  });
}

}  // namespace mprun
