/* SPDX-License-Identifier: MIT
 * Measures PING over plain sockets and poll. */
#include "server_limits.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#define REPLY_LEN 7    /* bytes of +PONG\r\n */
#define WAIT_MS   5000 /* time without a reply after which the measurement fails */

/* Sends one PING to each server. Returns 0 or -1. */
static int request_all(const struct pollfd *fds, size_t count)
{
    static const char ping[] = "*1\r\n$4\r\nPING\r\n";
    for (size_t i = 0; i < count; i++) {
        if (send(fds[i].fd, ping, sizeof ping - 1, MSG_NOSIGNAL) != (ssize_t)(sizeof ping - 1))
            return -1;
    }
    return 0;
}

/* Sends one PING to each server and waits for all replies. Records the time of the q-th reply.
 * Returns 0 or -1. */
static int one_round(struct pollfd *fds, size_t count, struct result *result)
{
    char bytes[64];
    size_t got[SERVERS_MAX] = {0}, replies = 0;
    uint64_t start_ns = result_now_ns();
    if (request_all(fds, count) != 0)
        return -1;
    while (replies < count) {
        if (poll(fds, (nfds_t)count, WAIT_MS) <= 0)
            return -1;
        for (size_t i = 0; i < count; i++) {
            if (fds[i].revents == 0)
                continue;
            ssize_t len = recv(fds[i].fd, bytes, sizeof bytes, 0);
            if (len <= 0 && (len == 0 || (errno != EAGAIN && errno != EINTR)))
                return -1;
            got[i] += len > 0 ? (size_t)len : 0;
            if (len <= 0 || got[i] != REPLY_LEN)
                continue;
            if (++replies == count / 2 + 1) {
                uint64_t took_ns = result_now_ns() - start_ns;
                histogram_record(&result->acquire, took_ns);
                histogram_record(&result->pair, took_ns);
            }
        }
    }
    result->pairs++;
    result->attempts++;
    return 0;
}

/* Measures round trips of PING to all servers at once; each one ends with the reply of the q-th
 * server (q: quorum). */
int ping_run(const struct servers *servers, uint64_t count, uint64_t budget_ns,
             struct result *result, char *error, size_t error_size)
{
    struct pollfd fds[SERVERS_MAX];
    size_t opened = 0;
    int failed = 0;
    for (; opened < servers->count && failed == 0; opened += failed == 0) {
        fds[opened] = (struct pollfd){
            .fd = servers_connect(&servers->list[opened], error, error_size), .events = POLLIN};
        failed = fds[opened].fd < 0;
    }
    uint64_t start_ns = result_now_ns();
    for (uint64_t i = 0; i < count && failed == 0; i++) {
        failed = one_round(fds, servers->count, result);
        if (failed != 0)
            snprintf(error, error_size, "a server does not reply to PING");
        if (budget_ns != 0 && result_now_ns() - start_ns > budget_ns)
            break;
    }
    result->elapsed_ns += result_now_ns() - start_ns;
    while (opened > 0)
        (void)close(fds[--opened].fd);
    return failed == 0 ? 0 : -1;
}
