#include "watch/sample/child_poll.h"

#include "watch/sample/preload_library.h"
#include "wire/child_polls.h"

namespace mprun {

ChildPoll last_child_poll(ProcSource* proc, pid_t pid) {
  constexpr std::size_t kMostOfTables = std::size_t{1} << 20U;  // of the library's tables
  const auto maps = proc->read(std::to_string(pid) + "/maps");
  for (const Mapping& library : preload_libraries(maps.value_or(""))) {
    ProcessMemory memory(proc, pid, kMostOfTables);
    const auto child_at = variable_of(library, MPRUN_POLLED_CHILD_SYMBOL, &memory);
    const auto count_at = variable_of(library, MPRUN_CHILD_POLLS_SYMBOL, &memory);
    if (!child_at || !count_at) continue;
    const pid_t child = memory.read<std::int32_t>(*child_at).value_or(0);
    const auto count = memory.read<std::uint64_t>(*count_at);
    if (child != 0 && count) return {child, *count};
  }
  return {};
}

}  // namespace mprun
