/* SPDX-License-Identifier: MIT
 * Measures PING over sockets and poll, with TLS if the measured connections have it. */
#include "server_limits.h"

#include "baseline_tls.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#define REPLY_LEN 7    /* bytes of +PONG\r\n */
#define WAIT_MS   5000 /* time without a reply after which the measurement fails */

/* The connections, one for each server. */
struct links {
    size_t count;
    struct pollfd fds[SERVERS_MAX];
    struct ssl_st *ssl[SERVERS_MAX]; /* the TLS state of each; NULL: without TLS */
};

/* Sends one PING to each server. Returns 0 or -1. */
static int request_all(const struct links *links)
{
    static const char ping[] = "*1\r\n$4\r\nPING\r\n";
    const size_t len = sizeof ping - 1;
    for (size_t i = 0; i < links->count; i++) {
        ssize_t put = links->ssl[i] != NULL ? baseline_tls_send(links->ssl[i], ping, len)
                                            : send(links->fds[i].fd, ping, len, MSG_NOSIGNAL);
        if (put != (ssize_t)len)
            return -1;
    }
    return 0;
}

/* Sends one PING to each server and waits for all replies. Records the time of the q-th reply.
 * Returns 0 or -1. */
static int one_round(struct links *links, struct result *result)
{
    char bytes[64];
    size_t got[SERVERS_MAX] = {0}, replies = 0, count = links->count;
    struct pollfd *fds = links->fds;
    uint64_t start_ns = result_now_ns();
    if (request_all(links) != 0)
        return -1;
    while (replies < count) {
        if (poll(fds, (nfds_t)count, WAIT_MS) <= 0)
            return -1;
        for (size_t i = 0; i < count; i++) {
            if (fds[i].revents == 0)
                continue;
            ssize_t len = links->ssl[i] != NULL
                              ? baseline_tls_receive(links->ssl[i], bytes, sizeof bytes)
                              : recv(fds[i].fd, bytes, sizeof bytes, 0);
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
    struct links links = {.count = 0};
    bool failed = false;
    for (size_t i = 0; i < servers->count && !failed; i++) {
        const struct server *server = &servers->list[i];
        int fd = servers_connect(server, servers->tls, error, error_size);
        failed = fd < 0;
        if (failed)
            break;
        links.fds[links.count++] = (struct pollfd){.fd = fd, .events = POLLIN};
        if (servers->tls)
            failed = (links.ssl[i] = baseline_tls_open(fd, server, error, error_size)) == NULL;
    }
    uint64_t start_ns = result_now_ns();
    for (uint64_t i = 0; i < count && !failed; i++) {
        failed = one_round(&links, result) != 0;
        if (failed)
            snprintf(error, error_size, "a server does not reply to PING");
        if (budget_ns != 0 && result_now_ns() - start_ns > budget_ns)
            break;
    }
    result->elapsed_ns += result_now_ns() - start_ns;
    for (size_t i = 0; i < links.count; i++) {
        baseline_tls_close(links.ssl[i]);
        (void)close(links.fds[i].fd);
    }
    return failed ? -1 : 0;
}
