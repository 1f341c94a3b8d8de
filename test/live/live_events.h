/* SPDX-License-Identifier: MIT
 * Records the events and callbacks of a client in the order in which they came, from any thread. */
#ifndef TEST_LIVE_EVENTS_H
#define TEST_LIVE_EVENTS_H

#include "live.h"

#include <pthread.h>

#define EVENTS_MAX 4096

/* A copy of one event, without the pointers that are valid only during its callback. */
struct noted_event {
    int kind, status;          /* REDLOCK_EVENT_*, REDLOCK_* */
    bool has_lock, has_report; /* whether these were not NULL */
    uint64_t remaining_ms;     /* validity that the event reported */
    uint32_t line_place;       /* place in the line that its report named; 0: none */
    uint64_t at_ms;            /* when it was recorded, by wait_now_ms() */
    pthread_t thread;          /* that ran the callback */
    char name[64];             /* resource, or node */
};

/* A list of events. The mutex guards the other fields. */
struct events {
    pthread_mutex_t mutex;
    unsigned count;
    struct noted_event list[EVENTS_MAX];
};

/* Two lists: one for events of clients, one for events of locks. events_reset() empties both. */
extern struct events client_events, lock_events;
void events_reset(void);

/* A redlock_event_fn whose userdata is a struct events. */
void note_event(redlock_t *rl, const redlock_event_t *event, void *userdata);

/* Counts the events of a kind. */
unsigned count_events(struct events *events, int kind);
/* Counts those of one resource or node. */
unsigned count_events_of(struct events *events, int kind, const char *name);
/* Returns the index-th event of its kind. Fails the case if there is none. */
struct noted_event find_event(struct events *events, int kind, unsigned index);
/* Returns all kinds in their order, as letters: A acquired, E extended, F extension failed, R
 * released, D endangered, L lost, W waiting, U/N/X node up, down, excluded. */
const char *event_letters(struct events *events);

/* The result of one asynchronous call. Initialize it with OUTCOME. */
struct outcome {
    pthread_mutex_t mutex; /* guards the other fields */
    unsigned calls;        /* how often the callback has run */
    int status;            /* 1: the callback has not run */
    redlock_lock_t *lock;
    pthread_t thread;           /* that ran the callback */
    redlock_report_info_t info; /* of the report, with its text */
    char text[256];
};
#define OUTCOME                                                                                    \
    {                                                                                              \
        .mutex = PTHREAD_MUTEX_INITIALIZER, .status = 1                                            \
    }

/* A redlock_done_fn whose userdata is a struct outcome. */
void note_done(redlock_t *rl, int status, redlock_lock_t *lock, const redlock_report_t *report,
               void *userdata);
/* Returns how often the callback has run. */
unsigned outcome_calls(struct outcome *outcome);
/* Waits for the callback (turning the loop of `client` where that is needed) and returns its
 * status. */
int outcome_wait(redlock_t *client, struct outcome *outcome);

#endif
