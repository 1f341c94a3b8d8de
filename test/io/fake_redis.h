/* SPDX-License-Identifier: MIT
 * A fake Redis server inside the test process, on a thread of its own. Without rules it is a small
 * but correct server for a lock client (fake_store.h). Rules make it misbehave. It logs every
 * command that it receives.
 *
 *   struct fake_redis *fake = fake_redis_start(NULL);
 *   fake_redis_rule(fake, (struct fake_rule){.command = "SET", .fault = FAKE_CLOSE, .at = 2});
 *   ... a client that uses fake_redis_url(fake) gets two bytes of each reply to SET ...
 *   ck_assert(fake_redis_wait(fake, "SET ", 1, 1000));
 *   fake_redis_stop(fake);
 *
 * All functions may be called from any thread. Time limits are scaled as in wait.h. Lack of memory
 * or descriptors aborts the test. */
#ifndef TEST_FAKE_REDIS_H
#define TEST_FAKE_REDIS_H

#include "fake_store.h"
#include "fake_tls.h"

enum fake_fault {
    FAKE_REPLY = 1, /* sends `bytes` instead of the reply; the command is not executed */
    FAKE_FORGE,     /* executes, and sends `bytes` instead of the reply */
    FAKE_SURPLUS,   /* sends the reply, then `bytes` as a surplus reply */
    FAKE_SPLIT,     /* sends the reply with one byte per send() */
    FAKE_GATE,      /* executes; this reply and later ones wait for fake_redis_open_gate() */
    FAKE_SILENCE,   /* executes, but sends neither this nor any later reply on the connection */
    FAKE_CLOSE,     /* executes, sends `at` bytes of the reply, then closes the connection */
    FAKE_RESET,     /* as FAKE_CLOSE, with a reset instead of an orderly end */
    FAKE_DROP,      /* closes the connection without executing or replying */
    FAKE_ENDLESS /* does not execute; sends `bytes`, then 'x' for as long as the peer accepts it */
};

/* A fault and the commands that it applies to. fake_redis_rule() copies the texts. */
struct fake_rule {
    const char *command;  /* first word of the command; NULL: any */
    const char *argument; /* one of the other words must be this; NULL: any */
    unsigned skip;        /* number of matching commands that are executed correctly first */
    unsigned times;       /* number of commands that the rule then applies to; 0: all */
    enum fake_fault fault;
    const char *bytes;
    size_t len; /* length of bytes; 0: strlen */
    size_t at;
};

struct fake_redis;

struct fake_redis *fake_redis_start(const struct fake_profile *profile);      /* on TCP, loopback */
struct fake_redis *fake_redis_start_unix(const struct fake_profile *profile); /* on a unix socket */
void fake_redis_stop(struct fake_redis *fake);                                /* NULL: no-op */
const char *fake_redis_url(const struct fake_redis *fake);

/* ---- misbehaviour ---- */

void fake_redis_rule(struct fake_redis *fake,
                     struct fake_rule rule); /* the first matching one is used */
void fake_redis_clear_rules(struct fake_redis *fake);
void fake_redis_open_gate(struct fake_redis *fake);               /* sends what waits now */
void fake_redis_push(struct fake_redis *fake, const char *bytes); /* sends `bytes` on all
                                                                   * connections, without a request
                                                                   */
/* Sends `bytes` on all connections that are subscribed to notifications. */
void fake_redis_notify(struct fake_redis *fake, const char *bytes, size_t len);
/* Closes the connections that are subscribed to notifications. */
void fake_redis_end_notifying(struct fake_redis *fake, bool reset);
/* Returns whether some connection has read the key and another one will get a notification when it
 * changes. */
bool fake_redis_notifies(struct fake_redis *fake, const char *key);
/* Returns the number of waiters in the lines of all resources. */
size_t fake_redis_waiters(struct fake_redis *fake);
/* Closes every connection once the server has sent `bytes` bytes on it; UINT64_MAX: never. */
void fake_redis_cut_after(struct fake_redis *fake, uint64_t bytes);
void fake_redis_drop_connections(struct fake_redis *fake);
/* With false, refuses new connections and resets those that are not accepted yet; open ones stay.
 */
void fake_redis_listen(struct fake_redis *fake, bool listening);
void fake_redis_set_profile(struct fake_redis *fake, const struct fake_profile *profile);
/* Changes how new connections speak TLS, of a server that was started with TLS. NULL: they do not.
 */
void fake_redis_set_tls(struct fake_redis *fake, const struct fake_tls_profile *profile);
void fake_redis_forget_scripts(struct fake_redis *fake);
void fake_redis_load_scripts(struct fake_redis *fake); /* the library's scripts */

/* ---- its log ----
 *
 * One line per command: its words separated by blanks, with the library's scripts and their hashes
 * written as `release`, `extend`, `shorten`, `vote`, `raise`, `read`, `seed`, `line`. The end of a
 * connection is the line "(closed)" or "(reset)". */

/* Waits until `count` lines begin with `words`. Returns false after `timeout_ms`. */
bool fake_redis_wait(struct fake_redis *fake, const char *words, size_t count, unsigned timeout_ms);
size_t fake_redis_count(struct fake_redis *fake, const char *words);
/* Copies the index-th line (from 0) that begins with `words`. Returns its position among all lines;
 * -1: none. */
long fake_redis_find(struct fake_redis *fake, const char *words, size_t index, char *line,
                     size_t size, unsigned *ret_connection);
/* Returns all lines, each preceded by the number of its connection (from 1). The caller frees the
 * text. */
char *fake_redis_log(struct fake_redis *fake);
size_t fake_redis_connections(struct fake_redis *fake); /* those that are open */
bool fake_redis_wait_connections(struct fake_redis *fake, size_t count, unsigned timeout_ms);
uint64_t fake_redis_sent(struct fake_redis *fake); /* bytes sent to all connections */

/* ---- its keys, in database 0 ---- */

void fake_redis_put(struct fake_redis *fake, const char *key, const char *value, uint64_t ttl_ms);
void fake_redis_remove(struct fake_redis *fake, const char *key);
void fake_redis_flush(struct fake_redis *fake);
size_t fake_redis_keys(struct fake_redis *fake); /* in all databases */
bool fake_redis_has_key(struct fake_redis *fake, const char *key, char *value, size_t size,
                        uint64_t *ret_ttl_ms);
/* Removes its fence record. */
void fake_redis_forget_record(struct fake_redis *fake);
/* Sets every fencing token in its record to `number`. */
void fake_redis_set_numbers(struct fake_redis *fake, uint64_t number);
/* Waits until the server has exactly `count` keys. Returns false after `timeout_ms`. */
bool fake_redis_wait_keys(struct fake_redis *fake, size_t count, unsigned timeout_ms);

#endif
