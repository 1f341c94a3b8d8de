/* SPDX-License-Identifier: MIT
 * What is said to a node, word by word, and what its answer means. */
#include "core/wire.h"

#include "core/wire_fence.h"

#include <redlock/redlock.h>
#include <string.h>

/* Scripts carry no "#!lua" line: with one, a server at maxmemory refuses them before they could
 * delete. Any change of a byte changes the SHA1 next to it (test_wire computes all three). */
/* Never shortens, but always writes: a master that became a replica must refuse (READONLY) rather
 * than confirm a key that is no longer its own. */
static const char SCRIPT_EXTEND[] =
    "if redis.call('GET',KEYS[1])==ARGV[1] then "
    "local left=redis.call('PTTL',KEYS[1]) local ttl=tonumber(ARGV[2]) "
    "if left>ttl then ttl=left end "
    "redis.call('PEXPIRE',KEYS[1],ttl) return 1 end return 0";
static const char SCRIPT_RELEASE[] =
    "if redis.call('GET',KEYS[1])==ARGV[1] then return redis.call('DEL',KEYS[1]) end return 0";
static const char SCRIPT_SHORTEN[] = "if redis.call('GET',KEYS[1])==ARGV[1] then "
                                     "return redis.call('PEXPIRE',KEYS[1],ARGV[2]) end return 0";

static const char SHA_EXTEND[] = "367d0abe679838553ab6fab13be5d9b0cfae092b";
static const char SHA_RELEASE[] = "5c714dd8ed5b943a1f472132e06290c53ab22693";
static const char SHA_SHORTEN[] = "68acc660facaa8309b44ff34c73caa7e7a12688a";

const char *rl_wire_script(enum rl_verb verb)
{
    switch (verb) {
    case RL_VERB_EXTEND:
        return SCRIPT_EXTEND;
    case RL_VERB_RELEASE:
        return SCRIPT_RELEASE;
    case RL_VERB_SHORTEN:
        return SCRIPT_SHORTEN;
    default:
        return rl_wire_fence_script(verb);
    }
}

const char *rl_wire_script_sha(enum rl_verb verb)
{
    switch (verb) {
    case RL_VERB_EXTEND:
        return SHA_EXTEND;
    case RL_VERB_RELEASE:
        return SHA_RELEASE;
    case RL_VERB_SHORTEN:
        return SHA_SHORTEN;
    default:
        return rl_wire_fence_sha(verb);
    }
}

void rl_wire_say_arg(struct rl_command *command, struct rl_arg arg)
{
    RL_ASSERT(command->count < RL_ARGS_MAX);
    command->args[command->count++] = arg;
}

void rl_wire_say(struct rl_command *command, const char *word)
{
    rl_wire_say_arg(command, (struct rl_arg){.data = word, .len = strlen(word)});
}

/* Decimal digits, written from the end of the backing store. */
void rl_wire_say_number(struct rl_command *command, uint64_t value)
{
    RL_ASSERT(command->numbers_used < RL_NUMBERS_MAX);
    char *number = command->numbers[command->numbers_used++];
    size_t at = sizeof command->numbers[0];
    do {
        number[--at] = (char)('0' + value % 10);
        value /= 10;
    } while (value != 0);
    rl_wire_say_arg(command,
                    (struct rl_arg){.data = number + at, .len = sizeof command->numbers[0] - at});
}

static void say_script(struct rl_command *command, enum rl_verb verb, enum rl_form form,
                       struct rl_arg key, struct rl_arg token, uint64_t ttl_ms)
{
    rl_wire_say(command, form == RL_FORM_SHA ? "EVALSHA" : "EVAL");
    rl_wire_say(command, form == RL_FORM_SHA ? rl_wire_script_sha(verb) : rl_wire_script(verb));
    rl_wire_say(command, "1");
    rl_wire_say_arg(command, key);
    rl_wire_say_arg(command, token);
    if (verb != RL_VERB_RELEASE)
        rl_wire_say_number(command, ttl_ms);
}

static void say_native(struct rl_command *command, enum rl_verb verb, enum rl_form form,
                       struct rl_arg key, struct rl_arg token)
{
    RL_ASSERT(verb == RL_VERB_RELEASE);
    rl_wire_say(command, form == RL_FORM_DELEX ? "DELEX" : "DELIFEQ");
    rl_wire_say_arg(command, key);
    if (form == RL_FORM_DELEX)
        rl_wire_say(command, "IFEQ");
    rl_wire_say_arg(command, token);
}

static void say_plain(struct rl_command *command, enum rl_verb verb, struct rl_arg key,
                      struct rl_arg token, uint64_t ttl_ms)
{
    switch (verb) {
    case RL_VERB_ACQUIRE:
    case RL_VERB_HEAL:
        rl_wire_say(command, "SET");
        rl_wire_say_arg(command, key);
        rl_wire_say_arg(command, token);
        rl_wire_say(command, "NX");
        rl_wire_say(command, "PX");
        rl_wire_say_number(command, ttl_ms);
        return;
    case RL_VERB_GET:
    case RL_VERB_PTTL:
        rl_wire_say(command, verb == RL_VERB_GET ? "GET" : "PTTL");
        rl_wire_say_arg(command, key);
        return;
    case RL_VERB_PING:
        rl_wire_say(command, "PING");
        return;
    case RL_VERB_EXTEND:
    case RL_VERB_RELEASE:
    case RL_VERB_SHORTEN:
    case RL_VERB_RAISE:
    case RL_VERB_READ:
    case RL_VERB_SEED:
    case RL_VERB_TIME:
    case RL_VERB_INFO:
    case RL_VERB_TRACK:
    case RL_VERB_REGISTER:
        break;
    }
    RL_ASSERT(false && "a verb that compares has no plain form");
}

void rl_wire_command(struct rl_command *command, enum rl_verb verb, enum rl_form form,
                     struct rl_arg key, struct rl_arg token, uint64_t ttl_ms)
{
    command->count = command->numbers_used = 0;
    switch (form) {
    case RL_FORM_PLAIN:
        say_plain(command, verb, key, token, ttl_ms);
        return;
    case RL_FORM_SHA:
    case RL_FORM_EVAL:
        say_script(command, verb, form, key, token, ttl_ms);
        return;
    case RL_FORM_DELEX:
    case RL_FORM_DELIFEQ:
        say_native(command, verb, form, key, token);
        return;
    }
    RL_ASSERT(false && "unknown form");
}

static struct rl_answer vote(enum rl_vote vote)
{
    return (struct rl_answer){.vote = vote, .cause = REDLOCK_CAUSE_NONE};
}

static struct rl_answer failed(int cause)
{
    return (struct rl_answer){.vote = RL_VOTE_FAILED, .cause = cause};
}

static struct rl_answer again(enum rl_form form, unsigned forget)
{
    return (struct rl_answer){
        .vote = RL_VOTE_AGAIN, .cause = REDLOCK_CAUSE_NONE, .form = form, .forget = forget};
}

static bool starts_with(const char *text, size_t len, const char *words)
{
    size_t words_len = strlen(words);
    return len >= words_len && memcmp(text, words, words_len) == 0;
}

static unsigned feature_of(enum rl_form form)
{
    switch (form) {
    case RL_FORM_DELEX:
        return RL_FEATURE_DELEX;
    case RL_FORM_DELIFEQ:
        return RL_FEATURE_DELIFEQ;
    case RL_FORM_PLAIN:
    case RL_FORM_SHA:
    case RL_FORM_EVAL:
        break;
    }
    return 0;
}

/* An error reply. First: does it only say that these words are not understood here? */
static struct rl_answer answer_to_error(enum rl_verb verb, enum rl_form form, const char *text,
                                        size_t len)
{
    int cause = rl_wire_error_cause(text, len);

    if (verb == RL_VERB_PING)
        return vote(RL_VOTE_GRANTED);
    /* The second: EVALSHA was renamed. Neither has run. */
    if (form == RL_FORM_SHA &&
        (starts_with(text, len, "NOSCRIPT") || starts_with(text, len, "ERR unknown command")))
        return again(RL_FORM_EVAL, 0);
    if (feature_of(form) != 0 &&
        (cause == REDLOCK_CAUSE_NOPERM || starts_with(text, len, "ERR unknown command") ||
         starts_with(text, len, "ERR syntax error")))
        return again(RL_FORM_SHA, feature_of(form));
    if (cause == REDLOCK_CAUSE_WRONGTYPE) {
        if (form != RL_FORM_PLAIN && (verb == RL_VERB_ACQUIRE || verb >= RL_VERB_RAISE))
            return (struct rl_answer){
                .vote = RL_VOTE_FAILED, .cause = REDLOCK_CAUSE_FENCE, .record = RL_RECORD_CORRUPT};
        if (verb == RL_VERB_GET)
            return vote(RL_VOTE_GRANTED);
        if (verb == RL_VERB_EXTEND || verb == RL_VERB_RELEASE || verb == RL_VERB_SHORTEN)
            return vote(RL_VOTE_DENIED);
    }
    return failed(cause);
}

static bool is_status(const struct rl_reply *reply, const char *word)
{
    size_t len = strlen(word);
    return reply->kind == RL_REPLY_STATUS && reply->len == len &&
           memcmp(reply->text, word, len) == 0;
}

static struct rl_answer answer_to_set(const struct rl_reply *reply)
{
    if (is_status(reply, "OK"))
        return vote(RL_VOTE_GRANTED);
    if (reply->kind == RL_REPLY_NIL)
        return vote(RL_VOTE_DENIED);
    return failed(REDLOCK_CAUSE_PROTOCOL);
}

static struct rl_answer answer_to_compare(const struct rl_reply *reply)
{
    if (reply->kind != RL_REPLY_INTEGER || (reply->integer != 0 && reply->integer != 1))
        return failed(REDLOCK_CAUSE_PROTOCOL);
    return vote(reply->integer == 1 ? RL_VOTE_GRANTED : RL_VOTE_DENIED);
}

static struct rl_answer answer_to_get(const struct rl_reply *reply)
{
    if (reply->kind == RL_REPLY_BULK)
        return vote(RL_VOTE_GRANTED);
    return reply->kind == RL_REPLY_NIL ? vote(RL_VOTE_DENIED) : failed(REDLOCK_CAUSE_PROTOCOL);
}

static struct rl_answer answer_to_pttl(const struct rl_reply *reply)
{
    if (reply->kind != RL_REPLY_INTEGER || reply->integer < -2)
        return failed(REDLOCK_CAUSE_PROTOCOL);
    struct rl_answer answer = vote(reply->integer == -2 ? RL_VOTE_DENIED : RL_VOTE_GRANTED);
    answer.pttl_ms = reply->integer > 0 ? (uint64_t)reply->integer : 0;
    return answer;
}

struct rl_answer rl_wire_answer(enum rl_verb verb, enum rl_form form, const struct rl_reply *reply)
{
    if (reply->kind == RL_REPLY_ERROR)
        return answer_to_error(verb, form, reply->text, reply->len);
    switch (verb) {
    case RL_VERB_ACQUIRE:
        return form == RL_FORM_PLAIN ? answer_to_set(reply) : rl_wire_fence_answer(verb, reply);
    case RL_VERB_RAISE:
    case RL_VERB_READ:
    case RL_VERB_SEED:
        return rl_wire_fence_answer(verb, reply);
    case RL_VERB_HEAL:
        return answer_to_set(reply);
    case RL_VERB_EXTEND:
    case RL_VERB_RELEASE:
    case RL_VERB_SHORTEN:
        return answer_to_compare(reply);
    case RL_VERB_GET:
        return answer_to_get(reply);
    case RL_VERB_PTTL:
        return answer_to_pttl(reply);
    case RL_VERB_PING:
        return is_status(reply, "PONG") ? vote(RL_VOTE_GRANTED) : failed(REDLOCK_CAUSE_PROTOCOL);
    case RL_VERB_TIME:
    case RL_VERB_INFO:
    case RL_VERB_TRACK:
    case RL_VERB_REGISTER:
        break; /* not votes */
    }
    RL_ASSERT(false && "unknown verb");
    return failed(REDLOCK_CAUSE_PROTOCOL);
}

/* Digits up to `end` or the first other byte; the place behind them, or NULL if there is none or
 * the value is too large to be seconds or microseconds. */
static const char *take_number(const char *at, const char *end, uint64_t *ret)
{
    const char *begin = at;

    for (*ret = 0; at < end && *at >= '0' && *at <= '9'; at++)
        *ret = *ret * 10 + (uint64_t)(*at - '0');
    return at > begin && at - begin <= 12 ? at : NULL;
}

bool rl_wire_time_us(const struct rl_reply *reply, uint64_t *ret_us)
{
    uint64_t seconds, us;

    if (reply->kind != RL_REPLY_ARRAY || reply->integer != 2)
        return false;
    const char *end = reply->text + reply->len;
    const char *at = take_number(reply->text, end, &seconds);
    if (at == NULL || at == end || *at != ' ')
        return false;
    at = take_number(at + 1, end, &us);
    if (at != end || us >= 1000000)
        return false;
    *ret_us = seconds * 1000000 + us;
    return true;
}
