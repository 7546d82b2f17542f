#include "report/hang_tree.h"

#include <algorithm>
#include <deque>
#include <unordered_map>
#include <unordered_set>
#include <utility>

namespace mprun {
namespace {

struct Visit {
  std::size_t depth = 0;
  std::vector<std::pair<pid_t, const WaitEdge*>> next;  // those first met from here
};

struct Graph {
  std::unordered_map<pid_t, const HungProcess*> processes;
  std::unordered_map<pid_t, std::vector<const WaitEdge*>> edges;
  std::unordered_map<pid_t, Visit> visits;
};

// A text with pids, addresses and the like made equal.
[[nodiscard]] std::string without_numbers(const std::string& text) {
  std::string out;
  for (const char c : text) {
    const bool digit = c >= '0' && c <= '9';
    const bool in_number = !out.empty() && out.back() == '#';
    if (digit || (in_number && ((c >= 'a' && c <= 'f') || c == 'x'))) {
      if (!in_number) out += '#';
    } else {
      out += c;
    }
  }
  return out;
}

// Equal for nodes that look the same to a user, apart from pids and addresses.
[[nodiscard]] std::string signature(const Hang& hang, const HangNode& node) {
  std::string text = node.process->command + '\n' + without_numbers(node.why);
  text += node.process->forked ? "\nf" : "\ne";
  for (const HungThread* thread : threads_by_interest(hang, *node.process)) {
    text += "\nt" + thread->state + '\n' + thread->wait.kind + '\n' + without_numbers(thread->wait.object);
    for (const PythonFrame& frame : thread->python) text += '\n' + frame.file + ':' + std::to_string(frame.line);
    for (const std::string& frame : thread->native) text += '\n' + frame;
  }
  for (const HangNode& below : node.waits_for) {
    text += "\n{" + std::to_string(below.alike.size()) + signature(hang, below) + "}";
  }
  return text;
}

// Folds equal nodes into the first of them.
[[nodiscard]] std::vector<HangNode> folded(const Hang& hang, std::vector<HangNode> nodes) {
  std::vector<HangNode> kept;
  std::unordered_map<std::string, std::size_t> places;
  for (HangNode& node : nodes) {
    const auto [place, is_new] = places.emplace(signature(hang, node), kept.size());
    if (is_new) {
      kept.push_back(std::move(node));
    } else {
      kept[place->second].alike.push_back(node.process->pid);
    }
  }
  return kept;
}

// Marks the processes that are reached from `root`, by the shortest paths.
void visit_from(pid_t root, Graph* graph) {
  std::deque<pid_t> queue{root};
  graph->visits[root];
  while (!queue.empty()) {
    const pid_t pid = queue.front();
    queue.pop_front();
    const std::size_t depth = graph->visits[pid].depth;
    if (depth + 1 >= kMostHangDepth) continue;
    for (const WaitEdge* edge : graph->edges[pid]) {
      if (!graph->processes.contains(edge->to)) continue;
      const auto [met, is_new] = graph->visits.try_emplace(edge->to);
      if (!is_new) continue;
      met->second.depth = depth + 1;
      graph->visits[pid].next.emplace_back(edge->to, edge);
      queue.push_back(edge->to);
    }
  }
}

[[nodiscard]] HangNode node_of(const Hang& hang, const Graph& graph, pid_t pid, const std::string& why) {
  HangNode node{graph.processes.at(pid), why, {}, {}};
  for (const auto& [next, edge] : graph.visits.at(pid).next) {
    node.waits_for.push_back(node_of(hang, graph, next, edge->why));
  }
  node.waits_for = folded(hang, std::move(node.waits_for));
  return node;
}

// The join's process, those that no process waits for, the rest (cycles).
[[nodiscard]] std::vector<pid_t> possible_roots(const Hang& hang) {
  std::unordered_set<pid_t> waited_for;
  for (const WaitEdge& edge : hang.edges) waited_for.insert(edge.to);
  std::vector<pid_t> roots;
  if (hang.join) roots.push_back(hang.join->pid);
  for (const bool waited : {false, true}) {
    for (const HungProcess& process : hang.processes) {
      if (waited_for.contains(process.pid) == waited) roots.push_back(process.pid);
    }
  }
  return roots;
}

}  // namespace

bool is_stuck(const HungThread& thread) { return thread.state == "blocked for ever"; }

std::vector<const HungThread*> threads_by_interest(const Hang& hang, const HungProcess& process) {
  std::vector<const HungThread*> threads;
  for (const HungThread& thread : process.threads) threads.push_back(&thread);
  const auto rank = [&](const HungThread* thread) {
    const bool joins = hang.join && hang.join->pid == process.pid && hang.join->tid == thread->tid;
    return joins ? 0 : is_stuck(*thread) ? 1 : 2;
  };
  std::stable_sort(threads.begin(), threads.end(), [&](const auto* a, const auto* b) { return rank(a) < rank(b); });
  return threads;
}

std::vector<HangNode> hang_tree(const Hang& hang) {
  Graph graph;
  for (const HungProcess& process : hang.processes) graph.processes.emplace(process.pid, &process);
  for (const WaitEdge& edge : hang.edges) graph.edges[edge.from].push_back(&edge);
  std::vector<HangNode> roots;
  for (const pid_t pid : possible_roots(hang)) {
    if (!graph.processes.contains(pid) || graph.visits.contains(pid)) continue;
    visit_from(pid, &graph);
    roots.push_back(node_of(hang, graph, pid, ""));
  }
  return folded(hang, std::move(roots));
}

}  // namespace mprun
