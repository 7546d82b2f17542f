#include "run/wait_for_shards.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <ctime>

#include "base/clock.h"
#include "base/exit_codes.h"
#include "os/inheritance.h"
#include "os/uninterrupted.h"
#include "record/shard_progress.h"
#include "run/short_program.h"

namespace mprun {
namespace {

// Time between two looks at the files: a little longer for each shard, as there may be thousands.
constexpr Nanos kLook = 500 * kNanosPerMilli, kLookPerShard = 5 * kNanosPerMilli;
// Time between two queries of the batch system, which has many others to serve.
constexpr Nanos kAsk = 5 * kNanosPerSecond;
// Answers in a row without the job: while it is requeued there may be one.
constexpr int kMostUnknown = 2;

/// Whether no process of ours is left in the job, and none will come. `all_ended`: according to the shards' files. The
/// end of the batch script is enough then, as the nodes may take minutes to clean up. `*unknown` counts answers without
/// a state.
bool is_over(const std::string& batch_job, bool all_ended, int* unknown) {
  const auto queue = run_program_for_text({"squeue", "-h", "-t", "all", "-o", "%T", "-j", batch_job});
  const std::string state = queue && queue->exit_code == 0 ? queue->out.substr(0, queue->out.find('\n')) : "";
  if (state.empty()) return ++*unknown >= kMostUnknown;
  *unknown = 0;
  if (state == "COMPLETING") return all_ended;
  constexpr std::array kEnded = {"COMPLETED", "FAILED",    "CANCELLED", "TIMEOUT",
                                 "NODE_FAIL", "BOOT_FAIL", "DEADLINE",  "OUT_OF_MEMORY"};
  return std::find(kEnded.begin(), kEnded.end(), state) != kEnded.end();
}

class Line {
 public:
  explicit Line(bool quiet) : quiet_(quiet), terminal_(isatty(STDERR_FILENO) == 1) {}
  /// On a terminal the line is overwritten; elsewhere a line is written when shards have begun or ended.
  void show(const std::string& text) {
    if (quiet_ || text == last_) return;
    const auto shards = text.find("; ");
    const bool news =
        text.substr(std::min(shards, text.size())) != last_.substr(std::min(last_.find("; "), last_.size()));
    last_ = text;
    if (terminal_) {
      std::fprintf(stderr, "\r\033[K%s", text.c_str());
    } else if (news) {
      std::fprintf(stderr, "%s\n", text.c_str());
    }
  }
  /// Writes a separate line, which stays.
  void say(const std::string& text) {
    std::fprintf(stderr, "%s%s\n", terminal_ && !last_.empty() ? "\r\033[K" : "", text.c_str());
    last_.clear();
  }

 private:
  bool quiet_, terminal_;
  std::string last_;
};

enum class Choice { kWait, kDetach, kCancel };

/// What the user wants after Ctrl-C. If there is no terminal to ask at, the job is left alone.
Choice ask(Line* line, const sigset_t& signals) {
  if (isatty(STDIN_FILENO) != 1) return Choice::kDetach;
  line->say("d: leave it running, c: cancel it, Enter: go on waiting");
  for (;;) {
    pollfd wait{STDIN_FILENO, POLLIN, 0};
    const int ready = poll(&wait, 1, 100);
    const timespec at_once{};
    if (sigtimedwait(&signals, nullptr, &at_once) > 0) return Choice::kDetach;  // pressed again
    if (ready <= 0) continue;
    std::array<char, 64> answer{};
    const ssize_t size = uninterrupted([&] { return read(STDIN_FILENO, answer.data(), answer.size()); });
    if (size <= 0 || answer[0] == 'd' || answer[0] == 'D') return Choice::kDetach;
    return answer[0] == 'c' || answer[0] == 'C' ? Choice::kCancel : Choice::kWait;
  }
}

/// While this lives, its signals stay pending until they are asked for; afterwards they end mprun.
class WaitingSignals {
 public:
  WaitingSignals() {
    sigemptyset(&set_);
    for (const int number : {SIGINT, SIGTERM, SIGHUP}) {
      if (!is_ignored(number)) sigaddset(&set_, number);  // nohup
    }
    sigprocmask(SIG_BLOCK, &set_, &before_);
  }
  ~WaitingSignals() { sigprocmask(SIG_SETMASK, &before_, nullptr); }
  WaitingSignals(const WaitingSignals&) = delete;
  WaitingSignals& operator=(const WaitingSignals&) = delete;
  [[nodiscard]] const sigset_t& set() const { return set_; }

 private:
  sigset_t set_{}, before_{};
};

}  // namespace

int wait_for_shards(const WaitedJob& job) {
  const WaitingSignals waiting;
  ShardProgress progress(job.run_dir, job.shards, job.batch_job);
  Line line(job.quiet);
  const Nanos pause = kLook + kLookPerShard * static_cast<Nanos>(job.shards);
  const timespec look{pause / kNanosPerSecond, pause % kNanosPerSecond}, at_once{};
  Nanos asked = monotonic_now();
  int unknown = 0;
  int code = 0;
  for (;;) {
    for (const std::string& hang : progress.update()) line.say("mprun: " + hang);
    line.show("job " + job.batch_job + ": " + progress.line(job.tasks));
    // The files say so a moment before the last process has ended.
    const bool all_ended = progress.all_ended() && !progress.any_stopped();
    bool over = false;
    if (all_ended || monotonic_now() - asked >= kAsk) {
      asked = monotonic_now();
      over = is_over(job.batch_job, all_ended, &unknown);
    }
    if (over && !progress.is_behind()) break;
    const int number = sigtimedwait(&waiting.set(), nullptr, progress.is_behind() ? &at_once : &look);
    if (number < 0) continue;
    const Choice choice = number == SIGINT && code == 0 ? ask(&line, waiting.set()) : Choice::kDetach;
    if (choice == Choice::kCancel) {
      code = exit_code_of_signal(SIGINT);
      (void)run_program_for_text({"scancel", job.batch_job});
    } else if (choice == Choice::kDetach) {
      line.say("mprun: job " + job.batch_job + " goes on; afterwards: mprun merge " + job.run_dir);
      return exit_code_of_signal(number);
    }
  }
  for (const std::string& hang : progress.update()) line.say("mprun: " + hang);
  line.say("job " + job.batch_job + ": " + progress.line(job.tasks));
  if (!progress.all_ended()) {
    line.say("mprun: job " + job.batch_job + " is over, and not all shards have ended in it; what they said is in " +
             job.run_dir + "/slurm-" + job.batch_job + ".out");
  }
  return code;
}

}  // namespace mprun
