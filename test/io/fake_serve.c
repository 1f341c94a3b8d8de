/* SPDX-License-Identifier: MIT
 * The thread of a fake server: one poll loop over its listener and its connections. */
#include "fake_serve.h"

#include "fake_line.h"
#include "fake_push.h"

#include <ctype.h>
#include <errno.h>
#include <hiredis/hiredis.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define WORDS_MAX 32

/* Returns the time in ms by which keys expire. */
uint64_t fake_now_ms(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (uint64_t)ts.tv_sec * 1000u + (uint64_t)ts.tv_nsec / 1000000u;
}

/* Appends a line to the log. */
void fake_note(struct fake_redis *fake, unsigned connection, const char *text, size_t len)
{
    if (fake->lines_count == fake->lines_size) {
        fake->lines_size = fake->lines_size * 2 + 64;
        fake->lines = realloc(fake->lines, fake->lines_size * sizeof *fake->lines);
        if (fake->lines == NULL)
            abort();
    }
    char *copy = strndup(text, len);
    if (copy == NULL)
        abort();
    for (char *at = copy; *at != '\0'; at++) {
        if (!isprint((unsigned char)*at))
            *at = '.';
    }
    fake->lines[fake->lines_count++] = (struct fake_line){connection, copy};
    pthread_cond_broadcast(&fake->changed);
}

/* Removes the first reply of the connection. */
static void drop_chunk(struct fake_connection *connection)
{
    fake_bytes_free(&connection->chunks[0].bytes);
    connection->chunks_count--;
    memmove(connection->chunks, connection->chunks + 1,
            connection->chunks_count * sizeof *connection->chunks);
}

/* Closes the connection with that index and removes it, as `end` says. */
void fake_end_connection(struct fake_redis *fake, size_t index, enum fake_end end)
{
    struct fake_connection *connection = &fake->connections[index];
    bool reset;
    if (connection->tls != NULL)
        (void)fake_tls_flush(connection->tls, &reset);
    fake_tls_close(connection->tls);
    if (end == FAKE_END_RESET) {
        const struct linger abortive = {.l_onoff = 1, .l_linger = 0};
        (void)setsockopt(connection->fd, SOL_SOCKET, SO_LINGER, &abortive, sizeof abortive);
    }
    close(connection->fd);
    redisReaderFree(connection->reader);
    while (connection->chunks_count > 0)
        drop_chunk(connection);
    free(connection->chunks);
    *connection = fake->connections[--fake->connections_count];
    pthread_cond_broadcast(&fake->changed);
}

/* ---- from a command to its reply ---- */

/* Returns true if the rule is for this command. A rule for EVAL or EVALSHA without an argument is
 * for requests, not for the script of the greeting. */
static bool rule_matches(const struct fake_rule *rule, const struct fake_arg *argv, size_t argc)
{
    bool is_check = argc == 3 && fake_store_is_check(argv[1]);
    if (is_check && rule->argument == NULL)
        return false;
    if (rule->command != NULL && !fake_arg_is(argv[0], rule->command))
        return false;
    for (size_t i = 1; rule->argument != NULL && i < argc; i++) {
        if (fake_arg_is(argv[i], rule->argument))
            return true;
    }
    return rule->argument == NULL;
}

/* Returns the rule that applies to this command and counts its use; fault 0: none applies. */
static struct fake_rule take_rule(struct fake_redis *fake, const struct fake_arg *argv, size_t argc)
{
    for (size_t i = 0; i < fake->rules_count; i++) {
        struct fake_rule *rule = &fake->rules[i];
        if (!rule_matches(rule, argv, argc))
            continue;
        if (rule->skip > 0) {
            rule->skip--;
            continue;
        }
        struct fake_rule taken = *rule;
        if (rule->times > 0 && --rule->times == 0) {
            fake->rules_count--;
            memmove(rule, rule + 1, (fake->rules_count - i) * sizeof *rule);
        }
        return taken;
    }
    return (struct fake_rule){.fault = 0};
}

/* Appends an empty reply to those that wait, and returns it. It is valid until the next call. */
struct fake_chunk *fake_new_chunk(struct fake_connection *connection)
{
    if (connection->chunks_count == connection->chunks_size) {
        connection->chunks_size = connection->chunks_size * 2 + 8;
        connection->chunks =
            realloc(connection->chunks, connection->chunks_size * sizeof *connection->chunks);
        if (connection->chunks == NULL)
            abort();
    }
    struct fake_chunk *chunk = &connection->chunks[connection->chunks_count++];
    *chunk = (struct fake_chunk){.sent = 0};
    return chunk;
}

/* Changes the reply in `chunk` as the rule says. */
static void apply_rule(struct fake_chunk *chunk, const struct fake_rule *rule)
{
    size_t len = rule->bytes == NULL ? 0 : rule->len != 0 ? rule->len : strlen(rule->bytes);
    switch (rule->fault) {
    case FAKE_FORGE:
        chunk->bytes.len = 0;
        fake_bytes_add(&chunk->bytes, rule->bytes, len);
        break;
    case FAKE_REPLY:
    case FAKE_SURPLUS:
    case FAKE_ENDLESS:
        fake_bytes_add(&chunk->bytes, rule->bytes, len);
        chunk->endless = rule->fault == FAKE_ENDLESS;
        break;
    case FAKE_SPLIT:
        chunk->split = true;
        break;
    case FAKE_GATE:
        chunk->gated = true;
        break;
    case FAKE_SILENCE:
        chunk->mute = true;
        break;
    case FAKE_CLOSE:
    case FAKE_RESET:
        if (rule->at < chunk->bytes.len)
            chunk->bytes.len = rule->at;
        chunk->end = rule->fault == FAKE_RESET ? FAKE_END_RESET : FAKE_END_CLOSE;
        break;
    case FAKE_DROP:
        chunk->end = FAKE_END_CLOSE;
        break;
    }
}

/* Appends the command to the log, scripts by name. */
static void note_command(struct fake_redis *fake, const struct fake_connection *connection,
                         const struct fake_arg *argv, size_t argc)
{
    struct fake_bytes line = {.data = NULL};
    for (size_t i = 0; i < argc; i++) {
        const char *script = i == 0 ? NULL : fake_store_script_name(argv[i]);
        if (i > 0)
            fake_bytes_add(&line, " ", 1);
        if (script != NULL)
            fake_bytes_add(&line, script, strlen(script));
        else
            fake_bytes_add(&line, argv[i].data, argv[i].len);
    }
    fake_note(fake, connection->number, line.data, line.len);
    fake_bytes_free(&line);
}

/* Executes a command, unless a rule prevents it, and appends the reply. */
static void execute_command(struct fake_redis *fake, struct fake_connection *connection,
                            const struct fake_arg *argv, size_t argc)
{
    struct fake_rule rule = take_rule(fake, argv, argc);
    struct fake_bytes reply = {.data = NULL};
    fake->acting = connection->number;
    if (rule.fault != FAKE_REPLY && rule.fault != FAKE_ENDLESS && rule.fault != FAKE_DROP) {
        if (!fake_push_execute(fake, connection, argv, argc, &reply) &&
            !fake_line_execute(fake, connection, argv, argc, &reply))
            fake_store_execute(&fake->store, &connection->session, fake_now_ms(), argv, argc,
                               &reply);
        fake_push_note(fake, connection, argv, argc);
    }
    fake->acting = 0;
    struct fake_chunk *chunk = fake_new_chunk(connection);
    chunk->bytes = reply;
    if (rule.fault != 0)
        apply_rule(chunk, &rule);
    note_command(fake, connection, argv, argc);
}

/* Executes the command in `object`. Returns false if it is not an array of strings. */
static bool execute_object(struct fake_redis *fake, struct fake_connection *connection,
                           const redisReply *object)
{
    struct fake_arg argv[WORDS_MAX];
    if (object->type != REDIS_REPLY_ARRAY || object->elements == 0 || object->elements > WORDS_MAX)
        return false;
    for (size_t i = 0; i < object->elements; i++) {
        const redisReply *word = object->element[i];
        if (word->type != REDIS_REPLY_STRING)
            return false;
        argv[i] = (struct fake_arg){.data = word->str, .len = (size_t)word->len};
    }
    execute_command(fake, connection, argv, object->elements);
    return true;
}

/* ---- sockets ---- */

/* Executes the commands in the bytes. Returns false if they are invalid. */
static bool execute_bytes(struct fake_redis *fake, struct fake_connection *connection,
                          const char *bytes, size_t len)
{
    bool ok = redisReaderFeed(connection->reader, bytes, len) == REDIS_OK;
    while (ok) {
        void *object = NULL;
        ok = redisReaderGetReply(connection->reader, &object) == REDIS_OK;
        if (object == NULL)
            break;
        ok = ok && execute_object(fake, connection, object);
        freeReplyObject(object);
    }
    if (!ok)
        fake_note(fake, connection->number, "(not a command)", strlen("(not a command)"));
    return ok;
}

/* Reads and executes commands; with TLS all that have arrived, because the poller does not report
 * bytes that OpenSSL keeps. Returns false if the connection has ended or is invalid. */
static bool read_commands(struct fake_redis *fake, struct fake_connection *connection)
{
    char bytes[16384];
    ssize_t got;
    do {
        got = connection->tls != NULL ? fake_tls_recv(connection->tls, bytes, sizeof bytes)
                                      : recv(connection->fd, bytes, sizeof bytes, 0);
        if (got < 0 && (errno == EAGAIN || errno == EINTR))
            return true;
        if (got <= 0) {
            const char *text = got == 0 ? "(closed)" : "(reset)";
            fake_note(fake, connection->number, text, strlen(text));
            return false;
        }
        if (!execute_bytes(fake, connection, bytes, (size_t)got))
            return false;
    } while (connection->tls != NULL);
    return true;
}

/* Returns how many bytes of the first reply may be sent now; 0: none. */
static size_t sendable(const struct fake_redis *fake, const struct fake_connection *connection)
{
    const struct fake_chunk *chunk = &connection->chunks[0];
    size_t len = chunk->bytes.len - chunk->sent;
    if (chunk->gated || chunk->mute)
        return 0;
    if (chunk->split && len > 1)
        len = 1;
    uint64_t allowed = fake->cut_after - connection->sent;
    return len < allowed ? len : (size_t)allowed;
}

/* Returns true if the connection's first reply may be sent. */
static bool wants_to_send(const struct fake_connection *connection)
{
    return connection->chunks_count > 0 && !connection->chunks[0].gated &&
           !connection->chunks[0].mute;
}

/* Sends bytes as send() does, with TLS or without. */
static ssize_t send_bytes(struct fake_connection *connection, const char *bytes, size_t len)
{
    return connection->tls != NULL ? fake_tls_send(connection->tls, bytes, len)
                                   : send(connection->fd, bytes, len, MSG_NOSIGNAL | MSG_DONTWAIT);
}

/* Sends the bytes that may be sent. Returns how the connection ends; FAKE_END_NONE: it stays. */
static enum fake_end write_replies(struct fake_redis *fake, struct fake_connection *connection)
{
    char endless[4096];
    if (connection->sent >= fake->cut_after)
        return FAKE_END_CLOSE;
    while (wants_to_send(connection)) {
        struct fake_chunk *chunk = &connection->chunks[0];
        size_t len = sendable(fake, connection);
        const char *from = len == 0 ? NULL : chunk->bytes.data + chunk->sent;
        if (chunk->endless && chunk->sent >= chunk->bytes.len) {
            memset(endless, 'x', sizeof endless);
            from = endless;
            len = sizeof endless;
        }
        ssize_t put = len == 0 ? 0 : send_bytes(connection, from, len);
        if (put < 0)
            return errno == EAGAIN || errno == EINTR ? FAKE_END_NONE : FAKE_END_CLOSE;
        chunk->sent += (size_t)put;
        connection->sent += (uint64_t)put;
        fake->sent += (uint64_t)put;
        if (connection->sent >= fake->cut_after)
            return FAKE_END_CLOSE;
        if (chunk->endless)
            return FAKE_END_NONE;
        if (chunk->sent == chunk->bytes.len) {
            if (chunk->end != FAKE_END_NONE)
                return chunk->end;
            drop_chunk(connection);
        } else if (chunk->split) {
            return FAKE_END_NONE; /* the next byte in the next turn */
        }
    }
    return FAKE_END_NONE;
}

/* Gives the socket what TLS has for it. Returns how the connection ends; FAKE_END_NONE: it stays.
 */
static enum fake_end flush_tls(struct fake_connection *connection)
{
    bool reset = false;
    if (connection->tls == NULL || fake_tls_flush(connection->tls, &reset))
        return FAKE_END_NONE;
    return reset ? FAKE_END_RESET : FAKE_END_CLOSE;
}

/* Accepts a connection, or closes it if there are too many. */
static void accept_connection(struct fake_redis *fake)
{
    int on = 1;
    int fd = accept4(fake->listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd < 0)
        return;
    if (fake->connections_count == FAKE_CONNECTIONS_MAX) {
        close(fd);
        return;
    }
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on); /* fails on a unix socket */
    struct fake_connection *connection = &fake->connections[fake->connections_count++];
    *connection = (struct fake_connection){.fd = fd, .number = ++fake->accepted};
    connection->reader = redisReaderCreate();
    if (connection->reader == NULL)
        abort();
    if (fake->tls != NULL)
        connection->tls = fake_tls_open(fake->tls, fd);
    pthread_cond_broadcast(&fake->changed);
}

/* Serves all connections that are ready. Goes backwards, so that the removal of a connection does
 * not move those that are still to come. */
static void serve_connections(struct fake_redis *fake, const struct pollfd *pollfds)
{
    for (size_t i = fake->connections_count; i-- > 0;) {
        struct fake_connection *connection = &fake->connections[i];
        bool readable = false;
        for (size_t k = 0; k < FAKE_CONNECTIONS_MAX && !readable; k++)
            readable = pollfds[k].fd == connection->fd && (pollfds[k].revents & ~POLLOUT) != 0;
        if (readable && !read_commands(fake, connection)) {
            fake_end_connection(fake, i, FAKE_END_CLOSE);
            continue;
        }
        enum fake_end end = flush_tls(connection);
        if (end == FAKE_END_NONE)
            end = write_replies(fake, connection);
        if (end == FAKE_END_NONE)
            end = flush_tls(connection);
        if (end != FAKE_END_NONE)
            fake_end_connection(fake, i, end);
    }
}

/* Sets what the poller reports about the connection. Returns the time in ms after which it is
 * served in any case; -1: none. */
static int watch(const struct fake_connection *connection, struct pollfd *pollfd)
{
    const struct fake_tls *tls = connection->tls;
    bool reads = tls == NULL || fake_tls_wants_read(tls);
    bool writes = wants_to_send(connection) || (tls != NULL && fake_tls_wants_write(tls));
    *pollfd = (struct pollfd){.fd = connection->fd};
    pollfd->events = (short)((reads ? POLLIN : 0) | (writes ? POLLOUT : 0));
    return tls == NULL ? -1 : fake_tls_pause_ms(tls);
}

/* Runs the server until `stopping` is set; the main function of its thread. `argument` is a
 * struct fake_redis. */
void *fake_serve(void *argument)
{
    struct fake_redis *fake = argument;
    pthread_mutex_lock(&fake->mutex);
    while (!fake->stopping) {
        struct pollfd pollfds[FAKE_CONNECTIONS_MAX + 2];
        int pause_ms = -1;
        for (size_t i = 0; i < FAKE_CONNECTIONS_MAX; i++) {
            pollfds[i] = (struct pollfd){.fd = -1, .events = POLLIN};
            int own_ms =
                i < fake->connections_count ? watch(&fake->connections[i], &pollfds[i]) : -1;
            pause_ms = own_ms >= 0 ? own_ms : pause_ms;
        }
        struct pollfd *listener = &pollfds[FAKE_CONNECTIONS_MAX];
        struct pollfd *wake = listener + 1;
        *listener = (struct pollfd){.fd = fake->listener, .events = POLLIN};
        *wake = (struct pollfd){.fd = fake->wake, .events = POLLIN};
        pthread_mutex_unlock(&fake->mutex);
        (void)poll(pollfds, FAKE_CONNECTIONS_MAX + 2, pause_ms);
        pthread_mutex_lock(&fake->mutex);
        uint64_t woken;
        if (wake->revents != 0 && read(fake->wake, &woken, sizeof woken) < 0)
            abort();
        serve_connections(fake, pollfds);
        if (listener->revents != 0 && fake->listener == listener->fd)
            accept_connection(fake);
    }
    pthread_mutex_unlock(&fake->mutex);
    return NULL;
}
