// A hang as mprun shows it: hangs/N.json, hangs/N.txt and standard error, `mprun inspect --dot`. Pure; called by cli/
// and by the code that records a hang. Names, commands and frames come from watched processes: they are made safe to
// print here.
#pragma once

#include <string>
#include <string_view>

#include "json/json_fwd.h"
#include "watch/hang.h"

namespace mprun {

/// The hang report of mprun(1), HANGS, version 1. Unknown values are null; bytes that are not UTF-8 are replaced.
[[nodiscard]] Json hang_json(const Hang& hang);

/// Human-readable: at most 24 lines of 100 columns; only the first may be longer, and only by the name of the join.
[[nodiscard]] std::string hang_text(const Hang& hang);

/// The same text for a terminal with colours: its first line bold, the words "cause:" and "cure:" red and green.
[[nodiscard]] std::string colored_hang_text(std::string_view text);

/// Which process waits for which, for Graphviz.
[[nodiscard]] std::string hang_dot(const Hang& hang);

}  // namespace mprun
