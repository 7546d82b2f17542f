// mprun_simulation: runs the scheduler through random schedules, or replays an event log of a real run. See README.md.
#include <sys/wait.h>
#include <unistd.h>

#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iostream>
#include <string>
#include <vector>

#include "os/fd.h"
#include "replay.h"
#include "schedule.h"

namespace mprun::simulation {
namespace {

constexpr const char* kUsage =
    "usage: mprun_simulation [--schedules N] [--seed S] [--jobs J] [--shrink]\n"
    "       mprun_simulation --one SEED [--shrink]\n"
    "       mprun_simulation --replay FILE\n";

struct Options {
  std::uint64_t schedules = 50'000, seed = 1, jobs = 1;
  bool shrinks = false, one = false;
  std::string replay;
};

bool read_number(const char* text, std::uint64_t* value) {
  const char* end = text + std::strlen(text);
  const auto [stop, error] = std::from_chars(text, end, *value);
  return error == std::errc() && stop == end;
}

bool read_options(const std::vector<const char*>& args, Options* options) {
  for (std::size_t i = 0; i < args.size(); ++i) {
    const std::string name = args[i];
    if (name == "--shrink") {
      options->shrinks = true;
      continue;
    }
    if (++i == args.size()) return false;
    bool read = true;
    if (name == "--schedules") {
      read = read_number(args[i], &options->schedules);
    } else if (name == "--seed") {
      read = read_number(args[i], &options->seed);
    } else if (name == "--one") {
      options->one = true;
      read = read_number(args[i], &options->seed);
    } else if (name == "--jobs") {
      read = read_number(args[i], &options->jobs) && options->jobs > 0 && options->jobs <= 256;
    } else if (name == "--replay") {
      options->replay = args[i];
    } else {
      return false;
    }
    if (!read) return false;
  }
  return true;
}

/// What one of several processes found.
struct Share {
  Stats stats;
  bool failed = false;
  std::uint64_t seed = 0;  ///< the first that failed
};

Share run_share(const Options& options, std::uint64_t job) {
  Share share;
  for (std::uint64_t i = job; i < options.schedules; i += options.jobs) {
    Choices choices(options.seed + i);
    if (!run_schedule(&choices, &share.stats, nullptr)) continue;
    share.failed = true;
    share.seed = options.seed + i;
    return share;
  }
  return share;
}

/// Runs each share in a separate process; a share whose process died counts as failed.
bool run_all(const Options& options, std::vector<Share>* shares) {
  std::vector<Fd> pipes;
  for (std::uint64_t job = 0; job < options.jobs; ++job) {
    auto pipe = make_pipe();
    if (!pipe) return false;
    const pid_t pid = fork();
    if (pid < 0) return false;
    if (pid == 0) {
      const Share share = run_share(options, job);
      const bool written =
          write_all(pipe->write.get(), {reinterpret_cast<const char*>(&share), sizeof share}).has_value();
      _exit(written ? 0 : 1);
    }
    pipes.push_back(std::move(pipe->read));
  }
  bool whole = true;
  for (const Fd& pipe : pipes) {
    Share share;
    std::size_t got = 0;
    while (got < sizeof share) {
      const ssize_t n = read(pipe.get(), reinterpret_cast<char*>(&share) + got, sizeof share - got);
      if (n <= 0) break;
      got += static_cast<std::size_t>(n);
    }
    whole = whole && got == sizeof share;
    if (got == sizeof share) shares->push_back(share);
  }
  while (wait(nullptr) > 0) {
  }
  return whole;
}

// Replays the schedule of a seed and prints its steps, shrunk on request. Returns the exit code.
int show(std::uint64_t seed, bool shrinks) {
  Choices choices(seed);
  Stats stats;
  std::string log;
  const auto failure = run_schedule(&choices, &stats, &log);
  if (!failure) {
    std::printf("%sseed %llu: all holds\n", log.c_str(), static_cast<unsigned long long>(seed));
    return 0;
  }
  std::size_t count = choices.list().size();
  if (shrinks) {
    const auto small = shrink(choices.list(), *failure);
    count = small.size();
    Choices again(small);
    log.clear();
    if (run_schedule(&again, &stats, &log) != failure) std::printf("the shrunk schedule does not fail\n");
  }
  std::printf("%sseed %llu (%zu choices%s): %s\n", log.c_str(), static_cast<unsigned long long>(seed), count,
              shrinks ? " after shrinking" : "", failure->c_str());
  return 1;
}

int run_schedules(const Options& options) {
  const auto begun = std::chrono::steady_clock::now();
  std::vector<Share> shares;
  if (options.jobs == 1) {
    shares.push_back(run_share(options, 0));
  } else if (!run_all(options, &shares)) {
    std::printf("a process of the simulation died\n");
    return 2;
  }
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begun;
  Share total;
  for (const Share& share : shares) {
    total.stats.add(share.stats);
    if (share.failed && (!total.failed || share.seed < total.seed)) total.seed = share.seed;
    total.failed = total.failed || share.failed;
  }
  const double schedules = static_cast<double>(total.stats.of(Seen::kSchedules));
  std::printf("%s\n%.0f schedules from seed %llu in %.1f s, %.0f a second\n", total.stats.to_string().c_str(),
              schedules, static_cast<unsigned long long>(options.seed), took.count(), schedules / took.count());
  if (!total.failed) return 0;
  std::printf("seed %llu fails; once more, with its steps:\n", static_cast<unsigned long long>(total.seed));
  return show(total.seed, options.shrinks);
}

int replay_file(const std::string& path) {
  std::ifstream file(path);
  if (!file) {
    std::fprintf(stderr, "cannot read %s\n", path.c_str());
    return 2;
  }
  const auto replayed = replay(file);
  if (!replayed) {
    std::fprintf(stderr, "%s: %s\n", path.c_str(), replayed.error().message.c_str());
    return 1;
  }
  std::printf("%llu sessions, %llu events, %llu actions: the same%s\n",
              static_cast<unsigned long long>(replayed->sessions), static_cast<unsigned long long>(replayed->events),
              static_cast<unsigned long long>(replayed->actions), replayed->torn ? "; the last line is torn" : "");
  return 0;
}

int run(const std::vector<const char*>& args) {
  Options options;
  if (!read_options(args, &options)) {
    std::fputs(kUsage, stderr);
    return 2;
  }
  if (!options.replay.empty()) return replay_file(options.replay);
  if (options.one) return show(options.seed, options.shrinks);
  return run_schedules(options);
}

}  // namespace
}  // namespace mprun::simulation

int main(int argc, char** argv) { return mprun::simulation::run({argv + 1, argv + argc}); }
