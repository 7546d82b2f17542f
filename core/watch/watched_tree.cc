#include "watch/watched_tree.h"

#include <ctime>
#include <utility>

#include "procfs/process_table.h"

namespace mprun {
namespace {

constexpr int kMostTriesAtRest = 10;  // a millisecond each

}  // namespace

WatchedTree::WatchedTree(ProcSource* proc, Options options, AskBoundary boundary, CountDeaths deaths, TakeSample taken)
    : proc_(proc),
      options_(options),
      boundary_(std::move(boundary)),
      deaths_(std::move(deaths)),
      taken_(std::move(taken)) {}

std::vector<pid_t> WatchedTree::processes() const { return process_tree(proc_, options_.root, options_.with_root); }

std::unique_ptr<Sample> WatchedTree::sample() const {
  std::vector<pid_t> ended;
  auto sample =
      std::make_unique<Sample>(take_sample(proc_, process_tree(proc_, options_.root, options_.with_root, &ended)));
  sample->ended = std::move(ended);
  if (taken_) taken_(*sample);
  return sample;
}

void WatchedTree::catch_at_rest(Sample* sample, int tries,
                                const std::function<bool(const ThreadSample&)>& is_wanted) const {
  constexpr timespec kPause{0, kNanosPerMilli};
  for (ThreadSample& thread : sample->threads) {
    if (!is_wanted(thread)) continue;
    for (; thread.call.running && thread.state != 'Z' && tries > 0; --tries) {
      nanosleep(&kPause, nullptr);
      if (!sample_thread(proc_, &thread)) sample->whole = false;
    }
  }
}

std::unique_ptr<Sample> WatchedTree::sample_at_rest() const {
  auto taken = sample();
  catch_at_rest(taken.get(), kMostTriesAtRest, [](const ThreadSample&) { return true; });
  return taken;
}

Proof WatchedTree::judge(std::unique_ptr<Sample> sample) const {
  return judge_sample(proc_, std::move(sample), boundary_());
}

std::optional<Proof> WatchedTree::judge_part(const Sample& before, const Sample& after) const {
  auto part = still_part(before, after);
  if (!part) return std::nullopt;
  return judge(std::make_unique<Sample>(std::move(*part)));
}

std::optional<Proof> WatchedTree::judge_assuming(std::unique_ptr<Sample> sample, Assumptions assumptions) const {
  return mprun::judge_assuming(proc_, std::move(sample), boundary_(), std::move(assumptions));
}

Assumptions WatchedTree::early_assumptions() const {
  Assumptions assumptions = assumptions_before(options_.stall);
  assumptions.stopped_stay_stopped = options_.stops_last;
  return assumptions;
}

Proof WatchedTree::as_stall(std::unique_ptr<Sample> sample) const {
  Proof proof = judge(std::move(sample));
  for (JudgedThread& thread : proof.judgement.threads) thread.live = true;  // one sample proves nothing
  proof.judgement.stuck.clear();
  proof.verdict = HangVerdict::kStalled;
  return proof;
}

}  // namespace mprun
