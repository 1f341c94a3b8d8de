/* SPDX-License-Identifier: MIT
 * Native compare-and-delete (DELEX, DELIFEQ), which the client detects for each node. Where a
 * server does not support or forbids it, the script replaces it within the same round.
 *
 * Uses three_servers.h: three fake servers on threads of this process (three_servers.fake[]) and
 * one threaded client. fake_redis_rule() makes a server misbehave, fake_redis_count() counts
 * commands in its log. three_servers_acquire() and the like make one call and keep its report for
 * the checks. */
#include "core/protocol.h"
#include "suite.h"
#include "three_servers.h"
#include "wait.h"

#include <string.h>

static const struct fake_profile redis_8_4 = {.version = "8.4.0", .features = RL_FEATURE_DELEX};
static const struct fake_profile valkey_9 = {
    .software = "valkey", .version = "9.0.0", .features = RL_FEATURE_DELIFEQ};
static const struct fake_profile valkey_8_1 = {.software = "valkey", .version = "8.1.0"};
/* Reports a new version, but does not support its commands. */
static const struct fake_profile impostor = {.version = "8.4.0"};

/* Sets the profile of all servers. */
static void profile_all(const struct fake_profile *profile)
{
    for (size_t i = 0; i < THREE_SERVERS; i++)
        fake_redis_set_profile(three_servers.fake[i], profile);
}

/* Adds a rule to all servers. */
static void rule_all(struct fake_rule rule)
{
    for (size_t i = 0; i < THREE_SERVERS; i++)
        fake_redis_rule(three_servers.fake[i], rule);
}

/* Counts the commands that begin with these words, on all servers. */
static size_t count_all(const char *words)
{
    size_t count = 0;
    for (size_t i = 0; i < THREE_SERVERS; i++)
        count += fake_redis_count(three_servers.fake[i], words);
    return count;
}

/* Checks that the servers get so many commands that begin with these words. The last server may get
 * its command after the call has returned. */
static void check_commands(const char *words, size_t count)
{
    bool told = WAIT_UNTIL(count_all(words) >= count, TIME_LIMIT_MS);
    ck_assert_msg(told && count_all(words) == count, "%s: told %zu times, not %zu", words,
                  count_all(words), count);
}

/* Connects with time limits so long that replies count even if they are late. */
static void connect_all(void)
{
    three_servers.node_time_ms = TIME_LIMIT_MS;
    three_servers_connect();
    ck_assert(three_servers_wait_all_vote());
}

/* Acquires the lock. Returns when all servers have the key. */
static redlock_lock_t *acquire(void)
{
    redlock_lock_t *lock = NULL;
    int status = three_servers_acquire(&lock, 0);
    ck_assert_msg(status == REDLOCK_OK, "%s%s", redlock_strerror(status), three_servers_text());
    for (size_t i = 0; i < THREE_SERVERS; i++)
        ck_assert(fake_redis_wait_keys(three_servers.fake[i], 1, TIME_LIMIT_MS));
    return lock;
}

/* Extends the lock in one round, without a failed vote in the report. */
static void extend(redlock_lock_t *lock)
{
    int status = three_servers_extend(lock, TTL_MS);
    ck_assert_msg(status == REDLOCK_OK, "%s%s", redlock_strerror(status), three_servers_text());
    ck_assert_uint_eq(three_servers_info().rounds, 1);
    for (size_t i = 0; i < THREE_SERVERS; i++)
        ck_assert_msg(three_servers_node(i).vote != REDLOCK_VOTE_FAILED, "%s",
                      three_servers_text());
}

/* Releases the lock, without a failed vote in the report. */
static void release(redlock_lock_t *lock)
{
    int status = three_servers_release(lock);
    ck_assert_msg(status == REDLOCK_OK, "%s%s", redlock_strerror(status), three_servers_text());
    for (size_t i = 0; i < THREE_SERVERS; i++)
        ck_assert_msg(three_servers_node(i).vote != REDLOCK_VOTE_FAILED, "%s",
                      three_servers_text());
    ck_assert(three_servers_wait_no_keys());
}

/* Waits until the statistics show these features of the server. */
static bool has_features(size_t index, uint32_t features)
{
    return WAIT_UNTIL(three_servers_stats(index).features == features, TIME_LIMIT_MS);
}

/* ---- the commands that servers know ---- */

START_TEST(old_servers_get_scripts)
{
    connect_all();
    for (int i = 0; i < 3; i++) {
        redlock_lock_t *lock = acquire();
        extend(lock);
        release(lock);
    }
    check_commands("DELEX", 0);
    check_commands("DELIFEQ", 0);
    check_commands("EVALSHA release", 3 * THREE_SERVERS);
    check_commands("EVALSHA extend", 3 * THREE_SERVERS);
    ck_assert(has_features(0, 0));
}
END_TEST

START_TEST(new_redis_gets_delex)
{
    char line[512], token[128];
    profile_all(&redis_8_4);
    connect_all();
    redlock_lock_t *lock = acquire();
    snprintf(token, sizeof token, "%s", redlock_lock_token(lock));
    extend(lock);
    release(lock);
    check_commands("EVALSHA extend", THREE_SERVERS); /* SET IFEQ could shorten the TTL */
    check_commands("EVALSHA release", 0);
    check_commands("DELEX", THREE_SERVERS);
    for (size_t i = 0; i < THREE_SERVERS; i++) {
        char expected[512];
        ck_assert_int_ge(
            fake_redis_find(three_servers.fake[i], "DELEX", 0, line, sizeof line, NULL), 0);
        snprintf(expected, sizeof expected, "DELEX resource IFEQ %s", token);
        ck_assert_str_eq(line, expected);
        ck_assert(has_features(i, RL_FEATURE_DELEX));
    }
}
END_TEST

START_TEST(valkey_gets_delifeq)
{
    profile_all(&valkey_9);
    connect_all();
    redlock_lock_t *lock = acquire();
    extend(lock);
    release(lock);
    check_commands("EVALSHA release", 0);
    check_commands("DELEX", 0);
    check_commands("DELIFEQ resource", THREE_SERVERS);
    ck_assert(has_features(0, RL_FEATURE_DELIFEQ));
}
END_TEST

START_TEST(each_server_gets_its_own_form)
{
    fake_redis_set_profile(three_servers.fake[0], &redis_8_4);
    fake_redis_set_profile(three_servers.fake[1], &valkey_8_1);
    connect_all();
    for (int i = 0; i < 2; i++) {
        redlock_lock_t *lock = acquire();
        extend(lock);
        release(lock);
        ck_assert(has_features(0, RL_FEATURE_DELEX));
        ck_assert(has_features(1, 0));
        ck_assert(has_features(2, 0));
    }
    ck_assert_uint_eq(fake_redis_count(three_servers.fake[0], "DELEX"), 2);
    ck_assert_uint_eq(fake_redis_count(three_servers.fake[0], "EVALSHA release"), 0);
    ck_assert_uint_eq(fake_redis_count(three_servers.fake[1], "EVALSHA release"), 2);
    ck_assert_uint_eq(fake_redis_count(three_servers.fake[2], "EVALSHA release"), 2);
    ck_assert_uint_eq(fake_redis_count(three_servers.fake[2], "EVALSHA extend"), 2);
}
END_TEST

/* ---- fallbacks within the round ---- */

/* A native command that a server does not know is not sent again on this connection. */
START_TEST(refused_native_commands_are_not_tried_again)
{
    profile_all(&impostor);
    connect_all();
    for (int i = 0; i < 3; i++) {
        redlock_lock_t *lock = acquire();
        extend(lock);
        release(lock);
    }
    check_commands("DELEX", THREE_SERVERS);
    check_commands("EVALSHA release", 3 * THREE_SERVERS);
    check_commands("EVALSHA extend", 3 * THREE_SERVERS);
    for (size_t i = 0; i < THREE_SERVERS; i++) {
        ck_assert(has_features(i, 0));
        ck_assert_uint_eq(three_servers_stats(i).errors, 0);
    }
}
END_TEST

/* Checks that the command `second` follows the first `first` on the same connection, with the same
 * token. */
static void check_follows(struct fake_redis *fake, const char *first, const char *second)
{
    char set[512], before[512], after[512], wanted[512], token[128] = "";
    unsigned connection_before = 0, connection_after = 0;
    ck_assert_int_ge(fake_redis_find(fake, "SET ", 0, set, sizeof set, NULL), 0);
    ck_assert_int_eq(sscanf(set, "SET resource %127s", token), 1);
    snprintf(wanted, sizeof wanted, "%s 1 resource %s", second, token);
    ck_assert_msg(fake_redis_wait(fake, wanted, 1, TIME_LIMIT_MS), "no %s:\n%s", wanted,
                  fake_redis_log(fake));
    long at = fake_redis_find(fake, first, 0, before, sizeof before, &connection_before);
    long next = fake_redis_find(fake, wanted, 0, after, sizeof after, &connection_after);
    ck_assert_ptr_nonnull(strstr(before, token));
    ck_assert_int_ge(at, 0);
    ck_assert_int_gt(next, at);
    ck_assert_uint_eq(connection_before, connection_after);
}

START_TEST(refused_native_commands_fall_back_to_scripts)
{
    static const char *const refusals[] = {
        "-NOPERM User app has no permissions to run the 'delex' command\r\n",
        "-NOPERM this user has no permissions to run the 'delex' command\r\n",
        "-ERR unknown command 'DELEX', with args beginning with: \r\n",
        "-ERR unknown command `DELEX`, with args beginning with: \r\n", "-ERR syntax error\r\n"};
    profile_all(&redis_8_4);
    rule_all((struct fake_rule){.command = "DELEX", .fault = FAKE_REPLY, .bytes = refusals[_i]});
    connect_all();
    for (int i = 0; i < 2; i++)
        release(acquire());
    check_commands("DELEX", THREE_SERVERS);
    check_commands("EVALSHA release", 2 * THREE_SERVERS);
    for (size_t i = 0; i < THREE_SERVERS; i++) {
        check_follows(three_servers.fake[i], "DELEX", "EVALSHA release");
        ck_assert_uint_eq(three_servers_stats(i).features & RL_FEATURE_DELEX, 0);
    }
}
END_TEST

/* ---- NOSCRIPT ---- */

START_TEST(forgotten_scripts_are_sent_in_full)
{
    connect_all();
    redlock_lock_t *lock = acquire();
    for (size_t i = 0; i < THREE_SERVERS; i++)
        fake_redis_forget_scripts(three_servers.fake[i]);
    extend(lock);
    release(lock);
    for (size_t i = 0; i < THREE_SERVERS; i++) {
        check_follows(three_servers.fake[i], "EVALSHA extend", "EVAL extend");
        check_follows(three_servers.fake[i], "EVALSHA release", "EVAL release");
        ck_assert_uint_eq(fake_redis_count(three_servers.fake[i], "EVAL extend"), 1);
        ck_assert_uint_eq(fake_redis_count(three_servers.fake[i], "EVAL release"), 1);
        ck_assert_uint_eq(three_servers_stats(i).reconnects, 0);
    }
    /* EVAL has loaded them again. */
    release(acquire());
    check_commands("EVAL release", THREE_SERVERS);
}
END_TEST

/* The native command, the hash of the script and the whole script are sent in one round. */
START_TEST(a_release_may_fall_back_twice)
{
    profile_all(&impostor);
    connect_all();
    redlock_lock_t *lock = acquire();
    for (size_t i = 0; i < THREE_SERVERS; i++)
        fake_redis_forget_scripts(three_servers.fake[i]);
    extend(lock);
    release(lock);
    for (size_t i = 0; i < THREE_SERVERS; i++) {
        check_follows(three_servers.fake[i], "DELEX", "EVALSHA release");
        check_follows(three_servers.fake[i], "EVALSHA release", "EVAL release");
        check_follows(three_servers.fake[i], "EVALSHA extend", "EVAL extend");
    }
}
END_TEST

/* Returns true if each node has granted a lock. */
static bool all_have_granted(void)
{
    for (size_t i = 0; i < THREE_SERVERS; i++)
        if (three_servers_stats(i).granted == 0)
            return false;
    return true;
}

/* A server that replies NOSCRIPT to EVAL, too, fails and causes no loop. */
START_TEST(noscript_for_the_full_script_is_a_failure)
{
    three_servers.node_time_ms = TIME_LIMIT_MS; /* failures come from replies, not from timeouts */
    connect_all();
    redlock_lock_t *lock = acquire();
    /* A node that grants only after the acquisition has returned does not count for the extension,
     * and then one failure would end it. */
    ck_assert(WAIT_UNTIL(all_have_granted(), TIME_LIMIT_MS));
    rule_all((struct fake_rule){
        .command = "EVALSHA", .fault = FAKE_REPLY, .bytes = "-NOSCRIPT No matching script.\r\n"});
    rule_all((struct fake_rule){
        .command = "EVAL", .fault = FAKE_REPLY, .bytes = "-NOSCRIPT No matching script.\r\n"});
    int status = three_servers_extend(lock, TTL_MS);
    ck_assert_msg(status == REDLOCK_ENOQUORUM, "%s%s", redlock_strerror(status),
                  three_servers_text());
    check_commands("EVAL extend", THREE_SERVERS);
    unsigned failed = 0;
    for (size_t i = 0; i < THREE_SERVERS; i++)
        failed += three_servers_node(i).cause == REDLOCK_CAUSE_ERROR_REPLY;
    ck_assert_uint_ge(failed, 2);
    for (size_t i = 0; i < THREE_SERVERS; i++)
        fake_redis_clear_rules(three_servers.fake[i]);
    release(lock);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("io_native_delete");
    TCase *known = three_servers_add_case(suite, "known"),
          *fallback = three_servers_add_case(suite, "fallback");
    TCase *scripts = three_servers_add_case(suite, "scripts");
    tcase_add_test(known, old_servers_get_scripts);
    tcase_add_test(known, new_redis_gets_delex);
    tcase_add_test(known, valkey_gets_delifeq);
    tcase_add_test(known, each_server_gets_its_own_form);
    tcase_add_test(fallback, refused_native_commands_are_not_tried_again);
    tcase_add_loop_test(fallback, refused_native_commands_fall_back_to_scripts, 0, 5);
    tcase_add_test(scripts, forgotten_scripts_are_sent_in_full);
    tcase_add_test(scripts, a_release_may_fall_back_twice);
    tcase_add_test(scripts, noscript_for_the_full_script_is_a_failure);
    return suite_run(suite);
}
