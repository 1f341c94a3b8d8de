/* SPDX-License-Identifier: MIT
 * The table of causes. */
#include "core/cause.h"

#include <redlock/redlock.h>

/* One row: the name from the cause, then the text, then the properties that are true or not 0. */
#define CAUSE(cause, ...)                                                                          \
    [REDLOCK_CAUSE_##cause] = {.name = "REDLOCK_CAUSE_" #cause, .text = __VA_ARGS__}

/* Indexed by cause; the numbers have no gaps. LOADING and READONLY do not set `retry_slowly`: a
 * loading server is ready soon, and the handshake of the next connection finds out why a server has
 * become read-only. */
static const struct rl_cause causes[] = {
    CAUSE(NONE, "no failure"),
    CAUSE(TIMEOUT, "no reply in time", .unanswered = true),
    CAUSE(RESOLVE, "host name not found"),
    CAUSE(CONNECT, "connection refused or not possible"),
    CAUSE(DISCONNECT, "connection lost", .unanswered = true),
    CAUSE(PROTOCOL, "reply is not valid Redis protocol"),
    CAUSE(AUTH, "user or password refused", .status = REDLOCK_EAUTH, .retry_slowly = true),
    CAUSE(NOPERM, "user may not run this command on this key", .status = REDLOCK_EAUTH,
          .shows_reply = true),
    CAUSE(READONLY, "server is read-only", .status = REDLOCK_EEXCLUDED),
    CAUSE(OOM, "server is out of memory"),
    CAUSE(BUSY, "server is busy running a script"),
    CAUSE(WRONGTYPE, "key is not a string"),
    CAUSE(ERROR_REPLY, "server replied with an error", .shows_reply = true),
    CAUSE(RESTARTED, "server was restarted and may have lost keys", .excludes = true),
    CAUSE(REPLICA, "server is a replica", .status = REDLOCK_EEXCLUDED, .retry_slowly = true),
    CAUSE(LOADING, "server is loading its data", .status = REDLOCK_EEXCLUDED),
    CAUSE(PROMOTED, "server has the data of another server", .excludes = true),
    CAUSE(EVICTING, "server evicts keys when its memory is full", .excludes = true),
    CAUSE(DUPLICATE, "same server as another address in the list", .status = REDLOCK_EEXCLUDED,
          .retry_slowly = true),
    CAUSE(CLOCK_STEP, "clock of the server jumped", .excludes = true),
    CAUSE(NO_INFO, "server does not report its identity", .excludes = true),
    CAUSE(FENCE_RECORD, "fence record is not usable", .excludes = true),
    CAUSE(NO_MEMORY, "out of memory in this process", .status = REDLOCK_ENOMEM),
    CAUSE(CLUSTER, "server is part of a Redis Cluster", .status = REDLOCK_EEXCLUDED,
          .retry_slowly = true),
    CAUSE(HEALED, "key was set again and does not count yet"),
    CAUSE(FENCE_RECORDS_UNREAD,
          "its fence record is in use, but too few of the others were read in time"),
    CAUSE(NO_SOCKET, "this process cannot create a socket"),
    CAUSE(TLS, "TLS has failed, or a certificate was refused", .status = REDLOCK_EEXCLUDED,
          .retry_slowly = true, .shows_reply = true),
    CAUSE(PROTECTED,
          "server is in protected mode: set requirepass, or protected-mode no if its network is "
          "trusted",
          .status = REDLOCK_EEXCLUDED, .retry_slowly = true),
    CAUSE(SENTINEL, "this is a Sentinel, not a server: give the addresses of the masters",
          .status = REDLOCK_EEXCLUDED, .retry_slowly = true),
    CAUSE(NO_SCRIPTS, "server does not know EVAL, which extends and releases locks",
          .status = REDLOCK_EEXCLUDED, .retry_slowly = true),
};
/* Number of causes, NONE included. */
#define CAUSE_COUNT (sizeof causes / sizeof causes[0])

/* Returns the row of `cause`, or for an unknown number the row `unknown`. */
const struct rl_cause *rl_cause_of(int cause)
{
    static const struct rl_cause unknown = {.name = "REDLOCK_CAUSE_UNKNOWN",
                                            .text = "unknown cause"};

    return cause >= 0 && (size_t)cause < CAUSE_COUNT ? &causes[cause] : &unknown;
}

/* Returns the name of a cause, such as "REDLOCK_CAUSE_TIMEOUT". */
REDLOCK_API const char *redlock_cause_name(int cause)
{
    return rl_cause_of(cause)->name;
}

/* Returns the number of causes; they are 0 (NONE) to that number - 1. */
REDLOCK_API size_t redlock_cause_count(void)
{
    return CAUSE_COUNT;
}
