// The numbers of system calls, SYS_*. Architectures that came to Linux late lack those that another call can do: arm64
// has ppoll and no poll. Here they get numbers that no call has, so that the watch and its tests are the same
// everywhere.
#pragma once

#include <sys/syscall.h>

#ifndef SYS_poll
#define SYS_open 0x10000
#define SYS_pause 0x10001
#define SYS_poll 0x10002
#define SYS_select 0x10003
#define SYS_vfork 0x10004
#define SYS_epoll_wait 0x10005
#endif
