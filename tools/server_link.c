/* SPDX-License-Identifier: MIT
 * Connects to a single server. hiredis connects the socket, and formats commands and parses
 * replies. Their bytes go through TLS (server_tls.h) if the address says so: the SSL layer of
 * hiredis does not verify the name of the server. The library names the place of each server, and
 * the settings have the addresses, with logins and parameters of TLS, and the common ones.
 */
#include "server_link.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "say.h"
#include "server_address.h"
#include "shards.h"

/* Notes why a call has failed; an error of the system as the reason of errno. Returns false. */
static bool fail(struct server_link *link, const char *why)
{
    snprintf(link->error, sizeof link->error, "%s", why);
    return false;
}

/* Returns in words why a call on the socket has failed. */
static const char *errno_words(void)
{
    return errno == EAGAIN || errno == EWOULDBLOCK ? "no reply in time" : strerror(errno);
}

/* Sends all bytes in plain text. Returns false with errno if that fails. */
static bool send_plain(int fd, const char *bytes, size_t len)
{
    while (len > 0) {
        ssize_t sent = send(fd, bytes, len, MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR)
            continue;
        if (sent < 0)
            return false;
        bytes += sent;
        len -= (size_t)sent;
    }
    return true;
}

/* Waits for bytes in plain text. Returns as recv(). */
static ssize_t receive_plain(int fd, char *buffer, size_t size)
{
    ssize_t len;

    do {
        len = recv(fd, buffer, size, 0);
    } while (len < 0 && errno == EINTR);
    return len;
}

/* Sends one command. */
bool server_send(struct server_link *link, const char *const *words, int count)
{
    char *bytes;
    int len = (int)redisFormatCommandArgv(&bytes, count, (const char **)(uintptr_t)words, NULL);

    if (len < 0)
        return fail(link, "out of memory");
    bool good = link->tls ? server_tls_send(link->tls, bytes, (size_t)len)
                          : send_plain(link->context->fd, bytes, (size_t)len);
    explicit_bzero(bytes, (size_t)len); /* a password may stand there */
    redisFreeCommand(bytes);
    return good || fail(link, errno_words());
}

/* Waits for the next reply. */
redisReply *server_receive(struct server_link *link)
{
    redisReader *reader = link->context->reader;
    void *reply = NULL;
    char buffer[16384];

    for (;;) {
        if (redisReaderGetReply(reader, &reply) != REDIS_OK) {
            fail(link, reader->errstr);
            return NULL;
        }
        if (reply)
            return reply;
        ssize_t len = link->tls ? server_tls_receive(link->tls, buffer, sizeof buffer)
                                : receive_plain(link->context->fd, buffer, sizeof buffer);
        if (len <= 0) {
            fail(link, len < 0 ? errno_words() : "Server closed the connection");
            return NULL;
        }
        if (redisReaderFeed(reader, buffer, (size_t)len) != REDIS_OK) {
            fail(link, reader->errstr);
            return NULL;
        }
    }
}

/* Closes and frees the connection. */
void server_close(struct server_link *link)
{
    if (!link)
        return;
    server_tls_close(link->tls);
    redisFree(link->context);
    free(link);
}

/* Sends one command and frees its reply. Returns true if the reply is no error; else false, with
 * `why` in link->error if the server has refused it. */
static bool command(struct server_link *link, const char *const *words, int count, const char *why)
{
    redisReply *reply = server_send(link, words, count) ? server_receive(link) : NULL;
    bool good = reply && reply->type != REDIS_REPLY_ERROR;

    if (reply && !good)
        fail(link, why);
    if (reply)
        freeReplyObject(reply);
    return good;
}

/* Overwrites and frees a text. */
static void wipe(char *text)
{
    explicit_bzero(text, strlen(text));
    free(text);
}

/* Logs in with the login of the address, else with the common one, if there is one. `list` has the
 * addresses of the shard. Returns false if the server refuses it. The reply is not shown, because
 * it may repeat the password. */
static bool log_in(struct server_link *link, const struct settings *settings, const char *list,
                   size_t place)
{
    static const char refused[] = "the server refuses the login";
    struct server_login login = server_login_of(list, place);
    bool own = login.password != NULL, good = true;
    const char *user = own ? login.user : settings->values[SET_USER].text;
    const char *password = own ? login.password : settings->password;

    if (password && user)
        good = command(link, (const char *[]){"AUTH", user, password}, 3, refused);
    else if (password)
        good = command(link, (const char *[]){"AUTH", password}, 2, refused);
    server_login_free(&login);
    return good;
}

/* Selects the database of the server unless it is 0. Returns false if the server refuses it. */
static bool select_db(struct server_link *link, int db)
{
    char number[16];

    snprintf(number, sizeof number, "%d", db);
    return db == 0 ||
           command(link, (const char *[]){"SELECT", number}, 2, "the server refuses the database");
}

/* Makes the TLS handshake if the address says so. `list` has the addresses of the shard. Returns
 * false if it fails. */
static bool secure(struct server_link *link, const struct settings *settings, const char *list,
                   size_t place, const char *host)
{
    struct server_security own = server_security_of(list, place);
    redlock_tls_t tls;
    bool used = own.used;

    settings_tls(settings, &tls);
    server_security_apply(&own, &tls);
    if (used)
        link->tls = server_tls_open(link->context->fd, &tls, host, settings->connect_timeout_ms,
                                    link->error);
    server_security_free(&own);
    return !used || link->tls;
}

/* Returns the duration as hiredis needs it. */
static struct timeval timeval_of(uint32_t ms)
{
    return (struct timeval){.tv_sec = (time_t)(ms / 1000),
                            .tv_usec = (suseconds_t)(ms % 1000) * 1000};
}

/* Connects, logs in and selects the database. */
struct server_link *server_connect(const struct settings *settings,
                                   const redlock_node_stats_t *node, size_t place,
                                   uint32_t reply_ms, char error[LINK_ERROR_MAX])
{
    struct server_place where = server_place_of(node->node);
    struct timeval connect_time = timeval_of(settings->connect_timeout_ms);
    struct server_link *link = must(calloc(1, sizeof *link));
    char *list = shards_addresses(settings->values[SET_SERVERS].text, node->shard_index);

    link->context =
        must(*where.path ? redisConnectUnixWithTimeout(where.path, connect_time)
                         : redisConnectWithTimeout(where.host, where.port, connect_time));
    bool good =
        !link->context->err && redisSetTimeout(link->context, timeval_of(reply_ms)) == REDIS_OK;
    if (!good)
        fail(link, link->context->errstr);
    good = good && secure(link, settings, list, place, where.host) &&
           log_in(link, settings, list, place) && select_db(link, where.db);
    wipe(list);
    if (good)
        return link;
    snprintf(error, LINK_ERROR_MAX, "%s", link->error);
    server_close(link);
    return NULL;
}
