/* SPDX-License-Identifier: MIT
 * How many commands the servers have executed, by name. */
#ifndef BENCH_SERVERS_COMMANDS_H
#define BENCH_SERVERS_COMMANDS_H

#include "servers.h"

#define COMMANDS_MAX 64

struct commands {
    size_t count;
    struct {
        char name[32];
        uint64_t calls;
    } list[COMMANDS_MAX];
};

/* Sums of all servers; 0, or -1 if one cannot be asked. */
int servers_commands(const struct servers *servers, struct commands *ret_commands);

#endif
