#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/utc_text.h"
#include "report/colors.h"
#include "report/hang_lines.h"
#include "report/hang_report.h"
#include "report/hang_tree.h"
#include "report/safe_text.h"
#include "watch/causes/cause_table.h"

namespace mprun {
namespace {

constexpr std::size_t kColumns = 100;
constexpr std::size_t kMostLines = 24;
constexpr std::size_t kMostDeaths = 3;
constexpr std::size_t kMostCommand = 60;
constexpr std::size_t kMostPids = 3;
constexpr std::size_t kMostSentence = 280;

using Lines = std::vector<std::string>;

// How much the tree shows of each process.
struct Detail {
  std::size_t threads, frames;
};
constexpr std::array<Detail, 6> kDetails{{{2, 4}, {2, 3}, {2, 2}, {1, 2}, {1, 1}, {1, 0}}};

// Indented, and cut if it is too long.
[[nodiscard]] std::string line_of(std::size_t indent, const std::string& text) {
  return std::string(indent, ' ') + one_line(text, kColumns - indent);
}

[[nodiscard]] std::string command_text(const HungProcess& process) {
  return process.command.empty() ? "(no command line)" : one_line(process.command, kMostCommand);
}

[[nodiscard]] std::string thread_text(const HungThread& thread) {
  const std::string name = fmt::format("thread {} \"{}\"", thread.tid, one_line(thread.name, 32));
  const std::string wait = wait_text(thread);
  if (thread.wait.kind.empty() || thread.state.empty()) return name + " " + wait;
  return fmt::format("{} is {}: {}", name, one_line(thread.state, 30), wait);
}

void append_threads(const Hang& hang, const HungProcess& process, std::size_t indent, Detail detail, Lines* lines) {
  const auto threads = threads_by_interest(hang, process);
  const std::size_t shown = std::min(detail.threads, threads.size());
  for (std::size_t i = 0; i < shown; ++i) {
    lines->push_back(line_of(indent, thread_text(*threads[i])));
    for (const std::string& frame : frame_lines(*threads[i], detail.frames)) {
      lines->push_back(line_of(indent + 2, frame));
    }
  }
  const std::size_t left = threads.size() - shown;
  if (left > 0) lines->push_back(line_of(indent, fmt::format("and {} more thread{}", left, left == 1 ? "" : "s")));
}

void append_node(const Hang& hang, const HangNode& node, std::size_t indent, Detail detail, Lines* lines) {
  const HungProcess& process = *node.process;
  const std::string way = node.why.empty() ? "" : fmt::format("waits ({}) for ", one_line(node.why, 30));
  lines->push_back(line_of(indent, fmt::format("{}pid {}{}: {}", way, process.pid, process.forked ? ", forked" : "",
                                               command_text(process))));
  if (!process.python_unread.empty()) lines->push_back(line_of(indent + 4, python_unread_text(process)));
  append_threads(hang, process, indent + 4, detail, lines);
  for (const HangNode& next : node.waits_for) append_node(hang, next, indent + 2, detail, lines);
  if (!node.alike.empty()) {
    lines->push_back(line_of(
        indent, fmt::format("and {} more like it: pid {}", node.alike.size(), pids_text(node.alike, kMostPids))));
  }
}

// The tree in as much detail as fits into `most` lines.
[[nodiscard]] Lines tree_lines(const Hang& hang, std::size_t most) {
  const std::vector<HangNode> roots = hang_tree(hang);
  Lines lines;
  for (const Detail detail : kDetails) {
    lines.clear();
    for (const HangNode& root : roots) append_node(hang, root, 2, detail, &lines);
    if (lines.size() <= most) return lines;
  }
  const std::size_t left = lines.size() - (most - 1);
  lines.resize(most - 1);
  lines.push_back(fmt::format("  ... and {} more lines; the JSON report has all of it", left));
  return lines;
}

// The processes that cannot move, if no join is known.
[[nodiscard]] std::string subject_text(const Hang& hang) {
  if (hang.processes.empty()) return "a process";
  const HungProcess& first = hang.processes.front();
  std::string text = fmt::format("process {} ({})", first.pid, one_line(first.command, kMostCommand));
  if (hang.processes.size() > 1) text += fmt::format(" with {} more", hang.processes.size() - 1);
  return text;
}

// The threads that cannot move, of processes that can.
[[nodiscard]] std::string stuck_threads_text(const Hang& hang) {
  std::size_t count = 0;
  for (const HungProcess& process : hang.processes) count += process.threads.size() + process.threads_left_out;
  const bool has_one = count == 1 && !hang.processes.front().threads.empty();
  return (has_one ? fmt::format("thread {}", hang.processes.front().threads.front().tid)
                  : fmt::format("{} threads", count)) +
         " of " + subject_text(hang);
}

[[nodiscard]] std::string waited_text(double seconds) {
  return seconds < 0 ? " waits" : " has waited " + seconds_text(seconds);
}

[[nodiscard]] Lines overdue_headline(const Hang& hang) {
  const std::string label = one_line(hang.limit->label, kMostCommand);
  const std::string what = label.empty() ? subject_text(hang) : "\"" + label + "\"";
  Lines lines{fmt::format("mprun: overdue: {} has taken longer than its {}", what, seconds_text(hang.limit->seconds))};
  if (!hang.join) return lines;
  // Without the name of a function, a later line says what it waits for.
  const bool has_name = hang.join->file.empty() || hang.join->call.find('.') != std::string::npos;
  lines.push_back(line_of(2, has_name ? "it is in " + join_text(*hang.join)
                                      : fmt::format("it is at {}:{}", file_text(hang.join->file), hang.join->line)));
  return lines;
}

// Which process waits, or works, next to what is stuck, and until when.
[[nodiscard]] std::string still_running_text(const StillRunning& running) {
  std::string text = fmt::format("pid {} ", running.pid);
  if (running.file.empty()) text += fmt::format("({}) ", one_line(running.command, kMostCommand));
  if (!running.call.empty()) {
    text +=
        fmt::format("is in {} at {}:{}", one_line(running.call, kMostCommand), file_text(running.file), running.line);
  } else if (!running.file.empty()) {
    text += fmt::format("is at {}:{}", file_text(running.file), running.line);
  } else {
    text += "can go on: " + one_line(running.why, kMostCommand);
  }
  constexpr double kShortest = 0.1;  // seconds; a shorter wait is one of many in a loop, as in subprocess.run()
  return running.ends_in < kShortest ? text : text + fmt::format(" until {} from now", seconds_text(running.ends_in));
}

[[nodiscard]] Lines still_running_lines(const Hang& hang) {
  constexpr std::size_t kMostShown = 3;
  Lines lines;
  for (std::size_t i = 0; i < std::min(kMostShown, hang.still_running.size()); ++i) {
    for (std::string& line :
         wrapped("  the program still runs: ", still_running_text(hang.still_running[i]), kColumns)) {
      lines.push_back(std::move(line));
    }
  }
  return lines;
}

[[nodiscard]] Lines headline(const Hang& hang) {
  const std::string waited =
      hang.join ? join_text(*hang.join) + waited_text(hang.join->waiting_seconds) : std::string();
  const std::string still = seconds_text(hang.seconds_since_progress);
  const std::string not_moved = hang.seconds_since_progress < 0 ? " does not move" : " has not moved for " + still;
  if (hang.limit) return overdue_headline(hang);
  if (!is_proved(hang.verdict)) {
    const bool others_run = hang.seconds_since_progress < 0 || hang.cause.id == causes::kPoolHelperLost.name ||
                            hang.cause.id == causes::kMessageNeverSent.name ||
                            hang.cause.id == causes::kRespawnLoop.name;
    Lines lines{others_run
                    ? fmt::format("mprun: {}: what is waited for does not come, though threads still run",
                                  to_string(hang.verdict))
                    : fmt::format("mprun: {}: nothing has moved for {}, but a timer or the outside could still act",
                                  to_string(hang.verdict), still)};
    if (hang.join) lines.push_back(line_of(2, waited));
    return lines;
  }
  const bool of_threads = hang.verdict == HangVerdict::kOrphanedLock;
  const std::string stuck = of_threads ? stuck_threads_text(hang) + " can never move again"
                                       : subject_text(hang) + not_moved + " and never will";
  Lines lines{fmt::format("mprun: hang proved ({}): {}", to_string(hang.verdict),
                          hang.join ? waited + " and will never return" : stuck)};
  if (of_threads) lines.push_back(line_of(2, "this is so for the threads below; others of the process still run"));
  if (hang.verdict == HangVerdict::kPartialDeadlock) {
    lines.push_back(line_of(2, "this is so for the processes below, while others still run"));
  }
  for (std::string& line : still_running_lines(hang)) lines.push_back(std::move(line));
  return lines;
}

// The deaths, the cause in a sentence, the cure.
[[nodiscard]] Lines conclusion(const Hang& hang) {
  Lines lines;
  // Overdue is overdue, whichever process has died.
  const std::size_t deaths = hang.verdict == HangVerdict::kOverdue ? 0 : hang.deaths.size();
  for (std::size_t i = 0; i < std::min(kMostDeaths, deaths); ++i) {
    const RecordedDeath& death = hang.deaths[i];
    lines.push_back(line_of(
        2, fmt::format("dead: pid {}, {}, at {}", death.pid,
                       death.end_known ? to_string(death.end) : "cause of death unknown", utc_text(death.when))));
  }
  if (deaths > kMostDeaths) {
    lines.push_back(line_of(2, fmt::format("and {} more deaths", deaths - kMostDeaths)));
  }
  const std::string explanation =
      hang.cause.explanation.empty() ? "not known" : one_line(hang.cause.explanation, kMostSentence);
  const auto add = [&](const char* title, const std::string& text) {
    for (const std::string& line : wrapped(title, text, kColumns)) {
      lines.push_back(line.size() <= kColumns ? line : line.substr(0, kColumns));
    }
  };
  add("cause: ", fmt::format("{} ({})", explanation, one_line(hang.cause.id, 30)));
  if (!hang.cause.fix.empty()) add("cure:  ", one_line(hang.cause.fix, kMostSentence));
  return lines;
}

}  // namespace

std::string hang_text(const Hang& hang) {
  const Lines head = headline(hang);
  const Lines end = conclusion(hang);
  std::string text;
  for (const Lines& part : {head, tree_lines(hang, kMostLines - head.size() - end.size()), end}) {
    for (const std::string& line : part) text += line + "\n";
  }
  return text;
}

std::string colored_hang_text(std::string_view text) {
  std::string colored;
  for (bool first = true; !text.empty(); first = false) {
    const std::string_view line = text.substr(0, text.find('\n'));
    const std::string_view word = first ? line : line.substr(0, line.find(':'));
    const std::string_view color = first ? kBold : word == "cause" ? kRed : word == "cure" ? kGreen : "";
    const std::size_t colors = color.empty() ? 0 : word.size();
    if (colors > 0) colored.append(color).append(word).append(kReset);
    colored.append(line.substr(colors));
    if (line.size() < text.size()) colored += '\n';
    text.remove_prefix(std::min(line.size() + 1, text.size()));
  }
  return colored;
}

}  // namespace mprun
