/* SPDX-License-Identifier: MIT
 * Sends, receives and closes on sockets, and reports what happens on them to the nodes. How they
 * are opened is in socket_open.c. */
#include "node/socket_parts.h"

#include "platform/errno_text.h"
#include "redlock/redlock.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define UNWATCHED    "descriptor cannot be watched"
#define DISCARDS_MAX 256 /* most reads of 4 KiB in discard_replies() */

/* Prepares the connections of a shard, without nodes. */
void rl_sockets_init(struct rl_sockets *sockets, struct rl_poller *poller, uint32_t tag,
                     unsigned keepalive_s)
{
    memset(sockets, 0, sizeof *sockets);
    sockets->poller = poller;
    sockets->tag = tag;
    sockets->keepalive_s = keepalive_s;
}

/* Adds the closed connections of a node: list[index] is the first one, list[index +
 * RL_TRACKER_CONNECTION] the second one, and list[index + RL_TRIAL_CONNECTION] that of a trial. */
void rl_sockets_add(struct rl_sockets *sockets, const struct rl_node_spec *spec,
                    struct rl_node *node, struct rl_tls_context *context)
{
    RL_ASSERT(sockets->count < RL_NODES_MAX && node->index == sockets->count);
    struct rl_socket *first = &sockets->list[sockets->count];
    struct rl_tls_server *server = &sockets->servers[sockets->count];
    *server = (struct rl_tls_server){.context = context, .spec = spec};
    *first = (struct rl_socket){.spec = spec, .node = node, .server = server, .fd = -1};
    first[RL_TRACKER_CONNECTION] = first[RL_TRIAL_CONNECTION] = *first;
    first[RL_TRACKER_CONNECTION].role = RL_SOCKET_TRACKER;
    first[RL_TRIAL_CONNECTION].role = RL_SOCKET_TRIAL;
    sockets->count++;
}

/* Returns the poller tag of the socket. */
uint32_t rl_socket_tag(const struct rl_sockets *sockets, const struct rl_socket *sock)
{
    return sockets->tag + (uint32_t)(sock - sockets->list);
}

/* Frees the TLS state of the socket, if there is one. */
void rl_socket_drop_tls(struct rl_socket *sock)
{
    rl_tls_close(sock->tls);
    sock->tls = NULL;
    sock->securing = false;
}

/* Has the poller watch the socket for writing, or no longer (`on`). Returns false if it cannot; the
 * next call tries again. */
bool rl_socket_watch_writing(struct rl_sockets *sockets, struct rl_socket *sock, bool on)
{
    if (sock->want_write != on &&
        rl_poller_change(sockets->poller, sock->fd, rl_socket_tag(sockets, sock), on) != REDLOCK_OK)
        return false;
    sock->want_write = on;
    return true;
}

/* The next three functions report an event to the node, to its tracker or to its trial. */

/* Reports that `len` bytes were received into the buffer. */
static void report_received(struct rl_sockets *sockets, struct rl_socket *sock, size_t len)
{
    if (sock->role == RL_SOCKET_TRACKER)
        rl_tracker_received(sock->node, sockets->buffer, len, sockets->now_ns);
    else if (sock->role == RL_SOCKET_TRIAL)
        rl_trial_received(sock->node, sockets->buffer, len, sockets->now_ns);
    else
        rl_node_received(sock->node, sockets->buffer, len, sockets->now_ns);
}

/* Reports that the connection has ended, with `cause` (enum redlock_cause); `text` says why. */
static void report_closed(struct rl_sockets *sockets, struct rl_socket *sock, int cause,
                          const char *text)
{
    if (sock->role == RL_SOCKET_TRACKER)
        rl_tracker_closed(sock->node, sockets->now_ns);
    else if (sock->role == RL_SOCKET_TRIAL)
        rl_trial_end(sock->node);
    else
        rl_node_closed(sock->node, cause, text, sockets->now_ns);
}

/* Reports that the socket accepts bytes again. */
static void report_writable(struct rl_sockets *sockets, struct rl_socket *sock)
{
    if (sock->role == RL_SOCKET_TRACKER)
        rl_tracker_flush(sock->node, sockets->now_ns);
    else if (sock->role == RL_SOCKET_REQUESTS)
        rl_node_flush(sock->node, sockets->now_ns);
}

/* Notes as the reason of a failed send() that the poller cannot watch the socket. Returns -1. */
static ssize_t unwatched(struct rl_sockets *sockets)
{
    snprintf(sockets->reason, sizeof sockets->reason, UNWATCHED);
    return -1;
}

/* Encrypts and sends as many records as the kernel takes. Returns as socket_send(). After a reset
 * by the server it sends nothing; receive_tls() then reports the end of the connection, with its
 * reason. */
static ssize_t send_tls(struct rl_sockets *sockets, struct rl_socket *sock, const char *bytes,
                        size_t len)
{
    size_t done = 0;
    ssize_t sent;

    do {
        sent = rl_tls_send(sock->tls, bytes + done, len - done);
        done += sent > 0 ? (size_t)sent : 0;
    } while (sent > 0 && done < len);
    /* Records that were sent must count. The next call fails, or receive_tls() finds out why. */
    if (sent < 0 && (done > 0 || rl_tls_is_reset(sock->tls)))
        return rl_socket_watch_writing(sockets, sock, true) || done > 0 ? (ssize_t)done
                                                                        : unwatched(sockets);
    if (sent < 0) {
        snprintf(sockets->reason, sizeof sockets->reason, "%s", rl_tls_text(sock->tls));
        return -1;
    }
    if (!rl_socket_watch_writing(sockets, sock, rl_tls_has_rest(sock->tls)) && done == 0)
        return unwatched(sockets);
    return (ssize_t)done;
}

/* Implements rl_transport.send: returns how many bytes the socket has accepted, or -1 if the
 * connection is broken. Has the poller watch the socket for writing if it did not accept all bytes.
 */
static ssize_t socket_send(void *ctx, unsigned connection, const char *bytes, size_t len)
{
    struct rl_sockets *sockets = ctx;
    struct rl_socket *sock = &sockets->list[connection];
    ssize_t sent;

    RL_ASSERT(sock->fd >= 0 && len > 0);
    if (sock->tls != NULL)
        return send_tls(sockets, sock, bytes, len);
    do {
        sent = send(sock->fd, bytes, len, MSG_NOSIGNAL | MSG_DONTWAIT);
    } while (sent < 0 && errno == EINTR);
    if (sent < 0 && errno != EAGAIN && errno != EWOULDBLOCK) {
        snprintf(sockets->reason, sizeof sockets->reason, "connection lost: %s",
                 rl_errno_text(errno));
        return -1;
    }
    if (sent < (ssize_t)len && !rl_socket_watch_writing(sockets, sock, true))
        return unwatched(sockets);
    return sent < 0 ? 0 : sent;
}

/* Implements rl_transport.reason. */
static const char *socket_reason(void *ctx, unsigned connection)
{
    (void)connection;
    return ((struct rl_sockets *)ctx)->reason;
}

/* Implements rl_transport.held. */
static uint64_t socket_held(void *ctx, unsigned connection)
{
    const struct rl_socket *sock = &((struct rl_sockets *)ctx)->list[connection];

    return sock->tls != NULL ? rl_tls_held(sock->tls) : 0;
}

/* Implements rl_transport.reach. */
static uint64_t socket_reach(void *ctx, unsigned connection, uint64_t unread)
{
    const struct rl_socket *sock = &((struct rl_sockets *)ctx)->list[connection];

    return sock->tls != NULL ? rl_tls_reach(sock->tls, unread) : RL_READ_AT_ONCE;
}

/* Reads and discards what has been received. If a socket is closed with unread bytes, the kernel
 * resets the connection; a server that writes then abandons it without reading the rest, which may
 * contain an undo that was just sent. */
static void discard_replies(int fd)
{
    char bytes[4096];

    for (unsigned i = 0; i < DISCARDS_MAX; i++) {
        if (recv(fd, bytes, sizeof bytes, MSG_DONTWAIT) <= 0)
            return;
    }
}

/* Implements rl_transport.close: closes the socket, if it is open. `abortive`: with a reset, which
 * discards bytes that were not delivered. A running look-up continues. */
static void socket_close(void *ctx, unsigned connection, bool abortive)
{
    struct rl_sockets *sockets = ctx;
    struct rl_socket *sock = &sockets->list[connection];
    const struct linger reset = {.l_onoff = 1, .l_linger = 0};

    sock->gave_up_files = sock->waits_for_files;
    rl_socket_set_waiting(sockets, sock, false);
    if (sock->fd < 0)
        return; /* a running look-up is kept for the next attempt */
    rl_socket_drop_tls(sock);
    rl_poller_remove(sockets->poller, sock->fd);
    if (abortive)
        (void)setsockopt(sock->fd, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
    else
        discard_replies(sock->fd); /* right before close(), because more replies may arrive */
    close(sock->fd);
    sock->fd = -1;
    sock->connecting = false;
}

/* Returns the transport that works on `sockets`. */
struct rl_transport rl_sockets_transport(struct rl_sockets *sockets)
{
    return (struct rl_transport){
        .open = rl_socket_open,
        .send = socket_send,
        .close = socket_close,
        .held = socket_held,
        .reach = socket_reach,
        .reason = socket_reason,
        .ctx = sockets,
    };
}

/* Decrypts what has arrived, and reports the bytes or the end of the connection. Returns true if
 * the function must be called again before the poller reports the socket again. */
static bool receive_tls(struct rl_sockets *sockets, struct rl_socket *sock, unsigned turn)
{
    char text[RL_TEXT_MAX];
    size_t len = 0;
    bool more = false;

    if (turn == 0)
        rl_tls_permit(sock->tls, RL_RECEIVES_PER_TICK);
    enum rl_tls_result result =
        rl_tls_receive(sock->tls, sockets->buffer, sizeof sockets->buffer, &len, &more);
    bool reset = rl_tls_is_reset(sock->tls);
    if (result == RL_TLS_AGAIN && reset) {
        /* In a later turn, bytes that say why may have arrived: the next tick reads them. */
        if (turn == 0)
            report_closed(sockets, sock, REDLOCK_CAUSE_DISCONNECT, RL_TEXT_RESET);
        return false;
    }
    if (result != RL_TLS_FAILED && !reset &&
        !rl_socket_watch_writing(sockets, sock, rl_tls_has_rest(sock->tls))) {
        report_closed(sockets, sock, REDLOCK_CAUSE_DISCONNECT, UNWATCHED);
        return false;
    }
    if (result == RL_TLS_FAILED) {
        bool refused = rl_tls_is_refused(sock->tls);
        snprintf(text, sizeof text, "%s", rl_tls_text(sock->tls));
        report_closed(sockets, sock, refused ? REDLOCK_CAUSE_TLS : REDLOCK_CAUSE_DISCONNECT, text);
    } else if (result == RL_TLS_OK) {
        report_received(sockets, sock, len);
    }
    return more;
}

/* Reports that recv() has failed, with `error` (an errno). */
static void report_lost(struct rl_sockets *sockets, struct rl_socket *sock, int error)
{
    char text[RL_TEXT_MAX];

    snprintf(text, sizeof text, "connection lost: %s", rl_errno_text(error));
    report_closed(sockets, sock, REDLOCK_CAUSE_DISCONNECT,
                  error == ECONNRESET ? RL_TEXT_RESET : text);
}

/* Receives once, and reports the bytes or the end of the connection. Returns true if the buffer was
 * filled, so that more bytes may have arrived, and the socket may receive them in this tick. */
static bool receive(struct rl_sockets *sockets, struct rl_socket *sock, unsigned turn)
{
    ssize_t got;

    do {
        got = recv(sock->fd, sockets->buffer, sizeof sockets->buffer, MSG_DONTWAIT);
    } while (got < 0 && errno == EINTR);
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
        return false;
    if (got > 0)
        report_received(sockets, sock, (size_t)got);
    else if (got == 0)
        report_closed(sockets, sock, REDLOCK_CAUSE_DISCONNECT, RL_TEXT_CLOSED);
    else
        report_lost(sockets, sock, errno);
    return got == (ssize_t)sizeof sockets->buffer && turn + 1 < RL_RECEIVES_PER_TICK;
}

/* Handles that the kernel takes more bytes. */
static void continue_sending(struct rl_sockets *sockets, struct rl_socket *sock)
{
    char text[RL_TEXT_MAX];

    if (sock->tls != NULL && !rl_tls_flush(sock->tls)) {
        if (rl_tls_is_reset(sock->tls))
            return; /* rl_sockets_ready() reads what has arrived, and the reason */
        snprintf(text, sizeof text, "%s", rl_tls_text(sock->tls));
        report_closed(sockets, sock, REDLOCK_CAUSE_DISCONNECT, text);
        return;
    }
    if (sock->tls != NULL && rl_tls_has_rest(sock->tls))
        return;
    if (rl_socket_watch_writing(sockets, sock, false))
        report_writable(sockets, sock);
}

/* Handles what the poller has reported about one socket: the end of a connect, room for more
 * output, or bytes to receive. Returns true if it must be called again, with the next `turn`. */
bool rl_sockets_ready(struct rl_sockets *sockets, const struct rl_ready *ready, unsigned turn)
{
    struct rl_socket *sock = &sockets->list[ready->tag - sockets->tag];

    if (sock->fd < 0)
        return false; /* closed earlier in this tick, maybe because of the bytes received last */
    if (sock->connecting) {
        rl_socket_connected(sockets, sock);
        return false;
    }
    if (sock->securing)
        return rl_socket_secure(sockets, sock);
    if (ready->writable && sock->want_write)
        continue_sending(sockets, sock);
    bool reset = sock->fd >= 0 && sock->tls != NULL && rl_tls_is_reset(sock->tls);
    if (sock->fd < 0 || (!ready->readable && !ready->broken && !reset))
        return false;
    return sock->tls != NULL ? receive_tls(sockets, sock, turn) : receive(sockets, sock, turn);
}

void rl_sockets_forget(struct rl_sockets *sockets)
{
    for (unsigned i = 0; i < RL_SOCKET_TAGS; i++) {
        struct rl_socket *sock = &sockets->list[i];
        if (sock->spec == NULL || sock->fd < 0)
            continue;
        sock->fd = -1;
        sock->connecting = false;
        rl_socket_drop_tls(sock);
        report_closed(sockets, sock, REDLOCK_CAUSE_DISCONNECT,
                      "the program has closed the descriptors of the client");
    }
}

/* Forgets the TLS sessions of all servers. */
void rl_sockets_done(struct rl_sockets *sockets)
{
    for (unsigned i = 0; i < sockets->count; i++)
        rl_tls_server_done(&sockets->servers[i]);
}

/* Closes all descriptors and drops all look-ups, without sending anything. Frees the TLS states if
 * `frees`. */
void rl_sockets_abandon(struct rl_sockets *sockets, bool frees)
{
    for (unsigned i = 0; i < RL_SOCKET_TAGS; i++) {
        struct rl_socket *sock = &sockets->list[i];
        if (sock->spec == NULL)
            continue;
        if (sock->fd >= 0)
            close(sock->fd);
        sock->fd = -1;
        if (frees)
            rl_tls_abandon(sock->tls);
        sock->tls = NULL;
        rl_lookup_drop(sock->lookup);
        sock->lookup = NULL;
    }
}
