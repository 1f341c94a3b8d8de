/* SPDX-License-Identifier: MIT
 * Several processes contend for one lock again and again. Measures how long a hand-over from one
 * holder to the next one takes, and how fairly the contenders share the lock.
 *
 * A hand-over is a release by one contender and the following grant to another contender. */
#ifndef BENCH_CONTENDED_H
#define BENCH_CONTENDED_H

#include "servers.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CONTENDERS_MAX 256 /* contenders of one measurement */
/* Holds that one contender can record in one measurement. */
#define HOLDS_MAX 16384

/* One period in which a contender held the lock. All times are CLOCK_MONOTONIC, which the processes
 * of one machine share. */
struct hold {
    uint64_t want_ns;    /* call of acquire */
    uint64_t grant_ns;   /* return of acquire with the lock */
    uint64_t release_ns; /* call of release, or the deadline of the lock if that was earlier */
    uint32_t contender;  /* number of the holder, from 0 */
};

/* Record of one contender, in memory that all processes share. Its contender writes it; the parent
 * reads it after the end of the measurement. */
struct contender {
    uint32_t count;       /* of holds[] */
    bool full;            /* holds[] was too small for all holds */
    bool failed;          /* the contender could not work at all */
    uint64_t waiting_ns;  /* start of a wait that the end of the measurement cut short; 0: none */
    uint64_t errors;      /* failed calls, except timeouts because another contender had the lock */
    uint64_t acquired;    /* locks acquired */
    uint64_t attempts;    /* attempts that began */
    uint64_t split_votes; /* failed attempts that at least one server had granted */
    uint64_t requests;    /* DRIVER_REDLOCK: requests about the lock, to all servers */
    uint64_t notifications; /* DRIVER_REDLOCK: notifications that arrived, turns included */
    /* Processor time of the process during the measurement. DRIVER_NODE_REDLOCK: contender 0 has
     * that of all processes, the others have 0. */
    uint64_t cpu_ns;
    struct hold holds[HOLDS_MAX];
};

/* What the contenders run: this library; node-redlock; the fair lock of Redisson, which is kept on
 * the first server only. */
enum contended_driver {
    DRIVER_REDLOCK = 0,
    DRIVER_NODE_REDLOCK = 1,
    DRIVER_REDISSON_FAIR = 2,
    DRIVERS_COUNT
};

/* Names of the drivers, by enum contended_driver. */
extern const char *const contended_driver_names[DRIVERS_COUNT];

/* One point of the measurement. Borrows its texts. */
struct contended_case {
    enum contended_driver driver;
    unsigned contenders; /* 2 to CONTENDERS_MAX */
    uint64_t hold_us;    /* time between grant and release */
    /* Delay and jitter that the proxy adds, as in delay_parse_times(). "0" and "0": no proxy. */
    const char *delays, *jitters;
};

/* The settings that all cases share. Borrows its texts. */
struct contended_settings {
    struct servers servers;
    const char *prefix;   /* of the names of all resources */
    const char *peer;     /* script that node runs for DRIVER_NODE_REDLOCK; NULL: none */
    const char *redisson; /* directory in which the driver of Redisson is installed; NULL: none */
    uint64_t ttl_ms;
    uint64_t run_ms;       /* length of one measurement */
    uint64_t warm_ms;      /* beginning of run_ms whose grants do not count */
    uint64_t seed;         /* of the names and of the jitter; each measurement advances it */
    bool no_notifications; /* the library's clients poll and do not use notifications */
};

/* The result of one measurement. Latencies are those of hand-overs. */
struct contended_result {
    struct contended_case what;
    unsigned run; /* repetition, from 1 */
    /* Round trip of PING to the q-th fastest server (q: quorum), before and during the run. */
    uint64_t trip_idle_ns, trip_ns;
    uint64_t grants;    /* locks acquired in the window */
    uint64_t handovers; /* of these, grants to another contender than the one before */
    uint64_t selfs;     /* of these, grants to the same contender again */
    uint64_t window_ns; /* time that counts: run_ms without warm_ms */
    /* From the call of release by one holder to the grant of the next one. */
    uint64_t p50_ns, p90_ns, p95_ns, p99_ns, p99_9_ns, max_ns;
    uint64_t wait_max_ns; /* longest wait of one acquisition, finished or cut short by the end */
    double jain;          /* Jain's fairness index of the grants by contender; 1: equal shares */
    uint64_t starved;     /* contenders without any grant */
    double splits_per_grant, attempts_per_grant;
    double client_us_per_grant; /* processor time of all contenders */
    double commands_per_grant;  /* commands that the servers received, without those of upkeep */
    double upkeep_per_grant;    /* commands that each client sends anyway: greetings, heartbeats */
    double notifications_per_grant; /* that arrived at the contenders of DRIVER_REDLOCK */
    double turns_per_grant;         /* notifications of a turn that servers have sent (PUBLISH) */
    char commands[256];  /* commands by name: "set 1.20, evalsha 1.00"; with those of scripts */
    uint64_t violations; /* grants while another contender held the lock */
    uint64_t errors;     /* failed calls, and contenders that failed or ran out of room */
    long leftover_keys;  /* keys with the prefix after the end; -1: could not be counted */
};

/* Runs one measurement: starts proxy and contenders, waits for their end and removes all processes.
 * Returns 0, or -1 and a text in `error`. */
int contended_run(const struct contended_case *what, struct contended_settings *settings,
                  struct contended_result *ret_result, char *error, size_t error_size);
/* Returns true without violations and leftover keys, if at most one in a hundred grants met an
 * error. */
bool contended_passed(const struct contended_result *result);

/* The task of one process of DRIVER_REDLOCK. Borrows its texts. */
struct contender_task {
    const char *servers, *resource;
    uint64_t ttl_ms, hold_us; /* TTL of the lock; time between grant and release */
    int ready; /* pipe to the parent: the contender writes 'r' when ready, 'x' after a failure */
    int go;    /* pipe from the parent: its end is the start signal */
    /* CLOCK_MONOTONIC time of the end, in shared memory; valid after the start signal. */
    const uint64_t *end_ns;
    bool no_notifications;
    uint32_t number; /* of this contender, from 0 */
};

/* contender.c. Runs one contender until *task->end_ns and records its work in `self`. Called in a
 * process of its own. */
void contender_work(const struct contender_task *task, struct contender *self);

/* contended_figures.c. Computes the figures of `result` from what `count` contenders recorded.
 * Grants from from_ns up to to_ns count; violations are counted at any time. */
void contended_figures(const struct contender *contenders, unsigned count, uint64_t from_ns,
                       uint64_t to_ns, struct contended_result *result);

/* contended_trip.c. Connections that measure round trips with PING to all servers. */
struct trips;
/* Connects to the servers of the list of URLs `list`, which are those of `measured`, maybe through
 * a proxy; with TLS if they are measured over TLS. Returns NULL if one of them is not reachable. */
struct trips *trips_open(const struct servers *measured, const char *list);
/* Sends one PING to each server in turn and records how long the reply took. */
void trips_ping(struct trips *trips);
/* Returns the q-th smallest (q: quorum) of the servers' median round trips, and forgets all
 * samples. UINT64_MAX if fewer than q servers replied. */
uint64_t trips_quorum_ns(struct trips *trips);
/* Closes the connections; NULL does nothing. */
void trips_close(struct trips *trips);

/* contended_peer.c. The processes that run the driver of another library (bench/peers). */
struct peers;
/* Starts a few processes and divides the contenders of `what` among them. Returns NULL and a text
 * in `error` on failure. */
struct peers *peers_start(const struct contended_settings *settings, const char *servers,
                          const char *resource, const struct contended_case *what, char *error,
                          size_t error_size);
/* Waits until all processes have connected. Returns 0, or -1 if one is not ready at until_ns. */
int peers_wait_ready(struct peers *peers, uint64_t until_ns);
/* Starts the measurement, which ends at end_ns (CLOCK_MONOTONIC). */
void peers_go(struct peers *peers, uint64_t end_ns);
/* Reads the records of all processes into `contenders`, waits until the processes have ended, and
 * frees `peers`. With NULL it kills the processes instead. Returns 0, or -1 if a process has failed
 * or was killed. */
int peers_finish(struct peers *peers, struct contender *contenders, unsigned count);

#endif
