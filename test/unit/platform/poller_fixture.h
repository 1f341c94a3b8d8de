/* SPDX-License-Identifier: MIT
 * A poller, three pairs of sockets, and an outer poll() that watches the poller's descriptor. */
#ifndef TEST_UNIT_POLLER_FIXTURE_H
#define TEST_UNIT_POLLER_FIXTURE_H

#include "platform/poller.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "suite.h"

#define DEADLINE_MS 10000 /* a limit for events that happen at once */

static struct rl_poller poller;
static int pair[3][2]; /* both ends of each pair; -1: closed by the case */

/* Fixture: opens the poller and three pairs of connected, non-blocking sockets. The poller does
 * not watch the sockets yet. */
static inline void setup(void)
{
    ck_assert_int_eq(rl_poller_open(&poller), 0);
    for (unsigned i = 0; i < 3; i++)
        ck_assert_int_eq(
            socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair[i]), 0);
}

/* Fixture: closes the sockets that are still open, and the poller. */
static inline void teardown(void)
{
    for (unsigned i = 0; i < 3; i++)
        for (unsigned j = 0; j < 2; j++)
            if (pair[i][j] >= 0)
                close(pair[i][j]);
    rl_poller_close(&poller);
}

/* Waits until the poller's descriptor is readable. Returns false at the timeout. */
static inline bool is_readable(int timeout_ms)
{
    struct pollfd fd = {.fd = rl_poller_fd(&poller), .events = POLLIN};
    int got = poll(&fd, 1, timeout_ms);
    ck_assert_int_ge(got, 0);
    return got == 1;
}

#endif
