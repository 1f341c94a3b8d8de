/* SPDX-License-Identifier: MIT
 * A proxy that delays. It listens in front of each server and forwards bytes in both directions
 * later and unchanged. One thread serves all connections.
 *
 * The order of bytes within a connection is kept, whatever the jitter. The bytes that wait are
 * bounded: at the bound the proxy stops reading. Accepting a connection is not delayed. */
#ifndef BENCH_DELAY_H
#define BENCH_DELAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DELAY_NODES_MAX 31 /* servers of one proxy, as many as SERVERS_MAX */
/* Bytes that may wait in one direction of one connection. */
#define DELAY_HELD_MAX ((size_t)1 << 20)

/* One server. The caller fills it in; delay_open() sets local_port. */
struct delay_node {
    const char *host, *port; /* of the server; borrowed until delay_open() returns */
    uint64_t delay_us;       /* in each direction: a round trip takes twice as long */
    uint64_t jitter_us;      /* additional random delay, 0 to this, drawn for each read */
    unsigned local_port;     /* where the proxy listens on 127.0.0.1 */
};

struct delay;

/* Listens for all nodes, at most DELAY_NODES_MAX. `seed` determines the jitter. Returns NULL and a
 * text in `error` on failure. */
struct delay *delay_open(struct delay_node *nodes, size_t count, uint64_t seed, char *error,
                         size_t error_size);

/* Forwards until the pipe `control` ends. Its lines change the proxy; N is a node, from 0, and TIME
 * as in delay_parse_time(): "delay N TIME", "jitter N TIME", "stall N" (forwards nothing), "go N"
 * (forwards again). Returns 0, or -1 with errno. */
int delay_run(struct delay *delay, int control);

/* Closes all connections and frees the proxy; NULL does nothing. */
void delay_close(struct delay *delay);

/* Parses "5ms", "250us", "1s" or "0" in the first `len` characters of `text`; a number alone is in
 * milliseconds. Returns false if that is no time, or more than a minute. */
bool delay_parse_time(const char *text, size_t len, uint64_t *ret_us);
/* Parses a list of times separated by commas, one for each node or one for all nodes, into `nodes`
 * values. Returns false if the list is not valid. */
bool delay_parse_times(const char *list, size_t nodes, uint64_t *ret_us);

#endif
