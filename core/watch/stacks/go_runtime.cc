#include "watch/stacks/go_runtime.h"

#include <array>
#include <csignal>

#include "watch/stacks/native_stack.h"

namespace mprun {
namespace {

// runtime.sig: struct { note note; mask, wanted, ignored, recv [3]uint32; state, delivering uint32; inuse bool }
constexpr std::uint64_t kSizeOfSig = 72, kWanted = 20;
constexpr int kFirstOfGo = 35;  // glibc has 32 and 33, and Go leaves it 34 too

}  // namespace

bool may_be_go(std::uint64_t caught_signals) {
  constexpr std::uint64_t kUrgent = std::uint64_t{1} << (SIGURG - 1), kRealTime = ~std::uint64_t{0} << (kFirstOfGo - 1);
  return (caught_signals & kUrgent) != 0 && (caught_signals & kRealTime) == kRealTime;
}

std::optional<GoRuntime> read_go_runtime(pid_t pid, const ReadMemory& read) {
  NativeStacks symbols(pid);
  const auto sched = symbols.variable("runtime.sched");
  const auto sig = symbols.variable("runtime.sig");
  std::array<std::uint32_t, 3> wanted{};  // by the number of a signal, which counts from 1
  if (!sched || !sig || sig->size != kSizeOfSig || !read(sig->address + kWanted, wanted.data(), sizeof wanted)) {
    return std::nullopt;
  }
  const std::uint64_t low = wanted[0] | std::uint64_t{wanted[1]} << 32U;
  return GoRuntime{low >> 1U | std::uint64_t{wanted[2] & 1U} << 63U, sched->address, sched->address + sched->size};
}

}  // namespace mprun
