/* SPDX-License-Identifier: MIT
 * Opens a proxy in front of each server of a list. */
#ifndef BENCH_DELAY_LIST_H
#define BENCH_DELAY_LIST_H

#include "delay.h"
#include "servers.h"

/* The nodes of a proxy, and the list of URLs that leads clients through it. */
struct delay_list {
    struct delay_node nodes[DELAY_NODES_MAX];
    char text[SERVERS_TEXT_MAX]; /* the list that was given, with the proxy's addresses */
};

/* Opens a proxy for all servers and fills in `list`, which borrows from `servers`. `delays` and
 * `jitters` are as in delay_parse_times(). Returns NULL and a text in `error` on failure. */
struct delay *delay_list_open(struct delay_list *list, const struct servers *servers,
                              const char *delays, const char *jitters, uint64_t seed, char *error,
                              size_t error_size);

#endif
