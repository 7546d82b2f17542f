// The system calls that a blocked thread may be found in, by what they wait for. On an architecture that the watch does
// not know (architecture.h), every call is kOther, and nothing is ever proved.
#pragma once

#include <cstdint>

namespace mprun {

enum class Call {
  kOther,         ///< it is not known what could end it
  kFutex,         ///< futex(address, operation, value, timeout, ...)
  kRead,          ///< (descriptor, ...): read, readv, recvfrom, recvmsg
  kWrite,         ///< (descriptor, ...): write, writev, sendto, sendmsg
  kAccept,        ///< (descriptor, ...)
  kPoll,          ///< (pollfd[], count, milliseconds)
  kRestart,       ///< with the arguments of the call that was interrupted: a sleep, a timed futex, or any poll
  kPpoll,         ///< (pollfd[], count, timespec*, ...)
  kSelect,        ///< (count, read, write, except, timeval* or timespec*): select, pselect6
  kEpollWait,     ///< (descriptor, events, count, milliseconds, ...): epoll_wait, epoll_pwait
  kEpollWait2,    ///< (descriptor, events, count, timespec*, ...)
  kWait4,         ///< (pid, ...)
  kWaitid,        ///< (type, id, ...)
  kNewProcess,    ///< vfork, clone, clone3: blocked there until a vfork child execs or ends
  kFlock,         ///< (descriptor, operation)
  kFcntl,         ///< (descriptor, command, lock)
  kOpen,          ///< (path, flags) or (folder, path, flags): open, openat
  kSemaphore,     ///< (set, operations[], count, timespec* of semtimedop alone): semop, semtimedop
  kMessageQueue,  ///< (queue, message, size, type or flags, ...): msgrcv, msgsnd
  kPosixQueue,    ///< (descriptor, message, size, priority, timespec*): mq_timedreceive, mq_timedsend
  kSleep,
  kSignal,  ///< pause, sigsuspend, sigtimedwait
};

[[nodiscard]] Call call_of(std::int64_t number);

/// False: call_of() knows nothing here, so a hang can be noticed but not proved.
[[nodiscard]] bool can_prove_here();

}  // namespace mprun
