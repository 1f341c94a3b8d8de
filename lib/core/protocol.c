/* SPDX-License-Identifier: MIT
 * The protocol table, and the functions that classify replies. Text from a server is not trusted:
 * it is compared and parsed with bounds, never used as a format or a command. */
#include "core/protocol.h"

#include "core/scripts.h"
#include "core/wire_fence.h"

#include <redlock/redlock.h>
#include <string.h>

/* Returns a vote without a cause. */
static struct rl_result vote(enum rl_vote vote)
{
    return (struct rl_result){.vote = vote, .cause = REDLOCK_CAUSE_NONE};
}

static struct rl_result granted_if(bool granted)
{
    return vote(granted ? RL_VOTE_GRANTED : RL_VOTE_DENIED);
}

/* Returns FAILED with `cause`, an enum redlock_cause. */
static struct rl_result failed(int cause)
{
    return (struct rl_result){.vote = RL_VOTE_FAILED, .cause = cause};
}

/* Returns FAILED for a reply that the request cannot have. */
static struct rl_result malformed(void)
{
    return failed(REDLOCK_CAUSE_PROTOCOL);
}

/* Returns whether the reply is the status `word`. */
static bool is_status(const struct rl_reply *reply, const char *word)
{
    size_t len = strlen(word);

    return reply->kind == RL_REPLY_STATUS && reply->len == len &&
           memcmp(reply->text, word, len) == 0;
}

/* ---- classifiers of requests about one key ---- */

/* Classifies SET NX: +OK is granted, nil is denied. */
static struct rl_result classify_set(const struct rl_reply *reply, unsigned keys)
{
    (void)keys;
    if (is_status(reply, "OK"))
        return vote(RL_VOTE_GRANTED);
    if (reply->kind == RL_REPLY_NIL)
        return vote(RL_VOTE_DENIED);
    return malformed();
}

/* Classifies a comparison with the token: 1 is granted, 0 is denied, because the key does not exist
 * or has another token. */
static struct rl_result classify_compare(const struct rl_reply *reply, unsigned keys)
{
    (void)keys;
    if (reply->kind != RL_REPLY_INTEGER || (reply->integer != 0 && reply->integer != 1))
        return malformed();
    return granted_if(reply->integer == 1);
}

/* Classifies GET: a text is granted, nil is denied. */
static struct rl_result classify_get(const struct rl_reply *reply, unsigned keys)
{
    (void)keys;
    if (reply->kind == RL_REPLY_BULK)
        return vote(RL_VOTE_GRANTED);
    return reply->kind == RL_REPLY_NIL ? vote(RL_VOTE_DENIED) : malformed();
}

/* Classifies PTTL: -1 (no expiry) or more is granted, -2 (no key) is denied. */
static struct rl_result classify_pttl(const struct rl_reply *reply, unsigned keys)
{
    (void)keys;
    if (reply->kind != RL_REPLY_INTEGER || reply->integer < -2)
        return malformed();
    struct rl_result result = granted_if(reply->integer != -2);
    result.pttl_ms = reply->integer > 0 ? (uint64_t)reply->integer : 0;
    return result;
}

/* Classifies PING: +PONG is granted. */
static struct rl_result classify_ping(const struct rl_reply *reply, unsigned keys)
{
    (void)keys;
    return is_status(reply, "PONG") ? vote(RL_VOTE_GRANTED) : malformed();
}

/* ---- classifiers of fenced requests: a text that begins with a letter ---- */

/* Returns the letter that is the first word of the reply, and in `*ret_rest` what follows it. '\0':
 * the reply is malformed. */
static char letter_of(const struct rl_reply *reply, struct rl_arg *ret_rest)
{
    if (reply->kind != RL_REPLY_BULK)
        return '\0';
    *ret_rest = (struct rl_arg){reply->text, reply->len};
    struct rl_arg word = rl_wire_next_word(ret_rest);
    return word.len == 1 ? word.data[0] : '\0';
}

/* Classifies the letters that all fence scripts have in common: the record is missing (M), belongs
 * to another configuration (R), or is corrupt (C). */
static struct rl_result classify_record(char letter)
{
    uint8_t state = letter == 'M'   ? RL_RECORD_MISSING
                    : letter == 'R' ? RL_RECORD_FOREIGN
                    : letter == 'C' ? RL_RECORD_CORRUPT
                                    : RL_RECORD_UNKNOWN;
    struct rl_result result = failed(REDLOCK_CAUSE_FENCE_RECORD);

    result.record = state;
    return state == RL_RECORD_UNKNOWN ? malformed() : result;
}

/* Returns GRANTED by a node whose record is in use and bound to `run`. */
static struct rl_result record_in_use(struct rl_arg run)
{
    struct rl_result result = vote(RL_VOTE_GRANTED);

    result.record = RL_RECORD_ADMITTED;
    result.run = run;
    return result;
}

/* Classifies a fenced ACQUIRE. "A PREVIOUS RUN" is granted, and the proposal is stored. "G PREVIOUS
 * RUN" is granted, and the proposal is not stored. "D PREVIOUS PTTL" is denied; it does not show
 * the state of the record, because the run is missing. */
static struct rl_result classify_vote(const struct rl_reply *reply, unsigned keys)
{
    struct rl_arg rest;
    char letter = letter_of(reply, &rest);
    struct rl_result result = {.vote = RL_VOTE_DENIED, .accepted = letter == 'A'};

    (void)keys;
    if (letter != 'A' && letter != 'G' && letter != 'D')
        return classify_record(letter);
    struct rl_arg number = rl_wire_next_word(&rest);
    if (!rl_fence_parse(number.data, number.len, &result.register_value))
        return malformed();
    if (letter == 'D') {
        struct rl_arg pttl = rl_wire_next_word(&rest);
        (void)rl_fence_parse(pttl.data, pttl.len, &result.pttl_ms);
        return result;
    }
    result.vote = RL_VOTE_GRANTED;
    result.record = RL_RECORD_ADMITTED;
    result.run = rest;
    return result;
}

/* Classifies RAISE: "A RUN" is granted, the register now holds the fence or more. "L" is denied,
 * the key is not ours. */
static struct rl_result classify_raise(const struct rl_reply *reply, unsigned keys)
{
    struct rl_arg rest;
    char letter = letter_of(reply, &rest);

    (void)keys;
    if (letter == 'L')
        return vote(RL_VOTE_DENIED);
    return letter == 'A' ? record_in_use(rest) : classify_record(letter);
}

/* Classifies READ: three lines (configuration, mark, registers) are granted. */
static struct rl_result classify_read(const struct rl_reply *reply, unsigned keys)
{
    struct rl_record_text text;

    (void)keys;
    bool whole = reply->kind == RL_REPLY_BULK && rl_wire_record_parse(reply, &text);
    return whole ? vote(RL_VOTE_GRANTED) : malformed();
}

/* Classifies SEED: "A RUN" is granted, the record is in use. "S" is denied, the mark is another
 * one: another client is taking the record into use. */
static struct rl_result classify_seed(const struct rl_reply *reply, unsigned keys)
{
    struct rl_arg rest;
    char letter = letter_of(reply, &rest);

    (void)keys;
    if (letter == 'S')
        return (struct rl_result){.vote = RL_VOTE_DENIED, .record = RL_RECORD_MISSING};
    return letter == 'A' ? record_in_use(rest) : classify_record(letter);
}

/* ---- classifiers of requests about several keys ---- */

/* Classifies ACQUIRE: 1 is granted, -i is denied, because key i exists; then no key was set. */
static struct rl_result classify_acquire_many(const struct rl_reply *reply, unsigned keys)
{
    if (reply->kind != RL_REPLY_INTEGER)
        return malformed();
    if (reply->integer == 1)
        return vote(RL_VOTE_GRANTED);
    if (reply->integer >= 0 || reply->integer < -(int64_t)keys)
        return malformed();
    struct rl_result result = vote(RL_VOTE_DENIED);
    result.key = (uint8_t)-reply->integer;
    return result;
}

/* Classifies RELEASE and SHORTEN: the reply is the number of keys that were ours. All keys are
 * granted, fewer are denied; the keys that were ours are removed or shortened either way. */
static struct rl_result classify_undo_many(const struct rl_reply *reply, unsigned keys)
{
    if (reply->kind != RL_REPLY_INTEGER || reply->integer < 0 || reply->integer > (int64_t)keys)
        return malformed();
    return granted_if(reply->integer == (int64_t)keys);
}

/* ---- the table ---- */

/* W() is a word that is sent as it is. The others stand for a value of struct rl_arguments. */
/* clang-format off */
#define W(word)       {(word), sizeof(word) - 1, 0, RL_FORM_ARG_LITERAL}
#define ARG(member)   {NULL, 0, offsetof(struct rl_arguments, member), RL_FORM_ARG_VALUE}
#define VALUE(member) {NULL, 0, offsetof(struct rl_arguments, member), RL_FORM_ARG_NUMBER}
#define KEY           ARG(key)
#define KEYS          {NULL, 0, 0, RL_FORM_ARG_KEYS}
#define TOKEN   ARG(token)
#define TTL     VALUE(ttl_ms)
#define RECORD  ARG(record)
#define CONFIG  ARG(config)
#define STRIPE  VALUE(stripe)
#define FENCE  VALUE(fence)
#define MARK    ARG(mark)
#define RUN     ARG(run)
#define FENCES ARG(fences)
#define ANY     ARG(text)
#define STRIPES W("1024") /* number of registers of a record */
static_assert(RL_FENCE_STRIPES == 1024, "READ asks for all stripes");

/* IS() sets a property of a verb. FORM() sets a form of it: COMMAND() with all words, or SCRIPT()
 * with the words after the script. */
#define IS(verb, property) [RL_VERB_##verb].property = true
#define FORM(verb, form)   [RL_VERB_##verb].forms[RL_FORM_##form]
#define COMMAND(judge, rule, ...)      {{__VA_ARGS__}, NULL, judge, RL_ERROR_##rule}
#define SCRIPT(name, judge, rule, ...) {{__VA_ARGS__}, &rl_script_##name, judge, RL_ERROR_##rule}
/* clang-format on */

const struct rl_protocol_row rl_protocol[RL_VERB_COUNT] = {
    IS(ACQUIRE, creates_key),
    IS(ACQUIRE, resets_ttl),
    FORM(ACQUIRE, PLAIN) =
        COMMAND(classify_set, FAILS, W("SET"), KEY, TOKEN, W("NX"), W("PX"), TTL),
    FORM(ACQUIRE, SHA) = SCRIPT(vote, classify_vote, TYPE_CORRUPTS, W("2"), KEY, RECORD, TOKEN, TTL,
                                STRIPE, FENCE, CONFIG),
    FORM(ACQUIRE, MANY) =
        SCRIPT(acquire_many, classify_acquire_many, TYPE_DENIES, KEYS, TOKEN, TTL),

    IS(EXTEND, resets_ttl),
    FORM(EXTEND, SHA) = SCRIPT(extend, classify_compare, TYPE_DENIES, W("1"), KEY, TOKEN, TTL),
    FORM(EXTEND, MANY) = SCRIPT(extend_many, classify_compare, TYPE_DENIES, KEYS, TOKEN, TTL),

    IS(RELEASE, is_undo),
    FORM(RELEASE, SHA) = SCRIPT(release, classify_compare, TYPE_DENIES, W("1"), KEY, TOKEN),
    FORM(RELEASE, DELEX) =
        COMMAND(classify_compare, TYPE_DENIES, W("DELEX"), KEY, W("IFEQ"), TOKEN),
    FORM(RELEASE, DELIFEQ) = COMMAND(classify_compare, TYPE_DENIES, W("DELIFEQ"), KEY, TOKEN),
    FORM(RELEASE, MANY) = SCRIPT(release_many, classify_undo_many, TYPE_DENIES, KEYS, TOKEN),

    IS(SHORTEN, is_undo),
    FORM(SHORTEN, SHA) = SCRIPT(shorten, classify_compare, TYPE_DENIES, W("1"), KEY, TOKEN, TTL),
    FORM(SHORTEN, MANY) = SCRIPT(shorten_many, classify_undo_many, TYPE_DENIES, KEYS, TOKEN, TTL),

    IS(HEAL, creates_key),
    IS(HEAL, resets_ttl),
    FORM(HEAL, PLAIN) = COMMAND(classify_set, FAILS, W("SET"), KEY, TOKEN, W("NX"), W("PX"), TTL),
    FORM(HEAL, MANY) = SCRIPT(heal_many, classify_compare, TYPE_DENIES, KEYS, TOKEN, TTL),

    IS(GET, has_seen),
    IS(GET, has_long_reply), /* another client may have stored anything under the key */
    FORM(GET, PLAIN) = COMMAND(classify_get, TYPE_GRANTS, W("GET"), KEY),
    FORM(GET, MANY) = SCRIPT(get_many, classify_compare, TYPE_DENIES, KEYS, TOKEN),

    IS(PTTL, has_seen),
    FORM(PTTL, PLAIN) = COMMAND(classify_pttl, FAILS, W("PTTL"), KEY),

    IS(PING, has_seen),
    FORM(PING, PLAIN) = COMMAND(classify_ping, GRANTS, W("PING")),

    FORM(RAISE, SHA) = SCRIPT(raise, classify_raise, TYPE_CORRUPTS, W("2"), KEY, RECORD, TOKEN,
                              STRIPE, FENCE, CONFIG),

    IS(READ, has_long_reply),
    FORM(READ, SHA) =
        SCRIPT(read, classify_read, TYPE_CORRUPTS, W("1"), RECORD, CONFIG, RUN, MARK, STRIPES),

    FORM(SEED, SHA) =
        SCRIPT(seed, classify_seed, TYPE_CORRUPTS, W("1"), RECORD, CONFIG, RUN, MARK, FENCES),

    IS(TIME, informs),
    IS(TIME, has_seen),
    [RL_VERB_TIME].elements = 2,
    FORM(TIME, PLAIN) = COMMAND(NULL, FAILS, W("TIME")),

    IS(INFO, informs),
    IS(INFO, has_seen),
    IS(INFO, has_long_reply),
    FORM(INFO, PLAIN) = COMMAND(NULL, FAILS, W("INFO"), ANY),

    IS(TRACK, informs),
    IS(TRACK, has_seen),
    FORM(TRACK, PLAIN) = COMMAND(NULL, FAILS, W("CLIENT"), W("TRACKING"), W("ON"), W("REDIRECT"),
                                 ANY, W("OPTIN"), W("NOLOOP")),

    IS(REGISTER, informs),
    IS(REGISTER, has_seen),
    FORM(REGISTER, PLAIN) = COMMAND(NULL, FAILS, W("CLIENT"), W("CACHING"), W("YES")),
};

const struct rl_form_row rl_forms[RL_FORM_EVAL + 1] = {
    [RL_FORM_SHA] = {.next = RL_FORM_EVAL},
    [RL_FORM_DELEX] = {.feature = RL_FEATURE_DELEX, .next = RL_FORM_SHA},
    [RL_FORM_DELIFEQ] = {.feature = RL_FEATURE_DELIFEQ, .next = RL_FORM_SHA},
};

/* ---- reading the table ---- */

const struct rl_script *rl_protocol_script(enum rl_verb verb, enum rl_form form)
{
    const struct rl_script *script = rl_protocol_form(verb, form)->script;

    RL_ASSERT(script != NULL);
    return script;
}

/* Writes `value` as decimal digits into the next element of command->numbers, and a word that
 * points to them to `*to`. Returns the position of the next word. */
static struct rl_arg *add_number(struct rl_command *command, struct rl_arg *to, uint64_t value)
{
    RL_ASSERT(command->numbers_used < RL_NUMBERS_MAX);
    char *number = command->numbers[command->numbers_used++];
    size_t at = sizeof command->numbers[0];
    do {
        number[--at] = (char)('0' + value % 10);
        value /= 10;
    } while (value != 0);
    *to++ = (struct rl_arg){number + at, sizeof command->numbers[0] - at};
    return to;
}

/* Writes the number of keys and each key to `*to`. Returns the position of the next word. */
static struct rl_arg *add_keys(struct rl_command *command, struct rl_arg *to,
                               const struct rl_arguments *arguments)
{
    RL_ASSERT(arguments->key_count <= RL_KEYS_MAX);
    to = add_number(command, to, arguments->key_count);
    for (unsigned i = 0; i < arguments->key_count; i++)
        *to++ = arguments->keys[i];
    return to;
}

void rl_protocol_format(struct rl_command *command, enum rl_verb verb, enum rl_form form,
                        const struct rl_arguments *arguments)
{
    const struct rl_verb_form *verb_form = rl_protocol_form(verb, form);
    const struct rl_script *script = verb_form->script;
    const struct rl_form_arg *word = verb_form->args;
    struct rl_arg *to = command->args;

    RL_ASSERT(word->kind != RL_FORM_ARG_NONE);
    command->numbers_used = 0;
    if (script != NULL && form == RL_FORM_SHA) {
        *to++ = (struct rl_arg){"EVALSHA", 7};
        *to++ = (struct rl_arg){script->sha, RL_SHA_LEN};
    } else if (script != NULL) {
        *to++ = (struct rl_arg){"EVAL", 4};
        *to++ = (struct rl_arg){script->text, strlen(script->text)};
    }
    for (; word->kind != RL_FORM_ARG_NONE; word++) {
        const void *value = (const char *)arguments + word->at;
        if (word->kind == RL_FORM_ARG_VALUE)
            *to++ = *(const struct rl_arg *)value;
        else if (word->kind == RL_FORM_ARG_LITERAL)
            *to++ = (struct rl_arg){word->text, word->len};
        else if (word->kind == RL_FORM_ARG_NUMBER)
            to = add_number(command, to, *(const uint64_t *)value);
        else
            to = add_keys(command, to, arguments);
    }
    command->count = (size_t)(to - command->args);
}

/* The order matters: an error that only says that the server lacks the form is no vote. */
struct rl_result rl_protocol_classify_error(const struct rl_verb_form *verb_form, enum rl_form form,
                                            const struct rl_reply *reply)
{
    int cause = rl_wire_error_cause(reply->text, reply->len);
    unsigned feature = rl_forms[form].feature;
    bool unknown = rl_wire_starts_with(reply->text, reply->len, "ERR unknown command");
    struct rl_result result = vote(RL_VOTE_RESEND);

    if (verb_form->error_rule == RL_ERROR_GRANTS)
        return vote(RL_VOTE_GRANTED);
    result.form = rl_forms[form].next;
    result.forget = feature;
    /* "unknown command": the operator has renamed EVALSHA. In both cases no script has run. */
    if (form == RL_FORM_SHA &&
        (unknown || rl_wire_starts_with(reply->text, reply->len, "NOSCRIPT")))
        return result;
    if (feature != 0 && (unknown || cause == REDLOCK_CAUSE_NOPERM ||
                         rl_wire_starts_with(reply->text, reply->len, "ERR syntax error")))
        return result;
    if (cause == REDLOCK_CAUSE_WRONGTYPE) {
        if (verb_form->error_rule == RL_ERROR_TYPE_DENIES)
            return vote(RL_VOTE_DENIED);
        if (verb_form->error_rule == RL_ERROR_TYPE_GRANTS)
            return vote(RL_VOTE_GRANTED);
        if (verb_form->error_rule == RL_ERROR_TYPE_CORRUPTS)
            return classify_record('C');
    }
    return failed(cause);
}
