/* SPDX-License-Identifier: MIT
 * Several processes want one lock, again and again: how fast does it go from hand to hand? */
#ifndef BENCH_CONTENDED_H
#define BENCH_CONTENDED_H

#include "servers.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CONTENDERS_MAX 256
#define HOLDS_MAX      16384 /* that one contender can note in one measurement */

/* One hold; all times of CLOCK_MONOTONIC, which processes share. */
struct hold {
    uint64_t want_ns;    /* asked for it */
    uint64_t grant_ns;   /* was told that it has it */
    uint64_t release_ns; /* began to give it back, or its validity ended */
    uint32_t contender;
};

/* What one contender did. */
struct contender {
    uint32_t count;
    bool full;           /* it could not note all */
    bool failed;         /* it could not work at all */
    uint64_t waiting_ns; /* it wanted the lock since then when the time was over; 0: it did not */
    uint64_t errors;     /* other than that somebody else had it too long */
    uint64_t acquired, attempts, split_votes;
    uint64_t cpu_ns; /* processor time of its process, from the go to the end */
    struct hold holds[HOLDS_MAX];
};

enum contended_driver { DRIVER_REDLOCK = 0, DRIVER_NODE_REDLOCK = 1, DRIVERS_COUNT };

extern const char *const contended_driver_names[DRIVERS_COUNT];

struct contended_case {
    enum contended_driver driver;
    unsigned contenders;
    uint64_t hold_us;
    const char *delays, *jitters; /* of the proxy; "0" and "0": none */
};

struct contended_settings {
    struct servers servers;
    const char *prefix; /* of all resources */
    const char *peer;   /* the script that node runs; NULL: not to be had */
    uint64_t ttl_ms, run_ms, warm_ms;
    uint64_t seed;
    bool no_notifications;
};

struct contended_result {
    struct contended_case what;
    unsigned run;
    uint64_t trip_idle_ns, trip_ns; /* PING to the q-th node: before, and during the run */
    uint64_t grants, handovers, selfs;
    uint64_t window_ns;
    uint64_t p50_ns, p90_ns, p95_ns, p99_ns, p99_9_ns, max_ns; /* of a hand-over */
    uint64_t wait_max_ns; /* of one acquisition, ended or not */
    double jain;          /* of the numbers of grants */
    uint64_t starved;     /* contenders that never had it */
    double splits_per_grant, attempts_per_grant;
    double client_us_per_grant; /* processor time of all contenders */
    double commands_per_grant;
    char commands[256]; /* by name */
    uint64_t violations, errors;
    long leftover_keys;
};

/* One measurement: 0, or -1 and a text in `error`. */
int contended_run(const struct contended_case *what, struct contended_settings *settings,
                  struct contended_result *ret_result, char *error, size_t error_size);
bool contended_passed(const struct contended_result *result);

/* contender.c: in a process of its own. Says on `ready` that it can begin, does so when `go` is at
 * its end, and stops at *end_ns. */
struct contender_task {
    const char *servers, *resource;
    uint64_t ttl_ms, hold_us;
    int ready, go;
    const uint64_t *end_ns;
    bool no_notifications;
    uint32_t number;
};
void contender_work(const struct contender_task *task, struct contender *self);

/* contended_figures.c: what the holds of all contenders between two times add up to. */
void contended_figures(const struct contender *contenders, unsigned count, uint64_t from_ns,
                       uint64_t to_ns, struct contended_result *result);

/* contended_trip.c: PINGs to all servers of a list. */
struct trips;
struct trips *trips_open(const char *servers);
void trips_ping(struct trips *trips);
/* Median of each server, of these the q-th smallest; and begins anew. */
uint64_t trips_quorum_ns(struct trips *trips);
void trips_close(struct trips *trips);

/* contended_peer.c: processes that run the peer's script. */
struct peers;
struct peers *peers_start(const struct contended_settings *settings, const char *servers,
                          const char *resource, const struct contended_case *what, char *error,
                          size_t error_size);
/* 0, or -1 if one of them is not ready in time. */
int peers_wait_ready(struct peers *peers, uint64_t until_ns);
void peers_go(struct peers *peers, uint64_t end_ns);
/* Reads what they noted and waits for their end, which comes at once if `contenders` is NULL. -1:
 * one of them has failed, or had to be ended. */
int peers_finish(struct peers *peers, struct contender *contenders, unsigned count);

#endif
