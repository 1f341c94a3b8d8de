/* SPDX-License-Identifier: MIT
 * Counts the commands that the servers have executed, by name. */
#ifndef BENCH_SERVERS_COMMANDS_H
#define BENCH_SERVERS_COMMANDS_H

#include "servers.h"

#define COMMANDS_MAX 64 /* names that are counted; further ones are left out */

/* Sums over all servers, since their start. */
struct commands {
    size_t count; /* of list[] */
    struct {
        char name[32];  /* in lower case, as INFO commandstats shows it */
        uint64_t calls; /* executions, also those by scripts */
    } list[COMMANDS_MAX];
};

/* Reads the counters of all servers and adds them up. Returns 0, or -1 if a server does not
 * reply. */
int servers_commands(const struct servers *servers, struct commands *ret_commands);

#endif
