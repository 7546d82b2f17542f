/* How the preload library records that its process asks again and again whether a child has ended, without waiting for
 * it: in variables of its own, which the watch reads (core/watch/sample/child_poll.h). Plain C. */
#ifndef MPRUN_WIRE_CHILD_POLLS_H
#define MPRUN_WIRE_CHILD_POLLS_H

/* An int32_t: the child that was asked about last; 0: none. */
#define MPRUN_POLLED_CHILD_SYMBOL "mprun_polled_child"
/* A uint64_t: how often a child was asked about that had not ended. */
#define MPRUN_CHILD_POLLS_SYMBOL "mprun_child_polls"

#endif /* MPRUN_WIRE_CHILD_POLLS_H */
