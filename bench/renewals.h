/* SPDX-License-Identifier: MIT
 * Many locks that are held and renewed by themselves, and nothing else. */
#ifndef BENCH_RENEWALS_H
#define BENCH_RENEWALS_H

#include "client.h"
#include "servers.h"

struct renewals {
    uint64_t fill_per_s;           /* acquisitions a second before */
    uint64_t lost, failed_rounds;  /* locks that were lost; rounds that found no majority */
    uint64_t least_left_ms;        /* of validity, when a renewal was done */
    uint64_t timeouts, reconnects; /* of all servers, with the releases at the end */
    double commands_per_renewal;   /* on all servers */
};

/* Takes settings->resources locks, settings->depth at a time, and holds them for `duration_ms`. In
 * `result` a "pair" is a renewal, and its time is how late it was done: from when a third of the
 * validity was used up to the word of a majority. 0, or -1 and a text in `error`. */
int renewals_run(const struct client_settings *settings, const struct servers *servers,
                 uint64_t duration_ms, struct result *result, struct renewals *ret_renewals,
                 char *error, size_t error_size);

#endif
