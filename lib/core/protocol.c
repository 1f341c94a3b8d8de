/* SPDX-License-Identifier: MIT
 * The protocol table and the functions that use it. A verb is what a request asks a server to do
 * (enum rl_verb). A form is one way to put it into words (enum rl_form): a command or a Lua script.
 * The table has, for each verb and form, the words to send and a classifier.
 *
 * A classifier turns a reply that is not an error into a struct rl_result: a vote, and what else
 * the reply says. rl_protocol_format() makes the words of a request, rl_protocol_classify_error()
 * classifies error replies. A reply that the request cannot have is malformed: FAILED with
 * CAUSE_PROTOCOL.
 *
 * Fenced requests are scripts that reply with one text: a letter, and words after it. "The record"
 * is the fence record of the server, "the proposal" the number that an ACQUIRE proposes as a fence,
 * and "run" the run id of the server to which the record is bound.
 *
 * Text from a server is not trusted: it is compared and parsed with bounds, never used as a format
 * or a command. */
#include "core/protocol.h"

#include "core/line.h"
#include "core/scripts.h"
#include "core/wire_fence.h"

#include <redlock/redlock.h>
#include <string.h>

/* Returns the result with this vote, without a cause and with all else 0. */
static struct rl_result vote(enum rl_vote vote)
{
    return (struct rl_result){.vote = vote, .cause = REDLOCK_CAUSE_NONE};
}

/* Returns the result GRANTED if `granted`, else DENIED. */
static struct rl_result granted_if(bool granted)
{
    return vote(granted ? RL_VOTE_GRANTED : RL_VOTE_DENIED);
}

/* Returns the result FAILED with `cause`, an enum redlock_cause. */
static struct rl_result failed(int cause)
{
    return (struct rl_result){.vote = RL_VOTE_FAILED, .cause = cause};
}

/* Returns the result for a reply that the request cannot have: FAILED with CAUSE_PROTOCOL. */
static struct rl_result malformed(void)
{
    return failed(REDLOCK_CAUSE_PROTOCOL);
}

/* Returns whether the reply is a status (+word) whose whole text is `word`. */
static bool is_status(const struct rl_reply *reply, const char *word)
{
    size_t len = strlen(word);

    return reply->kind == RL_REPLY_STATUS && reply->len == len &&
           memcmp(reply->text, word, len) == 0;
}

/* ---- classifiers of requests about one key; they do not use `keys` ---- */

/* Classifies the reply to SET NX: +OK is granted, nil is denied, because the key exists. */
static struct rl_result classify_set(const struct rl_reply *reply, unsigned keys)
{
    (void)keys;
    if (is_status(reply, "OK"))
        return vote(RL_VOTE_GRANTED);
    if (reply->kind == RL_REPLY_NIL)
        return vote(RL_VOTE_DENIED);
    return malformed();
}

/* Classifies the reply of a request that compares the key, or all keys of a lock, with our token
 * and acts on the result. 1 is granted. 0 is denied: a key does not exist or has another token
 * (after a HEAL, which sets missing keys: one has another token). */
static struct rl_result classify_compare(const struct rl_reply *reply, unsigned keys)
{
    (void)keys;
    if (reply->kind != RL_REPLY_INTEGER || (reply->integer != 0 && reply->integer != 1))
        return malformed();
    return granted_if(reply->integer == 1);
}

/* Classifies the reply to GET: a text is granted, because the key exists, whatever its value is.
 * Nil is denied: the key does not exist. */
static struct rl_result classify_get(const struct rl_reply *reply, unsigned keys)
{
    (void)keys;
    if (reply->kind == RL_REPLY_BULK)
        return vote(RL_VOTE_GRANTED);
    return reply->kind == RL_REPLY_NIL ? vote(RL_VOTE_DENIED) : malformed();
}

/* Classifies the reply to PTTL, in milliseconds. GRANTED means that the key exists: -1 (no expiry)
 * or more. DENIED means that it does not: -2. Sets pttl_ms if the key has an expiry. */
static struct rl_result classify_pttl(const struct rl_reply *reply, unsigned keys)
{
    (void)keys;
    if (reply->kind != RL_REPLY_INTEGER || reply->integer < -2)
        return malformed();
    struct rl_result result = granted_if(reply->integer != -2);
    result.pttl_ms = reply->integer > 0 ? (uint64_t)reply->integer : 0;
    return result;
}

/* Classifies the reply to PING: +PONG is granted. */
static struct rl_result classify_ping(const struct rl_reply *reply, unsigned keys)
{
    (void)keys;
    return is_status(reply, "PONG") ? vote(RL_VOTE_GRANTED) : malformed();
}

/* ---- classifiers of fenced requests: a text that begins with a letter; `keys` is not used ---- */

/* Returns the letter that is the first word of the reply, and in `*ret_rest` the words after it.
 * Returns '\0' if the reply is not a text or does not begin with a word of one letter. */
static char letter_of(const struct rl_reply *reply, struct rl_arg *ret_rest)
{
    if (reply->kind != RL_REPLY_BULK)
        return '\0';
    *ret_rest = (struct rl_arg){reply->text, reply->len};
    struct rl_arg word = rl_wire_next_word(ret_rest);
    return word.len == 1 ? word.data[0] : '\0';
}

/* Classifies `letter`, with which a fence script replies if the record cannot be used: the record
 * is missing (M), belongs to another configuration (R), or is corrupt (C). These letters are FAILED
 * with CAUSE_FENCE_RECORD and the state of the record. Any other letter is malformed. */
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

/* Returns the result GRANTED of a server whose record is in use and bound to `run`; empty: bound to
 * no run. */
static struct rl_result record_in_use(struct rl_arg run)
{
    struct rl_result result = vote(RL_VOTE_GRANTED);

    result.record = RL_RECORD_ADMITTED;
    result.run = run;
    return result;
}

/* Classifies the reply to a fenced ACQUIRE. PREVIOUS is the number that the register held before.
 *   "A PREVIOUS RUN"   granted; the register now holds the proposal
 *   "G PREVIOUS RUN"   granted; the register already held as much or more
 *   "D PREVIOUS PTTL"  denied; the key exists for PTTL more milliseconds. Does not show the state
 * of the record, because the run is missing. */
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

        /* A key without an expiry has the PTTL -1, which is not parsed: pttl_ms stays 0. */
        (void)rl_fence_parse(pttl.data, pttl.len, &result.pttl_ms);
        return result;
    }
    result.vote = RL_VOTE_GRANTED;
    result.record = RL_RECORD_ADMITTED;
    result.run = rest;
    return result;
}

/* Classifies the reply to RAISE. "A RUN" is granted: the register now holds the fence or more. "L"
 * is denied: the key of the lock does not exist or has another token. */
static struct rl_result classify_raise(const struct rl_reply *reply, unsigned keys)
{
    struct rl_arg rest;
    char letter = letter_of(reply, &rest);

    (void)keys;
    if (letter == 'L')
        return vote(RL_VOTE_DENIED);
    return letter == 'A' ? record_in_use(rest) : classify_record(letter);
}

/* Classifies the reply to READ: a text with the three lines of a record (configuration, mark,
 * registers) is granted. */
static struct rl_result classify_read(const struct rl_reply *reply, unsigned keys)
{
    struct rl_record_text text;

    (void)keys;
    bool whole = reply->kind == RL_REPLY_BULK && rl_wire_record_parse(reply, &text);
    return whole ? vote(RL_VOTE_GRANTED) : malformed();
}

/* Classifies the reply to SEED. "A RUN" is granted: the record is in use now. "S" is denied: the
 * record has another mark, because another client is taking it into use. */
static struct rl_result classify_seed(const struct rl_reply *reply, unsigned keys)
{
    struct rl_arg rest;
    char letter = letter_of(reply, &rest);

    (void)keys;
    if (letter == 'S')
        return (struct rl_result){.vote = RL_VOTE_DENIED, .record = RL_RECORD_MISSING};
    return letter == 'A' ? record_in_use(rest) : classify_record(letter);
}

/* ---- classifiers of requests about several keys; `keys` is their number ---- */

/* Classifies the reply to ACQUIRE. 1 is granted: all keys were set. -i is denied: key i, counted
 * from 1, exists, and no key was set. */
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

/* Classifies the reply to RELEASE and SHORTEN: the number of keys that had our token, and that were
 * therefore deleted or shortened. All keys are granted, fewer are denied. */
static struct rl_result classify_undo_many(const struct rl_reply *reply, unsigned keys)
{
    if (reply->kind != RL_REPLY_INTEGER || reply->integer < 0 || reply->integer > (int64_t)keys)
        return malformed();
    return granted_if(reply->integer == (int64_t)keys);
}

/* ---- requests to the line of a resource ---- */

/* Classifies the reply of the script of the line: granted if the key of the lock exists, denied if
 * not; rl_line_parse() reads the rest. X, the key of the line is another one, is FAILED. */
static struct rl_result classify_line(const struct rl_reply *reply, unsigned keys)
{
    struct rl_line_reply line;

    (void)keys;
    if (reply->kind == RL_REPLY_BULK && reply->len == 1 && reply->text[0] == 'X')
        return failed(REDLOCK_CAUSE_WRONGTYPE);
    if (reply->kind != RL_REPLY_BULK || !rl_line_parse(reply->text, reply->len, &line))
        return malformed();
    struct rl_result result = granted_if(line.exists);
    result.pttl_ms = line.pttl_ms;
    return result;
}

/* Classifies the reply to LINE_LIST or LINE_PERMITS: any text is granted, because a key of any
 * content says only whether a client waits. Errors are granted, too (RL_ERROR_GRANTS). */
static struct rl_result classify_list(const struct rl_reply *reply, unsigned keys)
{
    (void)keys;
    return reply->kind == RL_REPLY_BULK ? vote(RL_VOTE_GRANTED) : malformed();
}

/* ---- the table ---- */

/* Words of a request, as elements of rl_verb_form.args. W() is constant text. TEXT() and NUMBER()
 * are the text or number in the named member of struct rl_arguments. KEYS is the number of keys,
 * followed by all keys. Each name after these is the TEXT() or NUMBER() of one member. */
/* clang-format off */
#define W(word)       {(word), sizeof(word) - 1, 0, RL_FORM_ARG_LITERAL}
#define TEXT(member)   {NULL, 0, offsetof(struct rl_arguments, member), RL_FORM_ARG_TEXT}
#define NUMBER(member) {NULL, 0, offsetof(struct rl_arguments, member), RL_FORM_ARG_NUMBER}
#define KEY           TEXT(key)
#define KEYS          {NULL, 0, 0, RL_FORM_ARG_KEYS}
#define TOKEN   TEXT(token)
#define TTL     NUMBER(ttl_ms)
#define RECORD  TEXT(record)
#define CONFIG  TEXT(config)
#define STRIPE  NUMBER(stripe)
#define FENCE  NUMBER(fence)
#define MARK    TEXT(mark)
#define RUN     TEXT(run)
#define FENCES TEXT(fences)
#define LINE(word)  W("2"), TEXT(line), KEY, W(word), NUMBER(waiter), TEXT(state), NUMBER(beat), NUMBER(trip_us), TEXT(waiter_text)
#define STRIPES W("1024") /* number of registers of a record */
static_assert(RL_FENCE_STRIPES == 1024, "READ asks for all stripes");

/* IS() sets a bool of the row of a verb. FORM() names one element of the row's `forms`. Its value is
 * COMMAND() with all words of the request, or SCRIPT() with the words after the script: its number of
 * keys, the keys and the other arguments. `judge` is the classifier, `rule` the enum rl_error_rule. */
#define IS(verb, property) [RL_VERB_##verb].property = true
#define FORM(verb, form)   [RL_VERB_##verb].forms[RL_FORM_##form]
#define COMMAND(judge, rule, ...)      {{__VA_ARGS__}, NULL, judge, RL_ERROR_##rule}
#define SCRIPT(name, judge, rule, ...) {{__VA_ARGS__}, &rl_script_##name, judge, RL_ERROR_##rule}
/* clang-format on */
static_assert(RL_LINE_VALUE_MAX == 65536, "LINE_LIST and LINE_PERMITS read up to this byte");

/* The table, indexed by enum rl_verb. */
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

    IS(GET, only_reads),
    IS(GET, has_long_reply), /* another client may have stored anything under the key */
    FORM(GET, PLAIN) = COMMAND(classify_get, TYPE_GRANTS, W("GET"), KEY),
    FORM(GET, MANY) = SCRIPT(get_many, classify_compare, TYPE_DENIES, KEYS, TOKEN),

    IS(PTTL, only_reads),
    FORM(PTTL, PLAIN) = COMMAND(classify_pttl, FAILS, W("PTTL"), KEY),

    IS(PING, only_reads),
    FORM(PING, PLAIN) = COMMAND(classify_ping, GRANTS, W("PING")),

    FORM(RAISE, SHA) = SCRIPT(raise, classify_raise, TYPE_CORRUPTS, W("2"), KEY, RECORD, TOKEN,
                              STRIPE, FENCE, CONFIG),

    IS(READ, has_long_reply),
    FORM(READ, SHA) =
        SCRIPT(read, classify_read, TYPE_CORRUPTS, W("1"), RECORD, CONFIG, RUN, MARK, STRIPES),

    FORM(SEED, SHA) =
        SCRIPT(seed, classify_seed, TYPE_CORRUPTS, W("1"), RECORD, CONFIG, RUN, MARK, FENCES),

    IS(TIME, informs),
    IS(TIME, only_reads),
    [RL_VERB_TIME].elements = 2,
    FORM(TIME, PLAIN) = COMMAND(NULL, FAILS, W("TIME")),

    IS(INFO, informs),
    IS(INFO, only_reads),
    IS(INFO, has_long_reply),
    FORM(INFO, PLAIN) = COMMAND(NULL, FAILS, W("INFO"), TEXT(text)),

    IS(TRACK, informs),
    IS(TRACK, only_reads),
    FORM(TRACK, PLAIN) = COMMAND(NULL, FAILS, W("CLIENT"), W("TRACKING"), W("ON"), W("REDIRECT"),
                                 TEXT(text), W("OPTIN"), W("NOLOOP")),

    IS(REGISTER, informs),
    IS(REGISTER, only_reads),
    IS(LINE_JOIN, only_reads),
    FORM(LINE_JOIN, SHA) = SCRIPT(line, classify_line, FAILS, LINE("J"), W(""), NUMBER(heads)),
    IS(LINE_FRONT, only_reads),
    FORM(LINE_FRONT, SHA) = SCRIPT(line, classify_line, FAILS, LINE("F"), W(""), NUMBER(heads)),
    IS(LINE_SERVED, only_reads),
    FORM(LINE_SERVED, SHA) = SCRIPT(line, classify_line, FAILS, LINE("G"), TOKEN, NUMBER(heads)),
    IS(LINE_LEAVE, only_reads),
    FORM(LINE_LEAVE, SHA) = SCRIPT(line, classify_line, FAILS, LINE("L"), W(""), NUMBER(heads)),
    IS(LINE_DROP, only_reads),
    FORM(LINE_DROP, SHA) = SCRIPT(line, classify_line, FAILS, LINE("D"), NUMBER(victim),
                                  NUMBER(heads), NUMBER(victim_beat)),

    IS(LINE_LIST, only_reads),
    IS(LINE_LIST, has_long_reply),
    FORM(LINE_LIST, PLAIN) =
        COMMAND(classify_list, GRANTS, W("GETRANGE"), TEXT(line), W("0"), W("65535")),
    IS(LINE_PERMITS, only_reads),
    IS(LINE_PERMITS, has_long_reply),
    FORM(LINE_PERMITS, PLAIN) =
        COMMAND(classify_list, GRANTS, W("GETRANGE"), TEXT(line), W("0"), W("65535")),

    FORM(REGISTER, PLAIN) = COMMAND(NULL, FAILS, W("CLIENT"), W("CACHING"), W("YES")),
};

/* For each form: the feature that it needs, and the form that replaces it on a server without that
 * feature or without the script. Forms that are not listed need nothing and are never replaced. */
const struct rl_form_row rl_forms[RL_FORM_EVAL + 1] = {
    [RL_FORM_SHA] = {.next = RL_FORM_EVAL},
    [RL_FORM_DELEX] = {.feature = RL_FEATURE_DELEX, .next = RL_FORM_SHA},
    [RL_FORM_DELIFEQ] = {.feature = RL_FEATURE_DELIFEQ, .next = RL_FORM_SHA},
};

/* ---- reading the table ---- */

/* Returns the script of a verb in a form; aborts if there is none. */
const struct rl_script *rl_protocol_script(enum rl_verb verb, enum rl_form form)
{
    const struct rl_script *script = rl_protocol_form(verb, form)->script;

    RL_ASSERT(script != NULL);
    return script;
}

/* Writes a word with the decimal digits of `value` to `*to`, an element of command->args. The
 * digits themselves are in command->numbers. Returns the position after the word. */
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

/* Writes the number of keys and then each key to `*to` and the elements after it. Returns the
 * position after the last word. */
static struct rl_arg *add_keys(struct rl_command *command, struct rl_arg *to,
                               const struct rl_arguments *arguments)
{
    RL_ASSERT(arguments->key_count <= RL_KEYS_MAX);
    to = add_number(command, to, arguments->key_count);
    for (unsigned i = 0; i < arguments->key_count; i++)
        *to++ = arguments->keys[i];
    return to;
}

/* Fills `command` with the words of a request: EVALSHA or EVAL and the script, if the form has one,
 * and then the words of the table, with the values from `arguments`. Aborts if the verb does not
 * have the form. */
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
        if (word->kind == RL_FORM_ARG_TEXT)
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

/* Classifies an error reply to a request in `form`. An error that only says that the server lacks
 * the script or the command is RESEND with the form to use instead; this is tested before anything
 * else, because nothing was executed. WRONGTYPE means what the error rule of the form says. Any
 * other error is FAILED with its cause. If the rule is RL_ERROR_GRANTS, every error is granted. */
struct rl_result rl_protocol_classify_error(const struct rl_verb_form *verb_form, enum rl_form form,
                                            const struct rl_reply *reply)
{
    int cause = rl_wire_error_cause(reply->text, reply->len);
    unsigned feature = rl_forms[form].feature;
    bool unknown = rl_wire_is_unknown(reply->text, reply->len);
    struct rl_result result = vote(RL_VOTE_RESEND);

    if (verb_form->error_rule == RL_ERROR_GRANTS)
        return vote(RL_VOTE_GRANTED);
    result.form = rl_forms[form].next;
    result.forget = feature;
    /* "unknown command": the operator has renamed EVALSHA. NOSCRIPT: the server does not have the
     * script. In both cases no script has run. */
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
