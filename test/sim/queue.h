/* SPDX-License-Identifier: MIT
 * What will happen, by time; things of one moment in the order in which they were planned. */
#ifndef SIM_QUEUE_H
#define SIM_QUEUE_H

#include <stdbool.h>
#include <stdint.h>

enum sim_event_kind {
    SIM_ARRIVE = 1, /* a segment reaches its end of the connection */
    SIM_THAW,       /* a connection goes on after its way was blocked */
    SIM_TURN,       /* a client's loop turns */
    SIM_TELL,       /* a client's user hears how an acquisition ended */
    SIM_USER,       /* a client's user does something */
    SIM_CANCEL,     /* a client's user gives up */
    SIM_LIMIT,      /* by now an operation must have ended */
    SIM_LEFT,       /* by now the keys of a failed attempt must be gone */
    SIM_PROBE,      /* right before a lock's deadline: look again */
    SIM_SERVE,      /* a server goes on */
    SIM_FAULT,
    SIM_MEND,     /* a fault ends */
    SIM_CORRECT,  /* the wall clock of a machine that stood still is set right */
    SIM_OPERATOR, /* somebody looks whether the fences need him */
    SIM_FOREIGN,  /* a client of another make, in a crowd */
    SIM_HEAL      /* all faults have ended; from now on the users finish what they began */
};

struct sim_event {
    uint64_t at_ns;
    uint64_t order;
    void *data;
    uint32_t stamp; /* tells an event from one that it replaced */
    uint8_t kind;   /* enum sim_event_kind */
    uint8_t who;    /* client or server */
    uint16_t which; /* slot, fault */
};

struct sim_queue {
    struct sim_event *list;
    uint32_t count, cap;
    uint64_t order;
};

void sim_queue_push(struct sim_queue *queue, const struct sim_event *event);
/* false: nothing will ever happen again. */
bool sim_queue_pop(struct sim_queue *queue, struct sim_event *ret);
void sim_queue_free(struct sim_queue *queue);

#endif
