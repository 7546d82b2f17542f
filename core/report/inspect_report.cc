#include "report/inspect_report.h"

#include <fmt/format.h>

#include <algorithm>

#include "json/json.h"
#include "report/hang_lines.h"
#include "report/hang_report.h"
#include "report/hang_tree.h"
#include "report/safe_text.h"

namespace mprun {
namespace {

constexpr std::size_t kMostLine = 160;
constexpr std::size_t kMostProcessName = 100;
constexpr std::size_t kMostFrames = 6;

[[nodiscard]] bool has_ended(const HungThread& thread) { return thread.state == "ended"; }

[[nodiscard]] bool is_stuck_whole(const HungProcess& process) {
  return std::all_of(process.threads.begin(), process.threads.end(),
                     [](const HungThread& thread) { return is_stuck(thread) || has_ended(thread); });
}

// What a watch would report. A stall is no proof.
[[nodiscard]] bool is_hang(const Hang& hang) { return hang.verdict == HangVerdict::kStalled || is_proved_hang(hang); }

// The hang alone, as its report holds it.
[[nodiscard]] Hang stuck_part(Hang hang) {
  auto& processes = hang.processes;
  const bool of_threads = hang.verdict == HangVerdict::kOrphanedLock;  // others of their processes go on
  const auto lives = [&](const HungProcess& process) {
    if (hang.verdict == HangVerdict::kStalled) return false;
    return of_threads ? std::none_of(process.threads.begin(), process.threads.end(), is_stuck)
                      : !is_stuck_whole(process);
  };
  const auto is_left_out = [&](const HungThread& thread) {
    return has_ended(thread) || (of_threads && !is_stuck(thread));
  };
  processes.erase(std::remove_if(processes.begin(), processes.end(), lives), processes.end());
  for (HungProcess& process : processes) {
    auto& threads = process.threads;
    threads.erase(std::remove_if(threads.begin(), threads.end(), is_left_out), threads.end());
  }
  return hang;
}

// "1 thread", "3 threads".
[[nodiscard]] std::string count_text(std::size_t count, const char* what, const char* plural) {
  return fmt::format("{} {}", count, count == 1 ? what : plural);
}

template <typename Matches>
[[nodiscard]] std::size_t count_threads(const Hang& hang, const Matches& matches) {
  std::size_t count = 0;
  for (const HungProcess& process : hang.processes) {
    count += static_cast<std::size_t>(std::count_if(process.threads.begin(), process.threads.end(), matches));
  }
  return count;
}

[[nodiscard]] std::string verdict_text(const Inspection& inspection) {
  const Hang& hang = inspection.hang;
  if (hang.processes.empty()) return "nothing: there is no process";
  if (hang.verdict == HangVerdict::kDeadlock) return "deadlock: nothing in this tree can ever move again";
  if (hang.verdict == HangVerdict::kPartialDeadlock) {
    const auto stuck =
        static_cast<std::size_t>(std::count_if(hang.processes.begin(), hang.processes.end(), is_stuck_whole));
    return fmt::format("partial deadlock: {} of {} can never move again; the rest can", stuck,
                       count_text(hang.processes.size(), "process", "processes"));
  }
  if (hang.verdict == HangVerdict::kOrphanedLock) {
    return fmt::format("orphaned lock: {} waits for what nobody can release; the rest can move",
                       count_text(count_threads(hang, is_stuck), "thread", "threads"));
  }
  if (hang.verdict == HangVerdict::kStalled) {
    return "stalled: nothing in this tree gets anywhere, but it is not proved that nothing ever will";
  }
  const std::size_t threads = count_threads(hang, [](const HungThread& thread) { return !has_ended(thread); });
  const std::size_t run = count_threads(hang, [](const HungThread& thread) { return thread.state == "running"; });
  const std::string whole = fmt::format("{} of {}", count_text(threads, "thread", "threads"),
                                        count_text(hang.processes.size(), "process", "processes"));
  if (inspection.moving) {
    if (run == threads) return fmt::format("live (moving): {} ran while mprun looked", whole);
    return fmt::format("live (moving): {} of {} ran while mprun looked; nothing is proved of the rest", run, whole);
  }
  if (!inspection.notes.empty()) return fmt::format("live, as far as can be seen: {}", whole);
  return fmt::format("live: {}, and each of them can still move", whole);
}

void append(std::string* text, std::size_t indent, const std::string& line) {
  *text += std::string(indent, ' ') + one_line(line, kMostLine) + "\n";
}

[[nodiscard]] std::string inspected_text(const HungThread& thread) {
  const std::string name = fmt::format("thread {} \"{}\"", thread.tid, one_line(thread.name, 32));
  if (thread.wait.kind.empty()) {
    if (thread.state == "running") return name + " runs";
    return name + (has_ended(thread) ? " has ended" : " is " + thread.state);
  }
  return fmt::format("{} is {}: {}", name, thread.state, wait_text(thread));
}

void append_process(const HungProcess& process, std::string* text) {
  append(text, 2,
         fmt::format("pid {}, {} of {}: {}", process.pid, process.forked ? "forked child" : "child", process.parent,
                     process.command.empty() ? "(no command line)" : one_line(process.command, kMostProcessName)));
  if (!process.python_unread.empty()) append(text, 4, python_unread_text(process));
  for (const HungThread& thread : process.threads) {
    append(text, 4, inspected_text(thread));
    for (const std::string& frame : frame_lines(thread, kMostFrames)) append(text, 8, frame);
  }
  if (process.threads_left_out > 0) {
    append(text, 4, "and " + count_text(process.threads_left_out, "more thread", "more threads"));
  }
}

}  // namespace

std::string inspect_text(const Inspection& inspection) {
  const Hang& hang = inspection.hang;
  std::string text = verdict_text(inspection) + "\n";
  for (const std::string& note : inspection.notes) append(&text, 2, "note: " + note);
  if (is_hang(hang)) text += "\n" + hang_text(stuck_part(hang));
  if (hang.processes.empty()) return text;
  text += "\nevery process and thread:\n";
  for (const HungProcess& process : hang.processes) append_process(process, &text);
  if (hang.processes_left_out > 0) {
    append(&text, 2, "and " + count_text(hang.processes_left_out, "more process", "more processes"));
  }
  return text;
}

std::string inspect_line(const Inspection& inspection) {
  const Hang& hang = inspection.hang;
  const HungProcess root = hang.processes.empty() ? HungProcess() : hang.processes.front();
  const bool hangs = is_hang(hang);
  const std::string verdict = !hangs ? (inspection.moving ? "live (moving)" : "live") : to_string(hang.verdict);
  return fmt::format("{} {}: {}: {}\n", root.pid, hangs ? verdict + ", " + hang.cause.id : verdict,
                     count_text(hang.processes.size() + hang.processes_left_out, "process", "processes"),
                     root.command.empty() ? "(no command line)" : one_line(root.command, kMostProcessName));
}

Json inspect_json(const Inspection& inspection) {
  Json json = hang_json(inspection.hang);
  if (inspection.hang.verdict == HangVerdict::kLive) json["cause"] = nullptr;
  json["moving"] = inspection.moving;
  json["notes"] = inspection.notes;
  return json;
}

}  // namespace mprun
