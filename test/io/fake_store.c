/* SPDX-License-Identifier: MIT
 * The keys of a fake server and the commands that touch them. */
#include "fake_store.h"

#include "core/protocol.h"
#include "core/scripts.h"
#include "fake_fence.h"
#include "fake_multi.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DATABASES 16
#define FOREVER   UINT64_MAX

/* One key. expires_ms FOREVER: it has no TTL. */
struct fake_key {
    unsigned db;
    struct fake_bytes name, value;
    uint64_t expires_ms;
};

/* Returns true if both have the same bytes. */
static bool same_bytes(const struct fake_bytes *bytes, struct fake_arg arg)
{
    return bytes->len == arg.len && (arg.len == 0 || memcmp(bytes->data, arg.data, arg.len) == 0);
}

/* Returns the text as a word. */
static struct fake_arg arg_of(const char *text)
{
    return (struct fake_arg){.data = text, .len = strlen(text)};
}

/* ---- keys ---- */

/* Frees the key at `index`; the last key takes its position. */
static void remove_at(struct fake_store *store, size_t index)
{
    fake_bytes_free(&store->keys[index].name);
    fake_bytes_free(&store->keys[index].value);
    store->keys[index] = store->keys[--store->keys_count];
}

/* Removes all expired keys. */
static void expire(struct fake_store *store, uint64_t now_ms)
{
    for (size_t i = store->keys_count; i-- > 0;) {
        if (store->keys[i].expires_ms <= now_ms)
            remove_at(store, i);
    }
}

/* Returns the key, or NULL. */
static struct fake_key *find(struct fake_store *store, unsigned db, struct fake_arg name)
{
    for (size_t i = 0; i < store->keys_count; i++) {
        if (store->keys[i].db == db && same_bytes(&store->keys[i].name, name))
            return &store->keys[i];
    }
    return NULL;
}

/* Reports the change of a key. */
static void note_change(struct fake_store *store, const struct fake_bytes *name)
{
    if (store->changed != NULL)
        store->changed(store->changed_ctx, (struct fake_arg){name->data, name->len});
}

/* Sets a key, and reports the change. */
static void put(struct fake_store *store, unsigned db, struct fake_arg name, struct fake_arg value,
                uint64_t expires_ms)
{
    struct fake_key *key = find(store, db, name);
    if (key == NULL) {
        if (store->keys_count == store->keys_size) {
            store->keys_size = store->keys_size * 2 + 8;
            store->keys = realloc(store->keys, store->keys_size * sizeof *store->keys);
            if (store->keys == NULL)
                abort();
        }
        key = &store->keys[store->keys_count++];
        *key = (struct fake_key){.db = db};
        fake_bytes_add(&key->name, name.data, name.len);
    }
    fake_bytes_free(&key->value);
    fake_bytes_add(&key->value, value.data, value.len);
    key->expires_ms = expires_ms;
    note_change(store, &key->name);
}

/* Deletes a key, and reports the change. */
static void remove_key(struct fake_store *store, const struct fake_key *key)
{
    note_change(store, &key->name);
    remove_at(store, (size_t)(key - store->keys));
}

/* Returns the time of expiry; FOREVER on overflow. */
static uint64_t expiry_after(uint64_t now_ms, uint64_t ttl_ms)
{
    return ttl_ms > FOREVER - now_ms ? FOREVER : now_ms + ttl_ms;
}

/* ---- commands: each is called with its words, including the name ---- */

struct call {
    struct fake_store *store;
    struct fake_session *session;
    uint64_t now_ms;
    const struct fake_arg *argv;
    size_t argc;
    struct fake_bytes *reply;
};

/* Replies with a bulk string. */
static void reply_bulk(struct call *call, const char *data, size_t len)
{
    fake_bytes_text(call->reply, "$%zu\r\n", len);
    fake_bytes_add(call->reply, data, len);
    fake_bytes_add(call->reply, "\r\n", 2);
}

/* Returns the key that word `index` names, or NULL. */
static struct fake_key *find_arg(struct call *call, size_t index)
{
    return find(call->store, call->session->db, call->argv[index]);
}

/* Returns a word as a number; 0 if it is too long. */
static uint64_t number_of(struct fake_arg arg)
{
    char text[32] = "";
    if (arg.len < sizeof text)
        memcpy(text, arg.data, arg.len);
    return strtoull(text, NULL, 10);
}

/* Executes SET key value [NX] [PX ms]. */
static void do_set(struct call *call)
{
    bool nx = false;
    uint64_t expires_ms = FOREVER;
    for (size_t i = 3; i < call->argc; i++) {
        bool more = i + 1 < call->argc;
        if (fake_arg_is(call->argv[i], "NX")) {
            nx = true;
        } else if (fake_arg_is(call->argv[i], "PX") && more && number_of(call->argv[i + 1]) > 0) {
            expires_ms = expiry_after(call->now_ms, number_of(call->argv[++i]));
        } else {
            fake_bytes_text(call->reply, "-ERR syntax error\r\n");
            return;
        }
    }
    const struct fake_key *key = find_arg(call, 1);
    bool refused = nx && key != NULL;
    if (!refused)
        put(call->store, call->session->db, call->argv[1], call->argv[2], expires_ms);
    fake_bytes_text(call->reply, refused ? "$-1\r\n" : "+OK\r\n");
}

/* Executes GET key. */
static void do_get(struct call *call)
{
    const struct fake_key *key = find_arg(call, 1);
    if (key == NULL)
        fake_bytes_text(call->reply, "$-1\r\n");
    else
        reply_bulk(call, key->value.len == 0 ? "" : key->value.data, key->value.len);
}

/* Executes GETRANGE key 0 end: the first end + 1 bytes of the value; empty without the key. */
static void do_getrange(struct call *call)
{
    const struct fake_key *key = find_arg(call, 1);
    size_t most = strtoul(call->argv[3].data, NULL, 10) + 1, len = key != NULL ? key->value.len : 0;
    reply_bulk(call, len == 0 ? "" : key->value.data, len < most ? len : most);
}

/* Executes PTTL key: -2 without the key, -1 if it never expires. */
static void do_pttl(struct call *call)
{
    const struct fake_key *key = find_arg(call, 1);
    long long rest = -2;
    if (key != NULL)
        rest = key->expires_ms == FOREVER ? -1 : (long long)(key->expires_ms - call->now_ms);
    fake_bytes_text(call->reply, ":%lld\r\n", rest);
}

/* Executes DEL with one key. */
static void do_del(struct call *call)
{
    struct fake_key *key = find_arg(call, 1);
    if (key != NULL)
        remove_key(call->store, key);
    fake_bytes_text(call->reply, ":%d\r\n", key != NULL);
}

/* Executes DELEX key IFEQ token and DELIFEQ key token: the token is the last word. */
static void do_compare_delete(struct call *call)
{
    struct fake_key *key = find_arg(call, 1);
    bool ours = key != NULL && same_bytes(&key->value, call->argv[call->argc - 1]);
    if (ours)
        remove_key(call->store, key);
    fake_bytes_text(call->reply, ":%d\r\n", ours);
}

#define PLAIN_SCRIPTS 3 /* the scripts after these are about fences */
static const enum rl_verb scripted[] = {RL_VERB_RELEASE, RL_VERB_EXTEND, RL_VERB_SHORTEN,
                                        RL_VERB_ACQUIRE, RL_VERB_RAISE,  RL_VERB_READ,
                                        RL_VERB_SEED};
static const char *const script_names[] = {"release", "extend", "shorten", "vote",
                                           "raise",   "read",   "seed"};

/* Returns the index in `scripted`, or -1 if it is none of the library's scripts. */
static int script_index(struct fake_arg text_or_sha)
{
    for (int i = 0; i < (int)(sizeof scripted / sizeof scripted[0]); i++) {
        if (fake_arg_is(text_or_sha, rl_protocol_script(scripted[i], RL_FORM_SHA)->sha) ||
            fake_arg_is(text_or_sha, rl_protocol_script(scripted[i], RL_FORM_SHA)->text))
            return i;
    }
    return -1;
}

/* Returns true if this is the text or the SHA1 of the script of the greeting. */
bool fake_store_is_check(struct fake_arg text_or_sha)
{
    return fake_arg_is(text_or_sha, rl_script_check.text) ||
           fake_arg_is(text_or_sha, rl_script_check.sha);
}

/* Returns the name of one of the library's scripts ("check", "release", "extend", "shorten",
 * "vote", "raise", "read", "seed", "line") by its text or its SHA1, or NULL. */
const char *fake_store_script_name(struct fake_arg text_or_sha)
{
    int index = script_index(text_or_sha);
    if (fake_store_is_check(text_or_sha))
        return "check";
    if (fake_arg_is(text_or_sha, rl_script_line.sha) ||
        fake_arg_is(text_or_sha, rl_script_line.text))
        return "line";
    return index < 0 ? fake_many_name(text_or_sha) : script_names[index];
}

/* Executes SCRIPT LOAD of one of the library's scripts. */
static void do_script(struct call *call)
{
    int index = call->argc == 3 ? script_index(call->argv[2]) : -1;
    if (!fake_arg_is(call->argv[1], "LOAD") || index < 0) {
        fake_bytes_text(call->reply, "-ERR Error compiling script (new function): not ours\r\n");
        return;
    }
    call->store->scripts |= 1u << index;
    const char *sha = rl_protocol_script(scripted[index], RL_FORM_SHA)->sha;
    reply_bulk(call, sha, strlen(sha));
}

/* Executes EVAL and EVALSHA: script 1 key token [ttl]. */
static void do_eval(struct call *call)
{
    int index = script_index(call->argv[1]);
    bool by_sha = fake_arg_is(call->argv[0], "EVALSHA");
    if (fake_store_is_check(call->argv[1])) {
        fake_bytes_text(call->reply, ":1\r\n");
        return;
    }
    if (by_sha && (index < 0 || (call->store->scripts & 1u << index) == 0)) {
        fake_bytes_text(call->reply, "-NOSCRIPT No matching script. Please use EVAL.\r\n");
        return;
    }
    if (index >= PLAIN_SCRIPTS) {
        call->store->scripts |= 1u << index;
        fake_fence_execute(call->store, (int)scripted[index], call->now_ms, call->argv, call->argc,
                           call->reply);
        return;
    }
    size_t argc_wanted = index == 0 ? 5 : 6;
    if (index < 0 &&
        fake_many_execute(call->store, call->now_ms, call->argv, call->argc, call->reply))
        return;
    if (index < 0 || call->argc != argc_wanted || !fake_arg_is(call->argv[2], "1")) {
        fake_bytes_text(call->reply, "-ERR Error running script: not ours\r\n");
        return;
    }
    call->store->scripts |= 1u << index;
    struct fake_key *key = find_arg(call, 3);
    bool ours = key != NULL && same_bytes(&key->value, call->argv[4]);
    if (ours && scripted[index] == RL_VERB_RELEASE) {
        remove_key(call->store, key);
    } else if (ours) {
        uint64_t expires_ms = expiry_after(call->now_ms, number_of(call->argv[5]));
        if (scripted[index] == RL_VERB_SHORTEN || key->expires_ms < expires_ms)
            key->expires_ms = expires_ms;
        note_change(call->store, &key->name);
    }
    fake_bytes_text(call->reply, ":%d\r\n", ours);
}

/* Executes AUTH [user] password. */
static void do_auth(struct call *call)
{
    const struct fake_profile *profile = &call->store->profile;
    struct fake_arg user = call->argc > 2 ? call->argv[1] : arg_of("default");
    struct fake_arg password = call->argv[call->argc - 1];
    if (profile->password == NULL) {
        fake_bytes_text(call->reply,
                        "-ERR AUTH <password> called without any password configured for the "
                        "default user. Are you sure your configuration is correct?\r\n");
        return;
    }
    call->session->authenticated = user.len == strlen(profile->user) &&
                                   memcmp(user.data, profile->user, user.len) == 0 &&
                                   password.len == strlen(profile->password) &&
                                   memcmp(password.data, profile->password, password.len) == 0;
    fake_bytes_text(call->reply, call->session->authenticated
                                     ? "+OK\r\n"
                                     : "-WRONGPASS invalid username-password pair or user is "
                                       "disabled.\r\n");
}

/* Executes SELECT db. */
static void do_select(struct call *call)
{
    uint64_t db = number_of(call->argv[1]);
    if (db < DATABASES)
        call->session->db = (unsigned)db;
    fake_bytes_text(call->reply, db < DATABASES ? "+OK\r\n" : "-ERR DB index is out of range\r\n");
}

/* Executes CLIENT SETNAME; any other subcommand is an error. */
static void do_client(struct call *call)
{
    if (fake_arg_is(call->argv[1], "SETNAME") && call->argc == 3) {
        snprintf(call->session->name, sizeof call->session->name, "%.*s", (int)call->argv[2].len,
                 call->argv[2].data);
        fake_bytes_text(call->reply, "+OK\r\n");
    } else {
        fake_bytes_text(call->reply, "-ERR unknown subcommand. Try CLIENT HELP.\r\n");
    }
}

/* Returns true if INFO was asked for this section, or for all. */
static bool wants_section(const struct call *call, const char *section)
{
    for (size_t i = 1; i < call->argc; i++) {
        if (fake_arg_is(call->argv[i], section))
            return true;
    }
    return call->argc == 1;
}

/* Executes INFO with the named sections, or with all. */
static void do_info(struct call *call)
{
    const struct fake_profile *profile = &call->store->profile;
    struct fake_bytes info = {.data = NULL};
    if (wants_section(call, "server")) {
        bool valkey = strcmp(profile->software, "valkey") == 0;
        fake_bytes_text(&info, "# Server\r\nredis_version:%s\r\n",
                        valkey ? "7.2.4" : profile->version);
        if (valkey)
            fake_bytes_text(&info, "server_name:valkey\r\nvalkey_version:%s\r\n", profile->version);
        fake_bytes_text(&info,
                        "redis_mode:%s\r\nprocess_id:4711\r\nrun_id:%s\r\n"
                        "tcp_port:6379\r\nuptime_in_seconds:86400\r\n",
                        profile->cluster ? "cluster" : "standalone", profile->run_id);
    }
    if (wants_section(call, "persistence"))
        fake_bytes_text(&info, "# Persistence\r\nloading:%d\r\n", profile->loading);
    if (wants_section(call, "memory"))
        fake_bytes_text(&info, "# Memory\r\nmaxmemory:0\r\nmaxmemory_policy:noeviction\r\n");
    if (wants_section(call, "replication"))
        fake_bytes_text(&info,
                        "# Replication\r\nrole:%s\r\nconnected_slaves:0\r\n"
                        "master_replid2:0000000000000000000000000000000000000000\r\n"
                        "second_repl_offset:-1\r\n",
                        profile->role);
    reply_bulk(call, info.len == 0 ? "" : info.data, info.len);
    fake_bytes_free(&info);
}

/* Replies to TIME with a clock that started in 2023 and runs at the rate of the test's. */
static void do_time(struct call *call)
{
    char seconds[24], us[24];
    int64_t now_ms = INT64_C(1700000000000) + (int64_t)call->now_ms + call->store->profile.ahead_ms;

    snprintf(seconds, sizeof seconds, "%lld", (long long)(now_ms / 1000));
    snprintf(us, sizeof us, "%lld", (long long)(now_ms % 1000 * 1000));
    fake_bytes_text(call->reply, "*2\r\n");
    reply_bulk(call, seconds, strlen(seconds));
    reply_bulk(call, us, strlen(us));
}

/* Executes PING. */
static void do_ping(struct call *call)
{
    fake_bytes_text(call->reply, "+PONG\r\n");
}

static const struct command {
    const char *name;
    size_t argc_min, argc_max; /* including the name */
    void (*execute)(struct call *call);
    unsigned feature;  /* 0: every server supports it */
    bool when_loading; /* executed while the data set is being loaded */
} commands[] = {
    {"SET", 3, 16, do_set, 0, false},
    {"GET", 2, 2, do_get, 0, false},
    {"GETRANGE", 4, 4, do_getrange, 0, false},
    {"PTTL", 2, 2, do_pttl, 0, false},
    {"DEL", 2, 2, do_del, 0, false},
    {"DELEX", 4, 4, do_compare_delete, RL_FEATURE_DELEX, false},
    {"DELIFEQ", 3, 3, do_compare_delete, RL_FEATURE_DELIFEQ, false},
    {"EVAL", 3, 16, do_eval, 0, false},
    {"EVALSHA", 3, 16, do_eval, 0, false},
    {"SCRIPT", 2, 3, do_script, 0, false},
    {"AUTH", 2, 3, do_auth, 0, true},
    {"SELECT", 2, 2, do_select, 0, true},
    {"CLIENT", 2, 8, do_client, 0, true},
    {"INFO", 1, 8, do_info, 0, true},
    {"TIME", 1, 1, do_time, 0, true},
    {"PING", 1, 1, do_ping, 0, false},
};

/* Executes one command at the time `now_ms` and adds its reply. */
void fake_store_execute(struct fake_store *store, struct fake_session *session, uint64_t now_ms,
                        const struct fake_arg *argv, size_t argc, struct fake_bytes *reply)
{
    struct call call = {store, session, now_ms, argv, argc, reply};
    const struct command *command = NULL;
    for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++) {
        if (fake_arg_is(argv[0], commands[i].name) &&
            (commands[i].feature == 0 || (store->profile.features & commands[i].feature) != 0))
            command = &commands[i];
    }
    expire(store, now_ms);
    if (command == NULL)
        fake_bytes_text(reply, "-ERR unknown command '%.*s', with args beginning with: \r\n",
                        (int)(argv[0].len < 128 ? argv[0].len : 128), argv[0].data);
    else if (argc < command->argc_min || argc > command->argc_max)
        fake_bytes_text(reply, "-ERR wrong number of arguments for '%s' command\r\n",
                        command->name);
    else if (store->profile.password != NULL && !session->authenticated &&
             command->execute != do_auth)
        fake_bytes_text(reply, "-NOAUTH Authentication required.\r\n");
    else if (store->profile.loading && !command->when_loading)
        fake_bytes_text(reply, "-LOADING Redis is loading the dataset in memory\r\n");
    else
        command->execute(&call);
}

/* ---- for the test itself ---- */

/* Stores a profile and fills in what it leaves open. Keys and scripts stay. A zeroed store is
 * an empty one. */
void fake_store_describe(struct fake_store *store, const struct fake_profile *profile)
{
    store->profile = *profile;
    if (store->profile.software == NULL)
        store->profile.software = "redis";
    if (store->profile.version == NULL)
        store->profile.version = "7.0.15";
    if (store->profile.role == NULL)
        store->profile.role = "master";
    if (store->profile.user == NULL)
        store->profile.user = "default";
}

/* Frees all keys. */
void fake_store_free(struct fake_store *store)
{
    store->changed = NULL;
    fake_store_clear(store);
    free(store->keys);
    store->keys = NULL;
}

/* Writes a key in database 0 for the test itself. ttl_ms 0: it never expires. */
void fake_store_put(struct fake_store *store, uint64_t now_ms, const char *key, const char *value,
                    uint64_t ttl_ms)
{
    put(store, 0, arg_of(key), arg_of(value), ttl_ms == 0 ? FOREVER : expiry_after(now_ms, ttl_ms));
}

/* Deletes a key in database 0 for the test itself. */
void fake_store_remove(struct fake_store *store, const char *name)
{
    struct fake_key *key = find(store, 0, arg_of(name));
    if (key != NULL)
        remove_key(store, key);
}

/* Deletes all keys of all databases. The fence record stays. */
void fake_store_clear(struct fake_store *store)
{
    if (store->changed != NULL)
        store->changed(store->changed_ctx, (struct fake_arg){NULL, 0});
    while (store->keys_count > 0)
        remove_at(store, store->keys_count - 1);
}

/* Returns the number of keys in all databases that have not expired. */
size_t fake_store_count(struct fake_store *store, uint64_t now_ms)
{
    expire(store, now_ms);
    return store->keys_count;
}

/* Stores the value and the remaining TTL of a key in database 0. Returns false if there is no
 * such key. */
bool fake_store_look(struct fake_store *store, uint64_t now_ms, const char *name, char *value,
                     size_t size, uint64_t *ret_ttl_ms)
{
    expire(store, now_ms);
    const struct fake_key *key = find(store, 0, arg_of(name));
    if (key == NULL)
        return false;
    if (value != NULL)
        snprintf(value, size, "%.*s", (int)key->value.len,
                 key->value.len == 0 ? "" : key->value.data);
    if (ret_ttl_ms != NULL)
        *ret_ttl_ms = key->expires_ms == FOREVER ? FOREVER : key->expires_ms - now_ms;
    return true;
}
