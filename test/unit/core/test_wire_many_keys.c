/* SPDX-License-Identifier: MIT
 * The words of locks on several keys, and the meaning of every reply to them. */
/* Saves the time of Check's note about each assertion; see suite.h. */
#define SUITE_MANY_ASSERTIONS
#include "core/protocol.h"

#include <redlock/redlock.h>
#include <string.h>

#include "suite.h"

#define TEXT(s) ((struct rl_arg){.data = (s), .len = strlen(s)})

static const enum rl_verb VERBS[] = {RL_VERB_ACQUIRE, RL_VERB_HEAL,    RL_VERB_EXTEND,
                                     RL_VERB_RELEASE, RL_VERB_SHORTEN, RL_VERB_GET};
#define VERB_COUNT ((int)(sizeof VERBS / sizeof VERBS[0]))

START_TEST(commands_have_exact_words)
{
    const enum rl_verb verb = VERBS[_i];
    const struct rl_arg keys[] = {{"a\0\r", 3}, {"b", 1}, {"", 0}};
    const bool timed = verb != RL_VERB_RELEASE && verb != RL_VERB_GET;
    struct rl_command command;

    memset(&command, 0xff, sizeof command);
    rl_protocol_format(&command, verb, RL_FORM_MANY,
                       &(struct rl_arguments){
                           .keys = keys, .key_count = 3, .token = TEXT("tok"), .ttl_ms = 86400000});
    ck_assert_uint_eq(command.count, timed ? 8 : 7);
    ck_assert_uint_eq(command.args[0].len, 4);
    ck_assert_mem_eq(command.args[0].data, "EVAL", 4);
    ck_assert_ptr_eq(command.args[1].data, rl_protocol_script(verb, RL_FORM_MANY)->text);
    ck_assert_uint_eq(command.args[1].len, strlen(rl_protocol_script(verb, RL_FORM_MANY)->text));
    ck_assert_uint_lt(command.args[1].len, RL_SCRIPT_MULTI_MAX);
    ck_assert_ptr_null(strstr(rl_protocol_script(verb, RL_FORM_MANY)->text, "#!"));
    ck_assert_mem_eq(command.args[2].data, "3", 1);
    for (unsigned i = 0; i < 3; i++) { /* points to the caller's bytes */
        ck_assert_ptr_eq(command.args[3 + i].data, keys[i].data);
        ck_assert_uint_eq(command.args[3 + i].len, keys[i].len);
    }
    ck_assert_mem_eq(command.args[6].data, "tok", 3);
    if (!timed)
        return;
    ck_assert_uint_eq(command.args[7].len, 8);
    ck_assert_mem_eq(command.args[7].data, "86400000", 8);
}
END_TEST

START_TEST(a_command_takes_the_largest_number_of_keys)
{
    struct rl_arg keys[RL_KEYS_MAX];
    struct rl_command command;

    for (unsigned i = 0; i < RL_KEYS_MAX; i++)
        keys[i] = TEXT("key");
    rl_protocol_format(
        &command, VERBS[_i], RL_FORM_MANY,
        &(struct rl_arguments){
            .keys = keys, .key_count = RL_KEYS_MAX, .token = TEXT("tok"), .ttl_ms = UINT64_MAX});
    ck_assert_uint_le(command.count, RL_ARGS_MAX);
    ck_assert_mem_eq(command.args[2].data, "64", 2);
}
END_TEST

/* Exactly one number is a grant, a few others are denials, and the rest are protocol errors. */
START_TEST(number_replies_are_classified)
{
    static const int64_t far[] = {INT64_MIN, INT64_MIN + 1, -4294967297, -257,       -256,
                                  255,       256,           257,         4294967297, INT64_MAX};
    const enum rl_verb verb = VERBS[_i];

    for (unsigned count = 2; count <= RL_KEYS_MAX; count++) {
        for (int64_t at = -70; at < 70 + (int64_t)(sizeof far / sizeof far[0]); at++) {
            int64_t value = at < 70 ? at : far[at - 70];
            const struct rl_reply reply = {.kind = RL_REPLY_INTEGER, .integer = value};
            struct rl_result result = rl_protocol_classify(verb, RL_FORM_MANY, count, &reply);
            bool counts = verb == RL_VERB_RELEASE || verb == RL_VERB_SHORTEN;
            bool granted = value == (counts ? (int64_t)count : 1);
            bool denied = counts                    ? value >= 0 && value < (int64_t)count
                          : verb == RL_VERB_ACQUIRE ? value < 0 && value >= -(int64_t)count
                                                    : value == 0;
            enum rl_vote vote = granted  ? RL_VOTE_GRANTED
                                : denied ? RL_VOTE_DENIED
                                         : RL_VOTE_FAILED;
            ck_assert_int_eq(result.vote, vote);
            ck_assert_int_eq(result.cause,
                             vote == RL_VOTE_FAILED ? REDLOCK_CAUSE_PROTOCOL : REDLOCK_CAUSE_NONE);
            ck_assert_int_eq(result.key, verb == RL_VERB_ACQUIRE && denied ? -value : 0);
        }
    }
}
END_TEST

START_TEST(replies_of_other_kinds_are_no_votes)
{
    static const enum rl_reply_kind kinds[] = {RL_REPLY_STATUS, RL_REPLY_BULK, RL_REPLY_NIL,
                                               RL_REPLY_ARRAY};
    for (unsigned i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        const struct rl_reply reply = {.kind = kinds[i], .integer = 1, .text = "OK", .len = 2};
        struct rl_result result = rl_protocol_classify(VERBS[_i], RL_FORM_MANY, 2, &reply);
        ck_assert_int_eq(result.vote, RL_VOTE_FAILED);
        ck_assert_int_eq(result.cause, REDLOCK_CAUSE_PROTOCOL);
    }
}
END_TEST

START_TEST(error_replies_are_classified)
{
    static const struct {
        const char *text;
        enum rl_vote vote;
        int cause;
    } errors[] = {
        {"WRONGTYPE Operation against a key", RL_VOTE_DENIED, REDLOCK_CAUSE_NONE},
        {"ERR Error running script (call to f_1): @user_script:1: WRONGTYPE Operation",
         RL_VOTE_DENIED, REDLOCK_CAUSE_NONE},
        {"OOM command not allowed", RL_VOTE_FAILED, REDLOCK_CAUSE_OOM},
        {"READONLY You can't write", RL_VOTE_FAILED, REDLOCK_CAUSE_READONLY},
        {"NOPERM this user has no permissions", RL_VOTE_FAILED, REDLOCK_CAUSE_NOPERM},
        {"NOSCRIPT No matching script", RL_VOTE_FAILED, REDLOCK_CAUSE_ERROR_REPLY},
        {"ERR unknown command `EVAL`", RL_VOTE_FAILED, REDLOCK_CAUSE_ERROR_REPLY},
    };
    for (unsigned i = 0; i < sizeof errors / sizeof errors[0]; i++) {
        const struct rl_reply reply = {
            .kind = RL_REPLY_ERROR, .text = errors[i].text, .len = strlen(errors[i].text)};
        struct rl_result result = rl_protocol_classify(VERBS[_i], RL_FORM_MANY, 3, &reply);
        ck_assert_msg(result.vote == errors[i].vote && result.cause == errors[i].cause,
                      "%s: vote %d, cause %d", errors[i].text, result.vote, result.cause);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("core_wire_many_keys");
    TCase *tcase = tcase_create("wire_many");
    suite_add_tcase(suite, tcase);
    tcase_add_loop_test(tcase, commands_have_exact_words, 0, VERB_COUNT);
    tcase_add_loop_test(tcase, a_command_takes_the_largest_number_of_keys, 0, VERB_COUNT);
    tcase_add_loop_test(tcase, number_replies_are_classified, 0, VERB_COUNT);
    tcase_add_loop_test(tcase, replies_of_other_kinds_are_no_votes, 0, VERB_COUNT);
    tcase_add_loop_test(tcase, error_replies_are_classified, 0, VERB_COUNT);
    return suite_run(suite);
}
