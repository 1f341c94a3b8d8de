/* SPDX-License-Identifier: MIT
 * The data of a fake server: its keys, its scripts and its passwords. Just enough of Redis for a
 * lock client, as a function from a command to the bytes of its reply. No sockets, no threads. */
#ifndef TEST_FAKE_STORE_H
#define TEST_FAKE_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A byte string that grows. Lack of memory aborts the test. */
struct fake_bytes {
    char *data;
    size_t len, size;
};
void fake_bytes_add(struct fake_bytes *bytes, const void *data, size_t len);
void fake_bytes_text(struct fake_bytes *bytes, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void fake_bytes_free(struct fake_bytes *bytes);

/* One word of a command. It is not terminated and is borrowed. */
struct fake_arg {
    const char *data;
    size_t len;
};
bool fake_arg_is(struct fake_arg arg, const char *word); /* Returns whether the word is `word`, in
                                                          * any case. */

/* How the server describes itself and what it supports. Strings are borrowed and must outlive the
 * server. */
struct fake_profile {
    const char *software;        /* "redis" unless given */
    const char *version;         /* "7.0.15" unless given */
    const char *role;            /* "master" unless given */
    const char *run_id;          /* made from a counter unless given, so that no two fakes have the
                                  * same */
    const char *user, *password; /* required for login if a password is given; user "default" unless
                                  * given */
    unsigned features;           /* the native commands it supports: RL_FEATURE_* */
    bool loading;
    bool cluster;
    bool never_notifies; /* it accepts CLIENT TRACKING but never sends a notification */
    bool keeps_lines;    /* it knows the script of the line, and its user has the rights for it */
    int64_t ahead_ms;    /* how far its clock is ahead */
};

/* The state of one connection. */
struct fake_session {
    bool authenticated;
    unsigned db;
    char name[64];
    bool subscribed;   /* to the channel of notifications */
    char turns[24];    /* id of the waiter to whose channel of turns it is subscribed; "": none */
    unsigned redirect; /* number of the connection that receives notifications of keys that this one
                        * tracks; 0: none */
    bool registers;    /* the next key that is read becomes tracked */
};

/* The fence record. It is not a key here: fake_store_count() does not count it and FLUSHALL leaves
 * it. */
#define FAKE_CONFIG_MAX 256
struct fake_record {
    char config[FAKE_CONFIG_MAX], mark[64];
    uint64_t numbers[1024];
};

struct fake_key;
/* One server's data. fake_store.c owns it; fake_fence.c changes `record`. */
struct fake_store {
    struct fake_profile profile;
    struct fake_key *keys;
    size_t keys_count, keys_size;
    unsigned scripts; /* one bit per verb whose script is loaded */
    struct fake_record record;
    /* Called after a key was written or deleted, or all were (data NULL); not when a key expires.
     * NULL: no call. */
    void (*changed)(void *ctx, struct fake_arg key);
    void *changed_ctx;
};

/* Stores a profile and fills in what it leaves open. Keys and scripts stay. A zeroed store is an
 * empty one. */
void fake_store_describe(struct fake_store *store, const struct fake_profile *profile);
void fake_store_free(struct fake_store *store);

/* Executes one command at the time `now_ms` and adds its reply. */
void fake_store_execute(struct fake_store *store, struct fake_session *session, uint64_t now_ms,
                        const struct fake_arg *argv, size_t argc, struct fake_bytes *reply);

/* Returns the name of one of the library's scripts ("release", "extend", "shorten", "vote",
 * "raise", "read", "seed", "line") by its text or its SHA1, or NULL. */
const char *fake_store_script_name(struct fake_arg text_or_sha);
/* Returns true if this is the text or the SHA1 of the script of the greeting. */
bool fake_store_is_check(struct fake_arg text_or_sha);

/* Write and delete keys for the test itself, in database 0 and without a session. ttl_ms 0: never
 * expires. */
void fake_store_put(struct fake_store *store, uint64_t now_ms, const char *key, const char *value,
                    uint64_t ttl_ms);
void fake_store_remove(struct fake_store *store, const char *key);
void fake_store_clear(struct fake_store *store);
size_t fake_store_count(struct fake_store *store, uint64_t now_ms); /* keys in all databases */
/* Returns the value and the remaining TTL of a key in database 0. Returns false if there is none.
 */
bool fake_store_look(struct fake_store *store, uint64_t now_ms, const char *key, char *value,
                     size_t size, uint64_t *ret_ttl_ms);

#endif
