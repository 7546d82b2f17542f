// Pseudo-terminals: waits at one side, for a process to read or write at the other.
#include <algorithm>

#include "procfs/text_scan.h"
#include "watch/judge/wait.h"

namespace mprun {
namespace {

constexpr std::string_view kSlaves = "/dev/pts/";

std::vector<pid_t> holders_of_slave(std::uint32_t terminal, const TreeSnapshot& snapshot) {
  std::vector<pid_t> holders;
  for (const auto& [pid, process] : snapshot.processes()) {
    for (const Descriptor& descriptor : process.descriptors) {
      if (slave_of_terminal(descriptor) == terminal) holders.push_back(pid);
    }
  }
  return holders;
}

// A process that has both sides of a terminal to itself, and no child that has used it: others are to open it, as a
// serial port, by its name.
bool is_offered(const std::vector<pid_t>& masters, const std::vector<pid_t>& slaves, const TreeSnapshot& snapshot) {
  const pid_t owner = masters.front();
  const auto is_owner = [owner](pid_t pid) { return pid == owner; };
  return std::all_of(masters.begin(), masters.end(), is_owner) && std::all_of(slaves.begin(), slaves.end(), is_owner) &&
         snapshot.process(owner)->ended_children.empty();
}

}  // namespace

std::optional<std::uint32_t> slave_of_terminal(const Descriptor& descriptor) {
  const std::string_view target = descriptor.target;
  if (descriptor.kind != Descriptor::Kind::kFile || target.substr(0, kSlaves.size()) != kSlaves) return std::nullopt;
  TextScan scan(target.substr(kSlaves.size()));
  std::uint32_t number = 0;
  return scan.number(&number) && scan.at_end() ? std::optional(number) : std::nullopt;
}

std::optional<Wait> decode_terminal(const Descriptor& descriptor, TreeSnapshot::End end, TreeSnapshot* snapshot) {
  const auto slave = slave_of_terminal(descriptor);
  if (!slave && !descriptor.terminal) return std::nullopt;
  const std::uint32_t terminal = slave ? *slave : *descriptor.terminal;
  const auto masters = snapshot->terminal_masters(terminal);
  const auto slaves = holders_of_slave(terminal, *snapshot);
  if (masters.empty() || slaves.empty()) return std::nullopt;
  const WaitKind kind = end == TreeSnapshot::End::kRead ? WaitKind::kPipeRead : WaitKind::kPipeWrite;
  const std::string name = std::string(kSlaves) + std::to_string(terminal);
  if (is_offered(masters, slaves, *snapshot)) {
    const std::string why = "a process outside may open " + name;
    if (!snapshot->assumptions().no_outside_peers) return live_wait(kind, why);
    snapshot->assume_no_client(why);
  }
  Wait wait{kind, name, {}, {}};
  add_processes(masters, &wait);
  add_processes(slaves, &wait);  // they may flush it
  return wait;
}

}  // namespace mprun
