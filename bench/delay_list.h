/* SPDX-License-Identifier: MIT
 * From a list of servers to a proxy before each of them, and the list that leads through it. */
#ifndef BENCH_DELAY_LIST_H
#define BENCH_DELAY_LIST_H

#include "delay.h"
#include "servers.h"

struct delay_list {
    struct delay_node nodes[DELAY_NODES_MAX];
    char text[SERVERS_TEXT_MAX]; /* like the list that was given, by way of the proxy */
};

/* `delays` and `jitters` as in delay_parse_times(). NULL and a text in `error` on failure. The list
 * borrows from `servers`. */
struct delay *delay_list_open(struct delay_list *list, const struct servers *servers,
                              const char *delays, const char *jitters, uint64_t seed, char *error,
                              size_t error_size);

#endif
