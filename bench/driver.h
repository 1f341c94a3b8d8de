/* SPDX-License-Identifier: MIT
 * The protocol of the drivers of the comparison (bench/peers/README.md), in C: arguments, slices,
 * and the lines that a driver prints. */
#ifndef BENCH_DRIVER_H
#define BENCH_DRIVER_H

#include "result.h"

#include <stdbool.h>
#include <stdint.h>

/* The arguments of a driver. Borrows its texts from argv. */
struct driver_task {
    const char *servers;  /* list of URLs */
    const char *resource; /* name of the resource, or the beginning of the names */
    uint64_t ttl_ms;
    uint64_t hold_us;      /* time between grant and release */
    unsigned first, count; /* this process runs the callers `first` to `first` + `count` - 1 */
    bool own; /* each caller has a resource of its own, <resource><caller>; false: all contend */
};

/* The records of one caller in one slice: a list that grows. The caller of driver_note() owns it
 * and frees `list`. All times are CLOCK_MONOTONIC. */
struct driver_notes {
    struct driver_note {
        uint64_t want_ns;    /* first call of acquire */
        uint64_t grant_ns;   /* return of acquire with the lock */
        uint64_t release_ns; /* call of release, or the deadline of the lock if that was earlier */
        uint64_t done_ns;    /* return of release, or of the call that failed */
        int status;          /* 0: the lock was held; otherwise REDLOCK_E... of the failed call */
    } * list;
    size_t count, size; /* entries in use, entries allocated */
};

/* Parses the arguments: SERVERS RESOURCE TTL_MS HOLD_US FIRST COUNT [own]. Returns false after a
 * line on stderr if they are not valid. */
bool driver_parse(struct driver_task *ret_task, int argc, char **argv);
/* Writes the name of the resource of one caller, from 0. */
void driver_name(const struct driver_task *task, unsigned caller, char *name, size_t size);

/* Reports on standard output that the driver is connected. */
void driver_ready(void);
/* Waits on standard input for the next slice and returns its end (CLOCK_MONOTONIC). Returns false
 * if there are no more slices. */
bool driver_next(uint64_t *ret_end_ns);

/* Appends a record. Aborts if out of memory. */
void driver_note(struct driver_notes *notes, const struct driver_note *note);
/* Prints the records of one caller as lines and empties the list. `word` returns the text for a
 * status that is not 0. */
void driver_print(struct driver_notes *notes, unsigned caller, const char *(*word)(int status));
/* Reports on standard output that the slice has ended and that all its lines are printed. */
void driver_over(void);

#endif
