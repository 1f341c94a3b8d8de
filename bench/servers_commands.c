/* SPDX-License-Identifier: MIT
 * Reads the numbers of executed commands from INFO commandstats. */
#include "servers_commands.h"

#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>

/* Adds `calls` to the counter of the command whose name is the `len` characters at `name`. */
static void add(struct commands *commands, const char *name, size_t len, uint64_t calls)
{
    size_t i = 0;
    if (len >= sizeof commands->list[0].name)
        return;
    while (i < commands->count &&
           (strncmp(commands->list[i].name, name, len) != 0 || commands->list[i].name[len] != '\0'))
        i++;
    if (i == COMMANDS_MAX)
        return;
    if (i == commands->count) {
        memcpy(commands->list[i].name, name, len);
        commands->count++;
    }
    commands->list[i].calls += calls;
}

/* Adds the counters of one reply, whose lines are like cmdstat_set:calls=12,usec=34,... */
static void read_lines(struct commands *commands, const char *text)
{
    static const char start[] = "cmdstat_", middle[] = ":calls=";
    for (const char *at = strstr(text, start); at != NULL; at = strstr(at, start)) {
        at += strlen(start);
        const char *calls = strstr(at, middle);
        if (calls == NULL)
            return;
        add(commands, at, (size_t)(calls - at), strtoull(calls + strlen(middle), NULL, 10));
    }
}

/* Reads the counters of all servers and adds them up by name. Returns 0, or -1 if a server does not
 * reply. */
int servers_commands(const struct servers *servers, struct commands *ret_commands)
{
    const struct timeval timeout = {.tv_sec = 5, .tv_usec = 0};
    memset(ret_commands, 0, sizeof *ret_commands);
    for (size_t i = 0; i < servers->count; i++) {
        const struct server *server = &servers->list[i];
        redisContext *context = redisConnectWithTimeout(server->host, atoi(server->port), timeout);
        bool fine =
            context != NULL && context->err == 0 && redisSetTimeout(context, timeout) == REDIS_OK;
        redisReply *reply = fine ? redisCommand(context, "INFO commandstats") : NULL;
        fine = reply != NULL && reply->type == REDIS_REPLY_STRING;
        if (fine)
            read_lines(ret_commands, reply->str);
        if (reply != NULL)
            freeReplyObject(reply);
        redisFree(context);
        if (!fine)
            return -1;
    }
    return 0;
}
