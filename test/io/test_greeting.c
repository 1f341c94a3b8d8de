/* SPDX-License-Identifier: MIT
 * The commands on a new connection, which of them a server may refuse and stay eligible, and which
 * refusals exclude it.
 *
 * Uses three_servers.h: three fake servers on threads of this process (three_servers.fake[]) and
 * one threaded client. fake_redis_rule() makes a server misbehave, fake_redis_count() counts
 * commands in its log. three_servers_acquire() and the like make one call and keep its report for
 * the checks. */
#include "node/codec.h"
#include "suite.h"
#include "three_servers.h"
#include "wait.h"

#include <stdlib.h>
#include <string.h>

#define PASSWORD "correct-horse"

/* Sets the profile of the first `servers` servers. */
static void set_profiles(size_t servers, const struct fake_profile *profile)
{
    for (size_t i = 0; i < servers; i++)
        fake_redis_set_profile(three_servers.fake[i], profile);
}

/* Adds a rule to the first `servers` servers. */
static void add_rules(size_t servers, struct fake_rule rule)
{
    for (size_t i = 0; i < servers; i++)
        fake_redis_rule(three_servers.fake[i], rule);
}

/* Counts the SETs that the first `servers` servers have got. */
static size_t count_sets(size_t servers)
{
    size_t count = 0;
    for (size_t i = 0; i < servers; i++)
        count += fake_redis_count(three_servers.fake[i], "SET ");
    return count;
}

/* Checks that an acquisition fails with the status `wanted`, because the first `servers` servers
 * fail for `cause`. The attempt may end when two have failed. It begins when the client knows the
 * causes, so that no server is still being greeted. */
static void check_fails(int wanted, size_t servers, int cause)
{
    redlock_lock_t *lock = NULL;
    unsigned failed = 0;
    for (size_t i = 0; i < servers; i++)
        ck_assert(WAIT_UNTIL(three_servers_stats(i).cause == cause, TIME_LIMIT_MS));
    int status = three_servers_acquire(&lock, wait_scaled_ms(200));
    ck_assert_msg(status == wanted, "%s%s", redlock_strerror(status), three_servers_text());
    ck_assert_ptr_null(lock);
    for (size_t i = 0; i < servers; i++) {
        bool answered = three_servers_node(i).vote != REDLOCK_VOTE_NONE;
        failed += three_servers_node(i).vote == REDLOCK_VOTE_FAILED;
        ck_assert_msg(!answered || three_servers_node(i).vote == REDLOCK_VOTE_FAILED, "%s",
                      three_servers_text());
        ck_assert_msg(!answered || three_servers_node(i).cause == cause, "wanted %d:%s", cause,
                      three_servers_text());
        ck_assert(WAIT_UNTIL(three_servers_stats(i).cause == cause, TIME_LIMIT_MS));
        ck_assert_int_eq(three_servers_stats(i).eligible, 0);
        ck_assert_uint_gt(strlen(three_servers_stats(i).text), 0);
    }
    ck_assert_uint_ge(failed, 2);
}

/* Checks that the client works again after the servers were corrected. */
static void check_recovers(void)
{
    ck_assert(three_servers_wait_all_vote());
    three_servers_check_works();
    ck_assert(three_servers_wait_no_keys());
}

/* ---- the commands of the greeting ---- */

/* Acquires locks until each server has got a SET. One acquisition may be decided by two nodes, and
 * the SET for the third be removed unsent. */
static void wait_for_a_set_on_each(void)
{
    size_t have = 0;
    for (unsigned tries = 0; tries < 200 && have < THREE_SERVERS; tries++) {
        three_servers_check_works();
        have = 0;
        for (size_t i = 0; i < THREE_SERVERS; i++)
            have += fake_redis_find(three_servers.fake[i], "SET resource", 0, NULL, 0, NULL) >= 0;
    }
    ck_assert_uint_eq(have, THREE_SERVERS);
}

START_TEST(the_greeting_precedes_all_requests)
{
    char name[64];
    unsigned connection = 0;
    set_profiles(THREE_SERVERS, &(struct fake_profile){.user = "app", .password = PASSWORD});
    three_servers_connect_as("app:" PASSWORD "@", "/3");
    ck_assert(three_servers_wait_all_vote());
    wait_for_a_set_on_each();
    for (size_t i = 0; i < THREE_SERVERS; i++) {
        struct fake_redis *fake = three_servers.fake[i];
        ck_assert_int_eq(fake_redis_find(fake, "AUTH app " PASSWORD, 0, NULL, 0, &connection), 0);
        ck_assert_int_ge(
            fake_redis_find(fake, "CLIENT SETNAME redlock", 0, name, sizeof name, NULL), 1);
        long set_at = fake_redis_find(fake, "SET resource", 0, NULL, 0, NULL);
        const char *before[] = {"CLIENT SETNAME",     "INFO",
                                "SELECT 3",           "SCRIPT LOAD release",
                                "SCRIPT LOAD extend", "SCRIPT LOAD shorten"};
        for (size_t k = 0; k < sizeof before / sizeof before[0]; k++) {
            long at = fake_redis_find(fake, before[k], 0, NULL, 0, NULL);
            ck_assert_msg(at >= 0 && at < set_at, "%s: line %ld, SET: line %ld", before[k], at,
                          set_at);
        }
        ck_assert_uint_eq(connection, 1);
        ck_assert_uint_eq(fake_redis_count(fake, "HELLO"), 0);
    }
}
END_TEST

START_TEST(keys_are_set_in_the_selected_database)
{
    redlock_lock_t *lock = NULL;
    three_servers_connect_as(NULL, "/3");
    ck_assert(three_servers_wait_all_vote());
    ck_assert_int_eq(three_servers_acquire(&lock, 0), REDLOCK_OK);
    for (size_t i = 0; i < THREE_SERVERS; i++) {
        ck_assert(fake_redis_wait_keys(three_servers.fake[i], 1, TIME_LIMIT_MS));
        ck_assert(!fake_redis_has_key(three_servers.fake[i], "resource", NULL, 0, NULL));
    }
    ck_assert_int_eq(three_servers_release(lock), REDLOCK_OK);
    ck_assert(three_servers_wait_no_keys());
}
END_TEST

START_TEST(a_password_without_a_user_is_sent)
{
    set_profiles(THREE_SERVERS, &(struct fake_profile){.password = PASSWORD});
    three_servers_connect_as(":" PASSWORD "@", NULL);
    ck_assert(three_servers_wait_all_vote());
    three_servers_check_works();
    ck_assert_uint_eq(fake_redis_count(three_servers.fake[0], "AUTH " PASSWORD), 1);
}
END_TEST

START_TEST(statistics_show_what_the_server_reports)
{
    set_profiles(1, &(struct fake_profile){
                        .software = "valkey", .version = "8.1.1", .run_id = "0123456789abcdef"});
    three_servers_connect();
    ck_assert(three_servers_wait_all_vote());
    ck_assert_str_eq(three_servers_stats(0).version, "valkey 8.1.1");
    ck_assert_str_eq(three_servers_stats(0).run_id, "0123456789abcdef");
    ck_assert_str_eq(three_servers_stats(0).role, "master");
    ck_assert_str_eq(three_servers_stats(1).version, "redis 7.0.15");
}
END_TEST

START_TEST(unix_sockets_work)
{
    for (size_t i = 0; i < THREE_SERVERS; i++) {
        fake_redis_stop(three_servers.fake[i]);
        three_servers.fake[i] = fake_redis_start_unix(NULL);
    }
    three_servers_connect();
    ck_assert(three_servers_wait_all_vote());
    three_servers_check_works();
    ck_assert(three_servers_wait_no_keys());
}
END_TEST

/* ---- commands that may be refused ---- */

START_TEST(refused_commands_of_the_greeting_are_tolerated)
{
    static const struct {
        const char *command, *argument;
    } refused[] = {{"INFO", NULL},     {"INFO", "server"},    {"INFO", "replication"},
                   {"SCRIPT", "LOAD"}, {"CLIENT", "SETNAME"}, {"CLIENT", NULL},
                   {"TIME", NULL}};
    three_servers.admission = REDLOCK_ADMISSION_LENIENT; /* without INFO */
    add_rules(THREE_SERVERS,
              (struct fake_rule){.command = refused[_i].command,
                                 .argument = refused[_i].argument,
                                 .fault = FAKE_REPLY,
                                 .bytes = "-NOPERM User app has no permissions to run this\r\n"});
    three_servers_connect();
    ck_assert(three_servers_wait_all_vote());
    three_servers_check_works();
    three_servers_check_works();
    ck_assert(three_servers_wait_no_keys());
    for (size_t i = 0; i < THREE_SERVERS; i++)
        ck_assert_uint_eq(three_servers_stats(i).reconnects, 0);
}
END_TEST

/* Makes the servers reply `text` to INFO, cut or filled up with 'x' to `len` bytes unless `len` is
 * 0.
 */
static void reply_to_info(size_t servers, const char *text, size_t len)
{
    static char bulk[RL_INFO_MAX + 64];
    size_t text_len = strlen(text);
    if (len == 0)
        len = text_len;
    size_t head = (size_t)snprintf(bulk, sizeof bulk, "$%zu\r\n", len);
    ck_assert_uint_le(head + len + 2, sizeof bulk);
    memset(bulk + head, 'x', len);
    memcpy(bulk + head, text, text_len < len ? text_len : len);
    memcpy(bulk + head + len, "\r\n", 2);
    add_rules(servers,
              (struct fake_rule){
                  .command = "INFO", .fault = FAKE_REPLY, .bytes = bulk, .len = head + len + 2});
}

START_TEST(invalid_info_is_tolerated)
{
    static const struct {
        const char *text;
        size_t len;
    } infos[] = {{"", 0},
                 {"hello", 0},
                 {"run_id:\r\nrole:\r\nredis_version", 0},
                 {"redis_version:99999999999999999999.x.y\nrun_id", 0},
                 {":::\n\n\n:\nrole\nrun_id:\x01\x02\xff\x1b[31m\r\nrun_id:%s%n\r\n", 0},
                 {"run_id:", 5000},
                 {"run_id:", RL_INFO_MAX}};
    reply_to_info(1, infos[_i].text, infos[_i].len); /* not two: they would show one run_id */
    three_servers.admission = REDLOCK_ADMISSION_LENIENT;
    three_servers_connect_as(NULL, "?fresh=1"); /* some of them tell no age */
    ck_assert(three_servers_wait_all_vote());
    three_servers_check_works();
    const redlock_node_stats_t stats = three_servers_stats(0);
    for (const char *c = stats.run_id; *c != '\0'; c++)
        ck_assert(*c > 0x20 && *c < 0x7f);
}
END_TEST

START_TEST(oversized_info_is_refused)
{
    reply_to_info(2, "", RL_INFO_MAX + 1);
    three_servers_connect();
    check_fails(REDLOCK_ENOQUORUM, 2, REDLOCK_CAUSE_PROTOCOL);
    for (size_t i = 0; i < 2; i++)
        fake_redis_clear_rules(three_servers.fake[i]);
    check_recovers();
}
END_TEST

/* ---- users and passwords ---- */

/* Checks that the text shows neither password. */
static void check_no_secret(const char *text)
{
    ck_assert_msg(strstr(text, PASSWORD) == NULL, "the password is in: %s", text);
    ck_assert_msg(strstr(text, "wrong-horse") == NULL, "the password is in: %s", text);
}

START_TEST(two_servers_that_refuse_the_user_fail_the_attempt)
{
    set_profiles(THREE_SERVERS, &(struct fake_profile){.user = "app", .password = PASSWORD});
    fake_redis_set_profile(three_servers.fake[2],
                           &(struct fake_profile){.user = "app", .password = "wrong-horse"});
    three_servers_connect_as("app:wrong-horse@", NULL);
    check_fails(REDLOCK_EAUTH, 2, REDLOCK_CAUSE_AUTH);
    ck_assert_uint_eq(count_sets(2), 0);
    ck_assert_ptr_nonnull(strstr(three_servers_node(0).text, "WRONGPASS"));
    check_no_secret(three_servers_text());
    check_no_secret(three_servers_stats(0).node);
    check_no_secret(three_servers_stats(0).text);
    ck_assert(WAIT_UNTIL(three_servers_log()[0] != '\0', TIME_LIMIT_MS));
    check_no_secret(three_servers_log());
    ck_assert_int_eq(redlock_wait_ready(three_servers.client, wait_scaled_ms(100)), REDLOCK_EAUTH);
    set_profiles(THREE_SERVERS, &(struct fake_profile){.user = "app", .password = "wrong-horse"});
    check_recovers();
}
END_TEST

START_TEST(one_server_that_refuses_the_user_is_tolerated)
{
    set_profiles(THREE_SERVERS, &(struct fake_profile){.user = "app", .password = PASSWORD});
    set_profiles(1, &(struct fake_profile){.user = "app", .password = "other"});
    three_servers_connect_as("app:" PASSWORD "@", NULL);
    three_servers_check_works();
    ck_assert_uint_eq(count_sets(1), 0);
    set_profiles(1, &(struct fake_profile){.user = "app", .password = PASSWORD});
    check_recovers();
}
END_TEST

/* One server of three refuses the user and one is down: neither cause has a majority. */
START_TEST(one_refusal_and_one_dead_server_are_no_quorum)
{
    const int cause = _i == 0 ? REDLOCK_CAUSE_AUTH : REDLOCK_CAUSE_CLUSTER;

    set_profiles(1, _i == 0 ? &(struct fake_profile){.password = PASSWORD}
                            : &(struct fake_profile){.cluster = true});
    fake_redis_listen(three_servers.fake[1], false);
    three_servers_connect();
    ck_assert(WAIT_UNTIL(three_servers_stats(0).cause == cause, TIME_LIMIT_MS));
    ck_assert(WAIT_UNTIL(three_servers_stats(1).cause == REDLOCK_CAUSE_CONNECT, TIME_LIMIT_MS));
    ck_assert_int_eq(redlock_wait_ready(three_servers.client, wait_scaled_ms(50)),
                     REDLOCK_ENOQUORUM);
    fake_redis_listen(three_servers.fake[1], true);
    set_profiles(1, NULL);
    check_recovers();
}
END_TEST

START_TEST(a_missing_password_is_an_auth_error)
{
    set_profiles(THREE_SERVERS, &(struct fake_profile){.password = PASSWORD});
    three_servers_connect();
    check_fails(REDLOCK_EAUTH, THREE_SERVERS, REDLOCK_CAUSE_AUTH);
    ck_assert_uint_eq(count_sets(THREE_SERVERS), 0);
}
END_TEST

START_TEST(a_needless_password_is_an_auth_error)
{
    three_servers_connect_as(":" PASSWORD "@", NULL);
    check_fails(REDLOCK_EAUTH, THREE_SERVERS, REDLOCK_CAUSE_AUTH);
    check_no_secret(three_servers_text());
    ck_assert_uint_eq(count_sets(THREE_SERVERS), 0);
}
END_TEST

/* ---- exclusions ---- */

/* A missing permission for SELECT is an error of the user, as is a wrong password. */
START_TEST(a_forbidden_database_is_an_auth_error)
{
    add_rules(THREE_SERVERS,
              (struct fake_rule){.command = "SELECT",
                                 .fault = FAKE_REPLY,
                                 .bytes = "-NOPERM User app has no permissions to run this\r\n"});
    three_servers_connect_as(NULL, "/3");
    ck_assert_int_eq(redlock_wait_ready(three_servers.client, wait_scaled_ms(100)), REDLOCK_EAUTH);
}
END_TEST

/* A SET after a failed SELECT would set a key in database 0. */
START_TEST(no_set_follows_a_failed_select)
{
    three_servers_connect_as(NULL, "/99");
    check_fails(REDLOCK_ENOQUORUM, THREE_SERVERS, REDLOCK_CAUSE_ERROR_REPLY);
    ck_assert_uint_eq(count_sets(THREE_SERVERS), 0);
    ck_assert_ptr_nonnull(strstr(three_servers_stats(0).text, "DB index is out of range"));
}
END_TEST

START_TEST(loading_servers_are_excluded)
{
    set_profiles(2, &(struct fake_profile){.loading = true});
    three_servers_connect();
    check_fails(REDLOCK_EEXCLUDED, 2, REDLOCK_CAUSE_LOADING);
    ck_assert_uint_eq(count_sets(2), 0);
    set_profiles(2, NULL);
    check_recovers();
}
END_TEST

START_TEST(replicas_do_not_vote)
{
    set_profiles(2, &(struct fake_profile){.role = "slave"});
    three_servers_connect();
    check_fails(REDLOCK_EEXCLUDED, 2, REDLOCK_CAUSE_REPLICA);
    ck_assert_uint_eq(count_sets(2), 0);
    set_profiles(2, NULL);
    check_recovers();
}
END_TEST

/* A cluster node is excluded even if it would grant, because its keys can move away at any time. */
START_TEST(cluster_nodes_do_not_vote)
{
    set_profiles(2, &(struct fake_profile){.cluster = true});
    three_servers_connect();
    check_fails(REDLOCK_EEXCLUDED, 2, REDLOCK_CAUSE_CLUSTER);
    ck_assert_uint_eq(count_sets(2), 0);
    ck_assert_int_eq(redlock_wait_ready(three_servers.client, wait_scaled_ms(100)),
                     REDLOCK_EEXCLUDED);
    set_profiles(2, NULL);
    check_recovers();
}
END_TEST

/* The server was a master when it was greeted, and now replies READONLY. */
START_TEST(masters_that_become_replicas_are_excluded)
{
    add_rules(2, (struct fake_rule){
                     .command = "SET",
                     .fault = FAKE_REPLY,
                     .bytes = "-READONLY You can't write against a read only replica.\r\n"});
    three_servers_connect();
    ck_assert(three_servers_wait_all_vote());
    redlock_lock_t *lock = NULL;
    int status = three_servers_acquire(&lock, 0);
    ck_assert_msg(status != REDLOCK_OK, "%s", three_servers_text());
    for (size_t i = 0; i < 2; i++)
        ck_assert_msg(three_servers_node(i).cause == REDLOCK_CAUSE_READONLY, "%s",
                      three_servers_text());
    for (size_t i = 0; i < 2; i++)
        fake_redis_clear_rules(three_servers.fake[i]);
    check_recovers();
}
END_TEST

/* Waits until one of the first two nodes is excluded as a duplicate. */
static bool duplicate_is_known(void)
{
    return WAIT_UNTIL(three_servers_stats(0).cause == REDLOCK_CAUSE_DUPLICATE ||
                          three_servers_stats(1).cause == REDLOCK_CAUSE_DUPLICATE,
                      TIME_LIMIT_MS);
}

/* Checks that the duplicate stays excluded, although its address is tried again and again. */
static void check_duplicate(void)
{
    uint64_t end_ms = wait_now_ms() + wait_scaled_ms(300);
    ck_assert(duplicate_is_known());
    do {
        redlock_lock_t *lock = NULL;
        int status = three_servers_acquire(&lock, wait_scaled_ms(50));
        ck_assert_msg(status == REDLOCK_EDUPLICATE, "%s%s", redlock_strerror(status),
                      three_servers_text());
        ck_assert(three_servers_node(0).cause == REDLOCK_CAUSE_DUPLICATE ||
                  three_servers_node(1).cause == REDLOCK_CAUSE_DUPLICATE);
    } while (wait_now_ms() < end_ms);
    ck_assert_int_eq(redlock_wait_ready(three_servers.client, wait_scaled_ms(100)),
                     REDLOCK_EDUPLICATE);
    ck_assert(three_servers_wait_no_keys());
}

/* A majority of addresses would be no majority of servers. */
START_TEST(one_server_with_two_addresses_is_a_duplicate)
{
    set_profiles(2, &(struct fake_profile){.run_id = "the-same"});
    three_servers_connect_as(NULL, "?durable=1"); /* a changed server has no quarantine */
    check_duplicate();
    fake_redis_set_profile(three_servers.fake[1], NULL);
    fake_redis_drop_connections(three_servers.fake[1]);
    check_recovers();
}
END_TEST

/* The second address moves to the first server while the client is connected. The held lock stays
 * held, because the first and the third server have it. */
START_TEST(an_address_that_moves_to_another_node_s_server_is_a_duplicate)
{
    redlock_lock_t *lock = NULL;
    three_servers_connect_as(NULL, "?durable=1");
    ck_assert(three_servers_wait_all_vote());
    ck_assert_int_eq(three_servers_acquire(&lock, 0), REDLOCK_OK);
    for (size_t i = 0; i < THREE_SERVERS; i++)
        ck_assert(fake_redis_wait_keys(three_servers.fake[i], 1, TIME_LIMIT_MS));
    set_profiles(2, &(struct fake_profile){.run_id = "the-same"});
    fake_redis_drop_connections(three_servers.fake[0]);
    fake_redis_drop_connections(three_servers.fake[1]);
    ck_assert(duplicate_is_known());
    int status = three_servers_extend(lock, TTL_MS);
    ck_assert_msg(status == REDLOCK_OK, "%s%s", redlock_strerror(status), three_servers_text());
    ck_assert_uint_eq(three_servers_info().granted, 2);
    ck_assert_int_eq(three_servers_release(lock), REDLOCK_OK);
    fake_redis_flush(three_servers.fake[0]);
    fake_redis_flush(three_servers.fake[1]);
    check_duplicate();
    set_profiles(2, NULL);
    fake_redis_drop_connections(three_servers.fake[0]);
    fake_redis_drop_connections(three_servers.fake[1]);
    check_recovers();
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("greeting");
    TCase *commands = three_servers_add_case(suite, "commands"),
          *refused = three_servers_add_case(suite, "refused");
    TCase *users = three_servers_add_case(suite, "users"),
          *votes = three_servers_add_case(suite, "votes");
    tcase_add_test(commands, the_greeting_precedes_all_requests);
    tcase_add_test(commands, keys_are_set_in_the_selected_database);
    tcase_add_test(commands, a_password_without_a_user_is_sent);
    tcase_add_test(commands, statistics_show_what_the_server_reports);
    tcase_add_test(commands, unix_sockets_work);
    tcase_add_loop_test(refused, refused_commands_of_the_greeting_are_tolerated, 0, 7);
    tcase_add_loop_test(refused, invalid_info_is_tolerated, 0, 7);
    tcase_add_test(refused, oversized_info_is_refused);
    tcase_add_test(users, two_servers_that_refuse_the_user_fail_the_attempt);
    tcase_add_test(users, one_server_that_refuses_the_user_is_tolerated);
    tcase_add_loop_test(users, one_refusal_and_one_dead_server_are_no_quorum, 0, 2);
    tcase_add_test(users, a_missing_password_is_an_auth_error);
    tcase_add_test(users, a_needless_password_is_an_auth_error);
    tcase_add_test(votes, a_forbidden_database_is_an_auth_error);
    tcase_add_test(votes, no_set_follows_a_failed_select);
    tcase_add_test(votes, loading_servers_are_excluded);
    tcase_add_test(votes, replicas_do_not_vote);
    tcase_add_test(votes, cluster_nodes_do_not_vote);
    tcase_add_test(votes, masters_that_become_replicas_are_excluded);
    tcase_add_test(votes, one_server_with_two_addresses_is_a_duplicate);
    tcase_add_test(votes, an_address_that_moves_to_another_node_s_server_is_a_duplicate);
    return suite_run(suite);
}
