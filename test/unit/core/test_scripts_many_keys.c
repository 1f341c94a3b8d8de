/* SPDX-License-Identifier: MIT
 * The scripts over several keys on a real server: all or none, in every state that the keys can be
 * in. */
/* Saves the time of Check's note about each assertion; see suite.h. */
#define SUITE_MANY_ASSERTIONS
#include "core/protocol.h"

#include <hiredis/hiredis.h>
#include <redlock/redlock.h>
#include <string.h>

#include "cluster.h"
#include "suite.h"

#define KEYS 3
#define TTL  50000

static struct cluster *cluster;
static redisContext *connection;
static const struct rl_arg keys[KEYS] = {{"a", 1}, {"b", 1}, {"c", 1}};

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

/* Runs the script of `verb` for all keys with the token "mine", and returns what its reply means.
 */
static struct rl_result run_script(enum rl_verb verb, uint64_t ttl_ms)
{
    struct rl_command command;
    const char *argv[RL_ARGS_MAX];
    size_t lens[RL_ARGS_MAX];

    rl_protocol_format(
        &command, verb, RL_FORM_MANY,
        &(struct rl_arguments){
            .keys = keys, .key_count = KEYS, .token = {"mine", 4}, .ttl_ms = ttl_ms});
    for (size_t i = 0; i < command.count; i++) {
        argv[i] = command.args[i].data;
        lens[i] = command.args[i].len;
    }
    redisReply *got = redisCommandArgv(connection, (int)command.count, argv, lens);
    ck_assert_msg(got != NULL, "%s", connection->errstr);
    struct rl_reply reply = {.integer = got->integer, .text = got->str, .len = (size_t)got->len};
    reply.kind = got->type == REDIS_REPLY_INTEGER ? RL_REPLY_INTEGER
                 : got->type == REDIS_REPLY_ERROR ? RL_REPLY_ERROR
                                                  : RL_REPLY_NIL;
    struct rl_result result = rl_protocol_classify(verb, RL_FORM_MANY, KEYS, &reply);
    freeReplyObject(got);
    return result;
}

/* The value of a key: the client's token (with a short, a long or no TTL), another token, or a
 * list.
 */
enum state { NOTHING, MINE, MINE_LONG, MINE_FOREVER, FOREIGN, LIST, STATES };

/* Brings the key into this state. */
static void set_state(const char *key, enum state state)
{
    static const char *const words[STATES] = {
        "DEL %s",      "SET %s mine PX 20000",   "SET %s mine PX 90000",
        "SET %s mine", "SET %s theirs PX 30000", "LPUSH %s x"};
    freeReplyObject(redisCommand(connection, "DEL %s", key));
    freeReplyObject(redisCommand(connection, words[state], key));
}

/* Returns true if the value is the client's token. */
static bool is_mine(enum state state)
{
    return state == MINE || state == MINE_LONG || state == MINE_FOREVER;
}

/* Returns the value of the key, "list" or "none". The caller frees it. */
static char *value_of(const char *key)
{
    return cluster_command(cluster, 0, "EVAL %s 1 %s",
                           "if redis.call('TYPE',KEYS[1]).ok=='list' then return 'list' end "
                           "return redis.call('GET',KEYS[1]) or 'none'",
                           key);
}

/* Returns the remaining TTL in ms; -1: no TTL, -2: no key. */
static int64_t pttl(const char *key)
{
    return cluster_integer(cluster, 0, "PTTL %s", key);
}

/* Checks that key number `key` has this value, in the words of value_of(). */
static void check_value(unsigned key, const char *expected)
{
    char *value = value_of(keys[key].data);
    ck_assert_msg(strcmp(value, expected) == 0, "key %s is %s instead of %s", keys[key].data, value,
                  expected);
    free(value);
}

/* Returns the value in this state, in the words of value_of(). */
static const char *value_before(enum state state)
{
    return state == NOTHING ? "none" : is_mine(state) ? "mine" : state == LIST ? "list" : "theirs";
}

/* Checks that each key has the value and about the TTL of its state. */
static void check_unchanged(const enum state *states)
{
    static const int64_t ttls_ms[STATES] = {-2, 20000, 90000, -1, 30000, -1};
    for (unsigned i = 0; i < KEYS; i++) {
        check_value(i, value_before(states[i]));
        int64_t left = pttl(keys[i].data), ttl_ms = ttls_ms[states[i]];
        ck_assert_msg(ttl_ms < 0 ? left == ttl_ms : left <= ttl_ms && left > ttl_ms - 9000,
                      "key %u has a TTL of %d ms", i, (int)left);
    }
}

/* Checks that each key has the client's token and at least the TTL of the last request. */
static void check_all_mine(const enum state *states)
{
    for (unsigned i = 0; i < KEYS; i++) {
        bool longer = states[i] == MINE_LONG;
        check_value(i, "mine");
        ck_assert_int_gt(pttl(keys[i].data), longer ? 80000 : TTL - 9000);
        ck_assert_int_le(pttl(keys[i].data), longer ? 90000 : TTL);
    }
}

/* Checks that an acquisition in these states sets all keys or none. */
static void check_acquire(const enum state *states)
{
    unsigned first = 0;
    while (first < KEYS && states[first] == NOTHING)
        first++;
    struct rl_result result = run_script(RL_VERB_ACQUIRE, TTL);
    ck_assert_int_eq(result.vote, first == KEYS ? RL_VOTE_GRANTED : RL_VOTE_DENIED);
    ck_assert_uint_eq(result.key, first == KEYS ? 0 : first + 1);
    if (first == KEYS)
        check_all_mine(states);
    else
        check_unchanged(states);
}

/* Checks that a heal or an extension in these states changes all keys or none. */
static void check_heal_or_extend(enum rl_verb verb, const enum state *states)
{
    bool good = true;
    for (unsigned i = 0; i < KEYS; i++)
        good = good && (is_mine(states[i]) || (verb == RL_VERB_HEAL && states[i] == NOTHING));
    ck_assert_int_eq(run_script(verb, TTL).vote, good ? RL_VOTE_GRANTED : RL_VOTE_DENIED);
    if (good)
        check_all_mine(states);
    else
        check_unchanged(states);
}

/* Checks that a release or a SHORTEN in these states changes exactly the client's own keys. */
static void check_release_or_shorten(enum rl_verb verb, const enum state *states)
{
    unsigned mine = 0;
    for (unsigned i = 0; i < KEYS; i++)
        mine += is_mine(states[i]);
    ck_assert_int_eq(run_script(verb, 10000).vote, mine == KEYS ? RL_VOTE_GRANTED : RL_VOTE_DENIED);
    for (unsigned i = 0; i < KEYS; i++) {
        if (!is_mine(states[i])) {
            check_value(i, value_before(states[i]));
        } else if (verb == RL_VERB_RELEASE) {
            check_value(i, "none");
        } else {
            ck_assert_int_le(pttl(keys[i].data), 10000);
            check_value(i, "mine");
        }
    }
}

/* Checks that GET in these states only compares. */
static void check_get(const enum state *states)
{
    bool mine = true;
    for (unsigned i = 0; i < KEYS; i++)
        mine = mine && is_mine(states[i]);
    ck_assert_int_eq(run_script(RL_VERB_GET, TTL).vote, mine ? RL_VOTE_GRANTED : RL_VOTE_DENIED);
    check_unchanged(states);
}

/* All verbs over all states of all keys. */
START_TEST(each_script_is_all_or_nothing_in_every_state)
{
    static const enum rl_verb verbs[] = {RL_VERB_ACQUIRE, RL_VERB_HEAL,    RL_VERB_EXTEND,
                                         RL_VERB_RELEASE, RL_VERB_SHORTEN, RL_VERB_GET};
    for (unsigned code = 0; code < STATES * STATES * STATES; code++) {
        const enum state states[KEYS] = {(enum state)(code % STATES),
                                         (enum state)(code / STATES % STATES),
                                         (enum state)(code / STATES / STATES)};
        for (unsigned i = 0; i < KEYS; i++)
            set_state(keys[i].data, states[i]);
        if (verbs[_i] == RL_VERB_ACQUIRE)
            check_acquire(states);
        else if (verbs[_i] == RL_VERB_HEAL || verbs[_i] == RL_VERB_EXTEND)
            check_heal_or_extend(verbs[_i], states);
        else if (verbs[_i] == RL_VERB_GET)
            check_get(states);
        else
            check_release_or_shorten(verbs[_i], states);
    }
}
END_TEST

START_TEST(scripts_without_memory_change_nothing)
{
    static const enum state all[] = {MINE, MINE, MINE}, some[] = {MINE, NOTHING, MINE_LONG};
    ck_assert(cluster_replies(cluster, 0, "OK", "CONFIG SET maxmemory 1"));
    struct rl_result result = run_script(RL_VERB_ACQUIRE, TTL);
    ck_assert_int_eq(result.cause, REDLOCK_CAUSE_OOM);
    ck_assert_uint_eq(cluster_count_keys(cluster, 0), 0);
    for (unsigned round = 0; round < 2; round++) {
        ck_assert(cluster_replies(cluster, 0, "OK", "CONFIG SET maxmemory 0"));
        for (unsigned i = 0; i < KEYS; i++)
            set_state(keys[i].data, round == 0 ? all[i] : some[i]);
        ck_assert(cluster_replies(cluster, 0, "OK", "CONFIG SET maxmemory 1"));
        if (round == 0) {
            ck_assert_int_eq(run_script(RL_VERB_EXTEND, TTL).vote, RL_VOTE_GRANTED);
            check_all_mine(all);
        } else {
            ck_assert_int_eq(run_script(RL_VERB_HEAL, TTL).cause, REDLOCK_CAUSE_OOM);
            check_unchanged(some);
        }
    }
    ck_assert_int_eq(run_script(RL_VERB_SHORTEN, 9000).vote, RL_VOTE_DENIED); /* of two keys only */
    ck_assert_int_eq(run_script(RL_VERB_RELEASE, 0).vote, RL_VOTE_DENIED);
    ck_assert_uint_eq(cluster_count_keys(cluster, 0), 0);
}
END_TEST

/* A script that is refused half-way gives a failure, not a denial, and changes nothing. */
START_TEST(a_missing_permission_is_a_failure_and_no_denial)
{
    static const struct {
        const char *may;
        enum rl_verb verb;
    } rows[] = {{"+pttl +get", RL_VERB_ACQUIRE}, {"+pttl +get", RL_VERB_HEAL},
                {"+pttl +get", RL_VERB_EXTEND},  {"+get", RL_VERB_RELEASE},
                {"+del", RL_VERB_RELEASE},       {"+pexpire", RL_VERB_SHORTEN}};
    const enum state before[] = {MINE, MINE, MINE}, none[] = {NOTHING, NOTHING, NOTHING};
    for (unsigned row = 0; row < sizeof rows / sizeof rows[0]; row++) {
        const enum state *states = rows[row].verb == RL_VERB_ACQUIRE ? none : before;
        ck_assert(cluster_replies(cluster, 0, "OK", "ACL SETUSER default +@all"));
        for (unsigned i = 0; i < KEYS; i++)
            set_state(keys[i].data, states[i]);
        char line[128];
        snprintf(line, sizeof line, "ACL SETUSER weak reset on >pw ~* +eval +auth %s",
                 rows[row].may);
        ck_assert(cluster_replies(cluster, 0, "OK", line));
        redisContext *strong = connection;
        connection = redisConnect("127.0.0.1", cluster_port(cluster, 0));
        freeReplyObject(redisCommand(connection, "AUTH weak pw"));
        struct rl_result result = run_script(rows[row].verb, TTL);
        ck_assert_msg(result.vote == RL_VOTE_FAILED && result.cause == REDLOCK_CAUSE_NOPERM,
                      "row %u: vote %d, cause %d", row, result.vote, result.cause);
        redisFree(connection);
        connection = strong;
        check_unchanged(states);
    }
}
END_TEST

START_TEST(replicas_are_read_only)
{
    for (unsigned i = 0; i < KEYS; i++)
        set_state(keys[i].data, MINE);
    ck_assert(cluster_replies(cluster, 0, "OK", "REPLICAOF 127.0.0.1 1"));
    ck_assert_int_eq(run_script(RL_VERB_EXTEND, TTL).cause, REDLOCK_CAUSE_READONLY);
    ck_assert_int_eq(run_script(RL_VERB_HEAL, TTL).cause, REDLOCK_CAUSE_READONLY);
    ck_assert_int_eq(run_script(RL_VERB_RELEASE, TTL).cause, REDLOCK_CAUSE_READONLY);
}
END_TEST

int main(void)
{
    if (!cluster_available())
        return suite_skip(CLUSTER_MISSING);
    Suite *suite = suite_create("core_scripts_many_keys");
    TCase *tcase = tcase_create("scripts_many");
    suite_add_tcase(suite, tcase);
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_set_timeout(tcase, 120);
    tcase_add_loop_test(tcase, each_script_is_all_or_nothing_in_every_state, 0, 6);
    tcase_add_test(tcase, scripts_without_memory_change_nothing);
    tcase_add_test(tcase, a_missing_permission_is_a_failure_and_no_denial);
    tcase_add_test(tcase, replicas_are_read_only);
    return suite_run(suite);
}
