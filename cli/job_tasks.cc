#include "job_tasks.h"

#include <poll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdio>
#include <utility>

#include "base/clock.h"
#include "os/fd.h"
#include "os/uninterrupted.h"

namespace mprun {
namespace {

/// Standard input may not have anything yet: waits for it, or for the signal that ends the waiting. If it `tells`,
/// people hear that after a while, and then ever more rarely. Returns the signal, 0 if there is something to read.
int wait_for_input(int fd, const Guard& guard, bool tells) {
  constexpr Nanos kLongestSilence = 300 * kNanosPerSecond;
  Nanos silence = (isatty(STDERR_FILENO) != 0 ? 1 : 10) * kNanosPerSecond;
  sigset_t set;
  sigemptyset(&set);
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGQUIT}) sigaddset(&set, number);
  const Fd signals(signalfd(-1, &set, SFD_CLOEXEC));
  std::array<pollfd, 3> waits{pollfd{fd, POLLIN, 0}, pollfd{signals.get(), POLLIN, 0}, pollfd{guard.alive_fd, 0, 0}};
  const auto wait = [&] {
    const int milliseconds = tells ? static_cast<int>(silence / kNanosPerMilli) : -1;
    return uninterrupted([&] { return poll(waits.data(), waits.size(), milliseconds); });
  };
  while (wait() == 0) {
    std::fputs("mprun: waiting for the first input\n", stderr);
    silence = std::min(silence * 2, kLongestSilence);
  }
  if (waits[2].revents != 0) return SIGKILL;
  signalfd_siginfo info{};
  if (waits[1].revents != 0 && uninterrupted([&] { return read(signals.get(), &info, sizeof info); }) == sizeof info) {
    return static_cast<int>(info.ssi_signo);
  }
  return 0;
}

}  // namespace

Result<Tasks> open_tasks(const JobSpec& spec) {
  auto inputs = open_inputs(spec);
  if (!inputs) return inputs.error();
  Tasks tasks;
  tasks.all = (*inputs)->total();
  tasks.rows = (*inputs)->rows();
  tasks.inputs = std::move(*inputs);
  if (!spec.shard) return tasks;
  tasks.mine = tasks_of(*spec.shard, tasks.all);
  if (tasks.mine.step > 1) return tasks;  // all are read, and those of others passed over
  tasks.first = tasks.mine.begin;
  tasks.inputs = open_part(std::move(tasks.inputs), tasks.mine);
  return tasks;
}

Result<FirstInput> pull_first(const Tasks& tasks, const RowSet& ended, const Guard& guard, bool tells,
                              int* stopped_by) {
  FirstInput first{tasks.first, ""};
  InputSource* const inputs = tasks.inputs.get();
  for (;;) {
    first.text.clear();
    const bool wanted = tasks.mine.has(first.task) && !ended.has(first.task);
    switch (inputs->pull(&first.text)) {
      case InputSource::Pull::kItem:
        if (wanted) return first;
        ++first.task;
        break;
      case InputSource::Pull::kBad:
        if (wanted) return usage_error(first.text);
        ++first.task;
        break;
      case InputSource::Pull::kEnd:
        if (first.task > 0 || tasks.mine.empty()) return FirstInput{first.task, ""};
        return usage_error(
            "the inputs are empty: there is no task to run\n  check \"inputs\" of the spec, or what is piped in");
      case InputSource::Pull::kWait:
        *stopped_by = wait_for_input(inputs->wait_fd(), guard, tells);
        if (*stopped_by != 0) return internal_error("stopped while waiting for the first input");
    }
  }
}

}  // namespace mprun
