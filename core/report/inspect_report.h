// What `mprun inspect` shows of a tree of processes: every thread with what it does or waits for, and the hang if there
// is one. Pure; called by cli/. Names, commands and frames come from watched processes: they are made safe to print
// here.
#pragma once

#include <string>

#include "job/json_fwd.h"
#include "watch/inspect.h"

namespace mprun {

/// For people: the verdict, the hang as hang_text() tells it, then every process and thread.
[[nodiscard]] std::string inspect_text(const Inspection& inspection);

/// The report of hang_json() with the verdict "live" where nothing is stuck, and what only a look at a live tree needs:
/// `moving` and `notes`, and `why_live` of a wait.
[[nodiscard]] Json inspect_json(const Inspection& inspection);

}  // namespace mprun
