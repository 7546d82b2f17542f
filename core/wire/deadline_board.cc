#include "wire/deadline_board.h"

#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <algorithm>
#include <cstring>
#include <optional>

namespace mprun {
namespace {

static_assert(sizeof(mprun_deadline_line) == 64, "one cache line a thread");
static_assert(offsetof(mprun_deadline_board, lines) == 64);

// nullopt: the thread has no deadline, or is just changing it.
std::optional<Deadline> read_line(const mprun_deadline_line& line, unsigned number) {
  Deadline deadline;
  deadline.due = __atomic_load_n(&line.due, __ATOMIC_ACQUIRE);
  if (deadline.due <= 0) return std::nullopt;
  deadline.line = number;
  // Acquire, so that `due` is read last. Not a fence, which ThreadSanitizer does not support.
  deadline.limit = __atomic_load_n(&line.limit, __ATOMIC_ACQUIRE);
  deadline.tid = __atomic_load_n(&line.tid, __ATOMIC_ACQUIRE);
  deadline.pid = __atomic_load_n(&line.pid, __ATOMIC_ACQUIRE);
  for (const char& byte : line.label) {
    const char copy = __atomic_load_n(&byte, __ATOMIC_ACQUIRE);
    if (copy == '\0') break;
    deadline.label += copy;
  }
  if (__atomic_load_n(&line.due, __ATOMIC_RELAXED) != deadline.due) return std::nullopt;
  if (deadline.tid <= 0 || deadline.pid <= 0 || deadline.limit <= 0) return std::nullopt;
  return deadline;
}

}  // namespace

Result<DeadlineBoard> DeadlineBoard::create() {
  auto memory = SharedMemory::create("mprun-deadlines", sizeof(mprun_deadline_board));
  if (!memory) return memory.error();
  static_cast<mprun_deadline_board*>(memory->data())->magic = MPRUN_DEADLINES_MAGIC;
  return DeadlineBoard(std::move(*memory));
}

std::string DeadlineBoard::path() const { return path_of_descriptor(memory_.fd()); }

std::vector<Deadline> DeadlineBoard::read() const {
  std::vector<Deadline> running;
  const unsigned used = std::min(__atomic_load_n(&board()->used, __ATOMIC_ACQUIRE), MPRUN_DEADLINES_LINES);
  for (unsigned i = 0; i < used; ++i) {
    if (auto deadline = read_line(board()->lines[i], i)) running.push_back(std::move(*deadline));
  }
  return running;
}

}  // namespace mprun
