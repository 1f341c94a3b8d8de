/* SPDX-License-Identifier: MIT
 * The scripts of fences on a real server: what they store, what they refuse, and that they need no
 * more rights than the minimal user has. */
#include "core/protocol.h"
#include "core/wire_fence.h"

#include <hiredis/hiredis.h>
#include <redlock/redlock.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cluster.h"
#include "suite.h"

#define TEXT(s)  ((struct rl_arg){.data = (s), .len = strlen(s)})
#define CFG      "v1 test;"
#define BIG      UINT64_C(1787500000123456)
#define BIG_TEXT "1787500000123456"

static struct cluster *cluster;
static redisContext *connection;
static redisReply *last; /* the last reply; parsed results point into its text */

/* Fixture: starts one real server and connects to it. */
static void setup(void)
{
    cluster = cluster_start(1);
    connection = redisConnect("127.0.0.1", cluster_port(cluster, 0));
    ck_assert_ptr_nonnull(connection);
}

/* Fixture: closes the connection and stops the server. */
static void teardown(void)
{
    if (last != NULL)
        freeReplyObject(last);
    last = NULL;
    redisFree(connection);
    cluster_stop(cluster);
}

/* Runs `command` on the server and returns what its reply means. The reply's text in `ret` stays
 * valid until the next command. */
static struct rl_result run_command(enum rl_verb verb, const struct rl_command *command,
                                    struct rl_reply *ret)
{
    const char *argv[RL_ARGS_MAX];
    size_t lens[RL_ARGS_MAX];

    for (size_t i = 0; i < command->count; i++) {
        argv[i] = command->args[i].data;
        lens[i] = command->args[i].len;
    }
    if (last != NULL)
        freeReplyObject(last);
    last = redisCommandArgv(connection, (int)command->count, argv, lens);
    ck_assert_msg(last != NULL, "%s", connection->errstr);
    *ret = (struct rl_reply){
        .kind = last->type == REDIS_REPLY_STRING ? RL_REPLY_BULK : RL_REPLY_ERROR,
        .text = last->str,
        .len = (size_t)last->len,
    };
    return rl_protocol_classify(verb, RL_FORM_EVAL, 1, ret);
}

/* Runs the script of `verb` for the resource `key`, with the fencing token `number`. */
static struct rl_result run_vote(enum rl_verb verb, const char *token, uint64_t number)
{
    const struct rl_arguments arguments = {
        .key = TEXT("key"),
        .token = TEXT(token),
        .ttl_ms = 30000,
        .record = TEXT("rec"),
        .config = TEXT(CFG),
        .fence = number,
        .stripe = 7,
    };
    struct rl_command command;
    struct rl_reply reply;

    rl_protocol_format(&command, verb, RL_FORM_EVAL, &arguments);
    return run_command(verb, &command, &reply);
}

/* Runs the script of a fenced acquisition with this token and proposal. Returns the library's
 * judgement of the reply. */
static struct rl_result acquire_with(const char *token, uint64_t number)
{
    return run_vote(RL_VERB_ACQUIRE, token, number);
}

/* Runs the script RAISE with this token and fencing token. Returns the library's judgement of
 * the reply. */
static struct rl_result raise_with(const char *token, uint64_t number)
{
    return run_vote(RL_VERB_RAISE, token, number);
}

/* Runs a script on the fence record alone. `text`: receives the parts of the record, or NULL. */
static struct rl_result run_record(enum rl_verb verb, const char *config, const char *run,
                                   const char *mark, const char *numbers,
                                   struct rl_record_text *text)
{
    const struct rl_arguments words = {
        .record = TEXT("rec"),
        .config = TEXT(config),
        .mark = TEXT(mark),
        .run = TEXT(run),
        .fences = TEXT(numbers),
    };
    struct rl_command command;
    struct rl_reply reply;

    rl_protocol_format(&command, verb, RL_FORM_EVAL, &words);
    struct rl_result result = run_command(verb, &command, &reply);
    if (text != NULL)
        ck_assert(rl_wire_record_parse(&reply, text));
    return result;
}

/* Takes an empty fence record into use. */
static void seed_record(void)
{
    ck_assert_int_eq(run_record(RL_VERB_SEED, CFG, "run1", "*", "", NULL).vote, RL_VOTE_GRANTED);
}

/* Returns true if the bytes of `arg` are those of `text`. */
static bool arg_is(struct rl_arg arg, const char *text)
{
    return arg.len == strlen(text) && memcmp(arg.data, text, arg.len) == 0;
}

START_TEST(without_a_matching_record_nothing_is_written)
{
    ck_assert_int_eq(acquire_with("tok", BIG).record, RL_RECORD_MISSING);
    ck_assert_int_eq(raise_with("tok", BIG).vote, RL_VOTE_DENIED); /* the key is missing, too */
    ck_assert_uint_eq(cluster_count_keys(cluster, 0), 0);
    ck_assert(cluster_replies(cluster, 0, "1", "HSET rec cfg other;"));
    ck_assert_int_eq(acquire_with("tok", BIG).record, RL_RECORD_FOREIGN);
    ck_assert_uint_eq(cluster_count_keys(cluster, 0), 1);
    ck_assert(cluster_replies(cluster, 0, "1", "HLEN rec"));
}
END_TEST

/* Lua by default prints such a number as 1.7875000001235e+15. */
START_TEST(fencing_tokens_of_sixteen_digits_are_exact)
{
    seed_record();
    struct rl_result got = acquire_with("tok", BIG);
    ck_assert_int_eq(got.vote, RL_VOTE_GRANTED);
    ck_assert(got.accepted && got.register_value == 0 && arg_is(got.run, "run1"));
    ck_assert(cluster_replies(cluster, 0, BIG_TEXT, "HGET rec 7"));
    ck_assert(cluster_replies(cluster, 0, "tok", "GET key"));
    ck_assert_int_gt(cluster_integer(cluster, 0, "PTTL key"), 0);

    got = acquire_with("other", BIG + 1);
    ck_assert_int_eq(got.vote, RL_VOTE_DENIED);
    ck_assert_uint_eq(got.register_value, BIG);
    ck_assert(cluster_replies(cluster, 0, BIG_TEXT, "HGET rec 7"));

    ck_assert(cluster_replies(cluster, 0, "1", "DEL key"));
    got = acquire_with("other", BIG); /* an equal number is not accepted */
    ck_assert(got.vote == RL_VOTE_GRANTED && !got.accepted && got.register_value == BIG);
    ck_assert(cluster_replies(cluster, 0, "1", "DEL key"));
    got = acquire_with("third", BIG + 1);
    ck_assert(got.accepted && got.register_value == BIG);
    ck_assert(cluster_replies(cluster, 0, "1787500000123457", "HGET rec 7"));
}
END_TEST

/* Returns how often the server's data was changed. */
static int64_t count_changes(void)
{
    char *info = cluster_command(cluster, 0, "INFO persistence");
    const char *at = strstr(info, "rdb_changes_since_last_save:");

    ck_assert_ptr_nonnull(at);
    int64_t count = strtol(strchr(at, ':') + 1, NULL, 10);
    free(info);
    return count;
}

/* A read would succeed on a server that has become a replica, so raising always writes. */
START_TEST(raise_writes_even_if_the_register_is_larger)
{
    seed_record();
    ck_assert_int_eq(acquire_with("tok", 5).vote, RL_VOTE_GRANTED);
    ck_assert_int_eq(cluster_integer(cluster, 0, "HSET rec 7 " BIG_TEXT), 0);
    int64_t before = count_changes();
    ck_assert_int_eq(raise_with("tok", 9).vote, RL_VOTE_GRANTED);
    ck_assert_int_eq(count_changes(), before + 1);
    ck_assert(cluster_replies(cluster, 0, BIG_TEXT, "HGET rec 7"));
}
END_TEST

START_TEST(raise_needs_the_token_and_never_lowers)
{
    seed_record();
    ck_assert_int_eq(acquire_with("tok", 5).vote, RL_VOTE_GRANTED);
    ck_assert_int_eq(raise_with("other", BIG).vote, RL_VOTE_DENIED);
    ck_assert(cluster_replies(cluster, 0, "5", "HGET rec 7"));
    ck_assert_int_eq(raise_with("tok", BIG).vote, RL_VOTE_GRANTED);
    ck_assert(arg_is(raise_with("tok", 9).run, "run1"));
    ck_assert(cluster_replies(cluster, 0, BIG_TEXT, "HGET rec 7"));
    ck_assert(cluster_replies(cluster, 0, "1", "DEL key"));
    ck_assert(cluster_replies(cluster, 0, "1", "SADD key tok"));
    ck_assert_int_eq(raise_with("tok", BIG + 1).vote, RL_VOTE_DENIED);
    ck_assert_int_eq(acquire_with("tok", BIG + 1).vote, RL_VOTE_DENIED); /* the key is a set */
}
END_TEST

START_TEST(a_corrupt_register_gives_no_vote)
{
    static const char *const wrong[] = {
        "abc", "-1", "1.5", "9007199254740990", "1e3", "12345678901234567"};

    seed_record();
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        free(cluster_command(cluster, 0, "HSET rec 7 %s", wrong[i]));
        ck_assert_int_eq(acquire_with("tok", BIG).record, RL_RECORD_CORRUPT);
        ck_assert(cluster_replies(cluster, 0, "0", "EXISTS key"));
        ck_assert(cluster_replies(cluster, 0, wrong[i], "HGET rec 7"));
    }
    ck_assert(cluster_replies(cluster, 0, "1", "DEL rec"));
    ck_assert(cluster_replies(cluster, 0, "OK", "SET rec x"));
    ck_assert_int_eq(acquire_with("tok", BIG).record, RL_RECORD_CORRUPT);
}
END_TEST

START_TEST(reading_marks_an_unused_record_and_seeding_needs_the_mark)
{
    struct rl_record_text text;

    run_record(RL_VERB_READ, CFG, "run1", "mine", "", &text);
    ck_assert(arg_is(text.config, "") && arg_is(text.mark, "mine") && arg_is(text.fences, ""));
    run_record(RL_VERB_READ, CFG, "run1", "later", "", &text);
    ck_assert(arg_is(text.mark, "mine")); /* the first one stays */
    ck_assert_int_eq(run_record(RL_VERB_SEED, CFG, "run1", "later", "", NULL).vote, RL_VOTE_DENIED);
    ck_assert_int_eq(run_record(RL_VERB_SEED, CFG, "run1", "mine", "0:5 1023:" BIG_TEXT, NULL).vote,
                     RL_VOTE_GRANTED);
    run_record(RL_VERB_READ, CFG, "run1", "again", "", &text);
    ck_assert(arg_is(text.config, CFG "run1") && arg_is(text.mark, ""));
    ck_assert(arg_is(text.fences, "0:5 1023:" BIG_TEXT));
    /* A record of an earlier run of the server is marked, one of another configuration is not. */
    run_record(RL_VERB_READ, CFG, "run2", "again", "", &text);
    ck_assert(arg_is(text.config, CFG "run1") && arg_is(text.mark, "again"));
    ck_assert_int_eq(run_record(RL_VERB_SEED, CFG, "run2", "again", "0:4 1023:7 9:1", NULL).vote,
                     RL_VOTE_GRANTED);
    run_record(RL_VERB_READ, "v1 other;", "run2", "x", "", &text);
    ck_assert(arg_is(text.config, CFG "run2") && arg_is(text.mark, ""));
    ck_assert(arg_is(text.fences, "0:5 9:1 1023:" BIG_TEXT)); /* never lowered */
    ck_assert_int_eq(run_record(RL_VERB_SEED, "v1 other;", "run2", "", "", NULL).record,
                     RL_RECORD_FOREIGN);
    ck_assert_int_eq(run_record(RL_VERB_SEED, "v1 other;", "run2", "*", "", NULL).vote,
                     RL_VOTE_GRANTED);
    /* The server is emptied in between. The mark is gone, so the record cannot be seeded. */
    run_record(RL_VERB_READ, "v1 third;", "run2", "x", "", &text);
    ck_assert(cluster_replies(cluster, 0, "OK", "FLUSHALL"));
    ck_assert_int_eq(run_record(RL_VERB_SEED, "v1 third;", "run2", "x", "", NULL).vote,
                     RL_VOTE_DENIED);
}
END_TEST

START_TEST(a_full_record_fits_one_reply)
{
    static char numbers[RL_RECORD_TEXT_MAX];
    struct rl_record_text text;
    size_t len = 0, at = 0;
    unsigned stripe, count = 0;
    uint64_t number;

    for (unsigned i = 0; i < RL_FENCE_STRIPES; i++)
        len += (size_t)snprintf(numbers + len, sizeof numbers - len, "%s%u:9007199254740989",
                                i == 0 ? "" : " ", i);
    ck_assert_int_eq(run_record(RL_VERB_SEED, CFG, "run1", "*", numbers, NULL).vote,
                     RL_VOTE_GRANTED);
    run_record(RL_VERB_READ, CFG, "run1", "m", "", &text);
    ck_assert_uint_le((size_t)last->len, RL_RECORD_TEXT_MAX);
    while (rl_wire_record_next(text.fences, &at, &stripe, &number))
        ck_assert(stripe == count++ && number == RL_FENCE_CORRUPT - 1);
    ck_assert_uint_eq(count, RL_FENCE_STRIPES);
}
END_TEST

/* The rights are those that docs/command.md recommends. */
START_TEST(the_minimal_user_may_run_every_script)
{
    struct rl_record_text text;

    ck_assert(cluster_replies(
        cluster, 0, "OK",
        "ACL SETUSER lock on >pw ~key ~rec resetchannels -@all +set +get +del +pexpire +pttl "
        "+time +hget +hset +eval +evalsha +script|load +info +ping"));
    redisReply *reply = redisCommand(connection, "AUTH lock pw");
    ck_assert_str_eq(reply->str, "OK");
    freeReplyObject(reply);
    run_record(RL_VERB_READ, CFG, "run1", "mine", "", &text);
    ck_assert_int_eq(run_record(RL_VERB_SEED, CFG, "run1", "mine", "1:2", NULL).vote,
                     RL_VOTE_GRANTED);
    ck_assert(acquire_with("tok", BIG).accepted);
    ck_assert_int_eq(raise_with("tok", BIG + 9).vote, RL_VOTE_GRANTED);
    ck_assert_int_eq(acquire_with("tok", BIG).vote, RL_VOTE_DENIED);
}
END_TEST

START_TEST(a_server_without_memory_gives_no_vote)
{
    seed_record();
    ck_assert(cluster_replies(cluster, 0, "OK", "CONFIG SET maxmemory 1"));
    struct rl_result got = acquire_with("tok", BIG);
    ck_assert_int_eq(got.vote, RL_VOTE_FAILED);
    ck_assert_int_eq(got.cause, REDLOCK_CAUSE_OOM);
    ck_assert(cluster_replies(cluster, 0, "0", "EXISTS key"));
}
END_TEST

int main(void)
{
    if (!cluster_available())
        return suite_skip(CLUSTER_MISSING);
    Suite *suite = suite_create("core_scripts_fence");
    TCase *tcase = tcase_create("scripts_fence");
    suite_add_tcase(suite, tcase);
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_set_timeout(tcase, 60);
    tcase_add_test(tcase, without_a_matching_record_nothing_is_written);
    tcase_add_test(tcase, fencing_tokens_of_sixteen_digits_are_exact);
    tcase_add_test(tcase, raise_needs_the_token_and_never_lowers);
    tcase_add_test(tcase, raise_writes_even_if_the_register_is_larger);
    tcase_add_test(tcase, a_corrupt_register_gives_no_vote);
    tcase_add_test(tcase, reading_marks_an_unused_record_and_seeding_needs_the_mark);
    tcase_add_test(tcase, a_full_record_fits_one_reply);
    tcase_add_test(tcase, the_minimal_user_may_run_every_script);
    tcase_add_test(tcase, a_server_without_memory_gives_no_vote);
    return suite_run(suite);
}
