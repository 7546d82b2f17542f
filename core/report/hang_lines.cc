#include "report/hang_lines.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string_view>

#include "report/safe_text.h"

namespace mprun {
namespace {

constexpr std::size_t kMostFile = 48;
constexpr std::size_t kMostName = 64;
constexpr std::size_t kMostWakers = 3;

// Frames of the interpreter and of libc add nothing to the wait and the Python frames.
[[nodiscard]] bool is_plumbing(const std::string& frame) {
  return frame.find("python") != frame.npos || frame.find("(libc.so") != frame.npos ||
         frame.find("(libpthread") != frame.npos || frame.find("+0x") != frame.npos || frame.starts_with("0x");
}

[[nodiscard]] bool has_name(const std::string& frame) {
  return frame.find("+0x") == frame.npos && !frame.starts_with("0x");
}

}  // namespace

std::string file_text(const std::string& file) {
  if (file.size() <= kMostFile) return one_line(file, kMostFile);
  const std::string_view end = std::string_view(file).substr(file.size() - (kMostFile - 4));
  const std::size_t slash = end.find('/');
  return "..." + one_line(slash == end.npos ? end : end.substr(slash), kMostFile);
}

std::string seconds_text(double seconds) {
  if (!std::isfinite(seconds) || seconds < 0) return "0 s";
  return seconds < 10 ? fmt::format("{:.1f} s", seconds) : fmt::format("{:.0f} s", seconds);
}

std::string join_text(const WaitingJoin& join) {
  const std::string call =
      join.call.empty() ? fmt::format("a join of process {}", join.pid) : one_line(join.call, kMostName);
  return join.file.empty() ? fmt::format("{} in process {}", call, join.pid)
                           : fmt::format("{} at {}:{}", call, file_text(join.file), join.line);
}

std::string wait_text(const HungThread& thread) {
  const ThreadWait& wait = thread.wait;
  if (wait.kind.empty())
    return thread.state.empty() ? "does something that could not be read" : "is " + one_line(thread.state, 30);
  std::string text =
      wait.object.empty() ? "waits (" + one_line(wait.kind, 30) + ")" : "waits for " + one_line(wait.object, kMostName);
  if (wait.timed) text += ", for a limited time";
  if (!wait.why_live.empty()) return text + "; it may go on: " + one_line(wait.why_live, kMostName);
  if (!wait.wakers.empty()) text += "; only " + pids_text(wait.wakers, kMostWakers) + " could end it";
  return text;
}

std::string python_unread_text(const HungProcess& process) {
  return "no Python frames: " + one_line(process.python_unread, kMostName);
}

std::vector<std::string> frame_lines(const HungThread& thread, std::size_t most) {
  std::vector<std::string> lines;
  for (const std::string& frame : thread.native) {
    const bool python = !thread.python.empty();
    if (lines.size() >= (python ? most / 2 : most)) break;
    if (python ? !is_plumbing(frame) : has_name(frame)) lines.push_back(one_line(frame, kMostName));
  }
  if (lines.empty() && thread.python.empty() && !thread.native.empty() && most > 0) {
    lines.push_back(one_line(thread.native.front(), kMostName));
  }
  for (const PythonFrame& frame : thread.python) {
    if (lines.size() >= most) break;
    lines.push_back(fmt::format("{}:{} in {}", file_text(frame.file), frame.line, one_line(frame.function, 40)));
  }
  return lines;
}

std::string pids_text(const std::vector<pid_t>& pids, std::size_t most) {
  std::string text;
  const std::size_t shown = pids.size() <= most + 1 ? pids.size() : most;
  for (std::size_t i = 0; i < shown; ++i) {
    const bool last = i + 1 == pids.size();
    text += (i == 0 ? "" : last ? " and " : ", ") + std::to_string(pids[i]);
  }
  return shown == pids.size() ? text : text + fmt::format(" and {} more", pids.size() - shown);
}

std::vector<std::string> wrapped(const std::string& first, const std::string& text, std::size_t columns) {
  std::vector<std::string> lines{first};
  const std::string margin(first.size(), ' ');
  bool empty = true;
  std::string_view rest = text;
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find(' '), rest.size());
    const std::string word(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (word.empty()) continue;
    if (!empty && lines.back().size() + 1 + word.size() > columns) {
      lines.push_back(margin);
      empty = true;
    }
    lines.back() += (empty ? "" : " ") + word;
    empty = false;
  }
  return lines;
}

}  // namespace mprun
