/* SPDX-License-Identifier: MIT
 * Records the events and callbacks of a client in the order in which they came, from any thread. */
#ifndef TEST_LIVE_EVENTS_H
#define TEST_LIVE_EVENTS_H

#include "live.h"

#include <pthread.h>

#define EVENTS_MAX 4096

/* A copy of one event, without what is valid only during its callback. */
struct noted_event {
    int kind, status;
    bool has_lock, has_report;
    uint64_t remaining_ms, at_ms;
    pthread_t thread;
    char name[64]; /* resource, or node */
};

/* A list of events. The mutex guards the other fields. */
struct events {
    pthread_mutex_t mutex;
    unsigned count;
    struct noted_event list[EVENTS_MAX];
};

/* Two lists to record into; events_reset() empties both. */
extern struct events client_events, lock_events;
void events_reset(void);

/* A redlock_event_fn whose userdata is a struct events. */
void note_event(redlock_t *rl, const redlock_event_t *event, void *userdata);

unsigned count_events(struct events *events, int kind);
/* Counts the events of one resource or node. */
unsigned count_events_of(struct events *events, int kind, const char *name);
/* Returns the index-th event of its kind. Fails the case if there is none. */
struct noted_event find_event(struct events *events, int kind, unsigned index);
/* Returns all kinds in their order, as letters: A acquired, E extended, F extension failed, R
 * released, D endangered, L lost, W waiting, U/N/X node up, down, refused. */
const char *event_letters(struct events *events);

/* The result of one asynchronous call. */
struct outcome {
    pthread_mutex_t mutex;
    unsigned calls;
    int status;
    redlock_lock_t *lock;
    pthread_t thread;
    redlock_report_info_t info;
    char text[256];
};
#define OUTCOME                                                                                    \
    {                                                                                              \
        .mutex = PTHREAD_MUTEX_INITIALIZER, .status = 1                                            \
    }

/* A redlock_done_fn whose userdata is a struct outcome. */
void note_done(redlock_t *rl, int status, redlock_lock_t *lock, const redlock_report_t *report,
               void *userdata);
unsigned outcome_calls(struct outcome *outcome);
/* Waits for the callback (turning the loop of `client` where that is needed) and returns its
 * status. */
int outcome_wait(redlock_t *client, struct outcome *outcome);

#endif
