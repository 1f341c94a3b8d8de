/* SPDX-License-Identifier: MIT
 * Passwords, and users with the few rights that locks need, or with fewer. No secret appears in a
 * report, in the statistics or in the log.
 *
 * Uses live.h: five real servers, nodes 0 to 4, that run as long as the group of cases, and
 * `live`, the settings and the client of the running case. After each case all servers are made
 * healthy, and a key or descriptor that is left fails the case. live_lock() acquires a lock, which
 * must be granted. live_acquire(), live_extend(), live_release() and live_inspect() return the
 * status of one call and keep its report, which live_info(), live_node() and live_text() read.
 * live_voters() counts the eligible nodes, live_responsive() the nodes that reply.
 * WAIT_UNTIL(condition, ms) polls and returns false after the deadline. wait_scaled_ms() stretches
 * a time for slow builds. CHECK_STATUS() compares two REDLOCK_* codes. LONG_TTL_MS is a TTL that
 * no case reaches. */
#include "live.h"
#include "live_events.h"
#include "suite.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#define PASSWORD "s3cret%word"   /* % shows that it is encoded in addresses */
#define ENCODED  "s3cret%25word" /* the same in a URL */

/* The rights that plain locks need, and no others. */
#define RIGHTS "resetkeys ~lock:* +set +get +del +pttl +pexpire +evalsha +eval +info"

static char logged[65536]; /* all log lines of the client */
static size_t logged_len;  /* bytes in `logged` */
/* Guards `logged` and logged_len. */
static pthread_mutex_t log_mutex = PTHREAD_MUTEX_INITIALIZER;

/* Log function that appends the line to `logged`. */
static void log_line(int level, const char *message, void *userdata)
{
    (void)level;
    (void)userdata;
    pthread_mutex_lock(&log_mutex);
    const int len = snprintf(logged + logged_len, sizeof logged - logged_len, "%s\n", message);
    if (len > 0 && logged_len + (size_t)len < sizeof logged)
        logged_len += (size_t)len;
    pthread_mutex_unlock(&log_mutex);
}

/* Returns whether the text is in the log. */
static bool has_logged(const char *text)
{
    pthread_mutex_lock(&log_mutex);
    const bool has = strstr(logged, text) != NULL;
    pthread_mutex_unlock(&log_mutex);
    return has;
}

/* Checks that no password is in the last report, the log or the statistics. */
static void check_no_secret(void)
{
    const char *text = live_text();
    ck_assert_msg(strstr(text, "s3cret") == NULL, "%s", text);
    ck_assert_msg(!has_logged("s3cret"), "the password is in the log");
    for (unsigned i = 0; i < NODES; i++) {
        const redlock_node_stats_t stats = live_node_stats(live.client, i);
        ck_assert(strstr(stats.node, "s3cret") == NULL && strstr(stats.text, "s3cret") == NULL);
    }
}

/* Returns the addresses of all nodes with this text before the host. */
static const char *urls_with(const char *login)
{
    static char urls[2048];
    size_t len = 0;
    for (unsigned i = 0; i < NODES; i++)
        len += (size_t)snprintf(urls + len, sizeof urls - len, "%s%s%s127.0.0.1:%d?fresh=1",
                                i == 0 ? "" : ",", cluster_scheme(live.cluster), login,
                                cluster_port(live.cluster, i));
    return urls;
}

/* Creates a client with a login in its addresses, and a user and password for all nodes if
 * `password` is not NULL. Does not wait until the nodes are eligible: in many cases they never are.
 */
static void connect_as(const char *login, const char *user, const char *password)
{
    redlock_config_t *config = live_config_of(urls_with(login));
    logged_len = 0;
    logged[0] = '\0';
    ck_assert_int_eq(redlock_config_set_log(config, REDLOCK_LOG_DEBUG, log_line, NULL), REDLOCK_OK);
    if (password != NULL)
        ck_assert_int_eq(redlock_config_set_auth(config, user, password), REDLOCK_OK);
    ck_assert_int_eq(redlock_config_set_key_prefix(config, "lock:"), REDLOCK_OK);
    ck_assert_int_eq(redlock_new(&live.client, config), REDLOCK_OK);
    redlock_config_free(config);
}

/* Checks that each operation on locks works. */
static void check_all_operations(void)
{
    redlock_lock_t *lock = live_lock("auth", LONG_TTL_MS), *other = NULL;
    CHECK_STATUS(live_acquire("auth", LONG_TTL_MS, 0, &other), REDLOCK_ECONTENDED);
    CHECK_STATUS(live_extend(lock, 0), REDLOCK_OK);
    CHECK_STATUS(live_inspect("auth"), REDLOCK_OK);
    ck_assert_int_eq(live_info().state, REDLOCK_STATE_HELD);
    CHECK_STATUS(live_release(lock), REDLOCK_OK);
    lock = live_lock("auth", LONG_TTL_MS);
    CHECK_STATUS(redlock_release_after(lock, 20, NULL), REDLOCK_OK);
    redlock_lock_free(lock);
    lock = live_lock("broken", LONG_TTL_MS);
    CHECK_STATUS(redlock_break(live.client, "broken", NULL), REDLOCK_OK);
    redlock_lock_free(lock);
    for (unsigned i = 0; i < NODES; i++)
        ck_assert(WAIT_UNTIL(live_node_stats(live.client, i).undos_pending == 0, TIME_LIMIT_MS));
    check_no_secret();
}

/* Checks that all nodes are excluded for the cause, and that calls fail with REDLOCK_EAUTH. */
static void check_refused(int cause)
{
    redlock_lock_t *lock = NULL;
    for (unsigned i = 0; i < NODES; i++)
        ck_assert(WAIT_UNTIL(live_node_stats(live.client, i).cause == cause, TIME_LIMIT_MS));
    CHECK_STATUS(live_acquire("auth", LONG_TTL_MS, wait_scaled_ms(TIME_LIMIT_MS), &lock),
                 REDLOCK_EAUTH); /* at once, because waiting does not help */
    ck_assert_ptr_null(lock);
    ck_assert_int_eq(live_node(0).cause, cause);
    ck_assert_str_ne(live_node(0).text, "");
    ck_assert_int_eq(redlock_wait_ready(live.client, wait_scaled_ms(50)), REDLOCK_EAUTH);
    check_no_secret();
}

/* ---- a password of the server ---- */

/* Starts servers that require PASSWORD. */
static void start_with_password(void)
{
    const struct cluster_opts opts = {.password = PASSWORD};
    live_start_servers_with(&opts);
}

/* All operations work with the password in each address, percent-encoded. */
START_TEST(a_password_in_the_address)
{
    connect_as(":" ENCODED "@", NULL, NULL);
    check_all_operations();
}
END_TEST

/* All operations work with a password in the configuration, without a user name or with
 * "default". */
START_TEST(a_password_for_all_nodes)
{
    connect_as("", NULL, PASSWORD);
    check_all_operations();
    live_disconnect();
    connect_as("", "default", PASSWORD);
    check_all_operations();
}
END_TEST

/* A wrong user and password in the configuration do not matter if each address has the right
 * password. */
START_TEST(the_password_in_the_address_comes_first)
{
    connect_as(":" ENCODED "@", "nobody", "wrong");
    check_all_operations();
}
END_TEST

/* A wrong password, in the address or in the configuration, is the cause AUTH. */
START_TEST(wrong_passwords_are_refused)
{
    connect_as(":s3cret-but-wrong@", NULL, NULL);
    check_refused(REDLOCK_CAUSE_AUTH);
    live_disconnect();
    connect_as("", "s3cret-user", "s3cret-but-wrong");
    check_refused(REDLOCK_CAUSE_AUTH);
}
END_TEST

/* Without a password, the cause is AUTH, too. */
START_TEST(no_password_is_refused)
{
    connect_as("", NULL, NULL);
    check_refused(REDLOCK_CAUSE_AUTH);
}
END_TEST

/* A password that the servers accept only later. */
START_TEST(a_password_that_is_repaired)
{
    connect_as(":s3cret-new@", NULL, NULL);
    check_refused(REDLOCK_CAUSE_AUTH);
    for (unsigned i = 0; i < NODES; i++)
        free(cluster_command(live.cluster, i, "ACL SETUSER default >s3cret-new"));
    ck_assert_int_eq(redlock_wait_ready(live.client, wait_scaled_ms(TIME_LIMIT_MS)), REDLOCK_OK);
    check_all_operations();
}
END_TEST

/* ---- users with few rights ---- */

/* Applies these rules to the user "locker" on all servers. */
static void change_user(const char *rules)
{
    char command[512];
    snprintf(command, sizeof command, "ACL SETUSER locker %s", rules);
    for (unsigned i = 0; i < NODES; i++)
        ck_assert(cluster_replies(live.cluster, i, "OK", command));
}

/* Creates the user "locker" with these rights on all servers. */
static void set_user(const char *rights)
{
    char rules[512];
    snprintf(rules, sizeof rules, "reset on >s3cret %s", rights);
    change_user(rules);
}

/* All operations work for a user with the rights in RIGHTS, with more, and, with lenient
 * admission, without INFO. */
START_TEST(few_rights_are_enough)
{
    set_user(RIGHTS " -info"); /* also without TIME, SCRIPT LOAD, CLIENT SETNAME, PING */
    live.admission = REDLOCK_ADMISSION_LENIENT;
    connect_as("locker:s3cret@", NULL, NULL);
    check_all_operations();
    ck_assert_str_eq(live_node_stats(live.client, 0).version, ""); /* INFO was refused */
    live_disconnect();
    set_user(RIGHTS);
    live.admission = REDLOCK_ADMISSION_STRICT;
    connect_as("locker:s3cret@", NULL, NULL);
    check_all_operations();
    ck_assert_str_ne(live_node_stats(live.client, 0).version, "");
    live_disconnect();
    set_user(RIGHTS " +time +script|load");
    connect_as("locker:s3cret@", NULL, NULL);
    check_all_operations();
}
END_TEST

/* A server that refuses INFO is excluded, and the report says why. It becomes eligible on the same
 * connection as soon as it allows INFO. With lenient admission it is always eligible. */
START_TEST(a_server_without_info_is_excluded_unless_lenient)
{
    redlock_lock_t *lock = NULL;
    set_user(RIGHTS " -info");
    connect_as("locker:s3cret@", NULL, NULL);
    for (unsigned i = 0; i < NODES; i++)
        ck_assert(WAIT_UNTIL(live_node_stats(live.client, i).cause == REDLOCK_CAUSE_NO_INFO,
                             TIME_LIMIT_MS));
    CHECK_STATUS(live_acquire("auth", LONG_TTL_MS, 0, &lock), REDLOCK_EEXCLUDED);
    ck_assert_ptr_null(lock);
    for (unsigned i = 0; i < NODES; i++) {
        ck_assert_msg(live_node(i).cause == REDLOCK_CAUSE_NO_INFO, "%s", live_text());
        ck_assert_str_eq(live_node(i).text,
                         "does not report its identity: allow INFO to this user, or "
                         "use lenient admission");
        ck_assert_uint_eq(live_node(i).quarantine_ms, 0);
        ck_assert_int_eq(live_node_stats(live.client, i).eligible, 0);
    }
    check_no_secret();
    ck_assert(live_wait_no_keys(TIME_LIMIT_MS));
    /* A minority that refuses INFO has no effect. */
    for (unsigned i = 0; i < QUORUM; i++)
        ck_assert(cluster_replies(live.cluster, i, "OK", "ACL SETUSER locker +info"));
    ck_assert(WAIT_UNTIL(live_voters(live.client) == QUORUM, TIME_LIMIT_MS));
    ck_assert_uint_eq(live_node_stats(live.client, 0).reconnects, 0);
    check_all_operations();
    live_disconnect();
    set_user(RIGHTS " -info");
    live.admission = REDLOCK_ADMISSION_LENIENT;
    connect_as("locker:s3cret@", NULL, NULL);
    ck_assert(WAIT_UNTIL(live_voters(live.client) == NODES, TIME_LIMIT_MS));
    check_all_operations();
}
END_TEST

/* A user without SET, or without the right to the key, gets EAUTH and the cause NOPERM. */
START_TEST(a_right_that_is_missing_is_named)
{
    redlock_lock_t *lock = NULL;
    set_user(RIGHTS " -set");
    connect_as("locker:s3cret@", NULL, NULL);
    ck_assert_int_eq(redlock_wait_ready(live.client, wait_scaled_ms(TIME_LIMIT_MS)), REDLOCK_OK);
    CHECK_STATUS(live_acquire("auth", LONG_TTL_MS, wait_scaled_ms(TIME_LIMIT_MS), &lock),
                 REDLOCK_EAUTH);
    unsigned named = 0;
    for (unsigned i = 0; i < NODES; i++)
        named += live_node(i).cause == REDLOCK_CAUSE_NOPERM;
    ck_assert_msg(named >= QUORUM, "%s", live_text());
    check_no_secret();
    live_disconnect();

    /* The user may not use the key. */
    set_user("resetkeys ~other:* +set +get +del +pttl +pexpire +evalsha +eval +info");
    connect_as("locker:s3cret@", NULL, NULL);
    CHECK_STATUS(live_acquire("auth", LONG_TTL_MS, 0, &lock), REDLOCK_EAUTH);
    check_no_secret();
}
END_TEST

/* A user that may set keys but not delete them gets the error from the release, and the keys
 * expire. */
START_TEST(a_release_without_the_right_to_delete)
{
    const uint64_t ttl_ms = live_brief_ms(1200);
    set_user(RIGHTS " -del");
    connect_as("locker:s3cret@", NULL, NULL);
    redlock_lock_t *lock = live_lock("auth", ttl_ms);
    const int status = live_release(lock);
    ck_assert_msg(status == REDLOCK_EAUTH, "%s: %s", redlock_error_name(status), live_text());
    check_no_secret();
}
END_TEST

/* Checks that no server has executed a SET. */
static void check_no_set(void)
{
    for (unsigned i = 0; i < NODES; i++) {
        char *calls = cluster_command(live.cluster, i, "INFO commandstats");
        ck_assert_msg(strstr(calls, "cmdstat_set:") == NULL, "%s", calls);
        free(calls);
    }
}

/* A user that may set keys, but runs no scripts, could neither extend nor delete them. No SET is
 * sent, the report names the right, and the servers are eligible soon after it was given. */
START_TEST(a_user_without_scripts_sets_no_key)
{
    static const char *const missing[][2] = {{"-eval", "'eval'"}, {"-evalsha", "'evalsha'"}};
    for (unsigned k = 0; k < 2; k++) {
        char rights[256];
        snprintf(rights, sizeof rights, RIGHTS " %s", missing[k][0]);
        set_user(rights);
        for (unsigned i = 0; i < NODES; i++)
            free(cluster_command(live.cluster, i, "CONFIG RESETSTAT"));
        connect_as("locker:s3cret@", NULL, NULL);
        check_refused(REDLOCK_CAUSE_NOPERM);
        for (unsigned i = 0; i < NODES; i++) {
            const redlock_node_stats_t stats = live_node_stats(live.client, i);
            ck_assert_int_eq(stats.eligible, 0);
            ck_assert_msg(strstr(stats.text, missing[k][1]) != NULL, "%s", stats.text);
        }
        check_no_set();
        set_user(RIGHTS);
        ck_assert_int_eq(redlock_wait_ready(live.client, wait_scaled_ms(TIME_LIMIT_MS)),
                         REDLOCK_OK);
        check_all_operations();
        live_disconnect();
    }
}
END_TEST

/* Starts servers on which EVAL has another name. */
static void start_without_eval(void)
{
    static const char *const args[] = {"--rename-command", "EVAL", "EVAL-OF-OPERATORS", NULL};
    const struct cluster_opts opts = {.args = args};
    live_start_servers_with(&opts);
}

/* The same where EVAL is unknown: the operator has renamed it. */
START_TEST(a_server_without_eval_gets_no_key)
{
    redlock_lock_t *lock = NULL;
    connect_as("", NULL, NULL);
    for (unsigned i = 0; i < NODES; i++)
        ck_assert(WAIT_UNTIL(live_node_stats(live.client, i).cause == REDLOCK_CAUSE_NO_SCRIPTS,
                             TIME_LIMIT_MS));
    CHECK_STATUS(live_acquire("auth", LONG_TTL_MS, 0, &lock), REDLOCK_EEXCLUDED);
    ck_assert_ptr_null(lock);
    ck_assert_msg(strstr(live_text(), "does not know EVAL") != NULL, "%s", live_text());
    check_no_set();
}
END_TEST

/* Returns the number of pending undos of all nodes. */
static uint64_t undos_pending(void)
{
    uint64_t pending = 0;
    for (unsigned i = 0; i < NODES; i++)
        pending += live_node_stats(live.client, i).undos_pending;
    return pending;
}

/* The servers refuse each delete. The client repeats it until the key must have expired, and a
 * shutdown waits no longer than that. */
START_TEST(undos_that_are_refused_expire)
{
    const uint64_t ttl_ms = live_brief_ms(1200);
    set_user(RIGHTS " -del");
    connect_as("locker:s3cret@", NULL, NULL);
    for (unsigned i = 0; i < 40; i++) {
        char name[32];
        snprintf(name, sizeof name, "auth %u", i);
        CHECK_STATUS(live_release(live_lock(name, ttl_ms)), REDLOCK_EAUTH);
        if (i == 19)
            ck_assert(WAIT_UNTIL(undos_pending() == 0, 2 * TIME_LIMIT_MS));
    }
    ck_assert_uint_gt(undos_pending(), 0);
    ck_assert_int_eq(redlock_shutdown(live.client, wait_scaled_ms(2 * TIME_LIMIT_MS)), REDLOCK_OK);
    ck_assert_uint_eq(undos_pending(), 0);
    check_no_secret();
}
END_TEST

/* ---- a password that is changed ---- */

#define OLD "s3cret-old"
#define NEW "s3cret-new"

/* Closes all connections of the client to one server, and waits until it is connected again. */
static void reconnect(unsigned node)
{
    const uint64_t before = live_node_stats(live.client, node).reconnects;
    free(cluster_command(live.cluster, node, "CLIENT KILL USER locker"));
    ck_assert(WAIT_UNTIL(live_node_stats(live.client, node).reconnects > before &&
                             live_node_stats(live.client, node).eligible,
                         TIME_LIMIT_MS));
}

/* The password is changed as operations.md says, then each server closes its connections: the lock
 * survives. redlock_set_auth() does not change the login of an address. */
START_TEST(a_password_that_is_changed)
{
    for (unsigned own = 0; own < 2; own++) {
        change_user("reset on >" OLD " " RIGHTS);
        if (own)
            change_user(">" NEW);
        connect_as(own ? "locker:" NEW "@" : "", "locker", OLD);
        redlock_lock_t *lock = live_lock("auth", LONG_TTL_MS);
        for (unsigned i = 0; i < NODES; i++)
            ck_assert(WAIT_UNTIL(live_node_stats(live.client, i).eligible, TIME_LIMIT_MS));
        change_user(">" NEW);
        ck_assert_int_eq(redlock_set_auth(live.client, "locker", own ? "s3cret-of-another" : NEW),
                         REDLOCK_OK);
        change_user("<" OLD);
        for (unsigned i = 0; i < NODES; i++)
            reconnect(i);
        CHECK_STATUS(live_extend(lock, 0), REDLOCK_OK);
        CHECK_STATUS(live_release(lock), REDLOCK_OK);
        check_all_operations();
        live_disconnect();
    }
}
END_TEST

/* A login that was not changed is refused while a lock is held: that is an event of the node, and
 * in the log. The new login repairs it. */
START_TEST(a_refused_login_is_reported)
{
    change_user("reset on >" OLD " " RIGHTS);
    live.event_fn = note_event;
    live.event_userdata = &client_events;
    events_reset();
    connect_as("", "locker", OLD);
    redlock_lock_t *lock = live_lock("auth", LONG_TTL_MS);
    const char *name = live_node_stats(live.client, 0).node;
    ck_assert(WAIT_UNTIL(live_node_stats(live.client, 0).eligible, TIME_LIMIT_MS));
    change_user(">" NEW " <" OLD);
    free(cluster_command(live.cluster, 0, "CLIENT KILL USER locker"));
    ck_assert(WAIT_UNTIL(count_events_of(&client_events, REDLOCK_EVENT_NODE_EXCLUDED, name) +
                                 count_events_of(&client_events, REDLOCK_EVENT_NODE_DOWN, name) >
                             0,
                         TIME_LIMIT_MS));
    ck_assert(WAIT_UNTIL(live_node_stats(live.client, 0).cause == REDLOCK_CAUSE_AUTH &&
                             has_logged("WRONGPASS"),
                         TIME_LIMIT_MS));
    ck_assert_int_eq(redlock_set_auth(live.client, "locker", NEW), REDLOCK_OK);
    ck_assert(WAIT_UNTIL(live_node_stats(live.client, 0).eligible, TIME_LIMIT_MS));
    CHECK_STATUS(live_release(lock), REDLOCK_OK);
    check_no_secret();
}
END_TEST

/* A login that is refused changes nothing, and the log says why, without the password. */
START_TEST(a_changed_login_that_is_wrong)
{
    change_user("reset on >" OLD " " RIGHTS);
    connect_as("", "locker", OLD);
    ck_assert_int_eq(redlock_wait_ready(live.client, wait_scaled_ms(TIME_LIMIT_MS)), REDLOCK_OK);
    ck_assert_int_eq(redlock_set_auth(NULL, "locker", NEW), REDLOCK_EINVAL);
    ck_assert_int_eq(redlock_set_auth(live.client, "locker", NULL), REDLOCK_EINVAL);
    ck_assert_int_eq(redlock_set_auth(live.client, "locker", ""), REDLOCK_EINVAL);
    ck_assert_int_eq(redlock_set_auth(live.client, "lock er", NEW), REDLOCK_EINVAL);
    ck_assert_int_eq(redlock_set_auth(live.client, "locker", "s3cret\n"), REDLOCK_EINVAL);
    for (unsigned i = 0; i < NODES; i++)
        reconnect(i);       /* with the login that it had */
    check_all_operations(); /* checks the log, too */
    ck_assert(WAIT_UNTIL(has_logged("refused: user: it contains a blank"), TIME_LIMIT_MS));
    ck_assert_int_eq(redlock_set_auth(live.client, NULL, NULL), REDLOCK_OK); /* no login */
    free(cluster_command(live.cluster, 0, "CLIENT KILL USER locker"));
    ck_assert(WAIT_UNTIL(live_node_stats(live.client, 0).reconnects > 1 &&
                             live_node_stats(live.client, 0).eligible,
                         TIME_LIMIT_MS)); /* the default user has no password */
}
END_TEST

/* Returns the suite of all cases. The names are those of CK_RUN_CASE, which runs one group. */
static Suite *auth_suite(void)
{
    Suite *suite = suite_create("auth");
    live_add_with(suite, "address", a_password_in_the_address, start_with_password);
    live_add_with(suite, "all nodes", a_password_for_all_nodes, start_with_password);
    live_add_with(suite, "both", the_password_in_the_address_comes_first, start_with_password);
    live_add_with(suite, "wrong", wrong_passwords_are_refused, start_with_password);
    live_add_with(suite, "none", no_password_is_refused, start_with_password);
    live_add_with(suite, "repaired", a_password_that_is_repaired, start_with_password);
    live_add_with(suite, "rights", few_rights_are_enough, live_start_servers);
    live_add_with(suite, "no info", a_server_without_info_is_excluded_unless_lenient,
                  live_start_servers);
    live_add_with(suite, "missing right", a_right_that_is_missing_is_named, live_start_servers);
    live_add_with(suite, "no delete", a_release_without_the_right_to_delete, live_start_servers);
    live_add_with(suite, "changed", a_password_that_is_changed, live_start_servers);
    live_add_with(suite, "refused login", a_refused_login_is_reported, live_start_servers);
    live_add_with(suite, "wrong change", a_changed_login_that_is_wrong, live_start_servers);
    live_add_with(suite, "undos", undos_that_are_refused_expire, live_start_servers);
    live_add_with(suite, "no scripts", a_user_without_scripts_sets_no_key, live_start_servers);
    live_add_with(suite, "no eval", a_server_without_eval_gets_no_key, start_without_eval);
    return suite;
}

/* Runs all cases. Skips without a server program. */
int main(void)
{
    if (!cluster_available())
        return suite_skip(CLUSTER_MISSING);
    return suite_run_nofork(auth_suite());
}
