/* How the preload library records which function of its process handles which signal, which /proc does not show: in a
 * table of its own, which the watch reads (core/watch/sample/signal_handlers.h). Plain C. */
#ifndef MPRUN_WIRE_SIGNAL_HANDLERS_H
#define MPRUN_WIRE_SIGNAL_HANDLERS_H

/* uint64_t[MPRUN_SIGNALS]: entry N is the address of the last handler of signal N; 0: none, or one that was not
 * installed by sigaction() or signal(). It stays when the handler is removed: /proc/PID/status says whether N is
 * caught. */
#define MPRUN_HANDLERS_SYMBOL "mprun_signal_handlers"
#define MPRUN_SIGNALS 65
/* uint32_t[MPRUN_SIGNALS]: how often a handler of signal N has been installed. */
#define MPRUN_INSTALLATIONS_SYMBOL "mprun_handler_installations"

#endif /* MPRUN_WIRE_SIGNAL_HANDLERS_H */
