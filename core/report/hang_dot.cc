#include <fmt/format.h>

#include "report/hang_lines.h"
#include "report/hang_report.h"
#include "report/hang_tree.h"
#include "report/safe_text.h"

namespace mprun {
namespace {

constexpr std::size_t kMostLabel = 60;

// The inside of a quoted string of the dot language, in which escapes ("\N", "\l") would otherwise be obeyed.
[[nodiscard]] std::string quoted(const std::string& text) {
  std::string out;
  for (const char c : one_line(text, kMostLabel)) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out;
}

[[nodiscard]] std::string node(const Hang& hang, const HungProcess& process) {
  std::string label =
      fmt::format("pid {}{}\\n{}", process.pid, process.forked ? ", forked" : "", quoted(process.command));
  bool stuck = false;
  const auto threads = threads_by_interest(hang, process);
  if (!threads.empty()) {
    stuck = is_stuck(*threads.front());
    label += "\\n" + quoted(wait_text(*threads.front()));
    for (const std::string& frame : frame_lines(*threads.front(), 2)) label += "\\n" + quoted(frame);
  }
  return fmt::format("  \"{}\" [label=\"{}\"{}];\n", process.pid, label, stuck ? ", style=bold" : "");
}

}  // namespace

std::string hang_dot(const Hang& hang) {
  std::string text = fmt::format("digraph hang {{\n  label=\"{}\";\n  node [shape=box];\n", to_string(hang.verdict));
  for (const HungProcess& process : hang.processes) text += node(hang, process);
  for (const RecordedDeath& death : hang.deaths) {
    text += fmt::format("  \"{}\" [label=\"pid {}\\ndead: {}\", style=dashed];\n", death.pid, death.pid,
                        death.end_known ? quoted(to_string(death.end)) : "cause of death unknown");
  }
  for (const WaitEdge& edge : hang.edges) {
    text += fmt::format("  \"{}\" -> \"{}\" [label=\"{}\"];\n", edge.from, edge.to, quoted(edge.why));
  }
  return text + "}\n";
}

}  // namespace mprun
