/* SPDX-License-Identifier: MIT
 * The judgement of replies to VOTE, RAISE, READ and SEED. */
#include "judge_fence.h"

#include "fuzz.h"

#include <redlock/redlock.h>
#include <string.h>

/* Reads a fencing token up to a blank or the end. Returns false if a register may not hold it. */
static bool read_number(const char *at, size_t len, uint64_t *ret, size_t *ret_used)
{
    size_t used = 0;

    *ret = 0;
    for (; used < len && at[used] >= '0' && at[used] <= '9' && used <= 16; used++)
        *ret = *ret * 10 + (uint64_t)(at[used] - '0');
    *ret_used = used;
    return used > 0 && used <= 16 && *ret < RL_FENCE_CORRUPT;
}

/* Returns the letter that the reply begins with, if a blank or the end follows, and the text after
 * the blank. */
static char letter_of(const struct rl_reply *reply, const char **ret_rest, size_t *ret_len)
{
    const char *text = reply->text;

    *ret_len = 0;
    if (reply->kind != RL_REPLY_BULK || reply->len == 0 || (reply->len > 1 && text[1] != ' '))
        return '\0';
    *ret_rest = text + 2;
    *ret_len = reply->len > 2 ? reply->len - 2 : 0;
    return text[0];
}

/* Returns the vote that the reply to the script of `verb` must mean. */
static enum rl_vote expected_vote(enum rl_verb verb, const struct rl_reply *reply,
                                  uint64_t *ret_number)
{
    const char *rest = NULL;
    size_t len, used;
    char letter = letter_of(reply, &rest, &len);

    if (verb == RL_VERB_RAISE)
        return letter == 'A' ? RL_VOTE_GRANTED : letter == 'L' ? RL_VOTE_DENIED : RL_VOTE_FAILED;
    if (verb == RL_VERB_SEED)
        return letter == 'A' ? RL_VOTE_GRANTED : letter == 'S' ? RL_VOTE_DENIED : RL_VOTE_FAILED;
    if (letter != 'A' && letter != 'G' && letter != 'D')
        return RL_VOTE_FAILED;
    if (!read_number(rest, len, ret_number, &used) || (used < len && rest[used] != ' '))
        return RL_VOTE_FAILED;
    return letter == 'D' ? RL_VOTE_DENIED : RL_VOTE_GRANTED;
}

/* Judges failures: refusals name what is wrong with the record, and any other invalid reply is a
 * protocol error. */
static void judge_failure(const struct rl_reply *reply, const struct rl_result *result)
{
    const char *rest;
    size_t len;
    char letter = letter_of(reply, &rest, &len);
    bool refusal = letter == 'M' || letter == 'R' || letter == 'C';

    if (reply->kind == RL_REPLY_ERROR) {
        int cause = rl_wire_error_cause(reply->text, reply->len);
        bool no_record =
            cause == REDLOCK_CAUSE_WRONGTYPE; /* another type of value under its name */
        MUST(result->cause == (no_record ? REDLOCK_CAUSE_FENCE_RECORD : cause));
        MUST(result->record == (no_record ? RL_RECORD_CORRUPT : RL_RECORD_UNKNOWN));
        return;
    }
    MUST(result->cause == (refusal ? REDLOCK_CAUSE_FENCE_RECORD : REDLOCK_CAUSE_PROTOCOL));
    MUST(result->record == (letter == 'M'   ? RL_RECORD_MISSING
                            : letter == 'R' ? RL_RECORD_FOREIGN
                            : letter == 'C' ? RL_RECORD_CORRUPT
                                            : RL_RECORD_UNKNOWN));
}

/* Checks the library's classification of one reply. */
static void judge_one(enum rl_verb verb, enum rl_form form, const struct rl_reply *reply)
{
    struct rl_result result = rl_protocol_classify(verb, form, 1, reply);
    uint64_t number = 0;
    enum rl_vote expected = expected_vote(verb, reply, &number);

    if (result.vote == RL_VOTE_RESEND) {
        MUST(form == RL_FORM_SHA && reply->kind == RL_REPLY_ERROR && result.form == RL_FORM_EVAL);
        return;
    }
    MUST(result.vote == expected);
    if (result.vote == RL_VOTE_FAILED)
        judge_failure(reply, &result);
    else
        MUST(result.cause == REDLOCK_CAUSE_NONE);
    if (verb == RL_VERB_ACQUIRE && result.vote != RL_VOTE_FAILED)
        MUST(result.register_value == number);
    MUST(result.accepted ==
         (verb == RL_VERB_ACQUIRE && expected == RL_VOTE_GRANTED && *reply->text == 'A'));
    if (result.run.len > 0)
        MUST(expected == RL_VOTE_GRANTED && result.run.data >= reply->text &&
             result.run.data + result.run.len == reply->text + reply->len);
}

/* Judges READ: two lines, then "stripe:number" separated by one blank, up to the first invalid
 * entry. */
static void judge_record(const struct rl_reply *reply)
{
    struct rl_record_text record;
    bool is_bulk = reply->kind == RL_REPLY_BULK; /* other kinds need not have a text */
    const char *end = is_bulk ? reply->text + reply->len : NULL;
    const char *first = is_bulk ? memchr(reply->text, '\n', reply->len) : NULL;
    const char *second = NULL;

    if (first != NULL)
        second = memchr(first + 1, '\n', (size_t)(end - first) - 1);
    struct rl_result result = rl_protocol_classify(RL_VERB_READ, RL_FORM_EVAL, 1, reply);
    MUST((result.vote == RL_VOTE_GRANTED) == (second != NULL));
    if (second == NULL)
        return;
    MUST(rl_wire_record_parse(reply, &record));
    MUST(record.config.data == reply->text && record.config.data + record.config.len == first);
    MUST(record.mark.data == first + 1 && record.mark.data + record.mark.len == second);
    MUST(record.fences.data == second + 1 && record.fences.data + record.fences.len == end);
    size_t at = 0, mine = 0, used;
    unsigned stripe;
    uint64_t number, expected_stripe, expected;
    const char *text = record.fences.data;
    while (rl_wire_record_next(record.fences, &at, &stripe, &number)) {
        size_t left = record.fences.len - mine;
        MUST(read_number(text + mine, left, &expected_stripe, &used));
        MUST(used < left && text[mine + used] == ':' && expected_stripe == stripe);
        MUST(stripe < RL_FENCE_STRIPES);
        mine += used + 1;
        MUST(read_number(text + mine, record.fences.len - mine, &expected, &used));
        MUST(expected == number);
        mine += used;
        MUST(mine == record.fences.len || text[mine] == ' ');
        mine += mine < record.fences.len;
        MUST(mine == at);
    }
}

/* Classifies the reply as that of each fence script, and fails unless the library's result is
 * allowed. */
void judge_fence(const struct rl_reply *reply)
{
    static const enum rl_verb verbs[] = {RL_VERB_ACQUIRE, RL_VERB_RAISE, RL_VERB_SEED};

    for (unsigned i = 0; i < sizeof verbs / sizeof verbs[0]; i++) {
        judge_one(verbs[i], RL_FORM_SHA, reply);
        judge_one(verbs[i], RL_FORM_EVAL, reply);
    }
    judge_record(reply);
}
