/* SPDX-License-Identifier: MIT
 * The scripts on a real server: their SHA1, their effects on a key, and the classification of a
 * server's own errors. */
#include "core/protocol.h"

#include <hiredis/hiredis.h>
#include <redlock/redlock.h>
#include <stdlib.h>
#include <string.h>

#include "cluster.h"
#include "suite.h"

#define TEXT(s) ((struct rl_arg){.data = (s), .len = strlen(s)})

static struct cluster *cluster;
static redisContext *connection;

/* Fixture: starts one real server and connects to it. */
static void setup(void)
{
    cluster = cluster_start(1);
    connection = redisConnect("127.0.0.1", cluster_port(cluster, 0));
    ck_assert_ptr_nonnull(connection);
    ck_assert_msg(connection->err == 0, "%s", connection->errstr);
}

/* Fixture: closes the connection and stops the server. */
static void teardown(void)
{
    redisFree(connection);
    cluster_stop(cluster);
}

/* Sends the command that the library would send, and returns what the library makes of the reply.
 */
static struct rl_result run_command(enum rl_verb verb, enum rl_form form, const char *key,
                                    const char *token, uint64_t ttl_ms)
{
    struct rl_command command;
    const char *argv[RL_ARGS_MAX];
    size_t lens[RL_ARGS_MAX];

    rl_protocol_format(
        &command, verb, form,
        &(struct rl_arguments){.key = TEXT(key), .token = TEXT(token), .ttl_ms = ttl_ms});
    for (size_t i = 0; i < command.count; i++) {
        argv[i] = command.args[i].data;
        lens[i] = command.args[i].len;
    }
    redisReply *got = redisCommandArgv(connection, (int)command.count, argv, lens);
    ck_assert_msg(got != NULL, "%s", connection->errstr);

    struct rl_reply reply = {.integer = got->integer, .text = got->str, .len = (size_t)got->len};
    switch (got->type) {
    case REDIS_REPLY_STATUS:
        reply.kind = RL_REPLY_STATUS;
        break;
    case REDIS_REPLY_ERROR:
        reply.kind = RL_REPLY_ERROR;
        break;
    case REDIS_REPLY_INTEGER:
        reply.kind = RL_REPLY_INTEGER;
        break;
    case REDIS_REPLY_STRING:
        reply.kind = RL_REPLY_BULK;
        break;
    default:
        reply.kind = got->type == REDIS_REPLY_NIL ? RL_REPLY_NIL : RL_REPLY_ARRAY;
        break;
    }
    struct rl_result result = rl_protocol_classify(verb, form, 1, &reply);
    freeReplyObject(got);
    return result;
}

/* Runs the script of `verb` on "key" by its text and returns the vote. */
static enum rl_vote eval(enum rl_verb verb, const char *token, uint64_t ttl_ms)
{
    return run_command(verb, RL_FORM_EVAL, "key", token, ttl_ms).vote;
}

/* Returns the remaining TTL of "key" in ms. */
static int64_t pttl(void)
{
    return cluster_integer(cluster, 0, "PTTL key");
}

START_TEST(the_server_computes_the_same_sha)
{
    static const enum rl_verb scripted[] = {RL_VERB_EXTEND, RL_VERB_RELEASE, RL_VERB_SHORTEN};
    for (size_t i = 0; i < 3; i++) {
        struct rl_result result = run_command(scripted[i], RL_FORM_SHA, "key", "tok", 1000);
        ck_assert_int_eq(result.vote, RL_VOTE_RESEND); /* NOSCRIPT: not loaded yet */
        ck_assert_int_eq(result.form, RL_FORM_EVAL);
        ck_assert(cluster_replies(cluster, 0, rl_protocol_script(scripted[i], RL_FORM_SHA)->sha,
                                  "SCRIPT LOAD %s",
                                  rl_protocol_script(scripted[i], RL_FORM_SHA)->text));
        result = run_command(scripted[i], RL_FORM_SHA, "key", "tok", 1000);
        ck_assert_int_eq(result.vote, RL_VOTE_DENIED); /* the script runs and finds no key */
    }
}
END_TEST

START_TEST(plain_commands_and_release_work_on_a_server)
{
    ck_assert_int_eq(run_command(RL_VERB_GET, RL_FORM_PLAIN, "key", "", 0).vote, RL_VOTE_DENIED);
    ck_assert_int_eq(run_command(RL_VERB_PTTL, RL_FORM_PLAIN, "key", "", 0).vote, RL_VOTE_DENIED);
    ck_assert_int_eq(run_command(RL_VERB_ACQUIRE, RL_FORM_PLAIN, "key", "tok", 30000).vote,
                     RL_VOTE_GRANTED);
    ck_assert_int_eq(run_command(RL_VERB_HEAL, RL_FORM_PLAIN, "key", "two", 30000).vote,
                     RL_VOTE_DENIED);
    ck_assert_int_eq(run_command(RL_VERB_GET, RL_FORM_PLAIN, "key", "", 0).vote, RL_VOTE_GRANTED);
    ck_assert_int_eq(run_command(RL_VERB_PTTL, RL_FORM_PLAIN, "key", "", 0).vote, RL_VOTE_GRANTED);
    ck_assert_int_eq(run_command(RL_VERB_PING, RL_FORM_PLAIN, "", "", 0).vote, RL_VOTE_GRANTED);

    ck_assert_int_eq(eval(RL_VERB_RELEASE, "two", 0), RL_VOTE_DENIED);
    ck_assert(cluster_replies(cluster, 0, "tok", "GET key"));
    ck_assert_int_eq(eval(RL_VERB_RELEASE, "tok", 0), RL_VOTE_GRANTED);
    ck_assert_uint_eq(cluster_count_keys(cluster, 0), 0);
    ck_assert_int_eq(eval(RL_VERB_RELEASE, "tok", 0), RL_VOTE_DENIED);
}
END_TEST

START_TEST(extend_raises_and_never_lowers)
{
    ck_assert(cluster_replies(cluster, 0, "OK", "SET key tok PX 20000"));
    ck_assert_int_eq(eval(RL_VERB_EXTEND, "two", 90000), RL_VOTE_DENIED);
    ck_assert_int_le(pttl(), 20000);
    ck_assert_int_eq(eval(RL_VERB_EXTEND, "tok", 90000), RL_VOTE_GRANTED);
    ck_assert_int_gt(pttl(), 80000);
    ck_assert_int_eq(eval(RL_VERB_EXTEND, "tok", 20000), RL_VOTE_GRANTED);
    ck_assert_int_gt(pttl(), 80000);

    ck_assert(cluster_replies(cluster, 0, "1", "PERSIST key")); /* a key without a TTL gets one */
    ck_assert_int_eq(eval(RL_VERB_EXTEND, "tok", 30000), RL_VOTE_GRANTED);
    ck_assert_int_gt(pttl(), 20000);
    ck_assert_int_le(pttl(), 30000);

    ck_assert(cluster_replies(cluster, 0, "1", "DEL key"));
    ck_assert_int_eq(eval(RL_VERB_EXTEND, "tok", 30000), RL_VOTE_DENIED);
    ck_assert_uint_eq(cluster_count_keys(cluster, 0), 0); /* EXTEND does not create a key */
}
END_TEST

START_TEST(shorten_is_exact)
{
    ck_assert(cluster_replies(cluster, 0, "OK", "SET key tok PX 90000"));
    ck_assert_int_eq(eval(RL_VERB_SHORTEN, "two", 10), RL_VOTE_DENIED);
    ck_assert_int_gt(pttl(), 80000);
    ck_assert_int_eq(eval(RL_VERB_SHORTEN, "tok", 30000), RL_VOTE_GRANTED);
    ck_assert_int_gt(pttl(), 20000);
    ck_assert_int_le(pttl(), 30000);
    ck_assert_int_eq(eval(RL_VERB_SHORTEN, "tok", 0), RL_VOTE_GRANTED); /* at once */
    ck_assert_uint_eq(cluster_count_keys(cluster, 0), 0);
}
END_TEST

START_TEST(a_key_of_another_type_is_held_and_left_alone)
{
    ck_assert(cluster_replies(cluster, 0, "1", "ZADD key 1 reader"));
    ck_assert_int_eq(run_command(RL_VERB_ACQUIRE, RL_FORM_PLAIN, "key", "tok", 100).vote,
                     RL_VOTE_DENIED);
    ck_assert_int_eq(run_command(RL_VERB_GET, RL_FORM_PLAIN, "key", "", 0).vote, RL_VOTE_GRANTED);
    ck_assert_int_eq(eval(RL_VERB_EXTEND, "tok", 100), RL_VOTE_DENIED);
    ck_assert_int_eq(eval(RL_VERB_RELEASE, "tok", 0), RL_VOTE_DENIED);
    ck_assert_int_eq(eval(RL_VERB_SHORTEN, "tok", 0), RL_VOTE_DENIED);
    ck_assert(cluster_replies(cluster, 0, "1", "ZCARD key"));
}
END_TEST

/* A server that knows the native form votes. One that does not causes a resend of the script. */
START_TEST(native_forms_vote_or_fall_back)
{
    static const struct {
        enum rl_verb verb;
        enum rl_form form;
        unsigned feature;
    } native[] = {{RL_VERB_RELEASE, RL_FORM_DELEX, RL_FEATURE_DELEX},
                  {RL_VERB_RELEASE, RL_FORM_DELIFEQ, RL_FEATURE_DELIFEQ}};
    for (size_t i = 0; i < sizeof native / sizeof native[0]; i++) {
        ck_assert(cluster_replies(cluster, 0, "OK", "SET key tok PX 90000"));
        struct rl_result result = run_command(native[i].verb, native[i].form, "key", "tok", 90000);
        if (result.vote == RL_VOTE_RESEND) {
            ck_assert_uint_eq(result.forget, native[i].feature);
            ck_assert_int_eq(result.form, RL_FORM_SHA);
            ck_assert(cluster_replies(cluster, 0, "tok", "GET key")); /* without an effect */
        } else {
            ck_assert_int_eq(result.vote, RL_VOTE_GRANTED);
        }
    }
}
END_TEST

/* Checks that the server refuses the command for this cause. */
static void expect_failure(enum rl_verb verb, enum rl_form form, int cause)
{
    struct rl_result result = run_command(verb, form, "key", "tok", 30000);
    ck_assert_msg(result.vote == RL_VOTE_FAILED && result.cause == cause,
                  "verb %d: vote %d, cause %d instead of %d", verb, result.vote, result.cause,
                  cause);
}

START_TEST(full_memory_refuses_set_and_lets_scripts_pass)
{
    ck_assert(cluster_replies(cluster, 0, "OK", "SET key tok PX 90000"));
    ck_assert(cluster_replies(cluster, 0, "OK", "CONFIG SET maxmemory 1"));
    expect_failure(RL_VERB_ACQUIRE, RL_FORM_PLAIN, REDLOCK_CAUSE_OOM);
    ck_assert_int_eq(eval(RL_VERB_EXTEND, "tok", 99000), RL_VOTE_GRANTED);
    ck_assert_int_eq(eval(RL_VERB_SHORTEN, "tok", 90000), RL_VOTE_GRANTED);
    ck_assert_int_eq(eval(RL_VERB_RELEASE, "tok", 0), RL_VOTE_GRANTED);
}
END_TEST

START_TEST(replicas_are_read_only)
{
    ck_assert(cluster_replies(cluster, 0, "OK", "SET key tok PX 20000"));
    ck_assert(cluster_replies(cluster, 0, "OK", "REPLICAOF 127.0.0.1 1"));
    expect_failure(RL_VERB_ACQUIRE, RL_FORM_PLAIN, REDLOCK_CAUSE_READONLY);
    expect_failure(RL_VERB_RELEASE, RL_FORM_EVAL, REDLOCK_CAUSE_READONLY);
    expect_failure(RL_VERB_EXTEND, RL_FORM_EVAL, REDLOCK_CAUSE_READONLY);
    ck_assert(cluster_replies(cluster, 0, "OK", "CONFIG SET replica-serve-stale-data no"));
    expect_failure(RL_VERB_GET, RL_FORM_PLAIN, REDLOCK_CAUSE_REPLICA); /* MASTERDOWN */
}
END_TEST

START_TEST(users_without_permissions_get_failures)
{
    ck_assert(cluster_replies(cluster, 0, "OK", "SET key tok PX 90000"));
    ck_assert(cluster_replies(cluster, 0, "OK",
                              "ACL SETUSER weak on >pw ~other +eval +evalsha +get +ping"));
    redisReply *reply = redisCommand(connection, "AUTH weak pw");
    ck_assert_str_eq(reply->str, "OK");
    freeReplyObject(reply);
    expect_failure(RL_VERB_ACQUIRE, RL_FORM_PLAIN, REDLOCK_CAUSE_NOPERM); /* the command */
    expect_failure(RL_VERB_GET, RL_FORM_PLAIN, REDLOCK_CAUSE_NOPERM);     /* the key */
    ck_assert(cluster_replies(cluster, 0, "OK", "ACL SETUSER weak ~*"));
    expect_failure(RL_VERB_RELEASE, RL_FORM_EVAL, REDLOCK_CAUSE_NOPERM); /* inside the script */

    ck_assert(cluster_replies(cluster, 0, "OK", "CONFIG SET requirepass secret"));
    redisFree(connection);
    connection = redisConnect("127.0.0.1", cluster_port(cluster, 0));
    expect_failure(RL_VERB_ACQUIRE, RL_FORM_PLAIN, REDLOCK_CAUSE_AUTH);
    reply = redisCommand(connection, "AUTH wrong");
    ck_assert_int_eq(rl_wire_error_cause(reply->str, (size_t)reply->len), REDLOCK_CAUSE_AUTH);
    freeReplyObject(reply);
}
END_TEST

START_TEST(a_needless_password_is_refused)
{
    redisReply *reply = redisCommand(connection, "AUTH needless");
    ck_assert_int_eq(reply->type, REDIS_REPLY_ERROR);
    ck_assert_int_eq(rl_wire_error_cause(reply->str, (size_t)reply->len), REDLOCK_CAUSE_AUTH);
    freeReplyObject(reply);
}
END_TEST

int main(void)
{
    if (!cluster_available())
        return suite_skip(CLUSTER_MISSING);
    Suite *suite = suite_create("core_scripts");
    TCase *tcase = tcase_create("scripts");
    suite_add_tcase(suite, tcase);
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_set_timeout(tcase, 60);
    tcase_add_test(tcase, the_server_computes_the_same_sha);
    tcase_add_test(tcase, plain_commands_and_release_work_on_a_server);
    tcase_add_test(tcase, extend_raises_and_never_lowers);
    tcase_add_test(tcase, shorten_is_exact);
    tcase_add_test(tcase, a_key_of_another_type_is_held_and_left_alone);
    tcase_add_test(tcase, native_forms_vote_or_fall_back);
    tcase_add_test(tcase, full_memory_refuses_set_and_lets_scripts_pass);
    tcase_add_test(tcase, replicas_are_read_only);
    tcase_add_test(tcase, users_without_permissions_get_failures);
    tcase_add_test(tcase, a_needless_password_is_refused);
    return suite_run(suite);
}
