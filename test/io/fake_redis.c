/* SPDX-License-Identifier: MIT
 * Starts, stops and scripts a fake server, and reads its log. */
#include "fake_redis.h"

#include "fake_line.h"
#include "fake_push.h"
#include "wait.h"

#include <arpa/inet.h>
#include <limits.h>
#include <netinet/in.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

/* Aborts the test if setting it up fails. */
#define MUST(condition)                                                                            \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            perror("fake_redis: " #condition);                                                     \
            abort();                                                                               \
        }                                                                                          \
    } while (0)

/* ---- start and stop ---- */

/* Returns the address 127.0.0.1 with that port. */
static struct sockaddr_in loopback(int port)
{
    return (struct sockaddr_in){.sin_family = AF_INET,
                                .sin_port = htons((uint16_t)port),
                                .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
}

/* Returns a socket that reserves a port for the server, also while it does not listen: neither
 * another server nor a client can get it. SO_REUSEADDR is set after bind(), so that bind() finds
 * only a free port. */
static int take_port(int *ret_port)
{
    struct sockaddr_in address = loopback(0);
    socklen_t len = sizeof address;
    int on = 1;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    MUST(fd >= 0);
    MUST(bind(fd, (struct sockaddr *)&address, sizeof address) == 0);
    MUST(setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) == 0);
    MUST(getsockname(fd, (struct sockaddr *)&address, &len) == 0);
    *ret_port = ntohs(address.sin_port);
    return fd;
}

/* Opens a listening socket on the port. */
static int listen_tcp(int port)
{
    struct sockaddr_in address = loopback(port);
    int on = 1;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    MUST(fd >= 0);
    MUST(setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) == 0);
    MUST(bind(fd, (struct sockaddr *)&address, sizeof address) == 0);
    MUST(listen(fd, 64) == 0);
    return fd;
}

/* Opens a listening unix socket. */
static int listen_unix(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
    (void)unlink(path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    MUST(fd >= 0);
    MUST(bind(fd, (struct sockaddr *)&address, sizeof address) == 0);
    MUST(listen(fd, 64) == 0);
    return fd;
}

/* Opens the server's listener. */
static void open_listener(struct fake_redis *fake)
{
    fake->listener = fake->port_fd < 0 ? listen_unix(fake->path) : listen_tcp(fake->port);
}

/* Stores the profile and makes a run_id that no other fake has, unless the test gives one, which is
 * copied. */
static void adopt_profile(struct fake_redis *fake, const struct fake_profile *profile)
{
    static atomic_uint counter;
    struct fake_profile complete = {.loading = false};
    if (profile != NULL)
        complete = *profile;
    if (complete.run_id == NULL) {
        unsigned number = atomic_fetch_add(&counter, 1) + 1;
        snprintf(fake->run_id, sizeof fake->run_id, "fa4e%036x", number);
    } else {
        snprintf(fake->run_id, sizeof fake->run_id, "%s", complete.run_id);
    }
    complete.run_id = fake->run_id;
    fake_store_describe(&fake->store, &complete);
}

/* Starts a server on TCP or on a unix socket. */
static struct fake_redis *start(const struct fake_profile *profile, bool unix_socket)
{
    struct fake_redis *fake = calloc(1, sizeof *fake);
    pthread_condattr_t attributes;
    MUST(fake != NULL);
    MUST(pthread_mutex_init(&fake->mutex, NULL) == 0);
    MUST(pthread_condattr_init(&attributes) == 0);
    MUST(pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC) == 0);
    MUST(pthread_cond_init(&fake->changed, &attributes) == 0);
    MUST(pthread_condattr_destroy(&attributes) == 0);
    fake->cut_after = UINT64_MAX;
    fake->wake = eventfd(0, EFD_CLOEXEC);
    MUST(fake->wake >= 0);
    fake->store.changed = fake_push_changed;
    fake->store.changed_ctx = fake;
    adopt_profile(fake, profile);
    if (unix_socket) {
        char directory[] = "/tmp/fake_redis_XXXXXX";
        MUST(mkdtemp(directory) != NULL);
        snprintf(fake->path, sizeof fake->path, "%s/socket", directory);
    }
    fake->port_fd = unix_socket ? -1 : take_port(&fake->port);
    open_listener(fake);
    if (!unix_socket && fake_tls_is_wanted())
        fake->tls = fake_tls_server_new(&(struct fake_tls_profile){.version = 0});
    if (unix_socket)
        snprintf(fake->url, sizeof fake->url, "unix://%s", fake->path);
    else
        snprintf(fake->url, sizeof fake->url, "%s://127.0.0.1:%d",
                 fake->tls != NULL ? "rediss" : "redis", fake->port);
    MUST(pthread_create(&fake->thread, NULL, fake_serve, fake) == 0);
    return fake;
}

/* Starts a server on a loopback TCP port; NULL: the default profile. Never returns NULL. */
struct fake_redis *fake_redis_start(const struct fake_profile *profile)
{
    return start(profile, false);
}

/* Starts a server on a unix socket; NULL: the default profile. Never returns NULL. */
struct fake_redis *fake_redis_start_unix(const struct fake_profile *profile)
{
    return start(profile, true);
}

/* Makes the thread read the state again. The caller holds the mutex. */
static void wake(struct fake_redis *fake)
{
    const uint64_t one = 1;
    MUST(write(fake->wake, &one, sizeof one) == sizeof one);
}

/* Locks the server's mutex. */
static void lock(struct fake_redis *fake)
{
    MUST(pthread_mutex_lock(&fake->mutex) == 0);
}

/* Unlocks the server's mutex. */
static void unlock(struct fake_redis *fake)
{
    MUST(pthread_mutex_unlock(&fake->mutex) == 0);
}

/* Ends the server's thread, closes all connections and frees the server. NULL: no-op. */
void fake_redis_stop(struct fake_redis *fake)
{
    if (fake == NULL)
        return;
    lock(fake);
    fake->stopping = true;
    wake(fake);
    unlock(fake);
    MUST(pthread_join(fake->thread, NULL) == 0);
    while (fake->connections_count > 0)
        fake_end_connection(fake, fake->connections_count - 1, FAKE_END_CLOSE);
    if (fake->listener >= 0)
        close(fake->listener);
    if (fake->port_fd >= 0)
        close(fake->port_fd);
    close(fake->wake);
    if (fake->path[0] != '\0') {
        (void)unlink(fake->path);
        *strrchr(fake->path, '/') = '\0';
        (void)rmdir(fake->path);
    }
    for (size_t i = 0; i < fake->lines_count; i++)
        free(fake->lines[i].text);
    free(fake->lines);
    for (size_t i = 0; i < fake->texts_count; i++)
        free(fake->texts[i]);
    free(fake->texts);
    fake_store_free(&fake->store);
    fake_push_free(fake);
    fake_line_free(fake);
    fake_tls_server_free(fake->tls);
    MUST(pthread_cond_destroy(&fake->changed) == 0);
    MUST(pthread_mutex_destroy(&fake->mutex) == 0);
    free(fake);
}

/* Returns the server's address, which is valid until fake_redis_stop(). */
const char *fake_redis_url(const struct fake_redis *fake)
{
    return fake->url;
}

/* ---- misbehaviour ---- */

/* Returns a terminated copy of a text, which is valid until fake_redis_stop(); NULL: NULL. The
 * caller holds the mutex. */
static const char *keep_text(struct fake_redis *fake, const char *text, size_t len)
{
    if (text == NULL)
        return NULL;
    char *copy = calloc(1, len + 1);
    fake->texts = realloc(fake->texts, (fake->texts_count + 1) * sizeof *fake->texts);
    MUST(copy != NULL && fake->texts != NULL);
    memcpy(copy, text, len);
    fake->texts[fake->texts_count++] = copy;
    return copy;
}

/* Returns strlen(), or 0 for NULL. */
static size_t len_of(const char *text)
{
    return text == NULL ? 0 : strlen(text);
}

/* Adds a rule behind the earlier ones, with copies of its texts: the server may use the rule after
 * the function that added it has returned. For each command the first matching rule is used. */
void fake_redis_rule(struct fake_redis *fake, struct fake_rule rule)
{
    lock(fake);
    MUST(rule.fault != 0 && fake->rules_count < FAKE_RULES_MAX);
    rule.command = keep_text(fake, rule.command, len_of(rule.command));
    rule.argument = keep_text(fake, rule.argument, len_of(rule.argument));
    rule.bytes = keep_text(fake, rule.bytes, rule.len != 0 ? rule.len : len_of(rule.bytes));
    fake->rules[fake->rules_count++] = rule;
    unlock(fake);
}

/* Removes all rules. */
void fake_redis_clear_rules(struct fake_redis *fake)
{
    lock(fake);
    fake->rules_count = 0;
    unlock(fake);
}

/* Sends the replies that FAKE_GATE has held back until now. */
void fake_redis_open_gate(struct fake_redis *fake)
{
    lock(fake);
    for (size_t i = 0; i < fake->connections_count; i++) {
        for (size_t k = 0; k < fake->connections[i].chunks_count; k++)
            fake->connections[i].chunks[k].gated = false;
    }
    wake(fake);
    unlock(fake);
}

/* Sends `bytes` on all connections, without a request. */
void fake_redis_push(struct fake_redis *fake, const char *bytes)
{
    lock(fake);
    for (size_t i = 0; i < fake->connections_count; i++)
        fake_bytes_add(&fake_new_chunk(&fake->connections[i])->bytes, bytes, strlen(bytes));
    wake(fake);
    unlock(fake);
}

/* Sends `bytes` on all connections that are subscribed to notifications. */
void fake_redis_notify(struct fake_redis *fake, const char *bytes, size_t len)
{
    lock(fake);
    for (size_t i = 0; i < fake->connections_count; i++) {
        if (fake->connections[i].session.subscribed)
            fake_bytes_add(&fake_new_chunk(&fake->connections[i])->bytes, bytes, len);
    }
    wake(fake);
    unlock(fake);
}

/* Closes the connections that are subscribed to notifications. */
void fake_redis_end_notifying(struct fake_redis *fake, bool reset)
{
    lock(fake);
    for (size_t i = fake->connections_count; i-- > 0;) {
        if (fake->connections[i].session.subscribed)
            fake_end_connection(fake, i, reset ? FAKE_END_RESET : FAKE_END_CLOSE);
    }
    wake(fake);
    unlock(fake);
}

/* Returns whether some connection has read the key and another one will get a notification when
 * it changes. */
bool fake_redis_notifies(struct fake_redis *fake, const char *key)
{
    lock(fake);
    bool is_due = fake_push_is_due(fake, (struct fake_arg){key, strlen(key)});
    unlock(fake);
    return is_due;
}

/* Closes every connection once the server has sent `bytes` bytes on it; UINT64_MAX: never. */
void fake_redis_cut_after(struct fake_redis *fake, uint64_t bytes)
{
    lock(fake);
    fake->cut_after = bytes;
    wake(fake);
    unlock(fake);
}

/* Closes all connections. */
void fake_redis_drop_connections(struct fake_redis *fake)
{
    lock(fake);
    while (fake->connections_count > 0)
        fake_end_connection(fake, fake->connections_count - 1, FAKE_END_CLOSE);
    wake(fake);
    unlock(fake);
}

/* With false, refuses new connections and resets those that are not accepted yet; open ones
 * stay. With true, listens again. */
void fake_redis_listen(struct fake_redis *fake, bool listening)
{
    lock(fake);
    if (listening && fake->listener < 0) {
        open_listener(fake);
    } else if (!listening && fake->listener >= 0) {
        (void)shutdown(fake->listener, SHUT_RDWR);
        close(fake->listener);
        fake->listener = -1;
    }
    wake(fake);
    unlock(fake);
}

/* Changes how the server describes itself from now on. Its keys stay. */
void fake_redis_set_profile(struct fake_redis *fake, const struct fake_profile *profile)
{
    lock(fake);
    adopt_profile(fake, profile);
    unlock(fake);
}

/* Changes how new connections speak TLS. NULL: they do not. */
void fake_redis_set_tls(struct fake_redis *fake, const struct fake_tls_profile *profile)
{
    lock(fake);
    fake_tls_server_free(fake->tls);
    fake->tls = profile != NULL ? fake_tls_server_new(profile) : NULL;
    unlock(fake);
}

/* Unloads all scripts, as SCRIPT FLUSH does. */
void fake_redis_forget_scripts(struct fake_redis *fake)
{
    lock(fake);
    fake->store.scripts = 0;
    fake->has_line_script = false;
    unlock(fake);
}

/* Loads the library's scripts, so that EVALSHA finds them. */
void fake_redis_load_scripts(struct fake_redis *fake)
{
    lock(fake);
    fake->store.scripts = UINT_MAX;
    fake->has_line_script = true;
    unlock(fake);
}

/* Returns the number of waiters in all lines. */
size_t fake_redis_waiters(struct fake_redis *fake)
{
    lock(fake);
    size_t count = fake_line_count(fake);
    unlock(fake);
    return count;
}

/* ---- its log ---- */

/* Returns true if the line begins with these words. */
static bool begins(const char *line, const char *words)
{
    return strncmp(line, words, strlen(words)) == 0;
}

/* Counts the lines of the log that begin with these words. The caller holds the mutex. */
static size_t count_lines(const struct fake_redis *fake, const char *words)
{
    size_t count = 0;
    for (size_t i = 0; i < fake->lines_count; i++)
        count += begins(fake->lines[i].text, words);
    return count;
}

/* Returns the time on CLOCK_MONOTONIC after a scaled timeout. */
static struct timespec deadline_in(unsigned timeout_ms)
{
    uint64_t at_ns = wait_now_ns() + wait_scaled_ms(timeout_ms) * 1000000u;
    return (struct timespec){.tv_sec = (time_t)(at_ns / 1000000000u),
                             .tv_nsec = (long)(at_ns % 1000000000u)};
}

/* Waits until `count` lines begin with `words`. Returns false after `timeout_ms`. */
bool fake_redis_wait(struct fake_redis *fake, const char *words, size_t count, unsigned timeout_ms)
{
    struct timespec deadline = deadline_in(timeout_ms);
    lock(fake);
    int waited = 0;
    while (count_lines(fake, words) < count && waited == 0)
        waited = pthread_cond_timedwait(&fake->changed, &fake->mutex, &deadline);
    bool seen = count_lines(fake, words) >= count;
    unlock(fake);
    return seen;
}

/* Returns the number of lines of the log that begin with `words`. */
size_t fake_redis_count(struct fake_redis *fake, const char *words)
{
    lock(fake);
    size_t count = count_lines(fake, words);
    unlock(fake);
    return count;
}

/* Copies the index-th line (from 0) that begins with `words`. Returns its position among all
 * lines; -1: none. */
long fake_redis_find(struct fake_redis *fake, const char *words, size_t index, char *line,
                     size_t size, unsigned *ret_connection)
{
    long place = -1;
    lock(fake);
    for (size_t i = 0; i < fake->lines_count && place < 0; i++) {
        if (!begins(fake->lines[i].text, words) || index-- > 0)
            continue;
        place = (long)i;
        if (line != NULL)
            snprintf(line, size, "%s", fake->lines[i].text);
        if (ret_connection != NULL)
            *ret_connection = fake->lines[i].connection;
    }
    unlock(fake);
    return place;
}

/* Returns all lines, each preceded by the number of its connection (from 1). The caller frees
 * the text. */
char *fake_redis_log(struct fake_redis *fake)
{
    struct fake_bytes log = {.data = NULL};
    lock(fake);
    for (size_t i = 0; i < fake->lines_count; i++) {
        const struct fake_line *line = &fake->lines[i];
        fake_bytes_text(&log, "%u ", line->connection);
        fake_bytes_add(&log, line->text, strlen(line->text));
        fake_bytes_add(&log, "\n", 1);
    }
    unlock(fake);
    return log.data != NULL ? log.data : strdup("");
}

/* Returns the number of open connections. */
size_t fake_redis_connections(struct fake_redis *fake)
{
    lock(fake);
    size_t count = fake->connections_count;
    unlock(fake);
    return count;
}

/* Waits until exactly `count` connections are open. Returns false after `timeout_ms`. */
bool fake_redis_wait_connections(struct fake_redis *fake, size_t count, unsigned timeout_ms)
{
    struct timespec deadline = deadline_in(timeout_ms);
    lock(fake);
    int waited = 0;
    while (fake->connections_count != count && waited == 0)
        waited = pthread_cond_timedwait(&fake->changed, &fake->mutex, &deadline);
    bool seen = fake->connections_count == count;
    unlock(fake);
    return seen;
}

/* Returns the number of bytes that the server has sent, over all connections. */
uint64_t fake_redis_sent(struct fake_redis *fake)
{
    lock(fake);
    uint64_t sent = fake->sent;
    unlock(fake);
    return sent;
}

/* ---- its keys ---- */

/* Writes a key in database 0. ttl_ms 0: it never expires. */
void fake_redis_put(struct fake_redis *fake, const char *key, const char *value, uint64_t ttl_ms)
{
    lock(fake);
    fake_store_put(&fake->store, fake_now_ms(), key, value, ttl_ms);
    wake(fake);
    unlock(fake);
}

/* Deletes a key in database 0. */
void fake_redis_remove(struct fake_redis *fake, const char *key)
{
    lock(fake);
    fake_store_remove(&fake->store, key);
    wake(fake);
    unlock(fake);
}

/* Deletes all keys. The fence record stays. */
void fake_redis_flush(struct fake_redis *fake)
{
    lock(fake);
    fake_store_clear(&fake->store);
    wake(fake);
    unlock(fake);
}

/* Returns the number of keys in all databases. */
size_t fake_redis_keys(struct fake_redis *fake)
{
    lock(fake);
    size_t count = fake_store_count(&fake->store, fake_now_ms());
    unlock(fake);
    return count;
}

/* Returns whether database 0 has the key; if so, stores its value and its remaining TTL in ms. */
bool fake_redis_has_key(struct fake_redis *fake, const char *key, char *value, size_t size,
                        uint64_t *ret_ttl_ms)
{
    lock(fake);
    bool found = fake_store_look(&fake->store, fake_now_ms(), key, value, size, ret_ttl_ms);
    unlock(fake);
    return found;
}

/* Removes the server's fence record. */
void fake_redis_forget_record(struct fake_redis *fake)
{
    lock(fake);
    memset(&fake->store.record, 0, sizeof fake->store.record);
    unlock(fake);
}

/* Sets every fencing token in the server's record to `number`. */
void fake_redis_set_numbers(struct fake_redis *fake, uint64_t number)
{
    struct fake_record *record = &fake->store.record;
    lock(fake);
    for (size_t i = 0; i < sizeof record->numbers / sizeof record->numbers[0]; i++)
        record->numbers[i] = number;
    unlock(fake);
}

/* Polls, because keys also expire, and an expiry wakes no waiter. */
bool fake_redis_wait_keys(struct fake_redis *fake, size_t count, unsigned timeout_ms)
{
    return WAIT_UNTIL(fake_redis_keys(fake) == count, timeout_ms);
}
