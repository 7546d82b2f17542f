#include "procfs/address_spaces.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>
#include <optional>

#include "procfs/live_memory.h"

namespace mprun {
namespace {

// glibc's struct pthread on 64-bit machines: `pid_t tid, pid_ununsed; void* robust_prev; struct robust_list_head`.
constexpr std::uint64_t kFromNumberToList = 16;

std::optional<pid_t> number_at(pid_t tid, std::uint64_t address) {
  pid_t number = 0;
  if (!read_live_memory(tid, address, &number, sizeof number)) return std::nullopt;
  return number;
}

/// Where a thread's own memory holds its number; nullopt: not known, as in another C library or PID namespace.
std::optional<std::uint64_t> place_of_number(pid_t tid) {
  robust_list_head* list = nullptr;
  std::size_t size = 0;
  if (syscall(SYS_get_robust_list, tid, &list, &size) != 0 || list == nullptr) return std::nullopt;
  const std::uint64_t place = reinterpret_cast<std::uintptr_t>(list) - kFromNumberToList;
  if (number_at(tid, place) != tid) return std::nullopt;
  return place;
}

}  // namespace

bool have_separate_memory(pid_t one, pid_t other) {
  // Both places are known: so both memories can be read, and what cannot be read there is not mapped.
  const auto place = place_of_number(one);
  return place && place_of_number(other) && number_at(other, *place) != one && number_at(one, *place) == one;
}

}  // namespace mprun
