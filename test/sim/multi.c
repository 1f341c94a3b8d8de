/* SPDX-License-Identifier: MIT
 * Executes the library's scripts over several keys. They are recognized by their whole text.
 *
 * A world is one simulated run: servers, clients, links and clocks, all modelled. A user is one
 * caller in a client process, with at most one lock at a time. */
#include "command.h"
#include "token.h"

enum script { ACQUIRE, HEAL, EXTEND, RELEASE, SHORTEN, SCRIPTS };

static const char *const scripts[SCRIPTS] = {
    [ACQUIRE] = "for i,k in ipairs(KEYS) do if redis.call('PTTL',k)~=-2 then return -i end end "
                "for _,k in ipairs(KEYS) do redis.call('SET',k,ARGV[1],'PX',ARGV[2]) end return 1",
    [HEAL] = "for _,k in ipairs(KEYS) do local v=redis.call('GET',k) "
             "if v and v~=ARGV[1] then return 0 end end local ttl=tonumber(ARGV[2]) "
             "for _,k in ipairs(KEYS) do if redis.call('PTTL',k)<ttl then "
             "redis.call('SET',k,ARGV[1],'PX',ARGV[2]) end end return 1",
    [EXTEND] = "for _,k in ipairs(KEYS) do if redis.call('GET',k)~=ARGV[1] then return 0 end end "
               "local ttl=tonumber(ARGV[2]) for _,k in ipairs(KEYS) do "
               "local left=redis.call('PTTL',k) if left<ttl then left=ttl end "
               "redis.call('PEXPIRE',k,left) end return 1",
    [RELEASE] = "local n=0 for _,k in ipairs(KEYS) do local v=redis.pcall('GET',k) "
                "if v==ARGV[1] then n=n+redis.call('DEL',k) elseif type(v)=='table' and "
                "string.sub(v.err,1,9)~='WRONGTYPE' then return v end end return n",
    [SHORTEN] = "local n=0 for _,k in ipairs(KEYS) do local v=redis.pcall('GET',k) "
                "if v==ARGV[1] then n=n+redis.call('PEXPIRE',k,ARGV[2]) elseif type(v)=='table' "
                "and string.sub(v.err,1,9)~='WRONGTYPE' then return v end end return n",
};

/* The arguments of a script. */
struct keys {
    unsigned count;
    struct sim_word names[SIM_RESOURCES_MAX];
    struct sim_word token;
    int64_t ttl_ms;  /* RELEASE: 0 */
    uint32_t number; /* of the token; 0: not a token of the simulated clients */
};

/* Returns whether the key at that position is present with the token of the arguments. */
static bool is_ours(struct sim_call *call, const struct keys *keys, unsigned at)
{
    return sim_key_holds(sim_key_of(call, keys->names[at]), keys->token);
}

/* Returns whether the key at that position is present with any token. */
static bool is_there(struct sim_call *call, const struct keys *keys, unsigned at)
{
    return sim_key_of(call, keys->names[at])->present;
}

/* Replies -OOM and returns true if the server's memory is full. */
static bool is_full(struct sim_call *call)
{
    if (call->server->full)
        sim_reply_add(call, "-OOM command not allowed when used memory > 'maxmemory'.");
    return call->server->full;
}

/* Sets the key at that position. */
static void put(struct sim_call *call, const struct keys *keys, unsigned at)
{
    sim_put(call, sim_key_of(call, keys->names[at]), keys->token, keys->ttl_ms);
}

/* Sets all keys, unless one is present. */
static void acquire(struct sim_call *call, const struct keys *keys)
{
    sim_token_at(call->world, keys->number)->sets[call->conn->node]++;
    for (unsigned i = 0; i < keys->count; i++) {
        sim_key_requested(call, sim_key_of(call, keys->names[i]));
        if (!is_there(call, keys, i))
            continue;
        sim_reply_add_number(call, -(int64_t)(i + 1));
        return;
    }
    if (is_full(call))
        return;
    for (unsigned i = 0; i < keys->count; i++)
        put(call, keys, i);
    sim_reply_outcome(call, keys->number, false);
    sim_reply_add_number(call, 1);
}

/* Sets all keys that are missing or expire too early, unless one has another token. */
static void heal(struct sim_call *call, const struct keys *keys)
{
    int64_t now_ms = sim_server_now_ms(call->world, call->conn->node);
    bool written = false;

    for (unsigned i = 0; i < keys->count; i++) {
        if (is_there(call, keys, i) && !is_ours(call, keys, i)) {
            sim_reply_add_number(call, 0);
            return;
        }
    }
    for (unsigned i = 0; i < keys->count; i++) {
        const struct sim_key *key = sim_key_of(call, keys->names[i]);
        if (key->present && key->expire_ms - now_ms >= keys->ttl_ms)
            continue;
        if (!written && is_full(call))
            return;
        put(call, keys, i);
        written = true;
    }
    sim_reply_outcome(call, keys->number, false);
    sim_reply_add_number(call, 1);
}

/* Extends all keys, unless one has another token or is missing. */
static void extend(struct sim_call *call, const struct keys *keys)
{
    int64_t end_ms = sim_server_now_ms(call->world, call->conn->node) + keys->ttl_ms;

    for (unsigned i = 0; i < keys->count; i++) {
        if (is_ours(call, keys, i))
            continue;
        sim_reply_add_number(call, 0);
        return;
    }
    for (unsigned i = 0; i < keys->count; i++) {
        struct sim_key *key = sim_key_of(call, keys->names[i]);
        if (!is_ours(call, keys, i))
            continue;
        if (key->expire_ms < end_ms)
            key->expire_ms = end_ms;
        sim_key_renewed(call, key);
    }
    sim_reply_outcome(call, keys->number, true);
    sim_reply_add_number(call, 1);
}

/* Deletes all keys with the token, or shortens them unless `at_once`. */
static void delete_or_shorten(struct sim_call *call, const struct keys *keys, bool at_once)
{
    int64_t end_ms = sim_server_now_ms(call->world, call->conn->node) + keys->ttl_ms;
    int64_t count = 0;

    for (unsigned i = 0; i < keys->count; i++) {
        struct sim_key *key = sim_key_of(call, keys->names[i]);
        if (!is_ours(call, keys, i))
            continue;
        if (at_once)
            key->present = false;
        else
            key->expire_ms = end_ms;
        sim_key_changed(call, key);
        count++;
    }
    sim_reply_add_number(call, count);
}

/* Executes EVAL script count key ... token [ttl]. */
static void run(struct sim_call *call, enum script script)
{
    const struct sim_word *words = call->words;
    struct keys keys = {.count = (unsigned)sim_integer_of(words[2])};
    unsigned mask = 0;

    for (unsigned i = 0; i < keys.count; i++) {
        keys.names[i] = words[3 + i];
        mask |= 1u << sim_resource_of(keys.names[i]);
    }
    keys.token = words[3 + keys.count];
    keys.ttl_ms = script == RELEASE ? 0 : sim_integer_of(words[4 + keys.count]);
    if (script == ACQUIRE)
        keys.number = sim_token_number(call->world, keys.token.text, keys.token.len,
                                       call->conn->client, mask);
    else
        keys.number = sim_token_find(call->world, keys.token.text, keys.token.len);
    sim_note(call->world, "node % runs many-key script % for token % on %", call->conn->node,
             script, keys.number, mask);
    if (script == ACQUIRE)
        acquire(call, &keys);
    else if (script == HEAL)
        heal(call, &keys);
    else if (script == EXTEND)
        extend(call, &keys);
    else
        delete_or_shorten(call, &keys, script == RELEASE);
}

/* Executes EVAL if its script is one of the library's scripts over several keys. Returns false
 * if it is not. */
bool sim_many_script(struct sim_call *call)
{
    for (unsigned i = 0; i < SCRIPTS && sim_is(call->words[0], "EVAL"); i++) {
        if (!sim_is(call->words[1], scripts[i]))
            continue;
        run(call, (enum script)i);
        return true;
    }
    return false;
}
