/* SPDX-License-Identifier: MIT
 * The scripts of fences, as executed by the server of a fuzzed node. */
#include "server.h"

#include "core/protocol.h"
#include "core/wire_fence.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CONFIG_LEN 4 /* "cfg;" */

/* Compares the record with the fingerprint in word i. Returns 0, or the letter of the refusal. */
static char refusal(const struct server *server, const struct server_command *command, unsigned i)
{
    const char *config = server->record.config;
    size_t len = command->words[i].len;

    MUST(i < command->count && len == CONFIG_LEN);
    if (*config == '\0')
        return 'M';
    return strncmp(config, command->words[i].at, len) == 0 ? '\0' : 'R';
}

/* Reads the fencing token of a stripe. Returns false if it is not a number. */
static bool read_number(const struct server *server, unsigned stripe, uint64_t *ret)
{
    const char *text = server->record.numbers[stripe];
    size_t len = strlen(text);

    *ret = strtoull(text, NULL, 10);
    return len <= 16 && strspn(text, "0123456789") == len && *ret < RL_FENCE_CORRUPT;
}

/* Stores the fencing token of a stripe. */
static void write_number(struct server *server, unsigned stripe, uint64_t number)
{
    snprintf(server->record.numbers[stripe], sizeof server->record.numbers[stripe], "%llu",
             (unsigned long long)number);
}

static void bulk(struct server *server, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Replies with a formatted text as a bulk string. */
static void bulk(struct server *server, const char *format, ...)
{
    char text[256];
    va_list args;

    va_start(args, format);
    int len = vsnprintf(text, sizeof text, format, args);
    va_end(args);
    MUST(len >= 0 && (size_t)len < sizeof text);
    server_reply(server, "$%d\r\n%s\r\n", len, text);
}

/* Replies with the letter of a refusal. */
static void refuse(struct server *server, char letter)
{
    if (letter == 'R')
        bulk(server, "R %s", server->record.config);
    else
        bulk(server, "%c", letter);
}

/* Executes script 2 key record token ttl stripe proposal config. */
static void vote(struct server *server, const struct server_command *command)
{
    struct server_token *token = server_word_token(server, command, 5);
    uint64_t stripe = server_word_number(command, 7), proposal = server_word_number(command, 8);
    char letter = refusal(server, command, 9);
    uint64_t before = 0;

    MUST(stripe < SERVER_STRIPES);
    if (letter == '\0' && !read_number(server, (unsigned)stripe, &before))
        letter = 'C';
    if (letter != '\0') {
        refuse(server, letter);
    } else if (server->is_taken || token->expires_ns > server->now_ns) {
        bulk(server, "D %llu 77", (unsigned long long)before);
    } else {
        token->expires_ns = server->now_ns + server_word_number(command, 6) * RL_MS;
        token->made++;
        token->before = before;
        token->stored = proposal > before;
        token->this_run = strcmp(server->record.config + CONFIG_LEN, SERVER_RUN) == 0;
        if (token->stored)
            write_number(server, (unsigned)stripe, proposal);
        bulk(server, "%c %llu %s", token->stored ? 'A' : 'G', (unsigned long long)before,
             server->record.config + CONFIG_LEN);
    }
}

/* Executes script 2 key record token stripe number config. */
static void raise_number(struct server *server, const struct server_command *command)
{
    struct server_token *token = server_word_token(server, command, 5);
    uint64_t stripe = server_word_number(command, 6), number = server_word_number(command, 7);
    char letter = refusal(server, command, 8);
    uint64_t before = 0;

    MUST(stripe < SERVER_STRIPES);
    if (token->expires_ns <= server->now_ns) {
        token->gone = true;
        letter = 'L';
    } else if (letter == '\0' && !read_number(server, (unsigned)stripe, &before)) {
        letter = 'C';
    }
    if (letter != '\0') {
        refuse(server, letter);
        return;
    }
    if (number > before)
        write_number(server, (unsigned)stripe, number);
    token->raised = rl_max_u64(token->raised, number + 1);
    bulk(server, "A %s", server->record.config + CONFIG_LEN);
}

/* Executes script 1 record config run mark stripes. */
static void read_record(struct server *server, const struct server_command *command)
{
    struct server_record *record = &server->record;
    const struct server_word *run = &command->words[5], *mark = &command->words[6];
    char numbers[SERVER_STRIPES * 32] = "";
    size_t at = 0;

    MUST(command->count == 8 && mark->len == RL_RECORD_MARK_LEN);
    bool ours = refusal(server, command, 4) == '\0';
    const char *rest = record->config + CONFIG_LEN;
    bool in_use = ours && strlen(rest) == run->len && memcmp(rest, run->at, run->len) == 0;
    if (*record->mark == '\0' && !in_use && (ours || *record->config == '\0'))
        memcpy(record->mark, mark->at, mark->len);
    for (unsigned i = 0; i < SERVER_STRIPES; i++)
        if (*record->numbers[i] != '\0')
            at += (size_t)snprintf(numbers + at, sizeof numbers - at, "%s%u:%.17s",
                                   at > 0 ? " " : "", i, record->numbers[i]);
    bulk(server, "%s\n%s\n%s", record->config, record->mark, numbers);
}

/* Executes script 1 record config run mark numbers. */
static void seed(struct server *server, const struct server_command *command)
{
    struct server_record *record = &server->record;
    char letter = refusal(server, command, 4);
    const struct server_word *run = &command->words[5], *mark = &command->words[6];
    bool forced = server_word_is(command, 6, "*");

    MUST(command->count == 8 && (forced || mark->len == RL_RECORD_MARK_LEN));
    if (!forced && letter == 'R') {
        refuse(server, 'R');
        return;
    }
    if (!forced &&
        (strlen(record->mark) != mark->len || memcmp(record->mark, mark->at, mark->len) != 0)) {
        refuse(server, 'S');
        return;
    }
    record->seeded++;
    record->mark[0] = '\0';
    memset(record->numbers, 0, sizeof record->numbers);
    snprintf(record->config, sizeof record->config, "%.*s%.*s", CONFIG_LEN, command->words[4].at,
             (int)run->len, run->at);
    bulk(server, "A %.*s", (int)run->len, run->at);
}

/* Returns true if the command runs the script of `verb`. */
static bool is_script(const struct server_command *command, enum rl_verb verb)
{
    bool whole = server_word_is(command, 0, "EVAL");

    return (whole || server_word_is(command, 0, "EVALSHA")) &&
           server_word_is(command, 1,
                          whole ? rl_protocol_script(verb, RL_FORM_SHA)->text
                                : rl_protocol_script(verb, RL_FORM_SHA)->sha);
}

/* Checks that a vote is requested at most once, unless the reply said that the script is unknown,
 * and never after its undo. */
static void note_vote(struct server *server, const struct server_command *command, bool unknown)
{
    struct server_token *token = server_word_token(server, command, 5);

    MUST(command->count == 10 && server_word_is(command, 4, "rec"));
    MUST(token->banned_from == 0 || command->place < token->banned_from);
    MUST(++token->votes <= token->unknown + 1);
    token->unknown += unknown;
}

enum server_fenced server_fence(struct server *server, const struct server_command *command,
                                bool execute, bool unknown)
{
    static void (*const run[])(struct server *, const struct server_command *) = {
        vote, raise_number, read_record, seed};
    static const enum rl_verb verbs[] = {RL_VERB_ACQUIRE, RL_VERB_RAISE, RL_VERB_READ,
                                         RL_VERB_SEED};
    unsigned i = 0;

    while (i < 4 && !is_script(command, verbs[i]))
        i++;
    if (i == 4)
        return SERVER_NOT_FENCED;
    unknown = unknown || (execute && !server->has_fences && server_word_is(command, 0, "EVALSHA"));
    MUST(server_word_is(command, 2, i < 2 ? "2" : "1"));
    if (i == 0)
        note_vote(server, command, unknown);
    if (!execute)
        return SERVER_LOOKED_AT;
    if (unknown) {
        server_reply(server, "-NOSCRIPT No matching script. Please use EVAL.\r\n");
        return SERVER_ANSWERED;
    }
    server->has_fences = true;
    run[i](server, command);
    return SERVER_ANSWERED;
}
