// Waits of known libraries whose meaning the kernel does not show. A table, with the source in which each line was
// read: polls that wake up, look around and wait for the same again; and threads that only help others.
#pragma once

#include <string_view>

#include "watch/sample/sample.h"
#include "watch/stacks/python_stack.h"

namespace mprun {

/// What a library checks when a wait with a time limit has expired. If nothing has happened there, it waits for the
/// same again, for ever.
struct LibraryPoll {
  std::string_view file;      ///< the end of its path
  std::string_view function;  ///< which waits only by calls of the standard library
  const char* looks_at;       ///< human-readable: "whether its workers live"
  bool ends_with_child;       ///< it stops waiting if a process that its object has started has ended
  bool ends_with_parent;      ///< the same for its process's parent
  bool has_limit_of_caller;   ///< its caller's limit ends it, unless its first argument with a default has that default
  /// Its first argument is exactly this, in seconds, if no timer is due before; 0: it always waits for the same.
  double longest = 0;
};

/// The poll that a thread is in; nullptr: none that is known. `frames`: innermost first.
[[nodiscard]] const LibraryPoll* find_library_poll(const std::vector<PythonFrame>& frames);

/// What filelock and the like check; and what ranks of torch.distributed and torchrun do.
inline constexpr const char* kLooksForFileLock = "whether a file's lock is free";
inline constexpr const char *kLooksForRanks = "whether all ranks have come",
                            *kLooksForNodes = "whether other nodes have come";
/// What a thread that sleeps in a known loop checks whenever it wakes up, such as "whether a file's lock is free";
/// nullptr: the loop is not known. Whether it goes on for ever depends on other threads; this does not say which.
[[nodiscard]] const char* looks_between_sleeps(const std::vector<PythonFrame>& frames);

/// libev (gevent's hub) with nothing to do: without a timer it waits for 59.743 s at most (MAX_BLOCKTIME of its ev.c),
/// and then for the same again. No other wait has this limit.
[[nodiscard]] bool is_idle_libev(const ThreadSample& thread);

/// Who may connect to a process that listens at an address of multiprocessing.
enum class Clients {
  kAnybody,    ///< the address was made to be given away, or the key may be known
  kTree,       ///< it is a manager of multiprocessing.Manager(), whose key may be given to any program of the tree
  kRelatives,  ///< it passes on descriptors, for which only workers of the same program have the key
  kYounger,    ///< it is a forkserver: its parent has the address, and hands it on to those that it starts from then on
};
[[nodiscard]] Clients clients_of_listener(const std::vector<PythonThread>& threads);

/// What a process does in torch.distributed.
enum class RankPhase {
  kNone,
  kMeets,  ///< it waits until all ranks have come
  kMet,    ///< all ranks have come, and it is in a collective
};
[[nodiscard]] RankPhase rank_phase(const std::vector<PythonThread>& threads);

/// True for a function on a native stack in which a thread waits for what `isend`, `irecv` or a collective with
/// `async_op=True` has returned. No function of torch.distributed is on its Python stack.
[[nodiscard]] bool is_wait_for_work_of_ranks(std::string_view function);

/// True for torchrun while it waits for torchrun on other machines.
[[nodiscard]] bool meets_other_nodes(const std::vector<PythonFrame>& frames);

/// True for a rank of torch.distributed that makes a group, and asks the store again and again whether the others do.
[[nodiscard]] bool asks_whether_all_have_come(const std::vector<PythonThread>& threads);

/// True if `receiver` is the thread that receives messages for a worker of execnet (pytest-xdist), and no other one of
/// `threads`, all of its process, waits for a message: then none of them goes on when one comes. A process that has a
/// second connection of execnet may have callbacks of its own.
[[nodiscard]] bool receives_for_nobody(pid_t receiver, const std::vector<PythonThread>& threads);

/// True for a thread of a library that moves what others give it: it holds no lock of theirs while it waits.
[[nodiscard]] bool is_library_helper(const std::vector<PythonFrame>& frames);

}  // namespace mprun
