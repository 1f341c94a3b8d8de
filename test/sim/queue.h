/* SPDX-License-Identifier: MIT
 * The queue of future events, ordered by time. Events of one moment keep the order in which they
 * were appended. */
#ifndef SIM_QUEUE_H
#define SIM_QUEUE_H

#include <stdbool.h>
#include <stdint.h>

enum sim_event_kind {
    SIM_ARRIVE = 1, /* a segment reaches its end of the connection */
    SIM_THAW,       /* a connection continues after its direction was blocked */
    SIM_TURN,       /* a client's loop turns */
    SIM_REPORT,     /* a client's user receives the result of its operation */
    SIM_USER,       /* a client's user acts */
    SIM_CANCEL,     /* a client's user cancels its operation */
    SIM_DIE,        /* the process of a client dies during an attempt of its user */
    SIM_LIMIT,      /* an operation must have ended by now */
    SIM_LEFT,       /* the keys of a token whose attempt or lock has ended must be gone by now */
    SIM_CHECK,      /* check the invariants again, around a lock's deadline */
    SIM_SERVE,      /* a server continues */
    SIM_FAULT,      /* a fault begins */
    SIM_MEND,       /* a fault ends */
    SIM_CORRECT,    /* the wall clock of a machine that stood still is set right */
    SIM_DISTURB,    /* a client is disturbed, in a run that measures contention */
    SIM_OPERATOR,   /* an operator checks whether the fence records need a command */
    SIM_CLOSE,      /* the time limit of a client's shutdown has come */
    SIM_FOREIGN,    /* a client of another make acts, in a run that measures contention */
    SIM_HEAL        /* all faults have ended; from now on the users finish what they began */
};

/* One future event. `order` breaks ties between equal times. */
struct sim_event {
    uint64_t at_ns;
    uint64_t order;
    void *data;     /* SIM_ARRIVE: the segment; SIM_THAW: the connection */
    uint32_t stamp; /* number of the operation or turn it belongs to; the receiver ignores older
                     * ones */
    uint8_t kind;   /* enum sim_event_kind */
    uint8_t target; /* index of the client or server */
    uint16_t item;  /* index of the user or fault; SIM_THAW: the direction */
};

/* A binary heap of events: none is before its parent. queue.c owns it. */
struct sim_queue {
    struct sim_event *list;
    uint32_t count, cap;
    uint64_t order; /* of the next event that is appended */
};

/* Appends a copy of the event. The queue sets its `order`. */
void sim_queue_push(struct sim_queue *queue, const struct sim_event *event);
/* Removes the next event. Returns false if the queue is empty. */
bool sim_queue_pop(struct sim_queue *queue, struct sim_event *ret);
void sim_queue_free(struct sim_queue *queue);

#endif
