// Pseudo-terminals: waits at one side, for a process to read or write at the other.
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
  Wait wait{end == TreeSnapshot::End::kRead ? WaitKind::kPipeRead : WaitKind::kPipeWrite,
            std::string(kSlaves) + std::to_string(terminal),
            {},
            {}};
  add_processes(masters, &wait);
  add_processes(slaves, &wait);  // they may flush it
  return wait;
}

}  // namespace mprun
