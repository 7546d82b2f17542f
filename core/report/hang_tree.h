// The processes of a hang as a tree: from the one whose join waits, along the edges, to the stuck ones, with equal ones
// folded. Pure; private to core/report.
#pragma once

#include <string>
#include <vector>

#include "watch/hang.h"

namespace mprun {

/// A process and those it waits for; also stands for `alike`, which look the same, with all that they wait for.
struct HangNode {
  const HungProcess* process = nullptr;
  std::string why;  ///< of the edge from the node above; empty: a root
  std::vector<pid_t> alike;
  std::vector<HangNode> waits_for;
};

/// The tree, at most kMostHangDepth deep; every process is in it once, by the shortest path. The join's process comes
/// first.
[[nodiscard]] std::vector<HangNode> hang_tree(const Hang& hang);

inline constexpr std::size_t kMostHangDepth = 8;

/// The threads of a process, the most interesting first: the join's, then those blocked for ever, then others.
[[nodiscard]] std::vector<const HungThread*> threads_by_interest(const Hang& hang, const HungProcess& process);

/// True for the state "blocked for ever".
[[nodiscard]] bool is_stuck(const HungThread& thread);

}  // namespace mprun
