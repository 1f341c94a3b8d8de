/* SPDX-License-Identifier: MIT
 * The form that all drivers of the comparison have (peers/README.md), in C: what they are told, and
 * what they note and print. */
#ifndef BENCH_DRIVER_H
#define BENCH_DRIVER_H

#include "result.h"

#include <stdbool.h>
#include <stdint.h>

struct driver_task {
    const char *servers, *resource;
    uint64_t ttl_ms, hold_us;
    unsigned first, count; /* callers */
    bool own;              /* each has a resource of its own */
};

/* What a caller notes in one slice; grows as it must. */
struct driver_notes {
    struct driver_note {
        uint64_t want_ns, grant_ns, release_ns, done_ns;
        int status; /* 0: held */
    } * list;
    size_t count, size;
};

/* Six or seven words; says on stderr what is wrong. */
bool driver_parse(struct driver_task *ret_task, int argc, char **argv);
void driver_name(const struct driver_task *task, unsigned caller, char *name, size_t size);

void driver_ready(void);
/* Waits for the end of the next slice. False: there is none. */
bool driver_next(uint64_t *ret_end_ns);

void driver_note(struct driver_notes *notes, const struct driver_note *note);
/* Prints and empties them. `word` makes a word of a status that is not 0. */
void driver_print(struct driver_notes *notes, unsigned caller, const char *(*word)(int status));
/* The slice is over. */
void driver_over(void);

#endif
