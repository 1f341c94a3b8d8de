/* SPDX-License-Identifier: MIT
 * Names and words for the reasons why a node gave no vote. */
#include "core/cause.h"

#include <redlock/redlock.h>

#define CAUSE(name, text) [REDLOCK_CAUSE_##name] = {"REDLOCK_CAUSE_" #name, text}

/* Indexed by number: the numbers are 0 to the last one, without a gap. */
static const struct {
    const char *name, *text;
} causes[] = {
    CAUSE(NONE, "no failure"),
    CAUSE(TIMEOUT, "no answer in time"),
    CAUSE(RESOLVE, "host name not found"),
    CAUSE(CONNECT, "connection refused or not possible"),
    CAUSE(DISCONNECT, "connection lost"),
    CAUSE(PROTOCOL, "answer is not valid Redis protocol"),
    CAUSE(AUTH, "user or password refused"),
    CAUSE(NOPERM, "user may not run this command on this key"),
    CAUSE(READONLY, "server is read-only"),
    CAUSE(OOM, "server is out of memory"),
    CAUSE(BUSY, "server is busy running a script"),
    CAUSE(WRONGTYPE, "key is not a string"),
    CAUSE(ERROR_REPLY, "server answered with an error"),
    CAUSE(RESTARTED, "server was restarted and may have lost keys"),
    CAUSE(REPLICA, "server is a replica, not a master"),
    CAUSE(LOADING, "server is loading its data"),
    CAUSE(PROMOTED, "server has the data of another master"),
    CAUSE(EVICTING, "server evicts keys when its memory is full"),
    CAUSE(DUPLICATE, "same server as another address in the list"),
    CAUSE(CLOCK_STEP, "clock of the server jumped"),
    CAUSE(NO_INFO, "server does not tell who it is"),
    CAUSE(FENCE, "fence record is not usable"),
    CAUSE(NO_MEMORY, "out of memory in this process"),
    CAUSE(CLUSTER, "server is part of a Redis Cluster"),
    CAUSE(HEALED, "key was put back and does not count yet"),
    CAUSE(FENCE_UNREAD, "its fence record is in use, but too few of the others were read in time"),
    CAUSE(NO_SOCKET, "no socket can be made in this process"),
};
#define CAUSE_COUNT (sizeof causes / sizeof causes[0])

static bool is_known(int cause)
{
    return cause >= 0 && (size_t)cause < CAUSE_COUNT;
}

const char *rl_cause_text(int cause)
{
    return is_known(cause) ? causes[cause].text : "unknown cause";
}

REDLOCK_API const char *redlock_cause_name(int cause)
{
    return is_known(cause) ? causes[cause].name : "REDLOCK_CAUSE_UNKNOWN";
}

REDLOCK_API size_t redlock_cause_count(void)
{
    return CAUSE_COUNT;
}
