/* SPDX-License-Identifier: MIT
 * Connects sockets. rl_socket_open() tries one address after another: connect_next() starts an
 * attempt, and the poller reports its end, which rl_socket_connected() handles. A failed attempt
 * continues in fail_open(), which tries the next address or reports the failure. A host
 * name is looked up on another thread first, and certificates that have changed are read there;
 * rl_sockets_tick() uses the results. With TLS a handshake follows the connect: rl_socket_secure()
 * continues it until the connection is open. */
#include "node/socket_parts.h"

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

/* Time between two keepalive probes, and how many without a reply end the connection. */
#define PROBE_INTERVAL_S 5
#define PROBES           3

/* The next three functions report an event to the node, to its tracker or to its trial. */

/* Reports that the socket is connected, and the TLS handshake begins. */
static void report_connected(struct rl_sockets *sockets, struct rl_socket *sock)
{
    if (sock->role == RL_SOCKET_TRACKER)
        rl_tracker_connected(sock->node, sockets->now_ns);
    else if (sock->role == RL_SOCKET_REQUESTS)
        rl_node_connected(sock->node, sockets->now_ns);
}

/* Reports that the TLS handshake has failed, with `cause` (enum redlock_cause) and `text`, and the
 * server is tried at its next address. */
static void report_next_address(struct rl_sockets *sockets, struct rl_socket *sock, int cause,
                                const char *text)
{
    if (sock->role == RL_SOCKET_TRACKER)
        rl_tracker_next_address(sock->node, sockets->now_ns);
    else if (sock->role == RL_SOCKET_REQUESTS)
        rl_node_next_address(sock->node, cause, text, sockets->now_ns);
}

/* Reports that the connection was made (`ok`), or that the attempt has failed, with `cause` (enum
 * redlock_cause) and `text`. */
static void report_opened(struct rl_sockets *sockets, struct rl_socket *sock, bool ok, int cause,
                          const char *text)
{
    if (sock->role == RL_SOCKET_TRACKER)
        rl_tracker_opened(sock->node, ok, sockets->now_ns);
    else if (sock->role == RL_SOCKET_TRIAL)
        rl_trial_opened(sock->node, ok);
    else
        rl_node_opened(sock->node, ok, cause, text, sockets->now_ns);
}

/* Returns true if the node, its tracker or its trial waits for the connection to be made. */
static bool is_connecting(const struct rl_socket *sock)
{
    if (sock->role == RL_SOCKET_TRACKER)
        return rl_tracker_state(sock->node) == RL_TRACKER_CONNECTING;
    if (sock->role == RL_SOCKET_TRIAL)
        return rl_trial_is_connecting(sock->node);
    return rl_connection_state(&sock->node->conn) == RL_NODE_CONNECTING;
}

/* Defined below; connect_next() and fail_open() call each other through it. */
static void connect_to(struct rl_sockets *sockets, struct rl_socket *sock,
                       const struct sockaddr *address, socklen_t len);

/* Starts to connect to the next address of the last look-up; there must be one. */
static void connect_next(struct rl_sockets *sockets, struct rl_socket *sock)
{
    unsigned at = sock->next_address++;

    connect_to(sockets, sock, &sock->addresses.list[at].any, sock->addresses.len[at]);
}

/* Handles a failure to connect: closes the socket and tries the next address of the name, which may
 * have an IPv6 and an IPv4 address. Without another address, or if the look-up failed, reports the
 * failure with `cause` (enum redlock_cause). `what` says what has failed. `error` is an errno,
 * which the text adds in words; 0: `what` is the whole text. */
static void fail_open(struct rl_sockets *sockets, struct rl_socket *sock, int cause,
                      const char *what, int error)
{
    bool had_tls = sock->securing;
    char text[RL_TEXT_MAX];

    if (error != 0)
        snprintf(text, sizeof text, "%s: %s", what, rl_errno_text(error));
    else
        snprintf(text, sizeof text, "%s", what);
    if (sock->fd >= 0) {
        rl_socket_drop_tls(sock);
        rl_poller_remove(sockets->poller, sock->fd);
        close(sock->fd);
        sock->fd = -1;
    }
    sock->connecting = false;
    if (cause != REDLOCK_CAUSE_RESOLVE && sock->next_address < sock->addresses.count) {
        if (had_tls)
            report_next_address(sockets, sock, cause, text);
        connect_next(sockets, sock);
        return;
    }
    report_opened(sockets, sock, false, cause, text);
}

/* Sets the options of a TCP socket. Bytes that are under way may go without an acknowledgement for
 * as long as an idle connection may: for the kernel, TCP_USER_TIMEOUT also limits the probes.
 * A connection without these options works, so their errors do not matter. */
static void set_options(const struct rl_sockets *sockets, int fd)
{
    const int on = 1, interval_s = PROBE_INTERVAL_S, probes = PROBES;
    const int idle_s = (int)sockets->keepalive_s;
    const unsigned limit_ms = (sockets->keepalive_s + PROBE_INTERVAL_S * PROBES) * 1000;

    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    if (idle_s == 0)
        return;
    (void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle_s, sizeof idle_s);
    (void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval_s, sizeof interval_s);
    (void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof probes);
    (void)setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &limit_ms, sizeof limit_ms);
    (void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
}

/* Creates a socket and starts to connect it to the address of `len` bytes. rl_sockets_ready()
 * handles the result. An error at once goes to fail_open(). */
static void connect_to(struct rl_sockets *sockets, struct rl_socket *sock,
                       const struct sockaddr *address, socklen_t len)
{
    uint32_t tag = rl_socket_tag(sockets, sock);

    RL_ASSERT(sock->fd < 0);
    sock->fd = socket(address->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (sock->fd < 0) {
        fail_open(sockets, sock, REDLOCK_CAUSE_NO_SOCKET, "no socket", errno);
        return;
    }
    if (address->sa_family != AF_UNIX)
        set_options(sockets, sock->fd);
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
void rl_socket_set_waiting(struct rl_sockets *sockets, struct rl_socket *sock, bool waits)
{
    sockets->file_waits += waits;
    sockets->file_waits -= sock->waits_for_files;
    sock->waits_for_files = waits;
}

/* Implements rl_transport.open: begins to connect; later, if certificates that have changed must be
 * read before. */
void rl_socket_open(void *ctx, unsigned connection)
{
    struct rl_sockets *sockets = ctx;
    struct rl_socket *sock = &sockets->list[connection];
    struct rl_tls_context *context = sock->server->context;

    RL_ASSERT(sock->fd < 0);
    if (context != NULL && !rl_tls_context_refresh(context, sockets->poller->wake_fd,
                                                   sock->gave_up_files, sockets->now_ns))
        rl_socket_set_waiting(sockets, sock, true);
    else
        begin_open(sockets, sock);
}

/* Begins to connect where an attempt has waited for certificates that were read meanwhile. */
static void use_files(struct rl_sockets *sockets)
{
    for (unsigned i = 0; i < RL_SOCKET_TAGS; i++) {
        struct rl_socket *sock = &sockets->list[i];
        if (sock->waits_for_files && rl_tls_context_settle(sock->server->context)) {
            rl_socket_set_waiting(sockets, sock, false);
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

/* Forgets the addresses after a success: the next connection begins with a new look-up, because the
 * addresses of the name may change. */
static void forget_addresses(struct rl_socket *sock)
{
    sock->next_address = sock->first_address = 0;
    sock->addresses.count = 0;
}

/* Continues the TLS handshake, and reports its end. Returns true if the connection is open now. */
bool rl_socket_secure(struct rl_sockets *sockets, struct rl_socket *sock)
{
    /* After a reset, the bytes that have arrived say why. */
    if (!rl_tls_flush(sock->tls) && !rl_tls_is_reset(sock->tls)) {
        fail_open(sockets, sock, REDLOCK_CAUSE_CONNECT, rl_tls_text(sock->tls), 0);
        return false;
    }
    rl_tls_permit(sock->tls, RL_RECEIVES_PER_TICK);
    enum rl_tls_result result = rl_tls_handshake(sock->tls);
    if (result == RL_TLS_FAILED) {
        bool refused = rl_tls_is_refused(sock->tls);
        fail_open(sockets, sock, refused ? REDLOCK_CAUSE_TLS : REDLOCK_CAUSE_CONNECT,
                  rl_tls_text(sock->tls), 0);
        return false;
    }
    if (result == RL_TLS_AGAIN && rl_tls_is_reset(sock->tls)) {
        fail_open(sockets, sock, REDLOCK_CAUSE_CONNECT, RL_TEXT_RESET, 0);
        return false;
    }
    if (!rl_socket_watch_writing(sockets, sock, rl_tls_has_rest(sock->tls))) {
        fail_open(sockets, sock, REDLOCK_CAUSE_CONNECT, "descriptor cannot be watched", errno);
        return false;
    }
    if (result == RL_TLS_AGAIN)
        return false;
    sock->securing = false;
    forget_addresses(sock);
    if (sock->role == RL_SOCKET_REQUESTS)
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
    (void)rl_socket_secure(sockets, sock);
}

/* Reads the result of connect(). Reports that the connection was made, begins TLS, or passes the
 * error to fail_open(). */
void rl_socket_connected(struct rl_sockets *sockets, struct rl_socket *sock)
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
    if (!rl_socket_watch_writing(sockets, sock, false)) {
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
