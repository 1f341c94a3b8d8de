/* SPDX-License-Identifier: MIT
 * The words of the commands of fences, and the meaning of their replies: an invalid reply is never
 * a vote. */
#include "core/protocol.h"
#include "core/wire_fence.h"

#include <redlock/redlock.h>
#include <stdio.h>
#include <string.h>

#include "suite.h"

#define TEXT(s) ((struct rl_arg){.data = (s), .len = strlen(s)})

/* Returns the words of the command, joined by '|', with "<script>" in place of the script. */
static const char *join_words(const struct rl_command *command)
{
    static char text[1024];
    size_t at = 0;

    for (size_t i = 0; i < command->count; i++) {
        const char *word = i == 1 ? "<script>" : command->args[i].data;
        size_t len = i == 1 ? strlen(word) : command->args[i].len;
        at += (size_t)snprintf(text + at, sizeof text - at, "%s%.*s", i == 0 ? "" : "|", (int)len,
                               word);
    }
    return text;
}

START_TEST(commands_have_exact_words)
{
    const struct rl_arguments arguments = {
        .key = TEXT("key"),
        .token = TEXT("tok"),
        .ttl_ms = 30000,
        .record = TEXT("rec"),
        .config = TEXT("cfg;"),
        .fence = 1787500000123456,
        .stripe = 1023,
        .mark = TEXT("m1"),
        .run = TEXT("r1"),
        .fences = TEXT("0:1 5:9"),
    };
    struct rl_command command;

    rl_protocol_format(&command, RL_VERB_ACQUIRE, RL_FORM_SHA, &arguments);
    ck_assert_str_eq(join_words(&command),
                     "EVALSHA|<script>|2|key|rec|tok|30000|1023|1787500000123456|cfg;");
    ck_assert_ptr_eq(command.args[1].data, rl_protocol_script(RL_VERB_ACQUIRE, RL_FORM_SHA)->sha);
    rl_protocol_format(&command, RL_VERB_RAISE, RL_FORM_EVAL, &arguments);
    ck_assert_str_eq(join_words(&command),
                     "EVAL|<script>|2|key|rec|tok|1023|1787500000123456|cfg;");
    ck_assert_ptr_eq(command.args[1].data, rl_protocol_script(RL_VERB_RAISE, RL_FORM_SHA)->text);
    rl_protocol_format(&command, RL_VERB_READ, RL_FORM_SHA, &arguments);
    ck_assert_str_eq(join_words(&command), "EVALSHA|<script>|1|rec|cfg;|r1|m1|1024");
    rl_protocol_format(&command, RL_VERB_SEED, RL_FORM_EVAL, &arguments);
    ck_assert_str_eq(join_words(&command), "EVAL|<script>|1|rec|cfg;|r1|m1|0:1 5:9");
}
END_TEST

/* Returns what a reply to the script of `verb` means. */
static struct rl_result classify_reply(enum rl_verb verb, enum rl_reply_kind kind, const char *text)
{
    const struct rl_reply reply = {.kind = kind, .text = text, .len = strlen(text), .integer = 1};

    return rl_protocol_classify(verb, RL_FORM_SHA, 1, &reply);
}

START_TEST(replies_to_a_vote_are_classified)
{
    struct rl_result got = classify_reply(RL_VERB_ACQUIRE, RL_REPLY_BULK, "A 1787500000123456 abc");
    ck_assert_int_eq(got.vote, RL_VOTE_GRANTED);
    ck_assert(got.accepted);
    ck_assert_uint_eq(got.register_value, 1787500000123456);
    ck_assert(got.run.len == 3 && memcmp(got.run.data, "abc", 3) == 0);
    ck_assert_int_eq(got.record, RL_RECORD_ADMITTED);

    got = classify_reply(RL_VERB_ACQUIRE, RL_REPLY_BULK, "G 12 ");
    ck_assert_int_eq(got.vote, RL_VOTE_GRANTED);
    ck_assert(!got.accepted);
    ck_assert_uint_eq(got.register_value, 12);
    ck_assert_uint_eq(got.run.len, 0);

    got = classify_reply(RL_VERB_ACQUIRE, RL_REPLY_BULK, "D 12 29000");
    ck_assert_int_eq(got.vote, RL_VOTE_DENIED);
    ck_assert_uint_eq(got.register_value, 12);
    ck_assert_int_eq(got.record, RL_RECORD_UNKNOWN); /* a denial does not name the run */
    ck_assert_uint_eq(got.pttl_ms, 29000);
    ck_assert_uint_eq(classify_reply(RL_VERB_ACQUIRE, RL_REPLY_BULK, "D 12 -1").pttl_ms, 0);
    ck_assert_uint_eq(classify_reply(RL_VERB_ACQUIRE, RL_REPLY_BULK, "D 12").pttl_ms, 0);
}
END_TEST

START_TEST(replies_to_raise_and_seed_are_classified)
{
    ck_assert_int_eq(classify_reply(RL_VERB_RAISE, RL_REPLY_BULK, "A abc").vote, RL_VOTE_GRANTED);
    ck_assert_int_eq(classify_reply(RL_VERB_RAISE, RL_REPLY_BULK, "A ").vote, RL_VOTE_GRANTED);
    ck_assert_int_eq(classify_reply(RL_VERB_RAISE, RL_REPLY_BULK, "L").vote, RL_VOTE_DENIED);
    ck_assert_int_eq(classify_reply(RL_VERB_SEED, RL_REPLY_BULK, "A abc").vote, RL_VOTE_GRANTED);
    ck_assert_int_eq(classify_reply(RL_VERB_SEED, RL_REPLY_BULK, "S").vote, RL_VOTE_DENIED);
}
END_TEST

START_TEST(unusable_records_and_errors_are_no_votes)
{
    static const enum rl_verb verbs[] = {RL_VERB_ACQUIRE, RL_VERB_RAISE, RL_VERB_SEED};
    static const struct {
        const char *text;
        enum rl_record_state state;
    } cases[] = {
        {"M", RL_RECORD_MISSING}, {"R v1 k=64;", RL_RECORD_FOREIGN}, {"C", RL_RECORD_CORRUPT}};

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct rl_result got = classify_reply(verbs[_i], RL_REPLY_BULK, cases[i].text);
        ck_assert_int_eq(got.vote, RL_VOTE_FAILED);
        ck_assert_int_eq(got.cause, REDLOCK_CAUSE_FENCE_RECORD);
        ck_assert_int_eq(got.record, cases[i].state);
    }
    struct rl_result got =
        classify_reply(verbs[_i], RL_REPLY_ERROR,
                       "WRONGTYPE Operation against a key holding the wrong kind of value");
    ck_assert_int_eq(got.vote, RL_VOTE_FAILED);
    ck_assert_int_eq(got.cause, REDLOCK_CAUSE_FENCE_RECORD);
    ck_assert_int_eq(got.record, RL_RECORD_CORRUPT);
    got = classify_reply(verbs[_i], RL_REPLY_ERROR, "NOSCRIPT No matching script.");
    ck_assert_int_eq(got.vote, RL_VOTE_RESEND);
    ck_assert_int_eq(got.form, RL_FORM_EVAL);
    got = classify_reply(verbs[_i], RL_REPLY_ERROR, "NOPERM no");
    ck_assert_int_eq(got.vote, RL_VOTE_FAILED);
    ck_assert_int_eq(got.cause, REDLOCK_CAUSE_NOPERM);
}
END_TEST

START_TEST(garbage_is_no_vote)
{
    static const enum rl_verb verbs[] = {RL_VERB_ACQUIRE, RL_VERB_RAISE, RL_VERB_READ,
                                         RL_VERB_SEED};
    static const char *const wrong[] = {"",        " ",       "  ",   "1",  "OK",  "AA",
                                        "X 1 abc", "a 1 abc", " A 1", "Mm", "AA 1"};
    static const char *const wrong_votes[] = {"A",
                                              "A ",
                                              "A x",
                                              "A -1 r",
                                              "A 1e5 r",
                                              "A 9007199254740990 r",
                                              "A 99999999999999999999 r",
                                              "A  1",
                                              "G",
                                              "D",
                                              "D x 1",
                                              "L",
                                              "S",
                                              "D 1.7e+15 3"};
    enum rl_verb verb = verbs[_i];

    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        struct rl_result got = classify_reply(verb, RL_REPLY_BULK, wrong[i]);
        ck_assert_msg(got.vote == RL_VOTE_FAILED && got.cause == REDLOCK_CAUSE_PROTOCOL, "%s",
                      wrong[i]);
    }
    for (size_t i = 0; verb == RL_VERB_ACQUIRE && i < sizeof wrong_votes / sizeof wrong_votes[0];
         i++) {
        struct rl_result got = classify_reply(verb, RL_REPLY_BULK, wrong_votes[i]);
        ck_assert_msg(got.vote == RL_VOTE_FAILED && got.cause == REDLOCK_CAUSE_PROTOCOL, "%s",
                      wrong_votes[i]);
    }
    static const enum rl_reply_kind kinds[] = {RL_REPLY_STATUS, RL_REPLY_INTEGER, RL_REPLY_NIL,
                                               RL_REPLY_ARRAY};
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        struct rl_result got = classify_reply(verb, kinds[i], "A 1 r");
        ck_assert_int_eq(got.vote, RL_VOTE_FAILED);
        ck_assert_int_eq(got.cause, REDLOCK_CAUSE_PROTOCOL);
    }
    ck_assert_int_eq(classify_reply(RL_VERB_RAISE, RL_REPLY_BULK, "G 1 r").vote, RL_VOTE_FAILED);
    ck_assert_int_eq(classify_reply(RL_VERB_RAISE, RL_REPLY_BULK, "S").vote, RL_VOTE_FAILED);
    ck_assert_int_eq(classify_reply(RL_VERB_SEED, RL_REPLY_BULK, "L").vote, RL_VOTE_FAILED);
}
END_TEST

START_TEST(a_record_is_parsed)
{
    static const char TEXT_OF[] = "cfg;run\nmark\n0:7 5:1787500000123456 1023:3";
    const struct rl_reply reply = {
        .kind = RL_REPLY_BULK, .text = TEXT_OF, .len = sizeof TEXT_OF - 1};
    struct rl_record_text text;
    unsigned stripe;
    uint64_t number;
    size_t at = 0;

    ck_assert_int_eq(rl_protocol_classify(RL_VERB_READ, RL_FORM_EVAL, 1, &reply).vote,
                     RL_VOTE_GRANTED);
    ck_assert(rl_wire_record_parse(&reply, &text));
    ck_assert_uint_eq(text.config.len, 7);
    ck_assert_uint_eq(text.mark.len, 4);
    ck_assert(rl_wire_record_next(text.fences, &at, &stripe, &number));
    ck_assert(stripe == 0 && number == 7);
    ck_assert(rl_wire_record_next(text.fences, &at, &stripe, &number));
    ck_assert(stripe == 5 && number == 1787500000123456);
    ck_assert(rl_wire_record_next(text.fences, &at, &stripe, &number));
    ck_assert(stripe == 1023 && number == 3);
    ck_assert(!rl_wire_record_next(text.fences, &at, &stripe, &number));
    ck_assert_uint_eq(at, text.fences.len);
}
END_TEST

START_TEST(a_broken_record_is_never_read_to_its_end)
{
    static const char *const broken[] = {"x",     "1",        ":",
                                         "1:",    ":1",       "1024:5",
                                         "-1:5",  "1:x",      "1:9007199254740990",
                                         "0:1 7", "0:1  2:3", "3:12345678901234567"};

    for (size_t i = 0; i < sizeof broken / sizeof broken[0]; i++) {
        unsigned stripe;
        uint64_t number;
        size_t at = 0;
        while (rl_wire_record_next(TEXT(broken[i]), &at, &stripe, &number))
            ck_assert_uint_eq(stripe, 0);
        ck_assert_msg(at < strlen(broken[i]), "%s", broken[i]);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("core_wire_fence");
    TCase *tcase = tcase_create("wire_fence");
    suite_add_tcase(suite, tcase);
    tcase_add_test(tcase, commands_have_exact_words);
    tcase_add_test(tcase, replies_to_a_vote_are_classified);
    tcase_add_test(tcase, replies_to_raise_and_seed_are_classified);
    tcase_add_loop_test(tcase, unusable_records_and_errors_are_no_votes, 0, 3);
    tcase_add_loop_test(tcase, garbage_is_no_vote, 0, 4);
    tcase_add_test(tcase, a_record_is_parsed);
    tcase_add_test(tcase, a_broken_record_is_never_read_to_its_end);
    return suite_run(suite);
}
