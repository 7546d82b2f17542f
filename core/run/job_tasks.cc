#include "run/job_tasks.h"

#include <poll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <filesystem>
#include <utility>

#include "base/clock.h"
#include "os/fd.h"
#include "os/signal_set.h"
#include "os/text_backlog.h"
#include "os/uninterrupted.h"
#include "record/rendezvous_files.h"
#include "supervise/supervisor.h"

namespace mprun {
namespace {

/// Waits until standard input has data or a signal ends the wait. If `reports_wait`, says so on standard error after a
/// while, and then ever more rarely. Returns the signal, 0 if there is data.
int wait_for_input(int fd, const Guard& guard, bool reports_wait) {
  constexpr Nanos kLongestSilence = 300 * kNanosPerSecond;
  Nanos silence = (isatty(STDERR_FILENO) != 0 ? 1 : 10) * kNanosPerSecond;
  const sigset_t set = signal_set(kEndSignals);
  const Fd signals(signalfd(-1, &set, SFD_CLOEXEC));
  std::array<pollfd, 3> waits{pollfd{fd, POLLIN, 0}, pollfd{signals.get(), POLLIN, 0}, pollfd{guard.alive_fd, 0, 0}};
  const auto wait = [&] {
    const int milliseconds = reports_wait ? static_cast<int>(silence / kNanosPerMilli) : -1;
    return uninterrupted([&] { return poll(waits.data(), waits.size(), milliseconds); });
  };
  TextBacklog words(STDERR_FILENO);
  while (wait() == 0) {
    if (!words.is_waiting()) words.add("mprun: waiting for the first input\n");
    silence = std::min(silence * 2, kLongestSilence);
  }
  if (waits[2].revents != 0) return SIGKILL;
  signalfd_siginfo info{};
  if (waits[1].revents != 0 && uninterrupted([&] { return read(signals.get(), &info, sizeof info); }) == sizeof info) {
    return static_cast<int>(info.ssi_signo);
  }
  return 0;
}

/// Of the whole run, not of the shard.
std::string directory_of_all(const JobSpec& spec) {
  return std::filesystem::path(spec.output_dir).parent_path().parent_path();
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
  if (spec.balance == Balance::kDynamic) {
    if (auto fits = check_balance(spec, tasks.all); !fits) return fits.error();
    tasks.mine.end = *tasks.all;
    return tasks;
  }
  tasks.mine = tasks_of(*spec.shard, tasks.all);
  if (tasks.mine.step > 1) return tasks;  // all inputs are read, and those of other shards skipped
  tasks.first = tasks.mine.begin;
  tasks.inputs = open_part(std::move(tasks.inputs), tasks.mine);
  return tasks;
}

Result<void> check_balance(const JobSpec& spec, std::optional<std::uint64_t> tasks) {
  if (spec.balance == Balance::kStatic || tasks) return {};
  return usage_error(
      "/balance: tasks can be shared while they run only if their number is known before, and that of these inputs is "
      "not\n  put the inputs into a file, or use --balance static");
}

Result<std::unique_ptr<ClaimedBlocks>> share_tasks(const JobSpec& spec, const Tasks& tasks,
                                                   const EarlierResults& earlier, bool goes_on, ResultsWriter* results,
                                                   Log* log) {
  if (!spec.shard || spec.balance == Balance::kStatic) return std::unique_ptr<ClaimedBlocks>();
  auto directory = BlockDirectory::open(directory_of_all(spec), {*tasks.all, spec.shard->count}, *spec.shard);
  if (!directory) return directory.error();
  ClaimedBlocks::Options options;
  options.shard = *spec.shard;
  options.patience = from_seconds(spec.limits.heartbeat_seconds);
  options.ended = &earlier.ended;
  options.goes_on = goes_on;
  options.open_inputs = [&spec] { return open_inputs(spec); };
  options.make_durable = [results] { return results->sync(); };
  options.session = wall_now();
  options.log = log;
  return ClaimedBlocks::open(std::move(*directory), std::move(options));
}

std::unique_ptr<Rendezvous> open_rendezvous(const JobSpec& spec) {
  if (!policy_of(spec, {}).has_leader) return nullptr;
  return std::make_unique<RendezvousFiles>(directory_of_all(spec), *spec.shard,
                                           from_seconds(spec.limits.heartbeat_seconds), monotonic_now());
}

std::string describe_shard(const JobSpec& spec, const Tasks& tasks) {
  if (spec.balance == Balance::kStatic) return describe(*spec.shard, tasks.mine);
  const Cutting cutting{*tasks.all, spec.shard->count};
  const std::uint64_t most = cutting.tasks / cutting.shards / kBlocksPerShare + 1;
  return "shard " + folder_of(*spec.shard) + " of " + std::to_string(spec.shard->count) + ": claims blocks of " +
         (most == 1 ? "one task" : "at most " + std::to_string(most) + " tasks");
}

Result<FirstInput> pull_first(const Tasks& tasks, const RowSet& ended, const Guard& guard, bool reports_wait,
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
        *stopped_by = wait_for_input(inputs->wait_fd(), guard, reports_wait);
        if (*stopped_by != 0) return internal_error("stopped while waiting for the first input");
    }
  }
}

}  // namespace mprun
