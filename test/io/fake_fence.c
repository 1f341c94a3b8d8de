/* SPDX-License-Identifier: MIT
 * A correct server of fenced votes. Fencing tokens are below 2^53, as in the library's scripts. */
#include "fake_fence.h"

#include "core/protocol.h"
#include "core/wire_fence.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct call {
    struct fake_store *store;
    struct fake_record *record;
    uint64_t now_ms;
    const struct fake_arg *argv;
    struct fake_bytes *reply;
};

/* Returns a word as text, which is valid until the fourth call after this one. */
static const char *text_of(const struct call *call, size_t index)
{
    static _Thread_local char texts[4][1024]; /* one per thread, because each server has its own */
    static _Thread_local unsigned next;
    char *text = texts[next++ % 4];

    snprintf(text, sizeof texts[0], "%.*s", (int)call->argv[index].len, call->argv[index].data);
    return text;
}

/* Returns a word as a number. */
static uint64_t number_at(const struct call *call, size_t index)
{
    return strtoull(text_of(call, index), NULL, 10);
}

/* Replies with a bulk string. */
static void reply_bulk(const struct call *call, const char *text)
{
    fake_bytes_text(call->reply, "$%zu\r\n", strlen(text));
    fake_bytes_add(call->reply, text, strlen(text));
    fake_bytes_add(call->reply, "\r\n", 2);
}

/* Checks that the fence record belongs to the configuration fingerprint in word `index`. Returns
 * the text after the fingerprint in that word, or NULL after adding the error reply. */
static const char *check_fingerprint(const struct call *call, size_t index)
{
    const char *config = text_of(call, index);
    char refusal[FAKE_CONFIG_MAX + 4];

    if (call->record->config[0] == '\0') {
        reply_bulk(call, "M");
        return NULL;
    }
    if (strncmp(call->record->config, config, strlen(config)) != 0) {
        snprintf(refusal, sizeof refusal, "R %s", call->record->config);
        reply_bulk(call, refusal);
        return NULL;
    }
    return call->record->config + strlen(config);
}

/* Replies to a vote. Words: 3 lock, 4 record, 5 token, 6 ttl, 7 stripe, 8 proposal, 9 fingerprint.
 */
static void do_vote(const struct call *call)
{
    uint64_t *number = &call->record->numbers[number_at(call, 7) % RL_FENCE_STRIPES];
    uint64_t left_ms = 0;
    char text[FAKE_CONFIG_MAX + 64];
    const char *run = check_fingerprint(call, 9);

    if (run == NULL)
        return;
    if (*number >= RL_FENCE_CORRUPT) {
        reply_bulk(call, "C");
        return;
    }
    if (fake_store_look(call->store, call->now_ms, text_of(call, 3), NULL, 0, &left_ms)) {
        snprintf(text, sizeof text, "D %llu %llu", (unsigned long long)*number,
                 (unsigned long long)left_ms);
        reply_bulk(call, text);
        return;
    }
    fake_store_put(call->store, call->now_ms, text_of(call, 3), text_of(call, 5),
                   number_at(call, 6));
    bool accepted = number_at(call, 8) > *number;
    snprintf(text, sizeof text, "%c %llu %s", accepted ? 'A' : 'G', (unsigned long long)*number,
             run);
    if (accepted)
        *number = number_at(call, 8);
    reply_bulk(call, text);
}

/* Replies to a RAISE. Words: 3 lock, 4 record, 5 token, 6 stripe, 7 number, 8 fingerprint. */
static void raise_number(const struct call *call)
{
    uint64_t *number = &call->record->numbers[number_at(call, 6) % RL_FENCE_STRIPES];
    char value[1024], text[FAKE_CONFIG_MAX + 4];

    if (!fake_store_look(call->store, call->now_ms, text_of(call, 3), value, sizeof value, NULL) ||
        strcmp(value, text_of(call, 5)) != 0) {
        reply_bulk(call, "L");
        return;
    }
    const char *run = check_fingerprint(call, 8);
    if (run == NULL)
        return;
    *number = number_at(call, 7) > *number ? number_at(call, 7) : *number;
    snprintf(text, sizeof text, "A %s", run);
    reply_bulk(call, text);
}

/* Replies to a READ. Words: 3 record, 4 fingerprint, 5 run, 6 mark, 7 stripes. */
static void read_record(const struct call *call)
{
    struct fake_record *record = call->record;
    struct fake_bytes text = {.data = NULL};
    char whole[2048];
    bool first = true;

    snprintf(whole, sizeof whole, "%s%s", text_of(call, 4), text_of(call, 5));
    const char *config = text_of(call, 4);
    bool ours = record->config[0] == '\0' || strncmp(record->config, config, strlen(config)) == 0;
    if (record->mark[0] == '\0' && ours && strcmp(record->config, whole) != 0)
        snprintf(record->mark, sizeof record->mark, "%.63s", text_of(call, 6));
    fake_bytes_text(&text, "%s\n%s\n", record->config, record->mark);
    for (unsigned i = 0; i < RL_FENCE_STRIPES; i++) {
        if (record->numbers[i] == 0)
            continue;
        fake_bytes_text(&text, "%s%u:%llu", first ? "" : " ", i,
                        (unsigned long long)record->numbers[i]);
        first = false;
    }
    reply_bulk(call, text.data);
    fake_bytes_free(&text);
}

/* Raises the registers to the numbers of word 7, "stripe:number stripe:number ...". */
static void seed_numbers(const struct call *call)
{
    char *text = malloc(call->argv[7].len + 1);
    char *rest = text;

    if (text == NULL)
        abort();
    memcpy(text, call->argv[7].data, call->argv[7].len);
    text[call->argv[7].len] = '\0';
    for (char *word; (word = strsep(&rest, " ")) != NULL;) {
        const char *colon = strchr(word, ':');
        if (colon == NULL)
            continue;
        uint64_t value = strtoull(colon + 1, NULL, 10);
        uint64_t *number = &call->record->numbers[strtoull(word, NULL, 10) % RL_FENCE_STRIPES];
        *number = value > *number || *number >= RL_FENCE_CORRUPT ? value : *number;
    }
    free(text);
}

/* Replies to a SEED. Words: 3 record, 4 fingerprint, 5 run, 6 mark or '*', 7 numbers. */
static void seed(const struct call *call)
{
    struct fake_record *record = call->record;
    char answer[128], whole[FAKE_CONFIG_MAX];
    bool forced = strcmp(text_of(call, 6), "*") == 0;
    const char *config = text_of(call, 4);

    snprintf(whole, sizeof whole, "%.200s%.48s", config, text_of(call, 5));
    bool in_use = strcmp(record->config, whole) == 0;
    if (!forced && !in_use && record->config[0] != '\0' && check_fingerprint(call, 4) == NULL)
        return;
    if (!forced && !in_use && strcmp(record->mark, text_of(call, 6)) != 0) {
        reply_bulk(call, "S");
        return;
    }
    if (forced || !in_use) {
        seed_numbers(call);
        record->mark[0] = '\0';
        memcpy(record->config, whole, sizeof whole);
    }
    snprintf(answer, sizeof answer, "A %.48s", text_of(call, 5));
    reply_bulk(call, answer);
}

/* Executes a call of ACQUIRE, RAISE, READ or SEED as a script (`verb` is an enum rl_verb) and
 * adds the reply. argv is the whole command, which begins with EVALSHA or EVAL. */
void fake_fence_execute(struct fake_store *store, int verb, uint64_t now_ms,
                        const struct fake_arg *argv, size_t argc, struct fake_bytes *reply)
{
    static const struct {
        int verb;
        size_t argc;
        const char *keys;
        void (*execute)(const struct call *call);
    } scripts[] = {
        {RL_VERB_ACQUIRE, 10, "2", do_vote},
        {RL_VERB_RAISE, 9, "2", raise_number},
        {RL_VERB_READ, 8, "1", read_record},
        {RL_VERB_SEED, 8, "1", seed},
    };
    const struct call call = {store, &store->record, now_ms, argv, reply};

    for (size_t i = 0; i < sizeof scripts / sizeof scripts[0]; i++) {
        if (scripts[i].verb != verb)
            continue;
        if (argc == scripts[i].argc && fake_arg_is(argv[2], scripts[i].keys))
            scripts[i].execute(&call);
        else
            fake_bytes_text(reply, "-ERR Error running script: wrong number of words\r\n");
    }
}
