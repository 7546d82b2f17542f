// What `mprun inspect` shows of a process tree: every thread with what it does or waits for, and the hang if there is
// one. Pure; called by cli/. Names, commands and frames come from watched processes: they are made safe to print here.
#pragma once

#include <string>

#include "json/json_fwd.h"
#include "watch/inspect.h"

namespace mprun {

/// Human-readable: the verdict, the hang as in hang_text(), then every process and thread.
[[nodiscard]] std::string inspect_text(const Inspection& inspection);

/// One line of `mprun inspect --all`: "12 deadlock, lock-cycle: 3 processes: python train.py".
[[nodiscard]] std::string inspect_line(const Inspection& inspection);

/// The report of hang_json(), with the verdict "live" if nothing is stuck, and with fields for a live tree only:
/// `moving` and `notes`, and `why_live` of a wait.
[[nodiscard]] Json inspect_json(const Inspection& inspection);

}  // namespace mprun
