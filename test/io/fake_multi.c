/* SPDX-License-Identifier: MIT
 * A correct server of locks on several keys: all or none. */
#include "fake_multi.h"

#include "core/protocol.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    enum rl_verb verb;
    const char *name;
} scripts[] = {
    {RL_VERB_ACQUIRE, "many-acquire"}, {RL_VERB_HEAL, "many-heal"},
    {RL_VERB_EXTEND, "many-extend"},   {RL_VERB_RELEASE, "many-release"},
    {RL_VERB_SHORTEN, "many-shorten"},
};
#define SCRIPTS (sizeof scripts / sizeof scripts[0])

struct call {
    struct fake_store *store;
    uint64_t now_ms, ttl_ms;
    const char *const *keys;
    size_t count;
    const char *token;
};

/* Returns the index of the script with this text; SCRIPTS: none. */
static size_t script_index(struct fake_arg text)
{
    size_t i = 0;

    while (i < SCRIPTS &&
           !fake_arg_is(text, rl_protocol_script(scripts[i].verb, RL_FORM_MANY)->text))
        i++;
    return i;
}

/* Returns the name of a script ("many-acquire", "many-heal", ...) by its text, or NULL if it is
 * none of them. */
const char *fake_many_name(struct fake_arg text)
{
    size_t index = script_index(text);
    return index < SCRIPTS ? scripts[index].name : NULL;
}

enum state { FREE, OURS, ANOTHERS };

/* Returns who has the key, and its remaining TTL. */
static enum state state_of(const struct call *call, size_t key, uint64_t *ret_ttl_ms)
{
    char value[256];

    if (!fake_store_look(call->store, call->now_ms, call->keys[key], value, sizeof value,
                         ret_ttl_ms))
        return FREE;
    return strcmp(value, call->token) == 0 ? OURS : ANOTHERS;
}

/* Returns the index, from 1, of the first key that is in neither of the states `wanted` and `or`;
 * 0: none. */
static size_t first_other(const struct call *call, enum state wanted, enum state or)
{
    for (size_t i = 0; i < call->count; i++) {
        enum state state = state_of(call, i, NULL);
        if (state != wanted && state != or)
            return i + 1;
    }
    return 0;
}

/* Sets each key that is free or would expire earlier. */
static void set_all(const struct call *call)
{
    for (size_t i = 0; i < call->count; i++) {
        uint64_t ttl_ms = 0;
        if (state_of(call, i, &ttl_ms) == FREE || ttl_ms < call->ttl_ms)
            fake_store_put(call->store, call->now_ms, call->keys[i], call->token, call->ttl_ms);
    }
}

/* Deletes the keys with this token, or shortens their TTL. Returns their number. */
static long release_or_shorten(const struct call *call, bool remove)
{
    long count = 0;

    for (size_t i = 0; i < call->count; i++) {
        if (state_of(call, i, NULL) != OURS)
            continue;
        count++;
        if (remove)
            fake_store_remove(call->store, call->keys[i]);
        else
            fake_store_put(call->store, call->now_ms, call->keys[i], call->token, call->ttl_ms);
    }
    return count;
}

/* Executes the script and returns its reply. */
static long execute(const struct call *call, enum rl_verb verb)
{
    size_t other;

    switch (verb) {
    case RL_VERB_ACQUIRE:
        other = first_other(call, FREE, FREE);
        break;
    case RL_VERB_HEAL:
        other = first_other(call, FREE, OURS);
        break;
    case RL_VERB_EXTEND:
        other = first_other(call, OURS, OURS);
        break;
    default:
        return release_or_shorten(call, verb == RL_VERB_RELEASE);
    }
    if (other == 0)
        set_all(call);
    if (other == 0)
        return 1;
    return verb == RL_VERB_ACQUIRE ? -(long)other : 0;
}

/* Executes EVAL text count keys... token [ttl] in database 0 and adds the reply. Returns false
 * if the script is none of these. */
bool fake_many_execute(struct fake_store *store, uint64_t now_ms, const struct fake_arg *argv,
                       size_t argc, struct fake_bytes *reply)
{
    char words[16][256];
    const char *keys[16];
    size_t index = script_index(argv[1]);

    if (index == SCRIPTS || argc < 5 || argc > 16)
        return false;
    for (size_t i = 2; i < argc; i++)
        snprintf(words[i], sizeof words[i], "%.*s", (int)argv[i].len, argv[i].data);
    size_t count = strtoul(words[2], NULL, 10);
    bool with_ttl = scripts[index].verb != RL_VERB_RELEASE;
    if (count < 2 || argc != 3 + count + 1 + with_ttl)
        return false;
    for (size_t i = 0; i < count; i++)
        keys[i] = words[3 + i];
    const struct call call = {.store = store,
                              .now_ms = now_ms,
                              .ttl_ms = with_ttl ? strtoull(words[argc - 1], NULL, 10) : 0,
                              .keys = keys,
                              .count = count,
                              .token = words[3 + count]};
    fake_bytes_text(reply, ":%ld\r\n", execute(&call, scripts[index].verb));
    return true;
}
