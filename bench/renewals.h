/* SPDX-License-Identifier: MIT
 * Measures many locks that are held and extended automatically, without any other load. */
#ifndef BENCH_RENEWALS_H
#define BENCH_RENEWALS_H

#include "client.h"
#include "servers.h"

/* The measurements besides struct result. */
struct renewals {
    uint64_t fill_per_s;         /* acquisitions per second before the locks were held */
    uint64_t lost;               /* locks that were lost */
    uint64_t failed_rounds;      /* extensions that a majority did not grant */
    uint64_t least_left_ms;      /* smallest validity that was left when an extension ended */
    uint64_t timeouts;           /* requests without a reply in time, of all nodes, until the end */
    uint64_t reconnects;         /* of all nodes, until the end */
    double commands_per_renewal; /* on all servers */
};

/* Acquires settings->resources locks, settings->depth at a time, and holds them for `duration_ms`.
 * In `result` a "pair" is an extension. Its time is the delay from the moment at which a third of
 * the validity is used up to the grant by a majority. Returns 0, or -1 and a text in `error`. */
int renewals_run(const struct client_settings *settings, const struct servers *servers,
                 uint64_t duration_ms, struct result *result, struct renewals *ret_renewals,
                 char *error, size_t error_size);

#endif
