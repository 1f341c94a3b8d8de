/* SPDX-License-Identifier: MIT
 * The fence record of a server. The scripts are recognized by the text in the library;
 * test/unit/core/test_scripts_fence.c runs them on a real server.
 *
 * A world is one simulated run: servers, clients, links and clocks, all modelled. A user is one
 * caller in a client process, with at most one lock at a time. */
#include "record.h"

#include "core/protocol.h"
#include "core/wire_fence.h"
#include "permit.h"
#include "platform/hash.h"
#include "token.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SCRIPT_BIT 8 /* of the first script of fences, in sim_server.scripts */

/* Returns the fencing token in the register of this stripe. 0: none. */
uint64_t sim_record_number(const struct sim_record *record, unsigned stripe)
{
    for (unsigned i = 0; i < record->count; i++) {
        if (record->registers[i].stripe == stripe)
            return record->registers[i].number;
    }
    return 0;
}

/* Stores the largest fencing token of a register, which is created if it is new. */
static void write_number(struct sim_record *record, unsigned stripe, uint64_t number)
{
    for (unsigned i = 0; i < record->count; i++) {
        if (record->registers[i].stripe == stripe) {
            record->registers[i].number = number;
            return;
        }
    }
    if (record->count == SIM_REGISTERS)
        abort();
    record->registers[record->count].stripe = stripe;
    record->registers[record->count++].number = number;
}

/* Returns whether the text begins with the word. */
static bool begins_with(const char *text, struct sim_word word)
{
    return strncmp(text, word.text, word.len) == 0 && strlen(text) >= word.len;
}

/* Replies with a letter, which says why the script did nothing. */
static void reply_letter(struct sim_call *call, const char *letter)
{
    sim_reply_add_text(call, letter, strlen(letter));
}

/* Returns whether the record is in use for this configuration, and otherwise replies with a letter.
 */
static bool is_in_use(struct sim_call *call, struct sim_word config)
{
    const struct sim_record *record = &call->server->record;

    if (record->cfg[0] == '\0') {
        reply_letter(call, "M");
        return false;
    }
    if (record->cfg[0] != '\0' && !begins_with(record->cfg, config)) {
        reply_letter(call, "R other");
        return false;
    }
    return true;
}

/* Returns the run ID to which the record is bound; "": none. */
static const char *run_of(const struct sim_record *record, struct sim_word config)
{
    return strlen(record->cfg) >= config.len ? record->cfg + config.len : "";
}

/* Executes EVAL script 2 lock record token ttl stripe proposal fingerprint. */
static void vote(struct sim_call *call)
{
    const struct sim_word *words = call->words;
    struct sim_record *record = &call->server->record;
    struct sim_word config = words[9];
    unsigned stripe = (unsigned)sim_integer_of(words[7]);
    uint64_t proposal = (uint64_t)sim_integer_of(words[8]);
    char text[160];
    int len;

    if (!is_in_use(call, config))
        return;
    uint64_t previous = sim_record_number(record, stripe);
    if (!sim_set(call, words[3], words[5], sim_integer_of(words[6]))) {
        len = snprintf(text, sizeof text, "D %" PRIu64 " 1", previous);
        sim_reply_add_text(call, text, (size_t)len);
        return;
    }
    if (record->cfg[0] == '\0')
        sim_token_at(call->world, sim_token_find(call->world, words[5].text, words[5].len))
            ->without_record |= (uint8_t)(1u << call->conn->node);
    bool accepted = proposal > previous;
    if (accepted)
        write_number(record, stripe, proposal);
    len = snprintf(text, sizeof text, "%s %" PRIu64 " %s", accepted ? "A" : "G", previous,
                   run_of(record, config));
    sim_reply_add_text(call, text, (size_t)len);
}

/* Executes EVAL script 2 lock record token stripe number fingerprint. */
static void raise_number(struct sim_call *call)
{
    const struct sim_word *words = call->words;
    const struct sim_key *key = sim_key_of(call, words[3]);
    struct sim_record *record = &call->server->record;
    struct sim_word token = words[5], config = words[8];
    unsigned stripe = (unsigned)sim_integer_of(words[6]);
    uint64_t number = (uint64_t)sim_integer_of(words[7]);
    bool ours = key->present && key->token_len == token.len &&
                memcmp(key->token, token.text, token.len) == 0;
    char text[160];

    sim_note(call->world, "node % raises to % for token %, ours: %", call->conn->node, number,
             sim_token_find(call->world, token.text, token.len), ours);
    if (!ours) {
        reply_letter(call, "L");
        return;
    }
    if (!is_in_use(call, config))
        return;
    if (number > sim_record_number(record, stripe))
        write_number(record, stripe, number);
    int len = snprintf(text, sizeof text, "A %s", run_of(record, config));
    sim_reply_add_text(call, text, (size_t)len);
}

/* Returns whether the text is equal to the two words, one after the other. */
static bool is_equal(const char *text, struct sim_word first, struct sim_word second)
{
    return strlen(text) == first.len + second.len && begins_with(text, first) &&
           begins_with(text + first.len, second);
}

/* Copies a word, and terminates the copy. */
static void copy_word(char *to, size_t size, struct sim_word word)
{
    if (word.len >= size)
        abort();
    memcpy(to, word.text, word.len);
    to[word.len] = '\0';
}

/* Executes EVAL script 1 record fingerprint run mark stripes. */
static void read_record(struct sim_call *call)
{
    const struct sim_word *words = call->words;
    struct sim_record *record = &call->server->record;
    struct sim_word config = words[4], run = words[5];
    char text[512];

    if (record->mark[0] == '\0' && !is_equal(record->cfg, config, run) &&
        (record->cfg[0] == '\0' || begins_with(record->cfg, config))) {
        copy_word(record->mark, sizeof record->mark, words[6]);
    }
    int len = snprintf(text, sizeof text, "%s\n%s\n", record->cfg, record->mark);
    for (unsigned i = 0; i < record->count; i++)
        len += snprintf(text + len, sizeof text - (size_t)len, "%s%u:%" PRIu64, i == 0 ? "" : " ",
                        record->registers[i].stripe, record->registers[i].number);
    sim_reply_add_text(call, text, (size_t)len);
}

/* Takes a number and the separator after it from the start of the list. */
static uint64_t take_number(struct sim_word *rest)
{
    uint64_t value = 0;

    for (; rest->len > 0 && *rest->text >= '0' && *rest->text <= '9'; rest->text++, rest->len--)
        value = value * 10 + (uint64_t)(*rest->text - '0');
    if (rest->len > 0) { /* skips the separator */
        rest->text++;
        rest->len--;
    }
    return value;
}

/* Returns whether a resource uses the stripe. A record that the operator seeds has a number for
 * each stripe; the model stores only those in use. */
static bool is_used(const struct sim_world *world, unsigned stripe)
{
    for (unsigned i = 0; i < SIM_KEYS_MAX; i++) {
        char name[SIM_NAME_MAX];
        struct rl_arg key = sim_key_name(i, name);
        bool used = i < world->plan.resources ||
                    (i >= SIM_RESOURCES_MAX && i - SIM_RESOURCES_MAX < world->plan.permits);
        if (used && rl_fence_stripe(rl_hash_bytes(key.data, key.len)) == stripe)
            return true;
    }
    return false;
}

/* Stores the numbers of a list of stripes and numbers, where they are larger. */
static void seed_numbers(struct sim_call *call, struct sim_record *record, struct sim_word list)
{
    while (list.len > 0) {
        unsigned stripe = (unsigned)take_number(&list);
        uint64_t number = take_number(&list);
        if (is_used(call->world, stripe) && number > sim_record_number(record, stripe))
            write_number(record, stripe, number);
    }
}

/* Executes EVAL script 1 record fingerprint run mark numbers. */
static void seed_record(struct sim_call *call)
{
    const struct sim_word *words = call->words;
    struct sim_record *record = &call->server->record;
    struct sim_word config = words[4], run = words[5], mark = words[6];
    char text[160];
    int len = snprintf(text, sizeof text, "A %.*s", (int)run.len, run.text);
    bool forced = sim_is(mark, "*");

    sim_note(call->world, "node % seeds its record, forced: %, was in use: %", call->conn->node,
             forced, record->cfg[0] != '\0', 0);
    if (!forced && is_equal(record->cfg, config, run)) {
        sim_reply_add_text(call, text, (size_t)len);
        return;
    }
    if (!forced && (!sim_is(mark, record->mark) ||
                    (record->cfg[0] != '\0' && !begins_with(record->cfg, config)))) {
        reply_letter(call, "S");
        return;
    }
    if (!forced && call->world->injected[SIM_SEED_REFUSED] < call->world->plan.seeds_refused) {
        call->world->injected[SIM_SEED_REFUSED]++;
        sim_reply_add(call, "-OOM command not allowed when used memory > 'maxmemory'.");
        return;
    }
    seed_numbers(call, record, words[7]);
    record->mark[0] = '\0';
    copy_word(record->cfg, sizeof record->cfg, config);
    copy_word(record->cfg + config.len, sizeof record->cfg - config.len, run);
    sim_reply_add_text(call, text, (size_t)len);
}

static const struct {
    enum rl_verb verb;
    void (*fn)(struct sim_call *call);
} scripts[] = {
    {RL_VERB_ACQUIRE, vote},
    {RL_VERB_RAISE, raise_number},
    {RL_VERB_READ, read_record},
    {RL_VERB_SEED, seed_record},
};

/* Executes EVAL or EVALSHA (`by_sha`) if its script is one for fencing tokens. Returns false if
 * it is not. */
bool sim_record_script(struct sim_call *call, bool by_sha)
{
    for (unsigned i = 0; i < sizeof scripts / sizeof scripts[0]; i++) {
        unsigned bit = 1u << (SCRIPT_BIT + i);
        if (!sim_is(call->words[1], by_sha
                                        ? rl_protocol_script(scripts[i].verb, RL_FORM_SHA)->sha
                                        : rl_protocol_script(scripts[i].verb, RL_FORM_SHA)->text))
            continue;
        if (by_sha && (call->server->scripts & bit) == 0) {
            sim_reply_add(call, "-NOSCRIPT No matching script. Please use EVAL.");
            return true;
        }
        call->server->scripts |= bit;
        /* Scripts without a flags line run at maxmemory, but their commands that need memory fail.
         */
        if (call->server->full && scripts[i].verb != RL_VERB_READ)
            sim_reply_add(call, "-OOM command not allowed when used memory > 'maxmemory'.");
        else
            scripts[i].fn(call);
        return true;
    }
    return false;
}

/* Executes SCRIPT LOAD. Returns the SHA1 hash of a script for fencing tokens, NULL for other
 * scripts. */
const char *sim_record_load(struct sim_call *call, struct sim_word text)
{
    for (unsigned i = 0; i < sizeof scripts / sizeof scripts[0]; i++) {
        if (!sim_is(text, rl_protocol_script(scripts[i].verb, RL_FORM_SHA)->text))
            continue;
        call->server->scripts |= 1u << (SCRIPT_BIT + i);
        return rl_protocol_script(scripts[i].verb, RL_FORM_SHA)->sha;
    }
    return NULL;
}
