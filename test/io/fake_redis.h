/* SPDX-License-Identifier: MIT
 * A fake Redis server inside the test process, on a thread of its own. Without a script it is a
 * small but honest server for a lock client (fake_store.h). Rules make it misbehave, and it writes
 * down everything it was told.
 *
 *   struct fake_redis *fake = fake_redis_start(NULL);
 *   fake_redis_rule(fake, (struct fake_rule){.command = "SET", .fault = FAKE_CLOSE, .at = 2});
 *   ... a client that uses fake_redis_url(fake) gets two bytes of each answer to SET ...
 *   ck_assert(fake_redis_wait(fake, "SET ", 1, 1000));
 *   fake_redis_stop(fake);
 *
 * All functions may be called from any thread. Waiting is scaled as in wait.h. Out of memory or
 * descriptors aborts the test. */
#ifndef TEST_FAKE_REDIS_H
#define TEST_FAKE_REDIS_H

#include "fake_store.h"

enum fake_fault {
    FAKE_REPLY = 1, /* `bytes` instead of the answer; the command is not executed */
    FAKE_FORGE,     /* executed; `bytes` instead of the answer */
    FAKE_SURPLUS,   /* the answer, then `bytes` that nobody asked for */
    FAKE_SPLIT,     /* the answer, one byte per send */
    FAKE_GATE,      /* executed; this answer and those behind it wait for fake_redis_open_gate() */
    FAKE_SILENCE,   /* executed, but neither this nor any later answer leaves on the connection */
    FAKE_CLOSE,     /* executed; `at` bytes of the answer, then the connection is closed */
    FAKE_RESET,     /* as FAKE_CLOSE, with a reset instead of an orderly end */
    FAKE_DROP,      /* not executed; the connection is closed without an answer */
    FAKE_ENDLESS    /* `bytes`, then 'x' for as long as the peer takes it; not executed */
};

struct fake_rule {
    const char *command;  /* first word, or NULL for every command; borrowed */
    const char *argument; /* must be one of the other words; NULL: does not matter; borrowed */
    unsigned skip;        /* so many matching commands are answered properly first */
    unsigned times;       /* then the rule applies so often; 0: for ever */
    enum fake_fault fault;
    const char *bytes; /* borrowed */
    size_t len;        /* of bytes; 0: strlen */
    size_t at;
};

struct fake_redis;

struct fake_redis *fake_redis_start(const struct fake_profile *profile);      /* TCP on loopback */
struct fake_redis *fake_redis_start_unix(const struct fake_profile *profile); /* unix socket */
void fake_redis_stop(struct fake_redis *fake);                                /* NULL: no-op */
const char *fake_redis_url(const struct fake_redis *fake);

/* ---- misbehaviour ---- */

void fake_redis_rule(struct fake_redis *fake,
                     struct fake_rule rule); /* the first that fits is used */
void fake_redis_clear_rules(struct fake_redis *fake);
void fake_redis_open_gate(struct fake_redis *fake);               /* lets go what waits now */
void fake_redis_push(struct fake_redis *fake, const char *bytes); /* to all, unasked */
/* The same, to those that are subscribed to be told of changes. */
void fake_redis_notify(struct fake_redis *fake, const char *bytes, size_t len);
/* These are closed. */
void fake_redis_end_notifying(struct fake_redis *fake, bool reset);
/* Some connection has asked for the key, and another one will be told when it changes. */
bool fake_redis_notifies(struct fake_redis *fake, const char *key);
/* Every connection is closed once the server has sent so many bytes on it; UINT64_MAX: never. */
void fake_redis_cut_after(struct fake_redis *fake, uint64_t bytes);
void fake_redis_drop_connections(struct fake_redis *fake);
/* false: new connections are refused, and those not accepted yet are reset; open ones stay. */
void fake_redis_listen(struct fake_redis *fake, bool listening);
void fake_redis_set_profile(struct fake_redis *fake, const struct fake_profile *profile);
void fake_redis_forget_scripts(struct fake_redis *fake);
void fake_redis_load_scripts(struct fake_redis *fake); /* all of them */

/* ---- what it was told ----
 * One line per command: its words separated by blanks, with our scripts and their hashes written as
 * `release`, `extend`, `shorten`, `vote`, `raise`, `read`, `seed`. The end of a connection is the
 * line "(closed)" or "(reset)". */

/* Waits until `count` lines begin with `words`. False after timeout_ms. */
bool fake_redis_wait(struct fake_redis *fake, const char *words, size_t count, unsigned timeout_ms);
size_t fake_redis_count(struct fake_redis *fake, const char *words);
/* The index-th line (from 0) that begins with `words` and its place among all lines; -1: none. */
long fake_redis_find(struct fake_redis *fake, const char *words, size_t index, char *line,
                     size_t size, unsigned *ret_connection);
/* All lines, each with the number of its connection (from 1) in front. To be freed. */
char *fake_redis_log(struct fake_redis *fake);
size_t fake_redis_connections(struct fake_redis *fake); /* open ones */
bool fake_redis_wait_connections(struct fake_redis *fake, size_t count, unsigned timeout_ms);
uint64_t fake_redis_sent(struct fake_redis *fake); /* bytes sent to all connections */

/* ---- its keys, in database 0 ---- */

void fake_redis_put(struct fake_redis *fake, const char *key, const char *value, uint64_t ttl_ms);
void fake_redis_remove(struct fake_redis *fake, const char *key);
void fake_redis_flush(struct fake_redis *fake);
size_t fake_redis_keys(struct fake_redis *fake); /* in all databases */
bool fake_redis_has_key(struct fake_redis *fake, const char *key, char *value, size_t size,
                        uint64_t *ret_ttl_ms);
/* Its fence record is gone. */
void fake_redis_forget_record(struct fake_redis *fake);
/* All numbers in it are this one. */
void fake_redis_set_numbers(struct fake_redis *fake, uint64_t number);
/* Waits until there are exactly `count` keys. */
bool fake_redis_wait_keys(struct fake_redis *fake, size_t count, unsigned timeout_ms);

#endif
