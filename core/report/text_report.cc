#include "report/text_report.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include <unistd.h>

#include <fmt/format.h>

#include "base/exit_codes.h"
#include "report/colors.h"
#include "report/event_text.h"
#include "report/hang_report.h"
#include "report/safe_text.h"
#include "report/terminal.h"

namespace mprun {
namespace {

constexpr int kMostOfAKind = 10;
constexpr std::size_t kMostGroupsAtEnd = 3;
constexpr double kSlotsPerSecond = 10;

/// In the background the shell has the terminal, and its prompt is where the live line would be.
[[nodiscard]] bool has_terminal(const TextOptions& options) {
  const pid_t foreground = tcgetpgrp(options.fd);
  return options.process_group == 0 || foreground < 0 || foreground == options.process_group;
}

[[nodiscard]] TextOptions named(TextOptions options) {
  options.name = one_line(options.name, 40);
  if (options.name.empty()) options.name = "job";
  return options;
}

[[nodiscard]] std::string elapsed_text(double seconds) {
  return seconds < 60 ? fmt::format("{:.2f}s", seconds) : format_duration(seconds);
}

}  // namespace

TextOptions text_options(const JobSpec& spec, int fd) {
  TextOptions options;
  options.fd = fd;
  options.name = spec.name;
  options.processes = spec.processes;
  options.progress = spec.progress;
  options.view = spec.view;
  const bool shared_with_results = spec.results == "-" && isatty(STDOUT_FILENO) != 0;
  const bool terminal = isatty(fd) != 0 && terminal_obeys();
  options.terminal = terminal && !shared_with_results;
  options.color = takes_colors(fd);
  options.unicode = terminal && locale_is_utf8();
  return options;
}

std::string exit_code_meaning(int exit_code) {
  switch (exit_code) {
    case kExitOk:
      return {};
    case kExitFailed:
      return "at least one task failed after its retries";
    case kExitUsage:
      return "the command line or the job spec is wrong; nothing was launched";
    case kExitLaunch:
      return "the job could not be launched";
    case kExitUnfinished:
      return "stopped because it would not have finished";
    case kExitInternal:
      return "a fault of mprun itself";
    default:
      return is_by_signal(exit_code) ? "stopped by " + signal_text(exit_code - kExitSignal) : std::string();
  }
}

TextReport::TextReport(TextOptions options)
    : options_(named(std::move(options))),
      shows_progress_(options_.progress == ProgressMode::kAlways ||
                      (options_.progress == ProgressMode::kAuto && !options_.quiet)),
      out_(options_.fd),
      view_({options_.name, 0, options_.color, options_.unicode}, options_.view, terminal_breaks_lines()),
      plain_(options_.name, options_.processes) {}

TextReport::~TextReport() {
  erase_view();
  out_.finish();
}

void TextReport::on_event(const JobEvent& event) {
  if (const auto* ended = std::get_if<TaskEnded>(&event)) {
    if (ended->status == TaskStatus::kFailed) on_task_ended(*ended);
  } else if (const auto* pulse = std::get_if<Pulse>(&event)) {
    on_pulse(*pulse);
  } else if (const auto* seen = std::get_if<WorkersSeen>(&event)) {
    view_.see(*seen);
  } else if (std::holds_alternative<Suspended>(event)) {
    erase_view();
  } else if (const auto* retried = std::get_if<TaskRetried>(&event)) {
    on_task_retried(*retried);
  } else if (const auto* started = std::get_if<WorkerStarted>(&event)) {
    if (options_.verbose) line(event_text(*started));
  } else if (const auto* worker = std::get_if<WorkerEnded>(&event)) {
    on_worker_ended(*worker);
  } else if (const auto* hang = std::get_if<HangFound>(&event)) {
    if (!hang->text.empty()) print_hang(hang->text);
  } else if (const auto* notice = std::get_if<Notice>(&event)) {
    on_notice(*notice);
  }
}

void TextReport::on_task_ended(const TaskEnded& ended) {
  failures_.add(ended);
  if (options_.quiet || failures_shown_ > kMostOfAKind) return;
  limited_line(&failures_shown_, event_text(ended), "further failures are in results.jsonl", Tone::kError);
}

void TextReport::on_task_retried(const TaskRetried& retried) {
  if (options_.quiet || retried.of_group || retries_shown_ > kMostOfAKind) return;
  limited_line(&retries_shown_, event_text(retried), "further retries are only counted", Tone::kWarning);
}

void TextReport::on_worker_ended(const WorkerEnded& ended) {
  if (ended.expected) {
    if (options_.verbose) line(event_text(ended));
    return;
  }
  if (deaths_shown_ > kMostOfAKind) return;
  limited_line(&deaths_shown_, event_text(ended), "further deaths are in summary.json", Tone::kError);
}

void TextReport::on_notice(const Notice& notice) {
  std::string_view prefix = "mprun: ";
  Tone tone = Tone::kNormal;
  switch (notice.kind) {
    case Notice::Kind::kInfo:
      if (options_.quiet) return;
      break;
    case Notice::Kind::kWarning:
      prefix = "mprun: warning: ";
      tone = Tone::kWarning;
      break;
    case Notice::Kind::kError:
      prefix = "mprun: error: ";
      tone = Tone::kError;
      break;
    case Notice::Kind::kExplain:
      if (!options_.explain) return;
      prefix = "explain: ";
      break;
  }
  std::string_view rest = notice.text;
  for (bool first = true; first || !rest.empty(); first = false) {
    const std::string_view text = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(rest.size(), text.size() + 1));
    const bool prefixed = first || notice.kind == Notice::Kind::kExplain;
    line(std::string(prefixed ? prefix : "  ").append(text), tone);
  }
}

void TextReport::on_pulse(const Pulse& pulse) {
  const auto slot = static_cast<std::int64_t>(std::floor(pulse.elapsed * kSlotsPerSecond));
  out_.send();
  if (slot == last_slot_ || !shows_progress_) return;
  last_slot_ = slot;
  rate_.add(pulse.elapsed, pulse.done);
  const Pace pace{rate_.per_second(), phase_clock_.see(pulse)};
  if (!options_.terminal) {
    if (const auto text = plain_.next(pulse, pace)) line(*text);
  } else if (out_.takes_text() && has_terminal(options_)) {
    // A stopped terminal (Ctrl-S) must not stop the job: it gets its picture later.
    out_.add(view_.draw(pulse, pace, screen_size(options_.fd)));
  }
}

void TextReport::print(std::string_view text) {
  if (!text.empty() && text.back() == '\n') text.remove_suffix(1);
  line(text);
}

void TextReport::print_hang(std::string_view text) {
  const std::string shown = options_.terminal && !options_.unicode ? ascii(printable(text)) : printable(text);
  out_.add(view_.above(options_.color ? colored_hang_text(shown) : shown, screen_size(options_.fd)));
}

void TextReport::line(std::string_view text, Tone tone) {
  std::string out;
  const bool colored = options_.color && tone != Tone::kNormal;
  if (colored) out += tone == Tone::kError ? kRed : kYellow;
  out += options_.terminal && !options_.unicode ? ascii(printable(text)) : printable(text);
  if (colored) out += kReset;
  out += '\n';
  out_.add(view_.above(out, screen_size(options_.fd)));
}

void TextReport::limited_line(int* count, std::string_view text, std::string_view more, Tone tone) {
  if (*count > kMostOfAKind) return;
  line(*count < kMostOfAKind ? text : more, tone);
  ++*count;
}

void TextReport::erase_view() {
  const std::string text = view_.erase(screen_size(options_.fd));
  if (!text.empty()) out_.add(text);
}

std::string TextReport::summary_line(const FinalSummary& summary) const {
  std::string text = fmt::format("{}: {} ok", options_.name, summary.ok);
  if (summary.failed != 0) text += fmt::format(", {} failed", summary.failed);
  if (summary.cancelled != 0) text += fmt::format(", {} cancelled", summary.cancelled);
  if (summary.not_run.value_or(0) != 0) text += fmt::format(", {} not run", *summary.not_run);
  if (summary.retried != 0) text += fmt::format(", {} retried", summary.retried);
  if (summary.earlier != 0) text += fmt::format(", {} of them earlier,", summary.earlier);
  text += " in " + elapsed_text(summary.seconds);
  const auto ended = static_cast<double>(summary.ok + summary.failed - summary.earlier);
  if (summary.seconds > 0 && ended > 0) text += fmt::format(" ({})", format_rate(ended / summary.seconds));
  return text;
}

void TextReport::finish(const FinalSummary& summary) {
  erase_view();
  out_.finish();
  const bool good = summary.failed == 0 && summary.exit_code == 0;
  if (options_.quiet && good) return;
  line(summary_line(summary), good ? Tone::kNormal : Tone::kError);
  for (const FailureGroup& group : failures_.largest(kMostGroupsAtEnd)) line(group_text(group));
  if (!summary.results.empty()) line("results: " + summary.results);
  const std::string meaning = exit_code_meaning(summary.exit_code);
  if (!meaning.empty()) line(fmt::format("exit code {}: {}", summary.exit_code, meaning));
}

}  // namespace mprun
