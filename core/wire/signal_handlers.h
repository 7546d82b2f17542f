/* How the preload library says which function of its process handles which signal, which /proc does not show: in a
 * table of its own, which the watch reads (core/watch/signal_handlers.h). Plain C. */
#ifndef MPRUN_WIRE_SIGNAL_HANDLERS_H
#define MPRUN_WIRE_SIGNAL_HANDLERS_H

/* uint64_t[MPRUN_SIGNALS]: at N the address of the handler of signal N; 0 and 1: none (SIG_DFL, SIG_IGN), or one that
 * was not installed by sigaction() or signal(). */
#define MPRUN_HANDLERS_SYMBOL "mprun_signal_handlers"
#define MPRUN_SIGNALS 65

#endif /* MPRUN_WIRE_SIGNAL_HANDLERS_H */
