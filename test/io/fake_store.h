/* SPDX-License-Identifier: MIT
 * What a fake server knows: its keys, its scripts, who may ask. Just enough of Redis for a lock
 * client, as a function from a command to the bytes of its reply. No sockets, no threads. */
#ifndef TEST_FAKE_STORE_H
#define TEST_FAKE_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bytes that grow. Running out of memory aborts the test. */
struct fake_bytes {
    char *data;
    size_t len, size;
};
void fake_bytes_add(struct fake_bytes *bytes, const void *data, size_t len);
void fake_bytes_text(struct fake_bytes *bytes, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void fake_bytes_free(struct fake_bytes *bytes);

struct fake_arg {
    const char *data;
    size_t len;
};
bool fake_arg_is(struct fake_arg arg, const char *word); /* case does not matter */

/* What the server says about itself. Strings are borrowed and must outlive the server. */
struct fake_profile {
    const char *software;        /* "redis" unless given */
    const char *version;         /* "7.0.15" unless given */
    const char *role;            /* "master" unless given */
    const char *run_id;          /* made from a counter unless given: no two fakes are the same */
    const char *user, *password; /* required if a password is given; user "default" unless given */
    unsigned features;           /* RL_FEATURE_*: the native commands it knows */
    bool loading;
    bool cluster;
    bool untold;      /* it never tells of changes, although it said that it would */
    int64_t ahead_ms; /* of its clock */
};

/* What one connection has said about itself. */
struct fake_session {
    bool authenticated;
    unsigned db;
    char name[64];
    bool subscribed;   /* to what is told of changes */
    unsigned redirect; /* the connection that is told of what this one registers; 0: none */
    bool registers;    /* the key that is read next */
};

/* Its fence record. Not a key here: it is not counted, and FLUSHALL is another function. */
#define FAKE_CONFIG_MAX 256
struct fake_record {
    char config[FAKE_CONFIG_MAX], mark[64];
    uint64_t numbers[1024];
};

struct fake_key;
struct fake_store {
    struct fake_profile profile;
    struct fake_key *keys;
    size_t keys_count, keys_size;
    unsigned scripts; /* bit per verb whose script is loaded */
    struct fake_record record;
    /* A key was written or deleted, or all were (data NULL). Nobody hears of what expires. */
    void (*changed)(void *ctx, struct fake_arg key);
    void *changed_ctx;
};

/* Fills in what the profile leaves open; keys and scripts stay. A zeroed store is an empty one. */
void fake_store_describe(struct fake_store *store, const struct fake_profile *profile);
void fake_store_free(struct fake_store *store);

/* Executes one command at the time `now_ms` and adds its reply. */
void fake_store_execute(struct fake_store *store, struct fake_session *session, uint64_t now_ms,
                        const struct fake_arg *argv, size_t argc, struct fake_bytes *reply);

/* The name of one of our scripts ("release", "extend", "shorten", "vote", "raise", "read", "seed")
 * by its text or its SHA1, or NULL. */
const char *fake_store_script_name(struct fake_arg text_or_sha);

/* For the test itself: db 0, no session. ttl_ms 0: never expires. */
void fake_store_put(struct fake_store *store, uint64_t now_ms, const char *key, const char *value,
                    uint64_t ttl_ms);
void fake_store_remove(struct fake_store *store, const char *key);
void fake_store_clear(struct fake_store *store);
size_t fake_store_count(struct fake_store *store, uint64_t now_ms); /* keys in all databases */
/* Value and rest of its life of a key in db 0; false if there is none. */
bool fake_store_look(struct fake_store *store, uint64_t now_ms, const char *key, char *value,
                     size_t size, uint64_t *ret_ttl_ms);

#endif
