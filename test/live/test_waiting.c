/* SPDX-License-Identifier: MIT
 * Waiting for other holders on real servers: a release wakes the waiter. The clients here poll only
 * after a minute, so that each grant proves a notification. Also the queue of one client.
 *
 * Uses live.h: five real servers, nodes 0 to 4, that run as long as the program, and `live`, the
 * settings and the client of the running case. After each case all servers are made healthy, and a
 * key or descriptor that is left fails the case. live_connect() creates live.client and waits
 * until all nodes are eligible. live_open(live_config()) returns such a client. live_lock()
 * acquires a lock, which must be granted. live_acquire() and live_release() return the status of
 * one call and keep its report. live_check_works() acquires, extends and releases a lock, which
 * must succeed. WAIT_UNTIL(condition, ms) polls and returns false after the deadline.
 * wait_scaled_ms() stretches a time for slow builds. CHECK_STATUS() compares two REDLOCK_* codes.
 * LONG_TTL_MS is a TTL that no case reaches. From live_events.h: note_done() stores the result of
 * an asynchronous call in a struct outcome, and outcome_wait() waits for it and returns its
 * status. */
#include "live_events.h"
#include "server.h"
#include "suite.h"

#include <string.h>

#define RETRY_MS     60000u /* later than the end of any case */
#define QUEUE_MAX    3u     /* waiters that the queue of a resource admits */
#define USER_RIGHTS  "resetkeys ~* -@all +set +get +del +pttl +pexpire +evalsha +eval +info +time"
#define WAKE_RIGHTS  "resetchannels &__redis__:invalidate +client +subscribe"
#define KEEP_WAITING REDLOCK_WAIT_FOREVER

/* Returns an empty outcome, which outlives a case that fails. */
static struct outcome *fresh_outcome(void)
{
    static struct outcome outcome;
    outcome = (struct outcome)OUTCOME;
    return &outcome;
}

/* Returns the configuration of a client that polls only after RETRY_MS. */
static redlock_config_t *patient_config(bool wakeups)
{
    redlock_config_t *config = live_config();

    ck_assert_int_eq(redlock_config_set_retry_ms(config, RETRY_MS, RETRY_MS), REDLOCK_OK);
    ck_assert_int_eq(redlock_config_set_notifications(config, wakeups), REDLOCK_OK);
    return config;
}

/* Creates live.client with notifications and with pauses so long that only a notification wakes
 * it in time. */
static void connect_patient(void)
{
    live.client = live_open(patient_config(true));
}

/* Sets the key "busy" on all servers as a foreign client, or deletes it. */
static void set_foreign_key(void)
{
    cluster_command_all(live.cluster, "SET busy another PX 600000");
}

/* Deletes the key "busy" on all servers. */
static void delete_foreign_key(void)
{
    cluster_command_all(live.cluster, "DEL busy");
}

/* Starts an acquisition. */
static void wait_for(const char *resource, uint64_t wait_ms, struct outcome *outcome)
{
    redlock_opts_t opts = redlock_opts(LONG_TTL_MS);

    opts.wait_ms = wait_ms;
    ck_assert_int_eq(redlock_acquire_start(live.client, resource, &opts, note_done, outcome),
                     REDLOCK_OK);
}

/* Returns the node that notifies the client, or NODES. */
static unsigned notifying_node(void)
{
    for (unsigned i = 0; i < NODES; i++) {
        if (live_node_stats(live.client, i).notify_state == REDLOCK_NOTIFY_ON)
            return i;
    }
    return NODES;
}

/* Returns whether the notifying node was asked to track the key. */
static bool is_tracking(void)
{
    unsigned node = notifying_node();

    return node < NODES && live_calls(node, "pttl") > 0 &&
           live_calls(node, "client|caching") + live_calls(node, "client") > 0;
}

/* Starts an acquisition of "busy", and waits until a node tracks the key. */
static void start_waiting(struct outcome *outcome)
{
    for (unsigned i = 0; i < NODES; i++)
        cluster_replies(live.cluster, i, "OK", "CONFIG RESETSTAT");
    wait_for("busy", KEEP_WAITING, outcome);
    ck_assert(WAIT_UNTIL(is_tracking(), TIME_LIMIT_MS));
    ck_assert_uint_eq(outcome_calls(outcome), 0);
}

/* Checks that the waiting acquisition is granted, and releases the lock. */
static void check_granted(struct outcome *outcome)
{
    CHECK_STATUS(outcome_wait(live.client, outcome), REDLOCK_OK);
    redlock_lock_free(outcome->lock);
    ck_assert(live_wait_no_keys(TIME_LIMIT_MS));
}

/* Has live.client wait until `holder` releases the lock. Returns whether a notification has ended
 * the wait: a head also asks by its timer, after 100 to 300 ms, which may come first. */
static bool is_woken_by_release(redlock_t *holder)
{
    struct outcome *outcome = fresh_outcome();
    redlock_t *waiter = live.client;

    live.client = holder;
    redlock_lock_t *lock = live_lock("busy", LONG_TTL_MS);
    live.client = waiter;
    start_waiting(outcome);
    const uint64_t wakeups = live_stats(waiter).wakeups;
    live.client = holder;
    CHECK_STATUS(live_release(lock), REDLOCK_OK);
    live.client = waiter;
    check_granted(outcome);
    return live_stats(waiter).wakeups > wakeups &&
           live_node_stats(waiter, notifying_node()).notifications > 0;
}

/* A waiter of one client gets the lock by a notification when another client releases it. */
START_TEST(a_release_wakes_a_waiter_of_another_client)
{
    connect_patient();
    redlock_t *holder = live_open(live_config());
    bool woken = false;

    for (unsigned i = 0; i < 50 && !woken; i++)
        woken = is_woken_by_release(holder);
    ck_assert(woken);
    live_free(holder);
}
END_TEST

/* The same when a client of another make deletes the key. */
START_TEST(a_foreign_delete_wakes_a_waiter)
{
    struct outcome *outcome = fresh_outcome();
    connect_patient();
    set_foreign_key();
    start_waiting(outcome);
    delete_foreign_key();
    check_granted(outcome);
}
END_TEST

/* The same when FLUSHALL removes the key. */
START_TEST(a_flush_wakes_a_waiter)
{
    struct outcome *outcome = fresh_outcome();
    connect_patient();
    set_foreign_key();
    start_waiting(outcome);
    cluster_command_all(live.cluster, "FLUSHALL");
    check_granted(outcome);
}
END_TEST

/* Without notifications the waiter makes no attempt before its timer, although other clients have
 * acquired and released the lock. */
START_TEST(without_notifications_a_waiter_is_not_woken)
{
    struct outcome *outcome = fresh_outcome();
    live.client = live_open(patient_config(false));
    set_foreign_key();
    wait_for("busy", KEEP_WAITING, outcome);
    ck_assert(WAIT_UNTIL(live_stats(live.client).attempts == 1, TIME_LIMIT_MS));
    delete_foreign_key();
    redlock_t *waiter = live.client;
    live.client = live_open(live_config());
    for (unsigned i = 0; i < 20; i++) {
        redlock_lock_t *lock = live_lock("busy", LONG_TTL_MS);
        CHECK_STATUS(live_release(lock), REDLOCK_OK);
    }
    live_leave();
    live.client = waiter;
    ck_assert_uint_eq(outcome_calls(outcome), 0);
    ck_assert_uint_eq(live_stats(waiter).attempts, 1);
    ck_assert_uint_eq(live_stats(waiter).wakeups, 0);
    for (unsigned i = 0; i < NODES; i++) {
        ck_assert_int_eq(live_node_stats(waiter, i).notify_state, REDLOCK_NOTIFY_OFF);
        ck_assert_uint_eq(live_node_stats(waiter, i).notifications, 0);
    }
    live_disconnect();
    CHECK_STATUS(outcome->status, REDLOCK_ECLOSED);
}
END_TEST

/* A node's notify_state is IDLE before the first waiter, and ON for the node that notifies a
 * waiter. */
START_TEST(notify_states_are_reported)
{
    struct outcome *outcome = fresh_outcome();
    connect_patient();
    live_check_works();
    for (unsigned i = 0; i < NODES; i++)
        ck_assert_int_eq(live_node_stats(live.client, i).notify_state, REDLOCK_NOTIFY_IDLE);
    set_foreign_key();
    start_waiting(outcome);
    const redlock_node_stats_t stats = live_node_stats(live.client, notifying_node());
    ck_assert_int_eq(stats.notify_state, REDLOCK_NOTIFY_ON);
    ck_assert_str_eq(stats.notify_text, "");
    delete_foreign_key();
    check_granted(outcome);
}
END_TEST

/* The connection for notifications is cut. The client connects again and probes the key. */
START_TEST(a_waiter_survives_a_broken_notification_connection)
{
    struct outcome *outcome = fresh_outcome();
    connect_patient();
    set_foreign_key();
    start_waiting(outcome);
    const unsigned node = notifying_node();
    ck_assert(cluster_replies(live.cluster, node, "1", "CLIENT KILL TYPE pubsub"));
    ck_assert(WAIT_UNTIL(live_node_stats(live.client, node).notify_state != REDLOCK_NOTIFY_ON ||
                             live_calls(node, "subscribe") >= 2,
                         TIME_LIMIT_MS));
    delete_foreign_key();
    check_granted(outcome);
}
END_TEST

/* live.heal of the cases that kill a server. */
static void restart_servers(void)
{
    live_restart_dead();
}

/* The notifying node dies: another node notifies, or the timer starts an attempt. */
START_TEST(a_waiter_survives_the_death_of_the_notifying_server)
{
    struct outcome *outcome = fresh_outcome();
    live.durable = true;
    live.heal = restart_servers;
    redlock_config_t *config = live_config();
    ck_assert_int_eq(redlock_config_set_notifications(config, true), REDLOCK_OK);
    live.client = live_open(config);
    set_foreign_key();
    start_waiting(outcome);
    const unsigned node = notifying_node();
    cluster_kill(live.cluster, node);
    ck_assert(WAIT_UNTIL(!live_is_responsive(live.client, node), TIME_LIMIT_MS));
    delete_foreign_key();
    CHECK_STATUS(outcome_wait(live.client, outcome), REDLOCK_OK);
    cluster_restart(live.cluster, node, false);
    redlock_lock_free(outcome->lock);
    ck_assert(live_wait_no_keys(TIME_LIMIT_MS));
}
END_TEST

/* Returns whether the server has a key in its tracking table: a client has read it since it was
 * changed last. */
static bool has_tracked_keys(unsigned node)
{
    static const char empty[] = "tracking_total_keys:0\r";
    char *info = cluster_command(live.cluster, node, "INFO stats");
    ck_assert_ptr_nonnull(info);
    const bool tracks = strstr(info, "tracking_total_keys:") != NULL && strstr(info, empty) == NULL;
    free(info);
    return tracks;
}

/* Returns whether the restarted server notifies the client of the next change of the key. */
static bool is_notifying_again(unsigned node)
{
    return live_node_stats(live.client, node).notify_state == REDLOCK_NOTIFY_ON &&
           has_tracked_keys(node);
}

/* The notifying server is restarted without its tracking table: the client tracks the key again. */
START_TEST(a_restarted_server_notifies_again)
{
    struct outcome *outcome = fresh_outcome();
    live.durable = true;
    live.heal = restart_servers;
    connect_patient();
    set_foreign_key();
    start_waiting(outcome);
    const unsigned node = notifying_node();
    cluster_kill(live.cluster, node);
    ck_assert(WAIT_UNTIL(!live_is_responsive(live.client, node), TIME_LIMIT_MS));
    ck_assert_int_eq(live_node_stats(live.client, node).notify_state, REDLOCK_NOTIFY_IDLE);
    cluster_restart(live.cluster, node, false);
    ck_assert(cluster_replies(live.cluster, node, "OK", "SET busy another PX 600000"));
    ck_assert(WAIT_UNTIL(is_notifying_again(node), TIME_LIMIT_MS));
    ck_assert_uint_eq(outcome_calls(outcome), 0);
    const uint64_t notifications = live_node_stats(live.client, node).notifications;
    ck_assert(cluster_replies(live.cluster, node, "1", "DEL busy"));
    ck_assert(WAIT_UNTIL(live_node_stats(live.client, node).notifications > notifications,
                         TIME_LIMIT_MS));
    delete_foreign_key();
    check_granted(outcome);
}
END_TEST

/* Returns the number of nodes that have refused notifications. */
static unsigned refusals(void)
{
    unsigned count = 0;
    for (unsigned i = 0; i < NODES; i++)
        count += live_node_stats(live.client, i).notify_state == REDLOCK_NOTIFY_REFUSED;
    return count;
}

/* Without the rights for notifications, locks work, and a waiter polls. */
START_TEST(a_user_without_rights_polls)
{
    static const struct {
        const char *rights, *text;
    } table[] = {
        {USER_RIGHTS " resetchannels", "CLIENT"},
        {USER_RIGHTS " resetchannels +client", "SUBSCRIBE"},
        {USER_RIGHTS " resetchannels +client +subscribe", "channel"},
        {USER_RIGHTS " " WAKE_RIGHTS, NULL},
        /* Servers before 7.0 cannot take the right of a subcommand away. */
        {USER_RIGHTS " " WAKE_RIGHTS " -client|tracking", "tracking"},
        {USER_RIGHTS " " WAKE_RIGHTS " -client|caching", "caching"},
    };
    struct outcome *outcome = fresh_outcome();
    char command[400];

    snprintf(command, sizeof command, "ACL SETUSER waiter reset on >pw %s", table[_i].rights);
    cluster_command_all(live.cluster, command);
    redlock_config_t *config = live_config();
    ck_assert_int_eq(redlock_config_set_auth(config, "waiter", "pw"), REDLOCK_OK);
    live.client = live_open(config);
    set_foreign_key();
    wait_for("busy", KEEP_WAITING, outcome);
    if (table[_i].text == NULL) {
        ck_assert(WAIT_UNTIL(notifying_node() < NODES, TIME_LIMIT_MS));
    } else {
        ck_assert(
            WAIT_UNTIL(live_stats(live.client).attempts >= 4 && refusals() > 0, TIME_LIMIT_MS));
        for (unsigned i = 0; i < NODES; i++) {
            const redlock_node_stats_t stats = live_node_stats(live.client, i);
            ck_assert_msg(stats.notify_state != REDLOCK_NOTIFY_REFUSED ||
                              strcasestr(stats.notify_text, table[_i].text) != NULL,
                          "%s", stats.notify_text);
        }
        ck_assert_uint_eq(notifying_node(), NODES);
    }
    delete_foreign_key();
    check_granted(outcome);
    live_disconnect();
    cluster_command_all(live.cluster, "ACL DELUSER waiter");
}
END_TEST

/* ---- one client ---- */

/* The acquisitions that were granted, in their order. */
struct served {
    pthread_mutex_t mutex; /* guards the other fields */
    unsigned count, order[10];
};
static struct served served = {.mutex = PTHREAD_MUTEX_INITIALIZER};

/* Callback of an acquisition: if it was granted, appends its number (`userdata`) to `served`.
 * Frees the lock at once, so that the next waiter gets it. */
static void note_served(redlock_t *rl, int status, redlock_lock_t *lock,
                        const redlock_report_t *report, void *userdata)
{
    (void)rl;
    (void)report;
    pthread_mutex_lock(&served.mutex);
    if (status == REDLOCK_OK)
        served.order[served.count++] = (unsigned)(uintptr_t)userdata;
    pthread_mutex_unlock(&served.mutex);
    redlock_lock_free(lock);
}

/* Returns how many acquisitions were granted. */
static unsigned served_count(void)
{
    pthread_mutex_lock(&served.mutex);
    unsigned count = served.count;
    pthread_mutex_unlock(&served.mutex);
    return count;
}

/* Ten acquisitions of one client wait for one resource: one sends requests, nine queue behind
 * it. They are granted in the order in which they were started. */
START_TEST(waiters_of_one_client_are_served_in_order)
{
    redlock_opts_t opts = redlock_opts(LONG_TTL_MS);
    served.count = 0;
    opts.wait_ms = KEEP_WAITING;
    live_connect();
    set_foreign_key();
    for (uintptr_t i = 0; i < 10; i++)
        ck_assert_int_eq(redlock_acquire_start(live.client, "busy", &opts, note_served, (void *)i),
                         REDLOCK_OK);
    ck_assert(WAIT_UNTIL(live_stats(live.client).queued == 9, TIME_LIMIT_MS));
    ck_assert_uint_eq(live_stats(live.client).waiting, 10);
    delete_foreign_key();
    ck_assert(WAIT_UNTIL(served_count() == 10, TIME_LIMIT_MS));
    for (unsigned i = 0; i < 10; i++)
        ck_assert_uint_eq(served.order[i], i);
    ck_assert_uint_eq(live_stats(live.client).queued, 0);
    ck_assert(live_wait_no_keys(TIME_LIMIT_MS));
}
END_TEST

/* A queue with QUEUE_MAX waiters refuses one more with EQUEUEFULL. Single attempts and other
 * resources are not affected, and the waiters get the lock. */
START_TEST(a_full_queue_refuses)
{
    static struct outcome outcomes[QUEUE_MAX];
    for (unsigned i = 0; i < QUEUE_MAX; i++)
        outcomes[i] = (struct outcome)OUTCOME;
    redlock_lock_t *lock = NULL;
    redlock_config_t *config = live_config();
    ck_assert_int_eq(redlock_config_set_queue_max(config, QUEUE_MAX), REDLOCK_OK);
    live.client = live_open(config);
    redlock_lock_t *held = live_lock("busy", LONG_TTL_MS);
    for (unsigned i = 0; i < QUEUE_MAX; i++)
        wait_for("busy", KEEP_WAITING, &outcomes[i]);
    ck_assert(WAIT_UNTIL(live_stats(live.client).queued == QUEUE_MAX, TIME_LIMIT_MS));
    CHECK_STATUS(live_acquire("busy", LONG_TTL_MS, KEEP_WAITING, &lock), REDLOCK_EQUEUEFULL);
    ck_assert_ptr_null(lock);
    ck_assert_msg(strstr(redlock_strerror(REDLOCK_EQUEUEFULL), "too many acquisitions wait") !=
                      NULL,
                  "%s", redlock_strerror(REDLOCK_EQUEUEFULL));
    ck_assert_uint_eq(live_stats(live.client).queue_full, 1);
    CHECK_STATUS(live_acquire("busy", LONG_TTL_MS, 0, &lock), REDLOCK_ECONTENDED); /* not queued */
    CHECK_STATUS(live_acquire("other", LONG_TTL_MS, KEEP_WAITING, &lock), REDLOCK_OK);
    CHECK_STATUS(live_release(lock), REDLOCK_OK);
    CHECK_STATUS(live_release(held), REDLOCK_OK);
    for (unsigned i = 0; i < QUEUE_MAX; i++) {
        CHECK_STATUS(outcome_wait(live.client, &outcomes[i]), REDLOCK_OK);
        redlock_lock_free(outcomes[i].lock);
    }
    ck_assert(live_wait_no_keys(TIME_LIMIT_MS));
}
END_TEST

/* The wait budget of one of three waiters ends; the others get the lock in their order. */
START_TEST(a_waiter_that_times_out_leaves_the_queue)
{
    static struct outcome outcomes[3];
    for (unsigned i = 0; i < 3; i++)
        outcomes[i] = (struct outcome)OUTCOME;
    live_connect();
    redlock_lock_t *held = live_lock("busy", LONG_TTL_MS);
    for (int i = 0; i < 3; i++)
        wait_for("busy", i == _i ? wait_scaled_ms(50) : KEEP_WAITING, &outcomes[i]);
    CHECK_STATUS(outcome_wait(live.client, &outcomes[_i]), REDLOCK_ECONTENDED);
    ck_assert_ptr_null(outcomes[_i].lock);
    ck_assert_msg(strstr(outcomes[_i].text, "held by another lock of this client; no request was"),
                  "%s", outcomes[_i].text);
    ck_assert_uint_eq(outcomes[_i].info.granted, 0);
    ck_assert_uint_eq(outcomes[_i].info.attempts, 0);
    ck_assert_uint_eq(outcomes[_i].info.elapsed_us, 0);
    ck_assert_uint_eq(live_stats(live.client).queued, 2);
    CHECK_STATUS(live_release(held), REDLOCK_OK);
    for (int i = 0; i < 3; i++) {
        if (i == _i)
            continue;
        CHECK_STATUS(outcome_wait(live.client, &outcomes[i]), REDLOCK_OK);
        redlock_lock_free(outcomes[i].lock);
    }
    ck_assert(live_wait_no_keys(TIME_LIMIT_MS));
}
END_TEST

/* The first of three waiters sends requests, and the others wait in the queue. One of them is
 * canceled; the others get the lock in their order. */
START_TEST(a_waiter_that_is_canceled_leaves_the_queue)
{
    static struct outcome canceled;
    const unsigned left[3][2] = {{1, 2}, {0, 2}, {0, 1}};
    redlock_opts_t opts = redlock_opts(LONG_TTL_MS);
    redlock_cancel_t *cancel = NULL;
    served.count = 0;
    canceled = (struct outcome)OUTCOME;
    opts.wait_ms = KEEP_WAITING;
    live_connect();
    set_foreign_key();
    ck_assert_int_eq(redlock_cancel_new(&cancel, live.client), REDLOCK_OK);
    for (int i = 0; i < 3; i++) {
        opts.cancel = i == _i ? cancel : NULL;
        ck_assert_int_eq(redlock_acquire_start(live.client, "busy", &opts,
                                               i == _i ? note_done : note_served,
                                               i == _i ? (void *)&canceled : (void *)(uintptr_t)i),
                         REDLOCK_OK);
    }
    ck_assert(WAIT_UNTIL(live_stats(live.client).queued == 2, TIME_LIMIT_MS));
    redlock_cancel_trigger(cancel);
    redlock_cancel_free(cancel);
    CHECK_STATUS(outcome_wait(live.client, &canceled), REDLOCK_ECANCELED);
    ck_assert_ptr_null(canceled.lock);
    ck_assert(WAIT_UNTIL(live_stats(live.client).queued == 1, TIME_LIMIT_MS));
    ck_assert_uint_eq(live_stats(live.client).waiting, 2);
    ck_assert_uint_eq(served_count(), 0);
    delete_foreign_key();
    ck_assert(WAIT_UNTIL(served_count() == 2, TIME_LIMIT_MS));
    for (unsigned i = 0; i < 2; i++)
        ck_assert_uint_eq(served.order[i], left[_i][i]);
    ck_assert(live_wait_no_keys(TIME_LIMIT_MS));
}
END_TEST

/* The report of a lock in the queue has the nodes' replies to the lock ahead of it. */
START_TEST(the_report_has_the_evidence_of_the_lock_ahead)
{
    static struct outcome ahead;
    struct outcome *outcome = fresh_outcome();
    ahead = (struct outcome)OUTCOME;
    live_connect();
    set_foreign_key();
    wait_for("busy", KEEP_WAITING, &ahead);
    ck_assert(WAIT_UNTIL(live_stats(live.client).attempts >= 1, TIME_LIMIT_MS));
    wait_for("busy", wait_scaled_ms(200), outcome);
    CHECK_STATUS(outcome_wait(live.client, outcome), REDLOCK_ECONTENDED);
    ck_assert_msg(strstr(outcome->text, "; for the lock ahead in the queue of this client: "), "%s",
                  outcome->text);
    ck_assert_uint_eq(outcome->info.attempts, 0);
    ck_assert_uint_eq(outcome->info.granted, 0);
    delete_foreign_key();
    check_granted(&ahead);
}
END_TEST

/* Returns the suite of all cases. The names are those of CK_RUN_CASE, which runs one group. */
static Suite *waiting_suite(void)
{
    Suite *suite = suite_create("waiting");
    live_add(suite, "release", a_release_wakes_a_waiter_of_another_client);
    live_add(suite, "foreign", a_foreign_delete_wakes_a_waiter);
    live_add(suite, "flushed", a_flush_wakes_a_waiter);
    live_add(suite, "off", without_notifications_a_waiter_is_not_woken);
    live_add(suite, "states", notify_states_are_reported);
    live_add(suite, "broken", a_waiter_survives_a_broken_notification_connection);
    live_add(suite, "dead", a_waiter_survives_the_death_of_the_notifying_server);
    live_add(suite, "restarted", a_restarted_server_notifies_again);
    live_add_each(suite, "rights", a_user_without_rights_polls, server_major() >= 7 ? 6 : 4);
    live_add(suite, "order", waiters_of_one_client_are_served_in_order);
    live_add(suite, "full", a_full_queue_refuses);
    live_add(suite, "ahead", the_report_has_the_evidence_of_the_lock_ahead);
    live_add_each(suite, "ends", a_waiter_that_times_out_leaves_the_queue, 3);
    live_add_each(suite, "canceled", a_waiter_that_is_canceled_leaves_the_queue, 3);
    return suite;
}

/* Starts the servers, runs all cases and stops the servers. Skips without a server program. */
int main(void)
{
    if (!cluster_available())
        return suite_skip(CLUSTER_MISSING);
    live_start_servers();
    const int status = suite_run_nofork(waiting_suite());
    live_stop_servers();
    return status;
}
