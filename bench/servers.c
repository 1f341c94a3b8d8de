/* SPDX-License-Identifier: MIT
 * Addresses of the measured servers, and the requests of the benchmark besides the measurement.
 * These requests are rare, so they use blocking hiredis calls. */
#include "servers.h"

#include <errno.h>
#include <hiredis/hiredis.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

/* Returns whether the item begins with one of the two schemes. */
static bool has_scheme(const char *item, const char *one, const char *other)
{
    return strncasecmp(item, one, strlen(one)) == 0 || strncasecmp(item, other, strlen(other)) == 0;
}

/* Parses one address. Returns 0, or -1 and a text in `error`. `tls`: it is one for TLS. */
static int parse_one(struct server *server, const char *item, bool tls, char *error,
                     size_t error_size)
{
    const char *start = strstr(item, "://");
    if (tls && !has_scheme(item, "rediss://", "valkeys://")) {
        snprintf(error, error_size, "%s: expected rediss://host:port", item);
        return -1;
    }
    if (!tls && start != NULL && !has_scheme(item, "redis://", "valkey://")) {
        snprintf(error, error_size,
                 "%.*s: expected redis://host:port; the list with TLS is REDLOCK_TLS_SERVERS",
                 (int)(start - item), item);
        return -1;
    }
    start = start == NULL ? item : start + 3;
    size_t len = strcspn(start, "/?");
    bool db = start[len] == '/' && start[len + 1] != '\0' && start[len + 1] != '?';
    if (db || memchr(start, '@', len) != NULL) {
        snprintf(error, error_size,
                 "a server with a password or a database number cannot be measured: use a sandbox");
        return -1;
    }
    const char *colon = memrchr(start, ':', len);
    size_t host_len = colon == NULL ? len : (size_t)(colon - start);
    size_t port_len = colon == NULL ? 0 : len - host_len - 1;
    if (host_len > 2 && start[0] == '[' && start[host_len - 1] == ']') {
        start++;
        host_len -= 2;
    }
    if (port_len == 0 || port_len >= sizeof server->port || host_len == 0 ||
        host_len >= sizeof server->host) {
        snprintf(error, error_size, "%s: expected host:port", item);
        return -1;
    }
    char *host = tls ? server->tls_host : server->host;
    char *port = tls ? server->tls_port : server->port;
    memcpy(host, start, host_len);
    host[host_len] = '\0';
    memcpy(port, colon + 1, port_len);
    port[port_len] = '\0';
    const char *cacert = strstr(item, "cacert=");
    if (tls && cacert != NULL) {
        cacert += strlen("cacert=");
        snprintf(server->cacert, sizeof server->cacert, "%.*s", (int)strcspn(cacert, "&"), cacert);
    }
    return 0;
}

/* Parses a list of addresses, separated by commas or blanks, and stores its text and its length.
 * Returns 0, or -1 and a text in `error`. */
static int parse_list(struct servers *servers, const char *text, bool tls, size_t *ret_count,
                      char *error, size_t error_size)
{
    if (strlen(text) >= SERVERS_TEXT_MAX) {
        snprintf(error, error_size, "the list of servers is longer than %d bytes",
                 SERVERS_TEXT_MAX - 1);
        return -1;
    }
    strcpy(tls ? servers->tls_text : servers->text, text);
    char items[SERVERS_TEXT_MAX];
    strcpy(items, text);
    char *rest = NULL;
    *ret_count = 0;
    for (char *item = strtok_r(items, ", \t\n", &rest); item != NULL;
         item = strtok_r(NULL, ", \t\n", &rest)) {
        if (*ret_count == SERVERS_MAX) {
            snprintf(error, error_size, "more than %d servers", SERVERS_MAX);
            return -1;
        }
        if (parse_one(&servers->list[*ret_count], item, tls, error, error_size) != 0)
            return -1;
        ++*ret_count;
    }
    return 0;
}

/* Parses the list of addresses without TLS. Returns 0, or -1 and a text in `error`. */
int servers_parse(struct servers *ret_servers, const char *text, char *error, size_t error_size)
{
    memset(ret_servers, 0, sizeof *ret_servers);
    if (parse_list(ret_servers, text, false, &ret_servers->count, error, error_size) != 0)
        return -1;
    if (ret_servers->count == 0) {
        snprintf(error, error_size, "no servers given");
        return -1;
    }
    return 0;
}

/* Adds the list of addresses with TLS. Returns 0, or -1 and a text in `error`. */
int servers_add_tls(struct servers *servers, const char *text, char *error, size_t error_size)
{
    size_t count;
    if (parse_list(servers, text, true, &count, error, error_size) != 0)
        return -1;
    if (count != servers->count) {
        snprintf(error, error_size, "%zu servers, but %zu addresses with TLS", servers->count,
                 count);
        return -1;
    }
    return 0;
}

/* Returns the list of URLs for the measured connections. */
const char *servers_measured(const struct servers *servers)
{
    return servers->tls ? servers->tls_text : servers->text;
}

/* Connects to a server, to the port for TLS if `tls`. Returns a non-blocking socket with
 * TCP_NODELAY, or -1 and a text in `error`. */
int servers_connect(const struct server *server, bool tls, char *error, size_t error_size)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *list = NULL;
    const char *host = tls ? server->tls_host : server->host;
    const char *port = tls ? server->tls_port : server->port;
    int failure = getaddrinfo(host, port, &hints, &list);
    if (failure != 0) {
        snprintf(error, error_size, "%s: %s", host, gai_strerror(failure));
        return -1;
    }
    int fd = -1;
    for (struct addrinfo *at = list; at != NULL && fd < 0; at = at->ai_next) {
        fd = socket(at->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (fd >= 0 && connect(fd, at->ai_addr, at->ai_addrlen) != 0) {
            snprintf(error, error_size, "%s:%s: %s", host, port, strerror(errno));
            close(fd);
            fd = -1;
        }
    }
    freeaddrinfo(list);
    if (fd < 0)
        return -1;
    int on = 1;
    if (setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) != 0 ||
        ioctl(fd, FIONBIO, &on) != 0) {
        snprintf(error, error_size, "%s:%s: %s", host, port, strerror(errno));
        close(fd);
        return -1;
    }
    return fd;
}

/* Opens a blocking connection. Returns NULL on failure. */
static redisContext *open_context(const struct server *server)
{
    const struct timeval timeout = {.tv_sec = 2, .tv_usec = 0};
    redisContext *context = redisConnectWithTimeout(server->host, atoi(server->port), timeout);
    if (context != NULL && (context->err != 0 || redisSetTimeout(context, timeout) != REDIS_OK)) {
        redisFree(context);
        return NULL;
    }
    return context;
}

/* Writes "redis VERSION", "valkey VERSION" or "unknown". */
void servers_version(const struct server *server, char *version, size_t size)
{
    snprintf(version, size, "unknown");
    redisContext *context = open_context(server);
    if (context == NULL)
        return;
    redisReply *reply = redisCommand(context, "INFO server");
    if (reply != NULL && reply->type == REDIS_REPLY_STRING) {
        const char *name = "valkey";
        const char *field = strstr(reply->str, "valkey_version:");
        if (field == NULL) {
            name = "redis";
            field = strstr(reply->str, "redis_version:");
        }
        if (field != NULL) {
            field = strchr(field, ':') + 1;
            snprintf(version, size, "%s %.*s", name, (int)strcspn(field, "\r\n"), field);
        }
    }
    if (reply != NULL)
        freeReplyObject(reply);
    redisFree(context);
}

/* Returns true if the key begins with the prefix and is not that of a line. A client that ends
 * while a server is away cannot leave its line there; the key of the line expires by itself. */
static bool is_leftover(const char *key, const char *prefix)
{
    static const char line[] = "{#q}";
    size_t len = strlen(key), line_len = strlen(line);

    return strncmp(key, prefix, strlen(prefix)) == 0 &&
           (len < line_len || strcmp(key + len - line_len, line) != 0);
}

/* Reads one page of a SCAN, adds the number of leftover keys to *count, and replaces the cursor by
 * the next one. Returns false on failure. */
static bool scan_page(redisContext *context, const char *prefix, char cursor[32], long *count)
{
    redisReply *reply = redisCommand(context, "SCAN %s COUNT 1000", cursor);
    bool ok = reply != NULL && reply->type == REDIS_REPLY_ARRAY && reply->elements == 2 &&
              reply->element[0]->type == REDIS_REPLY_STRING &&
              reply->element[1]->type == REDIS_REPLY_ARRAY;
    if (ok) {
        snprintf(cursor, 32, "%s", reply->element[0]->str);
        const redisReply *keys = reply->element[1];
        for (size_t i = 0; i < keys->elements; i++)
            *count += is_leftover(keys->element[i]->str, prefix);
    }
    if (reply != NULL)
        freeReplyObject(reply);
    return ok;
}

/* Deletes the key on all servers that reply. */
void servers_delete(const struct servers *servers, const char *key)
{
    for (size_t i = 0; i < servers->count; i++) {
        redisContext *context = open_context(&servers->list[i]);
        redisReply *reply = context == NULL ? NULL : redisCommand(context, "DEL %s", key);
        if (reply != NULL)
            freeReplyObject(reply);
        if (context != NULL)
            redisFree(context);
    }
}

/* Returns the value of a field of INFO that is in seconds, in microseconds. `name` includes the
 * colon. */
static uint64_t seconds_field_us(const char *info, const char *name)
{
    const char *field = strstr(info, name);
    return field == NULL ? 0 : (uint64_t)(strtod(field + strlen(name), NULL) * 1e6);
}

/* Returns the processor time of all servers in microseconds, 0 if a server does not reply. */
uint64_t servers_cpu_us(const struct servers *servers)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < servers->count; i++) {
        redisContext *context = open_context(&servers->list[i]);
        redisReply *reply = context == NULL ? NULL : redisCommand(context, "INFO cpu");
        bool ok = reply != NULL && reply->type == REDIS_REPLY_STRING;
        if (ok)
            sum += seconds_field_us(reply->str, "used_cpu_sys:") +
                   seconds_field_us(reply->str, "used_cpu_user:");
        if (reply != NULL)
            freeReplyObject(reply);
        if (context != NULL)
            redisFree(context);
        if (!ok)
            return 0;
    }
    return sum;
}

/* Returns how many keys of locks on all servers begin with `prefix`, -1 if a server does not reply.
 */
long servers_count_keys(const struct servers *servers, const char *prefix)
{
    long count = 0;
    for (size_t i = 0; i < servers->count; i++) {
        redisContext *context = open_context(&servers->list[i]);
        if (context == NULL)
            return -1;
        char cursor[32] = "0";
        bool ok;
        do {
            ok = scan_page(context, prefix, cursor, &count);
        } while (ok && strcmp(cursor, "0") != 0);
        redisFree(context);
        if (!ok)
            return -1;
    }
    return count;
}

/* Loads the script into one server and writes its hash, 40 hex digits and a NUL, to `sha`. Returns
 * 0 or -1. */
int servers_load_script(const struct server *server, const char *script, char sha[41])
{
    redisContext *context = open_context(server);
    if (context == NULL)
        return -1;
    redisReply *reply = redisCommand(context, "SCRIPT LOAD %s", script);
    bool ok = reply != NULL && reply->type == REDIS_REPLY_STRING && reply->len == 40;
    if (ok)
        memcpy(sha, reply->str, 41);
    if (reply != NULL)
        freeReplyObject(reply);
    redisFree(context);
    return ok ? 0 : -1;
}

/* Reads a number from the file directory/<number>/<name>. Returns 0 if there is none above 1. */
static long read_number(const char *directory, size_t number, const char *name)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%zu/%s", directory, number, name);
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return 0;
    long found = 0;
    if (fscanf(file, "%ld", &found) != 1 || found <= 1)
        found = 0;
    fclose(file);
    return found;
}

/* Returns true if a sandbox could have this address. */
static bool is_local(const struct server *server)
{
    return strcmp(server->host, "127.0.0.1") == 0 || strcmp(server->host, "localhost") == 0;
}

/* Returns the number of the sandbox's server that listens on the address, SIZE_MAX if there is
 * none. */
static size_t find_number(const char *directory, const struct server *server)
{
    for (size_t number = 0; is_local(server) && number <= SERVERS_MAX; number++) {
        if (read_number(directory, number, "port") == atol(server->port))
            return number;
    }
    return SIZE_MAX;
}

/* Reads the process ids of all servers. Returns false and sets none if one is unknown.
 *
 * The list of the sandbox, also the one that leads through a proxy in front of all servers, has the
 * order of its directories. Servers of any other list are found by their ports, so that servers
 * outside the list are never stopped. */
static bool read_pids(struct servers *servers, const char *directory)
{
    const char *own = getenv("REDLOCK_SERVERS");
    bool in_order = own != NULL && strcmp(own, servers->text) == 0;
    size_t first = read_number(directory, 0, "pid") != 0 ? 0 : 1;
    bool all = true;
    for (size_t i = 0; i < servers->count; i++) {
        struct server *server = &servers->list[i];
        size_t number = in_order ? first + i : find_number(directory, server);
        server->number = number;
        server->pid = number == SIZE_MAX ? 0 : (pid_t)read_number(directory, number, "pid");
        all = all && server->pid != 0;
    }
    for (size_t i = 0; !all && i < servers->count; i++)
        servers->list[i].pid = 0;
    return all;
}

/* Fills in the process ids of all servers from the sandbox. Returns 0, or -1 and a text in
 * `error`. */
int servers_find_pids(struct servers *servers, char *error, size_t error_size)
{
    const char *directory = getenv("REDLOCK_SANDBOX_DIR");
    if (directory != NULL && read_pids(servers, directory))
        return 0;
    snprintf(error, error_size,
             "the scenario stops servers, and these are not those of a sandbox "
             "(REDLOCK_SANDBOX_DIR): run it "
             "as\n  redlock sandbox -- redlock-bench");
    return -1;
}

/* Process ids of the servers that are stopped. Stopped servers outlive this process, so a signal
 * that ends the benchmark continues them first. */
static pid_t stopped_pids[SERVERS_MAX];

/* Handles a signal: continues the stopped servers and ends the process by the same signal. */
static void continue_and_raise(int number)
{
    for (size_t i = 0; i < SERVERS_MAX; i++) {
        if (stopped_pids[i] != 0)
            (void)kill(stopped_pids[i], SIGCONT);
    }
    (void)raise(number); /* SA_RESETHAND has restored the default action */
}

/* Stops or continues the last `count` servers. Until they are continued, the signals below continue
 * them before they end this process. */
void servers_stop(const struct servers *servers, size_t count, bool stop)
{
    const int signals[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
    struct sigaction action = {.sa_handler = stop ? continue_and_raise : SIG_DFL,
                               .sa_flags = (int)SA_RESETHAND};
    for (size_t i = servers->count - count; i < servers->count; i++)
        stopped_pids[i] = servers->list[i].pid;
    for (size_t i = 0; i < sizeof signals / sizeof signals[0]; i++)
        (void)sigaction(signals[i], &action, NULL);
    for (size_t i = servers->count - count; i < servers->count; i++)
        (void)kill(servers->list[i].pid, stop ? SIGSTOP : SIGCONT);
}
