#include <fmt/format.h>

#include <algorithm>

#include "base/utc_text.h"
#include "report/failure_digest.h"
#include "report/progress.h"
#include "report/run_report.h"
#include "report/safe_text.h"
#include "report/text_report.h"

namespace mprun {
namespace {

constexpr std::size_t kMostGroups = 10;
constexpr std::size_t kMostShown = 10;  // of workers, deaths, retries, warnings

std::string more(std::size_t all, std::size_t shown, const char* where = "") {
  return all > shown ? fmt::format("  and {} more{}\n", all - shown, where) : "";
}

std::string head(const RunRecord& run, const RunFigures& figures) {
  std::string text = fmt::format("{}: {} ok, {} failed", one_line(run.job, 40), figures.ok, figures.failed);
  if (figures.cancelled > 0) text += fmt::format(", {} cancelled", figures.cancelled);
  if (figures.retried > 0) text += fmt::format(", {} retried", figures.retried);
  if (run.total && *run.total > figures.done()) text += fmt::format(", {} not run", *run.total - figures.done());
  if (run.total) text += fmt::format(" of {} tasks", *run.total);
  if (run.seconds && *run.seconds > 0) {
    const auto done = static_cast<double>(figures.ok + figures.failed);
    text += fmt::format(" in {} ({})", brief_seconds(*run.seconds), format_rate(done / *run.seconds));
  }
  text += "\nbegun " + utc_text(from_seconds(run.started));
  if (run.sessions > 1) text += fmt::format(", worked on by {} sessions", run.sessions);
  text += ", by mprun " + one_line(run.mprun, 40) + "\n";
  if (!run.exit_code) {
    return text + "not ended: it still runs, or was killed; then `mprun resume " + run.directory + "` finishes it\n";
  }
  const std::string meaning = exit_code_meaning(*run.exit_code);
  return text + fmt::format("exit code {}", *run.exit_code) + (meaning.empty() ? "" : ": " + meaning) + "\n";
}

std::string workers(const RunFigures& figures) {
  const double whole = figures.end - figures.begin;
  if (figures.workers.empty() || whole <= 0) return "";
  std::string text =
      fmt::format("\nworkers: {}, busy {}% of the {} between the first start and the last end of a task\n",
                  figures.workers.size(), figures.percent_busy(), brief_seconds(whole));
  for (std::size_t i = 0; i < figures.workers.size() && i < kMostShown; ++i) {
    const WorkerFigures& use = figures.workers[i];
    text += fmt::format("  worker {:<4} {:>3}% busy  {} attempts in {}\n", use.worker, figures.percent(use.busy),
                        use.attempts, brief_seconds(use.busy));
  }
  return text + more(figures.workers.size(), kMostShown);
}

std::string durations(const RunRecord& run, const RunFigures& figures) {
  if (figures.durations.empty()) return "";
  std::string text =
      fmt::format("\ntimes of tasks: shortest {}, median {}, 95% below {}, longest {}\nslowest:\n",
                  brief_seconds(figures.durations.front()), brief_seconds(percentile(figures.durations, 0.5)),
                  brief_seconds(percentile(figures.durations, 0.95)), brief_seconds(figures.durations.back()));
  for (const std::size_t index : figures.slowest) {
    const RunRecord::Attempt& attempt = run.attempts[index];
    text += fmt::format("  task {:<8} {:>8}  worker {}, attempt {}, {}\n", attempt.task, brief_seconds(attempt.seconds),
                        attempt.worker, attempt.attempt, end_name(attempt.end));
  }
  return text;
}

std::string failures(const RunRecord& run, const RunFigures& figures) {
  FailureDigest digest;
  std::string retries;
  std::size_t retried = 0;
  for (const RunRecord::Failure& failure : run.failures) {
    if (!failure.retried) {
      TaskEnded ended;
      ended.task = failure.task;
      ended.result = failure.error;
      digest.add(ended);
    } else if (++retried <= kMostShown) {
      retries += fmt::format("  task {} (worker {}, attempt {}): {}\n", failure.task, failure.worker, failure.attempt,
                             one_line(failure.error, 120));
    }
  }
  std::string text;
  const auto groups = digest.largest(kMostGroups);
  if (!groups.empty()) text += fmt::format("\nfailed, by cause:\n");
  for (const FailureGroup& group : groups) text += group_text(group) + "\n";
  if (!retries.empty()) text += "\ntried again:\n" + retries + more(figures.retried, kMostShown);
  return text;
}

std::string deaths(const RunRecord& run) {
  std::string text;
  std::size_t number = 0;
  for (const RunRecord::Process& process : run.processes) {
    if (process.expected || ++number > kMostShown) continue;
    text += fmt::format("  {} (pid {}): {}\n", process_name(process), process.pid, to_string(process.end));
  }
  return text.empty() ? "" : "\nprocesses that died:\n" + text + more(number, kMostShown);
}

std::string hangs(const RunRecord& run) {
  std::string text;
  for (std::size_t i = 0; i < run.hangs.size() && i < kMostShown; ++i) {
    const RunRecord::Hang& hang = run.hangs[i];
    text += "  " + one_line(hang.verdict) + ", cause " + one_line(hang.cause);
    if (hang.file.empty()) {
      text += "\n";
      continue;
    }
    const std::string base = hang.file.substr(0, hang.file.rfind('.'));
    text += ": " + run.directory + "/" + base + ".txt\n";
  }
  return text.empty() ? "" : "\nhangs:\n" + text + more(run.hangs.size(), kMostShown, ", in hangs/");
}

std::string notices(const RunRecord& run) {
  std::string text;
  for (std::size_t i = 0; i < run.notices.size() && i < kMostShown; ++i) {
    text += "  " + one_line(run.notices[i].first) + ": " + one_line(run.notices[i].second) + "\n";
  }
  return text.empty() ? "" : "\nwarnings:\n" + text + more(run.notices.size(), kMostShown);
}

}  // namespace

std::string run_text(const RunRecord& run) {
  const RunFigures figures = figures_of(run);
  return head(run, figures) + workers(figures) + durations(run, figures) + failures(run, figures) + deaths(run) +
         hangs(run) + notices(run);
}

}  // namespace mprun
