#include "watch/sample/syscall_table.h"

#include "watch/sample/architecture.h"
#include "watch/sample/syscall_numbers.h"

namespace mprun {

bool can_prove_here() { return architecture::kIsKnown; }

Call call_of(std::int64_t number) {
  if (!can_prove_here()) return Call::kOther;
  switch (number) {
    case SYS_futex:
      return Call::kFutex;
    case SYS_read:
    case SYS_readv:
    case SYS_recvfrom:
    case SYS_recvmsg:
      return Call::kRead;
    case SYS_write:
    case SYS_writev:
    case SYS_sendto:
    case SYS_sendmsg:
      return Call::kWrite;
    case SYS_accept:
    case SYS_accept4:
      return Call::kAccept;
    case SYS_poll:
      return Call::kPoll;
    case SYS_restart_syscall:
      return Call::kRestart;
    case SYS_ppoll:
      return Call::kPpoll;
    case SYS_select:
    case SYS_pselect6:
      return Call::kSelect;
    case SYS_epoll_wait:
    case SYS_epoll_pwait:
      return Call::kEpollWait;
    case __NR_epoll_pwait2:
      return Call::kEpollWait2;
    case SYS_wait4:
      return Call::kWait4;
    case SYS_waitid:
      return Call::kWaitid;
    case SYS_vfork:
    case SYS_clone:
    case SYS_clone3:
      return Call::kNewProcess;
    case SYS_flock:
      return Call::kFlock;
    case SYS_fcntl:
      return Call::kFcntl;
    case SYS_open:
    case SYS_openat:
      return Call::kOpen;
    case SYS_semop:
    case SYS_semtimedop:
      return Call::kSemaphore;
    case SYS_msgrcv:
    case SYS_msgsnd:
      return Call::kMessageQueue;
    case SYS_mq_timedreceive:
    case SYS_mq_timedsend:
      return Call::kPosixQueue;
    case SYS_nanosleep:
    case SYS_clock_nanosleep:
      return Call::kSleep;
    case SYS_pause:
    case SYS_rt_sigsuspend:
    case SYS_rt_sigtimedwait:
      return Call::kSignal;
    default:
      return Call::kOther;
  }
}

}  // namespace mprun
