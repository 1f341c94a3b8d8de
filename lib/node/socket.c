/* SPDX-License-Identifier: MIT
 * Connects, sends, receives and closes sockets, and reports their events to the nodes.
 *
 * socket_open() tries one address after another: connect_next() starts an attempt, and the poller
 * reports its end to finish_connect(). A failed attempt continues in fail_open(), which tries the
 * next address or reports the failure. A host name is looked up on another thread first, and
 * certificates that have changed are read there; rl_sockets_tick() uses the results. With TLS a
 * handshake follows the connect: secure() continues it until the connection is open. */
#include "node/socket.h"

#include "platform/errno_text.h"
#include "redlock/redlock.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define DISCARDS_MAX      256 /* most reads of 4 KiB in discard_replies() */
#define RECEIVES_PER_TICK 8   /* most calls of recv() for one socket in one tick */

/* Prepares the connections of a shard, without nodes. Borrows `poller`; `tag` is the first of
 * RL_SOCKET_TAGS poller tags. */
void rl_sockets_init(struct rl_sockets *sockets, struct rl_poller *poller, uint32_t tag)
{
    memset(sockets, 0, sizeof *sockets);
    sockets->poller = poller;
    sockets->tag = tag;
}

/* Adds the two closed connections of a node: list[index] is the first one, and list[index +
 * RL_TRACKER_CONNECTION] the second one. `context`: for connections with TLS; NULL: without. */
void rl_sockets_add(struct rl_sockets *sockets, const struct rl_node_spec *spec,
                    struct rl_node *node, struct rl_tls_context *context)
{
    RL_ASSERT(sockets->count < RL_NODES_MAX && node->index == sockets->count);
    struct rl_socket *first = &sockets->list[sockets->count];
    struct rl_tls_server *server = &sockets->servers[sockets->count];
    *server = (struct rl_tls_server){.context = context, .spec = spec};
    *first = (struct rl_socket){.spec = spec, .node = node, .server = server, .fd = -1};
    first[RL_TRACKER_CONNECTION] = *first;
    first[RL_TRACKER_CONNECTION].for_tracker = true;
    sockets->count++;
}

/* Returns the poller tag of the socket. */
static uint32_t tag_of(const struct rl_sockets *sockets, const struct rl_socket *sock)
{
    return sockets->tag + (uint32_t)(sock - sockets->list);
}

/* The next five functions report an event to the node, or to its tracker for the second connection.
 */

/* Reports that the socket is connected, and the TLS handshake begins. */
static void report_connected(struct rl_sockets *sockets, struct rl_socket *sock)
{
    if (sock->for_tracker)
        rl_tracker_connected(sock->node, sockets->now_ns);
    else
        rl_node_connected(sock->node, sockets->now_ns);
}

/* Reports that the connection was made (`ok`), or that the attempt has failed, with `cause` (enum
 * redlock_cause) and `text`. */
static void report_opened(struct rl_sockets *sockets, struct rl_socket *sock, bool ok, int cause,
                          const char *text)
{
    if (sock->for_tracker)
        rl_tracker_opened(sock->node, ok, sockets->now_ns);
    else
        rl_node_opened(sock->node, ok, cause, text, sockets->now_ns);
}

/* Reports that `len` bytes were received into the buffer. */
static void report_received(struct rl_sockets *sockets, struct rl_socket *sock, size_t len)
{
    if (sock->for_tracker)
        rl_tracker_received(sock->node, sockets->buffer, len, sockets->now_ns);
    else
        rl_node_received(sock->node, sockets->buffer, len, sockets->now_ns);
}

/* Reports that the connection has ended, with `cause` (enum redlock_cause); `text` says why. */
static void report_closed(struct rl_sockets *sockets, struct rl_socket *sock, int cause,
                          const char *text)
{
    if (sock->for_tracker)
        rl_tracker_closed(sock->node, sockets->now_ns);
    else
        rl_node_closed(sock->node, cause, text, sockets->now_ns);
}

/* Reports that the socket accepts bytes again. */
static void report_writable(struct rl_sockets *sockets, struct rl_socket *sock)
{
    if (sock->for_tracker)
        rl_tracker_flush(sock->node, sockets->now_ns);
    else
        rl_node_flush(sock->node, sockets->now_ns);
}

/* Returns true if the node, or its tracker for the second connection, waits for the connection to
 * be made. */
static bool is_connecting(const struct rl_socket *sock)
{
    return sock->for_tracker ? rl_tracker_state(sock->node) == RL_TRACKER_CONNECTING
                             : rl_connection_state(&sock->node->conn) == RL_NODE_CONNECTING;
}

/* Defined below; connect_next() and fail_open() call each other through it. */
static void connect_to(struct rl_sockets *sockets, struct rl_socket *sock,
                       const struct sockaddr *address, socklen_t len);

/* Starts to connect to the next address of the last look-up; there must be one. */
static void connect_next(struct rl_sockets *sockets, struct rl_socket *sock)
{
    unsigned at = sock->next_address++;

    connect_to(sockets, sock, (const struct sockaddr *)&sock->addresses.list[at],
               sock->addresses.len[at]);
}

/* Frees the TLS state of the socket, if there is one. */
static void drop_tls(struct rl_socket *sock)
{
    rl_tls_close(sock->tls);
    sock->tls = NULL;
    sock->securing = false;
}

/* Handles a failure to connect: closes the socket and tries the next address of the name, which may
 * have an IPv6 and an IPv4 address. Without another address, or if the look-up failed, reports the
 * failure with `cause` (enum redlock_cause). `what` says what has failed. `error` is an errno,
 * which the text adds in words; 0: `what` is the whole text. */
static void fail_open(struct rl_sockets *sockets, struct rl_socket *sock, int cause,
                      const char *what, int error)
{
    char text[RL_TEXT_MAX];

    if (error != 0)
        snprintf(text, sizeof text, "%s: %s", what, rl_errno_text(error));
    else
        snprintf(text, sizeof text, "%s", what);
    if (sock->fd >= 0) {
        drop_tls(sock);
        rl_poller_remove(sockets->poller, sock->fd);
        close(sock->fd);
        sock->fd = -1;
    }
    sock->connecting = false;
    if (cause != REDLOCK_CAUSE_RESOLVE && sock->next_address < sock->addresses.count) {
        connect_next(sockets, sock);
        return;
    }
    report_opened(sockets, sock, false, cause, text);
}

/* Creates a socket and starts to connect it to the address of `len` bytes. rl_sockets_ready()
 * handles the result. An error at once goes to fail_open(). */
static void connect_to(struct rl_sockets *sockets, struct rl_socket *sock,
                       const struct sockaddr *address, socklen_t len)
{
    uint32_t tag = tag_of(sockets, sock);
    int on = 1;

    RL_ASSERT(sock->fd < 0);
    sock->fd = socket(address->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (sock->fd < 0) {
        fail_open(sockets, sock, REDLOCK_CAUSE_NO_SOCKET, "no socket", errno);
        return;
    }
    if (address->sa_family != AF_UNIX)
        (void)setsockopt(sock->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    sock->connecting = true;
    sock->want_write = true;
    if (rl_poller_add(sockets->poller, sock->fd, tag, true) != REDLOCK_OK) {
        fail_open(sockets, sock, REDLOCK_CAUSE_CONNECT, "descriptor cannot be watched", errno);
        return;
    }
    /* The poller reports "writable" when the connect has ended, also if it has succeeded here. */
    if (connect(sock->fd, address, len) != 0 && errno != EINPROGRESS && errno != EINTR)
        fail_open(sockets, sock, REDLOCK_CAUSE_CONNECT, "connect", errno);
}

/* Starts to connect to the path of a unix socket. */
static void connect_unix(struct rl_sockets *sockets, struct rl_socket *sock)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};

    memcpy(address.sun_path, sock->spec->path, sizeof address.sun_path);
    connect_to(sockets, sock, (const struct sockaddr *)&address, sizeof address);
}

/* Starts to connect to the next address, or starts a look-up if all known addresses have failed. A
 * numeric address needs no look-up. */
static void begin_open(struct rl_sockets *sockets, struct rl_socket *sock)
{
    const struct rl_node_spec *spec = sock->spec;

    if (spec->is_unix) {
        connect_unix(sockets, sock);
        return;
    }
    /* Addresses are left if the last attempt has timed out. Otherwise the name is looked up again,
     * and the result begins after the addresses that have failed. */
    if (sock->next_address < sock->addresses.count) {
        connect_next(sockets, sock);
        return;
    }
    sock->first_address += sock->addresses.count;
    sock->next_address = 0;
    sock->addresses.count = 0;
    if (rl_resolve_numeric(spec->host, spec->port, &sock->addresses) == 1) {
        connect_next(sockets, sock);
        return;
    }
    if (sock->lookup != NULL)
        return; /* an earlier look-up is still running */
    sock->lookup =
        rl_lookup_start(spec->host, spec->port, sock->first_address, sockets->poller->wake_fd);
    if (sock->lookup == NULL) {
        fail_open(sockets, sock, REDLOCK_CAUSE_RESOLVE, "name look-up cannot be started", 0);
        return;
    }
    sockets->lookups++;
}

/* Notes whether the attempt to connect waits for certificates that are being read. */
static void set_waiting(struct rl_sockets *sockets, struct rl_socket *sock, bool waits)
{
    sockets->file_waits += waits;
    sockets->file_waits -= sock->waits_for_files;
    sock->waits_for_files = waits;
}

/* Implements rl_transport.open: begins to connect; later, if certificates that have changed must be
 * read before. */
static void socket_open(void *ctx, unsigned connection)
{
    struct rl_sockets *sockets = ctx;
    struct rl_socket *sock = &sockets->list[connection];
    struct rl_tls_context *context = sock->server->context;

    RL_ASSERT(sock->fd < 0);
    if (context != NULL && !rl_tls_context_is_current(context, sockets->poller->wake_fd))
        set_waiting(sockets, sock, true);
    else
        begin_open(sockets, sock);
}

/* Begins to connect where an attempt has waited for certificates that were read meanwhile. */
static void use_files(struct rl_sockets *sockets)
{
    for (unsigned i = 0; i < RL_SOCKET_TAGS; i++) {
        struct rl_socket *sock = &sockets->list[i];
        if (sock->waits_for_files && rl_tls_context_settle(sock->server->context)) {
            set_waiting(sockets, sock, false);
            begin_open(sockets, sock);
        }
    }
}

/* Reads the results of look-ups that have ended: connects to the addresses, or reports the failure.
 * A result that no attempt waits for is kept for the next attempt. */
void rl_sockets_tick(struct rl_sockets *sockets)
{
    if (sockets->file_waits > 0)
        use_files(sockets);
    for (unsigned i = 0; sockets->lookups > 0 && i < RL_SOCKET_TAGS; i++) {
        struct rl_socket *sock = &sockets->list[i];
        if (sock->lookup == NULL)
            continue;
        int done = rl_lookup_poll(sock->lookup, &sock->addresses);
        if (done == 0)
            continue;
        char text[RL_TEXT_MAX];
        snprintf(text, sizeof text, "%s", done < 0 ? rl_lookup_text(sock->lookup) : "");
        rl_lookup_drop(sock->lookup);
        sock->lookup = NULL;
        sockets->lookups--;
        sock->next_address = 0;
        if (!is_connecting(sock) || sock->fd >= 0 || sock->waits_for_files)
            continue; /* too late or too early for this attempt; begin_open() uses the result */
        if (done < 0)
            fail_open(sockets, sock, REDLOCK_CAUSE_RESOLVE, text, 0);
        else
            connect_next(sockets, sock);
    }
}

/* Has the poller watch the socket for writing, or no longer (`on`). Returns false if it cannot; the
 * next call tries again. */
static bool watch_writing(struct rl_sockets *sockets, struct rl_socket *sock, bool on)
{
    if (sock->want_write != on &&
        rl_poller_change(sockets->poller, sock->fd, tag_of(sockets, sock), on) != REDLOCK_OK)
        return false;
    sock->want_write = on;
    return true;
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
        return watch_writing(sockets, sock, true) || done > 0 ? (ssize_t)done : -1;
    if (sent < 0 || (!watch_writing(sockets, sock, rl_tls_is_held(sock->tls)) && done == 0))
        return -1;
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
    if (sent < 0 && errno != EAGAIN && errno != EWOULDBLOCK)
        return -1;
    if (sent < (ssize_t)len && !watch_writing(sockets, sock, true))
        return -1;
    return sent < 0 ? 0 : sent;
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

    set_waiting(sockets, sock, false);
    if (sock->fd < 0)
        return; /* a running look-up is kept for the next attempt */
    drop_tls(sock);
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
        .open = socket_open,
        .send = socket_send,
        .close = socket_close,
        .held = socket_held,
        .reach = socket_reach,
        .ctx = sockets,
    };
}

/* Forgets the addresses after a success: the next connection begins with a new look-up, because the
 * addresses of the name may change. */
static void forget_addresses(struct rl_socket *sock)
{
    sock->next_address = sock->first_address = 0;
    sock->addresses.count = 0;
}

/* Continues the TLS handshake, and reports its end. Returns true if the connection is open now. */
static bool secure(struct rl_sockets *sockets, struct rl_socket *sock)
{
    rl_tls_permit(sock->tls, RECEIVES_PER_TICK);
    enum rl_tls_result result = rl_tls_handshake(sock->tls);
    if (result == RL_TLS_FAILED) {
        bool refused = rl_tls_is_refused(sock->tls);
        fail_open(sockets, sock, refused ? REDLOCK_CAUSE_TLS : REDLOCK_CAUSE_CONNECT,
                  rl_tls_text(sock->tls), 0);
        return false;
    }
    if (result == RL_TLS_AGAIN && rl_tls_is_reset(sock->tls)) {
        fail_open(sockets, sock, REDLOCK_CAUSE_CONNECT, "connection reset", 0);
        return false;
    }
    if (!watch_writing(sockets, sock, rl_tls_is_held(sock->tls))) {
        fail_open(sockets, sock, REDLOCK_CAUSE_CONNECT, "descriptor cannot be watched", errno);
        return false;
    }
    if (result == RL_TLS_AGAIN)
        return false;
    sock->securing = false;
    forget_addresses(sock);
    if (!sock->for_tracker)
        rl_connection_set_expiry(&sock->node->conn, rl_tls_expiry_s(sock->tls));
    report_opened(sockets, sock, true, REDLOCK_CAUSE_NONE, NULL);
    return sock->fd >= 0;
}

/* Begins the TLS handshake on a connected socket. */
static void begin_tls(struct rl_sockets *sockets, struct rl_socket *sock)
{
    sock->tls = rl_tls_open(sock->server, sock->fd);
    if (sock->tls == NULL) {
        fail_open(sockets, sock, REDLOCK_CAUSE_NO_MEMORY, "out of memory", 0);
        return;
    }
    sock->securing = true;
    report_connected(sockets, sock);
    (void)secure(sockets, sock);
}

/* Reads the result of connect(). Reports that the connection was made, begins TLS, or passes the
 * error to fail_open(). */
static void finish_connect(struct rl_sockets *sockets, struct rl_socket *sock)
{
    int error = 0;
    socklen_t len = sizeof error;

    if (getsockopt(sock->fd, SOL_SOCKET, SO_ERROR, &error, &len) != 0)
        error = errno;
    if (error != 0) {
        fail_open(sockets, sock, REDLOCK_CAUSE_CONNECT, "connect", error);
        return;
    }
    sock->connecting = false;
    if (!watch_writing(sockets, sock, false)) {
        fail_open(sockets, sock, REDLOCK_CAUSE_CONNECT, "descriptor cannot be watched", errno);
        return;
    }
    if (sock->server->context != NULL) {
        begin_tls(sockets, sock);
        return;
    }
    forget_addresses(sock);
    report_opened(sockets, sock, true, REDLOCK_CAUSE_NONE, NULL);
}

/* Decrypts what has arrived, and reports the bytes or the end of the connection. Returns true if
 * the function must be called again before the poller reports the socket again. */
static bool receive_tls(struct rl_sockets *sockets, struct rl_socket *sock, unsigned turn)
{
    char text[RL_TEXT_MAX];
    size_t len = 0;
    bool more = false;

    if (turn == 0)
        rl_tls_permit(sock->tls, RECEIVES_PER_TICK);
    enum rl_tls_result result =
        rl_tls_receive(sock->tls, sockets->buffer, sizeof sockets->buffer, &len, &more);
    bool reset = rl_tls_is_reset(sock->tls);
    if (result == RL_TLS_AGAIN && reset) {
        /* In a later turn, bytes that say why may have arrived: the next tick reads them. */
        if (turn == 0)
            report_closed(sockets, sock, REDLOCK_CAUSE_DISCONNECT, "connection reset");
        return false;
    }
    if (result != RL_TLS_FAILED && !reset &&
        !watch_writing(sockets, sock, rl_tls_is_held(sock->tls))) {
        report_closed(sockets, sock, REDLOCK_CAUSE_DISCONNECT, "descriptor cannot be watched");
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
    else
        report_closed(sockets, sock, REDLOCK_CAUSE_DISCONNECT,
                      got == 0 ? "connection closed by the server" : "connection reset");
    return got == (ssize_t)sizeof sockets->buffer && turn + 1 < RECEIVES_PER_TICK;
}

/* Handles that the kernel takes more bytes. */
static void continue_sending(struct rl_sockets *sockets, struct rl_socket *sock)
{
    if (sock->tls != NULL && !rl_tls_flush(sock->tls)) {
        if (rl_tls_is_reset(sock->tls))
            return; /* rl_sockets_ready() reads what has arrived, and the reason */
        if (sock->securing)
            fail_open(sockets, sock, REDLOCK_CAUSE_CONNECT, "connection lost", 0);
        else
            report_closed(sockets, sock, REDLOCK_CAUSE_DISCONNECT, "connection lost");
        return;
    }
    if (sock->tls != NULL && rl_tls_is_held(sock->tls))
        return;
    if (watch_writing(sockets, sock, false) && !sock->securing)
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
        finish_connect(sockets, sock);
        return false;
    }
    if (ready->writable && sock->want_write)
        continue_sending(sockets, sock);
    bool reset = sock->fd >= 0 && sock->tls != NULL && rl_tls_is_reset(sock->tls);
    if (sock->fd < 0 || sock->connecting || (!ready->readable && !ready->broken && !reset))
        return false;
    if (sock->securing)
        return secure(sockets, sock);
    return sock->tls != NULL ? receive_tls(sockets, sock, turn) : receive(sockets, sock, turn);
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
