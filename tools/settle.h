/* SPDX-License-Identifier: MIT
 * How long a command that acquires a lock waits for the first reply of each server. The lock does
 * not need the wait, but a server that is listed twice is found before the first lock this way. A
 * server that does not reply must not delay the command: once a majority has replied, the others
 * get about as much time again.
 *
 * Time is counted in naps of a millisecond and not by a clock, so that servers have as many chances
 * to reply on a busy machine, where naps are longer. */
#ifndef TOOLS_SETTLE_H
#define TOOLS_SETTLE_H

#include <stdbool.h>
#include <stddef.h>

#define SETTLE_NAPS_MAX  150 /* most naps, also without a majority */
#define SETTLE_NAPS_MORE 10  /* naps after a majority has replied, beside those before it */

/* The naps of one wait. All zero at its begin. */
struct settle {
    unsigned naps;     /* how many naps were taken */
    unsigned majority; /* how many of them before a majority had replied */
};

/* Returns whether the command takes another nap, and counts it. `replied` of `count` servers have
 * replied, or have a cause why they cannot. */
bool settle_naps_on(struct settle *settle, size_t replied, size_t count);

#endif
