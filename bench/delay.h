/* SPDX-License-Identifier: MIT
 * A proxy that delays: stands in front of each server and hands on bytes in both directions, later,
 * and otherwise as they came. One thread. The order within a connection is kept whatever the
 * jitter; what is held back is bounded, then the proxy stops reading. Connections are accepted
 * without a delay. */
#ifndef BENCH_DELAY_H
#define BENCH_DELAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DELAY_NODES_MAX 31
/* Held back for one direction of one connection. */
#define DELAY_HELD_MAX ((size_t)1 << 20)

struct delay_node {
    const char *host, *port; /* where it hands on to; borrowed */
    uint64_t delay_us;       /* in each direction: a round trip takes twice as long */
    uint64_t jitter_us;      /* plus 0 to so much, drawn for whatever is read at once */
    unsigned local_port;     /* where it listens on 127.0.0.1; filled in */
};

struct delay;

/* Listens for all nodes; NULL and a text in `error` if that fails. `seed` is that of the jitter. */
struct delay *delay_open(struct delay_node *nodes, size_t count, uint64_t seed, char *error,
                         size_t error_size);

/* Works until `control` (a pipe) is at its end. It takes lines: "delay N TIME", "jitter N TIME",
 * "stall N" (hands on nothing until) "go N"; N counts from 0, TIME as in delay_parse_time(). 0, or
 * -1 with errno. */
int delay_run(struct delay *delay, int control);

void delay_close(struct delay *delay);

/* "5ms", "250us", "1s", "0"; a number alone is milliseconds. At most a minute. */
bool delay_parse_time(const char *text, size_t len, uint64_t *ret_us);
/* A list of times by comma, one for each node or one for all. */
bool delay_parse_times(const char *list, size_t nodes, uint64_t *ret_us);

#endif
