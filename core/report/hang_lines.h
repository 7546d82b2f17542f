// The parts of a hang report's text: short descriptions of threads, frames, processes. Pure; private to core/report.
#pragma once

#include <string>
#include <vector>

#include "watch/hang.h"

namespace mprun {

/// "2.1 s"; "61 s" from ten seconds on.
[[nodiscard]] std::string seconds_text(double seconds);

/// Safe to print, and short: keeps the end of a path, which identifies the file.
[[nodiscard]] std::string file_text(const std::string& file);

/// "multiprocessing.pool.Pool.join at train.py:23".
[[nodiscard]] std::string join_text(const WaitingJoin& join);

/// "waits for child 12, which only 12 could end", "runs", "waits (futex) with a time limit".
[[nodiscard]] std::string wait_text(const HungThread& thread);

/// The innermost frames, `most` of them: what was called from Python, then Python's own; without Python the native ones
/// that have a name.
[[nodiscard]] std::vector<std::string> frame_lines(const HungThread& thread, std::size_t most);

/// "no Python frames: Python 3.16 is not known to mprun", of a process whose Python cannot be read.
[[nodiscard]] std::string python_unread_text(const HungProcess& process);

/// "102, 103, 104 and 60 more".
[[nodiscard]] std::string pids_text(const std::vector<pid_t>& pids, std::size_t most);

/// Words in lines of at most `columns`; the first line begins with `first`, the others with as many blanks.
[[nodiscard]] std::vector<std::string> wrapped(const std::string& first, const std::string& text, std::size_t columns);

}  // namespace mprun
