// What one look at a tree of processes costs: judge_cost PID COUNT prints the seconds that one full sample takes, and
// those that its judgement takes.
#include <cstdio>
#include <cstdlib>
#include <functional>

#include "base/clock.h"
#include "procfs/process_table.h"
#include "watch/judge/judge.h"

namespace {

double seconds_of(int count, const std::function<void()>& action) {
  const mprun::Nanos begin = mprun::monotonic_now();
  for (int i = 0; i < count; ++i) action();
  return mprun::to_seconds(mprun::monotonic_now() - begin) / count;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const auto root = static_cast<pid_t>(std::atol(argv[1]));
  const int count = std::atoi(argv[2]);
  const auto proc = mprun::live_proc();
  mprun::Sample sample;
  const double sampling =
      seconds_of(count, [&] { sample = take_sample(proc.get(), mprun::process_tree(proc.get(), root, true)); });
  const double judging = seconds_of(count, [&] {
    mprun::TreeSnapshot snapshot(proc.get(), &sample, {});
    (void)judge(sample, &snapshot);
  });
  std::printf("%zu %.9f %.9f\n", sample.threads.size(), sampling, judging);
  return 0;
}
