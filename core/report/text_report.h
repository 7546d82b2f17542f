// TextReport: what a user sees on standard error while a job runs, and the few lines at its end. A Sink in mprun's one
// thread, made by cli/; owns no fd. While it lives all text for that fd goes through it, because on a terminal it keeps
// a live view at the bottom.
//
// On a terminal: messages above the live view. Elsewhere (plain): whole lines and no control characters. An ended task
// that is ok costs nothing here: the counts come with the pulses.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "events/job_event.h"
#include "job/spec.h"
#include "os/text_backlog.h"
#include "report/failure_digest.h"
#include "report/live_view.h"
#include "report/plain_progress.h"
#include "report/progress.h"

namespace mprun {

struct TextOptions {
  int fd = 2;
  std::string name;       ///< of the job
  int processes = 0;      ///< for the first line; 0: left out
  bool terminal = false;  ///< a live view, else plain
  bool color = false;
  bool unicode = false;
  ProgressMode progress = ProgressMode::kAuto;  ///< auto: unless quiet
  bool quiet = false;                           ///< warnings, errors, deaths, and the final lines if something failed
  bool verbose = false;                         ///< also every worker's start and end
  bool explain = false;                         ///< also the reasons of decisions
  ViewMode view = ViewMode::kSummary;
  pid_t process_group = 0;  ///< which has the terminal on our behalf; 0: it is always ours
};

/// The options for a job whose text goes to `fd`, according to the type of that fd, TERM, NO_COLOR and the locale; a
/// terminal that also gets the results (`--results -`) has no live line. The caller sets quiet, verbose and explain.
[[nodiscard]] TextOptions text_options(const JobSpec& spec, int fd);

/// The outcome of a job.
struct FinalSummary {
  std::uint64_t ok = 0, failed = 0, cancelled = 0, retried = 0;
  std::uint64_t earlier = 0;             ///< of `ok` and `failed`: what earlier sessions did
  std::optional<std::uint64_t> not_run;  ///< nullopt: unknown
  double seconds = 0;                    ///< of this session
  int exit_code = 0;
  std::string results;  ///< where they are: a path as a user would type it
};

/// What an exit code of mprun means (mprun(1), EXIT STATUS), as half a sentence; empty for 0 and for unknown ones.
[[nodiscard]] std::string exit_code_meaning(int exit_code);

class TextReport : public Sink {
 public:
  explicit TextReport(TextOptions options);
  ~TextReport() override;
  TextReport(const TextReport&) = delete;
  TextReport& operator=(const TextReport&) = delete;

  void on_event(const JobEvent& event) override;
  /// Prints other text (whole lines, made printable) above the live view.
  void print(std::string_view text);
  /// Ends the live view and prints the final lines; waits until their reader has taken them.
  void finish(const FinalSummary& summary);

 private:
  enum class Tone { kNormal, kWarning, kError };

  void on_task_ended(const TaskEnded& ended);
  void on_task_retried(const TaskRetried& retried);
  void on_worker_ended(const WorkerEnded& ended);
  void on_notice(const Notice& notice);
  void on_pulse(const Pulse& pulse);
  void print_hang(std::string_view text);
  void line(std::string_view text, Tone tone = Tone::kNormal);
  /// line(), but only for the first few of a kind; then `more` once.
  void limited_line(int* count, std::string_view text, std::string_view more, Tone tone);
  void erase_view();
  [[nodiscard]] std::string summary_line(const FinalSummary& summary) const;

  TextOptions options_;
  bool shows_progress_;
  TextBacklog out_;              ///< a reader that sleeps must not stop the job
  std::int64_t last_slot_ = -1;  ///< of 100 ms, in which progress was shown
  int failures_shown_ = 0, retries_shown_ = 0, deaths_shown_ = 0;
  RateWindow rate_;
  PhaseClock phase_clock_;
  LiveView view_;
  PlainProgress plain_;
  FailureDigest failures_;
};

}  // namespace mprun
