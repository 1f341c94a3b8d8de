/* SPDX-License-Identifier: MIT
 * What sockets do with TLS beneath a node: which bytes count as sent, and when an attempt to
 * connect begins whose certificates are being read.
 *
 * Uses tls_rig.h: the library's TLS over a pair of sockets to a server in the same thread. The node
 * takes no part: the test calls the transport itself, and no event is reported. */
#include "node/socket.h"

#include "platform/errno_text.h"
#include "redlock/redlock.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fdcheck.h"
#include "suite.h"
#include "tls_rig.h"
#include "wait.h"

#define RECORD      ((size_t)16 << 10) /* bytes of a full record */
#define BYTES       ((size_t)1 << 20)  /* more than a socket takes */
#define SEND_BUFFER (80 << 10)         /* of the socket: some records */
#define KEEPALIVE_S 7
#define DEADLINE_MS TLS_RIG_DEADLINE_MS

/* Replaces the function of libc, so that a pipe passes for a file: one on a file system that does
 * not answer. */
int fstat(int fd, struct stat *found)
{
    int result = fstatat(fd, "", found, AT_EMPTY_PATH);

    if (result == 0 && S_ISFIFO(found->st_mode))
        found->st_mode = (found->st_mode & ~(mode_t)S_IFMT) | S_IFREG;
    return result;
}

static struct tls_rig *rig;
static struct rl_poller poller;
static struct rl_sockets sockets;
static struct rl_transport transport;
static struct rl_node node;
static struct fdcheck before; /* descriptors of the rig and the poller */

/* Fixture: makes the sockets of one node. */
static void setup(void)
{
    rig = tls_rig_new();
    ck_assert_int_eq(rl_poller_open(&poller), 0);
    rl_sockets_init(&sockets, &poller, 0, KEEPALIVE_S);
    memset(&node, 0, sizeof node);
    rl_sockets_add(&sockets, &rig->spec, &node, rig->server.context);
    transport = rl_sockets_transport(&sockets);
    fdcheck_begin(&before);
}

/* Fixture: checks that the case has closed all descriptors, and frees the rest. */
static void teardown(void)
{
    const char *leaked = fdcheck_leaked(&before, DEADLINE_MS);
    ck_assert_msg(leaked == NULL, "%s", leaked);
    rl_sockets_done(&sockets);
    rl_poller_close(&poller);
    tls_rig_done(rig);
}

/* Opens a link whose client's end is the first connection of the node. The poller watches it if
 * `watched`. */
static struct tls_link open_socket(bool watched)
{
    struct tls_link link = tls_rig_connect(rig);
    int size = SEND_BUFFER;

    ck_assert_int_eq(tls_rig_receive(&link), RL_TLS_AGAIN);
    ck_assert_int_eq(setsockopt(link.client_fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof size), 0);
    if (watched)
        ck_assert_int_eq(rl_poller_add(&poller, link.client_fd, 0, false), 0);
    sockets.list[0].fd = link.client_fd;
    sockets.list[0].tls = link.client;
    return link;
}

/* Takes the connection from the sockets and closes both sides. */
static void close_socket(struct tls_link *link)
{
    sockets.list[0].fd = -1;
    sockets.list[0].tls = NULL;
    tls_rig_close(link);
}

/* Reads all that the server has received and appends it to `to`, of BYTES bytes, which has `len`.
 * Returns the new length. */
static size_t read_server(struct tls_link *link, char *to, size_t len)
{
    int got;

    while ((got = SSL_read(link->server, to + len, (int)(BYTES - len))) > 0)
        len += (size_t)got;
    ERR_clear_error();
    return len;
}

/* Returns BYTES bytes to send. */
static char *make_bytes(void)
{
    char *bytes = malloc(BYTES);

    ck_assert_ptr_nonnull(bytes);
    for (size_t i = 0; i < BYTES; i++)
        bytes[i] = (char)(i / 1000 + i);
    return bytes;
}

/* A full socket takes a part of a record, and there is no memory for the rest of it. The records
 * before it have reached the server, so they count; the next call fails. */
START_TEST(records_before_one_that_fails_count)
{
    char *bytes = make_bytes(), *arrived = malloc(BYTES);
    struct tls_link link = open_socket(true);

    ck_assert_ptr_nonnull(arrived);
    rig->no_memory = true;
    ssize_t sent = transport.send(transport.ctx, 0, bytes, BYTES);
    ck_assert_int_gt(sent, 0);
    ck_assert_uint_lt((size_t)sent, BYTES);
    ck_assert_uint_eq((size_t)sent % RECORD, 0);
    ck_assert(!rl_tls_is_reset(link.client));
    ck_assert_int_eq(transport.send(transport.ctx, 0, bytes + sent, BYTES - (size_t)sent), -1);
    ck_assert_uint_eq(read_server(&link, arrived, 0), (size_t)sent);
    ck_assert_mem_eq(arrived, bytes, (size_t)sent);
    rig->no_memory = false;
    close_socket(&link);
    free(arrived);
    free(bytes);
}
END_TEST

/* The poller cannot report when a full socket takes more. The records that were encrypted count all
 * the same; the next call fails, as no event would continue it. */
START_TEST(records_of_a_socket_that_cannot_be_watched_count)
{
    char *bytes = make_bytes(), *arrived = malloc(BYTES);
    struct tls_link link = open_socket(false);

    ck_assert_ptr_nonnull(arrived);
    ssize_t sent = transport.send(transport.ctx, 0, bytes, BYTES);
    ck_assert_int_gt(sent, 0);
    ck_assert_uint_lt((size_t)sent, BYTES);
    ck_assert(rl_tls_has_rest(link.client));
    ck_assert_int_eq(transport.send(transport.ctx, 0, bytes + sent, BYTES - (size_t)sent), -1);
    size_t len = read_server(&link, arrived, 0);
    ck_assert_uint_lt(len, (size_t)sent);
    ck_assert(rl_tls_flush(link.client));
    ck_assert_uint_eq(read_server(&link, arrived, len), (size_t)sent);
    ck_assert_mem_eq(arrived, bytes, (size_t)sent);
    close_socket(&link);
    free(arrived);
    free(bytes);
}
END_TEST

/* Opens a socket that listens on 127.0.0.1. Returns its port. */
static uint16_t listen_somewhere(int *ret_fd)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof address;

    *ret_fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert_int_ge(*ret_fd, 0);
    ck_assert_int_eq(bind(*ret_fd, (const struct sockaddr *)&address, len), 0);
    ck_assert_int_eq(listen(*ret_fd, 4), 0);
    ck_assert_int_eq(getsockname(*ret_fd, (struct sockaddr *)&address, &len), 0);
    return ntohs(address.sin_port);
}

/* Replaces the file with the issuers by a pipe: a thread that reads it waits. Returns the other end
 * of the pipe. */
static int replace_issuers_by_pipe(void)
{
    char path[192];

    snprintf(path, sizeof path, "%s/pipe", rig->dir);
    ck_assert_int_eq(mkfifo(path, 0600), 0);
    ck_assert_int_eq(rename(path, rig->issuers), 0);
    int fd = open(rig->issuers, O_RDWR | O_NONBLOCK | O_CLOEXEC);
    ck_assert_int_ge(fd, 0);
    return fd;
}

/* Returns how many bytes of the pipe were not read yet. */
static int count_unread(int fd)
{
    int count = -1;

    ck_assert_int_eq(ioctl(fd, FIONREAD, &count), 0);
    return count;
}

/* Lets the thread read the pipe to its end. It finds no certificate, so the earlier ones stay. */
static void end_reload(int fd)
{
    ck_assert_int_eq(write(fd, "none\n", 5), 5);
    ck_assert(WAIT_UNTIL(count_unread(fd) == 0, DEADLINE_MS));
    close(fd);
}

/* Opens the first connection, and waits until a thread has found that no file has changed. */
static void open_first(void)
{
    transport.open(transport.ctx, 0);
    ck_assert(
        WAIT_UNTIL((rl_sockets_tick(&sockets), !sockets.list[0].waits_for_files), DEADLINE_MS));
}

/* An attempt has left a look-up, which ends while the next attempt waits for certificates. That
 * attempt connects when they have been read, once, and with the result of the look-up. */
START_TEST(a_lookup_that_ends_does_not_connect_before_the_certificates)
{
    struct rl_socket *sock = &sockets.list[0];
    int listener;

    rig->spec.port = listen_somewhere(&listener);
    snprintf(rig->spec.host, sizeof rig->spec.host, "localhost");
    node.conn.state = RL_NODE_CONNECTING;
    open_first();
    ck_assert_ptr_nonnull(sock->lookup);
    transport.close(transport.ctx, 0, false);
    int pipe_fd = replace_issuers_by_pipe();
    transport.open(transport.ctx, 0);
    ck_assert(WAIT_UNTIL((rl_sockets_tick(&sockets), sockets.lookups == 0), DEADLINE_MS));
    ck_assert(sock->waits_for_files);
    ck_assert_uint_gt(sock->addresses.count, 0);
    ck_assert_int_eq(sock->fd, -1);
    end_reload(pipe_fd);
    ck_assert(WAIT_UNTIL((rl_sockets_tick(&sockets), !sock->waits_for_files), DEADLINE_MS));
    ck_assert_int_ge(sock->fd, 0);
    ck_assert_ptr_null(sock->lookup);
    transport.close(transport.ctx, 0, false);
    ck_assert_int_eq(sock->fd, -1);
    close(listener);
}
END_TEST

/* An attempt was given up while certificates were being read. The next one, and one of the other
 * connection, do not wait, but connect with what was read before. */
START_TEST(an_attempt_waits_for_certificates_once)
{
    int listener;
    const unsigned other = RL_TRACKER_CONNECTION;

    rig->spec.port = listen_somewhere(&listener);
    snprintf(rig->spec.host, sizeof rig->spec.host, "127.0.0.1");
    int pipe_fd = replace_issuers_by_pipe();
    transport.open(transport.ctx, other);
    transport.open(transport.ctx, 0);
    ck_assert_int_eq(sockets.list[0].fd, -1);
    transport.close(transport.ctx, 0, false);
    transport.open(transport.ctx, 0);
    ck_assert_int_ge(sockets.list[0].fd, 0);
    ck_assert(!sockets.list[0].waits_for_files);
    transport.close(transport.ctx, other, false);
    transport.open(transport.ctx, other);
    ck_assert_int_ge(sockets.list[other].fd, 0);
    transport.close(transport.ctx, other, false);
    transport.close(transport.ctx, 0, false);
    end_reload(pipe_fd);
    ck_assert(WAIT_UNTIL(rl_tls_context_settle(rig->server.context), DEADLINE_MS));
    ck_assert_uint_eq(sockets.file_waits, 0);
    close(listener);
}
END_TEST

/* Handles what the poller reports, until the condition holds. */
#define UNTIL(condition)                                                                           \
    do {                                                                                           \
        const uint64_t end_ms = wait_now_ms() + DEADLINE_MS;                                       \
        struct rl_ready ready[4];                                                                  \
        while (!(condition)) {                                                                     \
            ck_assert_uint_lt(wait_now_ms(), end_ms);                                              \
            int count = rl_poller_wait(&poller, ready, 4, 100);                                    \
            for (int i = 0; i < count; i++)                                                        \
                (void)rl_sockets_ready(&sockets, &ready[i], 0);                                    \
        }                                                                                          \
    } while (0)

/* The first address of a server answers without TLS. The socket connects to the second one, and
 * the node learns that no handshake runs, until the next one begins. */
START_TEST(the_next_address_is_reported)
{
    struct rl_socket *sock = &sockets.list[0];
    struct rl_node_common common = {.connect_timeout_ns = DEADLINE_MS * RL_MS};
    int listener;
    const uint16_t port = listen_somewhere(&listener);

    node.common = &common;
    node.conn.state = RL_NODE_CONNECTING;
    ck_assert_int_eq(rl_resolve_numeric("127.0.0.1", port, &sock->addresses), 1);
    sock->addresses.list[1] = sock->addresses.list[0];
    sock->addresses.len[1] = sock->addresses.len[0];
    sock->addresses.count = 2;
    open_first();
    int first = accept(listener, NULL, NULL);
    UNTIL(sock->securing);
    ck_assert(node.conn.securing);
    ck_assert_int_eq(send(first, "+OK\r\n", 5, MSG_NOSIGNAL), 5);
    UNTIL(sock->next_address == 2);
    ck_assert(!sock->securing);
    ck_assert(!node.conn.securing);
    int second = accept(listener, NULL, NULL);
    UNTIL(sock->securing);
    ck_assert(node.conn.securing);
    transport.close(transport.ctx, 0, false);
    close(second);
    close(first);
    close(listener);
}
END_TEST

/* Returns the value of a socket option of the first connection. */
static int option(int level, int name)
{
    int value = -1;
    socklen_t len = sizeof value;

    ck_assert_int_eq(getsockopt(sockets.list[0].fd, level, name, &value, &len), 0);
    return value;
}

/* The kernel probes idle connections, and gives up bytes under way after the same silence; with
 * _i 0 it does neither. */
START_TEST(tcp_connections_are_kept_alive)
{
    int listener;

    sockets.keepalive_s = _i == 0 ? 0 : KEEPALIVE_S;
    rig->spec.port = listen_somewhere(&listener);
    snprintf(rig->spec.host, sizeof rig->spec.host, "127.0.0.1");
    open_first();
    ck_assert_int_eq(option(IPPROTO_TCP, TCP_NODELAY), 1);
    ck_assert_int_eq(option(SOL_SOCKET, SO_KEEPALIVE), _i);
    ck_assert_int_eq(option(IPPROTO_TCP, TCP_USER_TIMEOUT),
                     _i == 0 ? 0 : 1000 * (KEEPALIVE_S + 15));
    if (_i == 1) {
        ck_assert_int_eq(option(IPPROTO_TCP, TCP_KEEPIDLE), KEEPALIVE_S);
        ck_assert_int_eq(option(IPPROTO_TCP, TCP_KEEPINTVL) * option(IPPROTO_TCP, TCP_KEEPCNT), 15);
    }
    transport.close(transport.ctx, 0, false);
    close(listener);
}
END_TEST

/* A call of send() fails, because the descriptor is no socket any more: its reason is known,
 * without TLS and in the odd case with it. */
START_TEST(the_reason_of_a_failed_send)
{
    struct tls_link link = open_socket(false);
    char expected[RL_TEXT_MAX];
    int fds[2];

    tls_rig_end_server(&link);
    ck_assert_int_eq(pipe2(fds, O_CLOEXEC), 0);
    ck_assert_int_ge(dup3(fds[1], link.client_fd, O_CLOEXEC), 0);
    if (_i == 0)
        sockets.list[0].tls = NULL;
    ck_assert_int_eq(transport.send(transport.ctx, 0, "x", 1), -1);
    snprintf(expected, sizeof expected, "connection lost: %s", rl_errno_text(ENOTSOCK));
    ck_assert_str_eq(rl_transport_reason(&transport, 0), expected);
    close(fds[0]);
    close(fds[1]);
    close_socket(&link);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("node_tls_sockets");
    TCase *tcase = tcase_create("sockets");

    suite_add_tcase(suite, tcase);
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_set_timeout(tcase, 60);
    tcase_add_test(tcase, records_before_one_that_fails_count);
    tcase_add_test(tcase, records_of_a_socket_that_cannot_be_watched_count);
    tcase_add_test(tcase, a_lookup_that_ends_does_not_connect_before_the_certificates);
    tcase_add_test(tcase, an_attempt_waits_for_certificates_once);
    tcase_add_test(tcase, the_next_address_is_reported);
    tcase_add_loop_test(tcase, tcp_connections_are_kept_alive, 0, 2);
    tcase_add_loop_test(tcase, the_reason_of_a_failed_send, 0, 2);
    return suite_run(suite);
}
