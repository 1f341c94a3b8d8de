/* SPDX-License-Identifier: MIT
 * Collects what `redlock top` shows: searches for locks, inspects them and reads the state of the
 * servers. For the screen a thread does that again and again, so that a server that does not reply
 * never blocks the screen.
 */
#ifndef TOOLS_TOP_COLLECT_H
#define TOOLS_TOP_COLLECT_H

#include <pthread.h>

#include "options.h"
#include "top_model.h"
#include "top_scan.h"

/* Size of the message about a lock that was broken, with its NUL. */
#define TOP_MESSAGE_MAX 1024

/* One `redlock top`. The thread that collects and the thread that draws share the fields under
 * `mutex`; each of the others belongs to the one that collects. */
struct top {
    redlock_t *rl;                   /* the client; borrowed */
    const struct settings *settings; /* borrowed */
    uint64_t interval_ns;            /* time between two inspections of a lock */
    bool searches;                   /* `scan` searches for locks; else they were all named */
    struct scan scan;                /* the search */
    uint64_t refresh_ns; /* when the next inspections are due, in ns of CLOCK_BOOTTIME */
    pthread_t thread;    /* collects, if `running` */
    bool running;
    int work_fd; /* wakes the thread that collects; an eventfd, or -1 */
    int news_fd; /* becomes readable when there is something new to draw; an eventfd, or -1 */

    pthread_mutex_t mutex; /* protects all that follows */
    struct top_model model;
    bool complete; /* the search has found all locks at least once, or none was needed */
    bool short_of; /* too few servers can be searched; `scan_error` says why */
    char scan_error[SCAN_ERROR_MAX]; /* "" if all can be searched */
    bool stop;                       /* the thread has to end */
    char *break_name;                /* a lock that the user wants to break; NULL: none; owned */
    char break_owner[TOP_OWNER_MAX]; /* its holder, as the user has seen it */
    char message[TOP_MESSAGE_MAX];   /* what became of the last break; "": nothing to say */
};

/* Prepares for the names of the command line, or for a search if there are none. The client `rl` is
 * started. top_close() is needed. */
void top_open(struct top *top, const struct options *options, const struct settings *settings,
              redlock_t *rl);
/* Ends the thread, if it was started, and frees everything but the client. */
void top_close(struct top *top);

/* Collects everything once: waits until the state of all servers is known, searches until all locks
 * were found or no server can be searched, and inspects them. Blocks. */
void top_collect(struct top *top);

/* Starts the thread that collects. Returns 0 or an errno value. */
int top_start(struct top *top);

/* Asks the thread to break a lock, if `owner` still holds it. `message` says later what became of
 * it. */
void top_break(struct top *top, const char *name, const char *owner);

#endif
