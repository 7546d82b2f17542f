#include "os/memory_policy.h"

#include <linux/mempolicy.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <limits>
#include <tuple>

#include "os/shared_memory.h"

namespace mprun {
namespace {

constexpr std::size_t kBitsEach = std::numeric_limits<unsigned long>::digits;
constexpr unsigned long kMaxNode = std::tuple_size_v<NodeMask> * kBitsEach + 1;  // the kernel counts one bit less

}  // namespace

NodeMask node_mask(const std::vector<int>& nodes) {
  NodeMask mask{};
  for (const int node : nodes) {
    const auto bit = static_cast<std::size_t>(node);
    if (bit / kBitsEach < mask.size()) mask[bit / kBitsEach] |= 1UL << bit % kBitsEach;
  }
  return mask;
}

bool bind_memory(const NodeMask& nodes) { return syscall(SYS_set_mempolicy, MPOL_BIND, nodes.data(), kMaxNode) == 0; }

Result<void> interleave_file(int fd, const std::vector<int>& nodes) {
  const NodeMask mask = node_mask(nodes);
  // The kernel keeps the policy with the file, not with this mapping.
  const MemoryMapping mapped(fd);
  if (mapped.data() == nullptr) return system_error("cannot map memory to interleave it", errno);
  const bool done = syscall(SYS_mbind, mapped.data(), mapped.bytes(), MPOL_INTERLEAVE, mask.data(), kMaxNode, 0) == 0;
  if (!done) return system_error("cannot interleave memory (\"interleave\")", errno);
  return {};
}

}  // namespace mprun
