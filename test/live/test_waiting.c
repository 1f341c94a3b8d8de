/* SPDX-License-Identifier: MIT
 * Waiting for other holders on real servers: a release wakes the waiter. The clients here would
 * poll after a minute only, so that each grant shows a notification. And the queue of one client.
 */
#include "live_events.h"
#include "suite.h"

#include <string.h>

#define RETRY_MS     60000u /* later than the end of any case */
#define QUEUE_MAX    3u
#define USER_RIGHTS  "resetkeys ~* -@all +set +get +del +pttl +pexpire +evalsha +eval +info +time"
#define WAKE_RIGHTS  "resetchannels &__redis__:invalidate +client +subscribe"
#define KEEP_WAITING REDLOCK_WAIT_FOREVER

/* Outlives a case that fails. */
static struct outcome *fresh_outcome(void)
{
    static struct outcome outcome;
    outcome = (struct outcome)OUTCOME;
    return &outcome;
}

static redlock_config_t *patient_config(bool wakeups)
{
    redlock_config_t *config = live_config();

    ck_assert_int_eq(redlock_config_set_retry_ms(config, RETRY_MS, RETRY_MS), REDLOCK_OK);
    ck_assert_int_eq(redlock_config_set_notifications(config, wakeups), REDLOCK_OK);
    return config;
}

static void connect_patient(void)
{
    live.client = live_open(patient_config(true));
}

static void take_by_another(void)
{
    cluster_command_all(live.cluster, "SET busy another PX 600000");
}

static void let_go(void)
{
    cluster_command_all(live.cluster, "DEL busy");
}

static void wait_for(const char *resource, uint64_t wait_ms, struct outcome *outcome)
{
    redlock_opts_t opts = redlock_opts(LONG_TTL_MS);

    opts.wait_ms = wait_ms;
    ck_assert_int_eq(redlock_acquire_start(live.client, resource, &opts, note_done, outcome),
                     REDLOCK_OK);
}

/* The node that tells, or NODES. */
static unsigned teller(void)
{
    for (unsigned i = 0; i < NODES; i++) {
        if (live_node_stats(live.client, i).notify_state == REDLOCK_NOTIFY_ON)
            return i;
    }
    return NODES;
}

/* Somebody was asked about the key, after the second connection was there. */
static bool is_watching(void)
{
    unsigned node = teller();

    return node < NODES && live_calls(node, "pttl") > 0 &&
           live_calls(node, "client|tracking") + live_calls(node, "client") > 0;
}

static void start_waiting(struct outcome *outcome)
{
    for (unsigned i = 0; i < NODES; i++)
        cluster_replies(live.cluster, i, "OK", "CONFIG RESETSTAT");
    wait_for("busy", KEEP_WAITING, outcome);
    ck_assert(WAIT_UNTIL(is_watching(), TIME_LIMIT_MS));
    ck_assert_uint_eq(outcome_calls(outcome), 0);
}

static void check_had(struct outcome *outcome)
{
    CHECK_STATUS(outcome_wait(live.client, outcome), REDLOCK_OK);
    redlock_lock_free(outcome->lock);
    ck_assert(live_wait_no_keys(TIME_LIMIT_MS));
}

START_TEST(a_release_wakes_who_waits_elsewhere)
{
    struct outcome *outcome = fresh_outcome();
    connect_patient();
    redlock_t *waiter = live.client, *holder = live_open(live_config());
    live.client = holder;
    redlock_lock_t *lock = live_lock("busy", LONG_TTL_MS);
    live.client = waiter;
    start_waiting(outcome);
    const uint64_t wakeups = live_stats(waiter).wakeups;
    live.client = holder;
    CHECK_STATUS(live_release(lock), REDLOCK_OK);
    live.client = waiter;
    check_had(outcome);
    ck_assert_uint_gt(live_stats(waiter).wakeups, wakeups);
    ck_assert_uint_gt(live_node_stats(waiter, teller()).notifications, 0);
    ck_assert_int_eq(redlock_free(holder), REDLOCK_OK);
}
END_TEST

START_TEST(clients_of_any_make_wake_us)
{
    struct outcome *outcome = fresh_outcome();
    connect_patient();
    take_by_another();
    start_waiting(outcome);
    let_go();
    check_had(outcome);
}
END_TEST

START_TEST(so_does_an_empty_server)
{
    struct outcome *outcome = fresh_outcome();
    connect_patient();
    take_by_another();
    start_waiting(outcome);
    cluster_command_all(live.cluster, "FLUSHALL");
    check_had(outcome);
}
END_TEST

/* Nobody tells: when others have come and gone, it still sleeps. */
START_TEST(without_wakeups_it_sleeps)
{
    struct outcome *outcome = fresh_outcome();
    live.client = live_open(patient_config(false));
    take_by_another();
    wait_for("busy", KEEP_WAITING, outcome);
    ck_assert(WAIT_UNTIL(live_stats(live.client).attempts == 1, TIME_LIMIT_MS));
    let_go();
    redlock_t *waiter = live.client;
    live.client = live_open(live_config());
    for (unsigned i = 0; i < 20; i++) {
        redlock_lock_t *lock = live_lock("busy", LONG_TTL_MS);
        CHECK_STATUS(live_release(lock), REDLOCK_OK);
    }
    live_disconnect();
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

START_TEST(states_are_shown)
{
    struct outcome *outcome = fresh_outcome();
    connect_patient();
    live_check_works();
    for (unsigned i = 0; i < NODES; i++)
        ck_assert_int_eq(live_node_stats(live.client, i).notify_state, REDLOCK_NOTIFY_IDLE);
    take_by_another();
    start_waiting(outcome);
    const redlock_node_stats_t stats = live_node_stats(live.client, teller());
    ck_assert_int_eq(stats.notify_state, REDLOCK_NOTIFY_ON);
    ck_assert_str_eq(stats.notify_text, "");
    let_go();
    check_had(outcome);
}
END_TEST

/* It comes back, and what has changed meanwhile is asked for. */
START_TEST(the_second_connection_breaks)
{
    struct outcome *outcome = fresh_outcome();
    connect_patient();
    take_by_another();
    start_waiting(outcome);
    const unsigned node = teller();
    ck_assert(cluster_replies(live.cluster, node, "1", "CLIENT KILL TYPE pubsub"));
    ck_assert(WAIT_UNTIL(live_node_stats(live.client, node).notify_state != REDLOCK_NOTIFY_ON ||
                             live_calls(node, "subscribe") >= 2,
                         TIME_LIMIT_MS));
    let_go();
    check_had(outcome);
}
END_TEST

static void wake_the_dead(void)
{
    live_restart_dead();
}

/* The node that tells is gone: another one does, or the timer asks. */
START_TEST(the_server_that_tells_dies)
{
    struct outcome *outcome = fresh_outcome();
    live.durable = true;
    live.heal = wake_the_dead;
    redlock_config_t *config = live_config();
    ck_assert_int_eq(redlock_config_set_notifications(config, true), REDLOCK_OK);
    live.client = live_open(config);
    take_by_another();
    start_waiting(outcome);
    const unsigned node = teller();
    cluster_kill(live.cluster, node);
    ck_assert(WAIT_UNTIL(!live_is_responsive(live.client, node), TIME_LIMIT_MS));
    let_go();
    CHECK_STATUS(outcome_wait(live.client, outcome), REDLOCK_OK);
    cluster_restart(live.cluster, node, false);
    redlock_lock_free(outcome->lock);
    ck_assert(live_wait_no_keys(TIME_LIMIT_MS));
}
END_TEST

static bool tells_of_it(unsigned node)
{
    return live_node_stats(live.client, node).notify_state == REDLOCK_NOTIFY_ON &&
           live_calls(node, "pttl") > 0;
}

/* The server that tells is started anew, without what it knew of us: it is asked again. */
START_TEST(a_restarted_server_tells_again)
{
    struct outcome *outcome = fresh_outcome();
    live.durable = true;
    live.heal = wake_the_dead;
    connect_patient();
    take_by_another();
    start_waiting(outcome);
    const unsigned node = teller();
    cluster_kill(live.cluster, node);
    ck_assert(WAIT_UNTIL(!live_is_responsive(live.client, node), TIME_LIMIT_MS));
    ck_assert_int_eq(live_node_stats(live.client, node).notify_state, REDLOCK_NOTIFY_IDLE);
    cluster_restart(live.cluster, node, false);
    ck_assert(cluster_replies(live.cluster, node, "OK", "SET busy another PX 600000"));
    ck_assert(WAIT_UNTIL(tells_of_it(node), TIME_LIMIT_MS));
    ck_assert_uint_eq(outcome_calls(outcome), 0);
    const uint64_t told = live_node_stats(live.client, node).notifications;
    ck_assert(cluster_replies(live.cluster, node, "1", "DEL busy"));
    ck_assert(WAIT_UNTIL(live_node_stats(live.client, node).notifications > told, TIME_LIMIT_MS));
    let_go();
    check_had(outcome);
}
END_TEST

static unsigned refusals(void)
{
    unsigned count = 0;
    for (unsigned i = 0; i < NODES; i++)
        count += live_node_stats(live.client, i).notify_state == REDLOCK_NOTIFY_REFUSED;
    return count;
}

/* Without the rights locks work, and waiting is asking again. */
START_TEST(a_user_who_may_not_listen)
{
    static const struct {
        const char *rights, *text;
    } table[] = {
        {USER_RIGHTS " resetchannels", "CLIENT"},
        {USER_RIGHTS " resetchannels +client", "SUBSCRIBE"},
        {USER_RIGHTS " resetchannels +client +subscribe", "channel"},
        {USER_RIGHTS " " WAKE_RIGHTS " -client|tracking", "tracking"},
        {USER_RIGHTS " " WAKE_RIGHTS " -client|caching", "caching"},
        {USER_RIGHTS " " WAKE_RIGHTS, NULL},
    };
    struct outcome *outcome = fresh_outcome();
    char command[400];

    snprintf(command, sizeof command, "ACL SETUSER waiter reset on >pw %s", table[_i].rights);
    cluster_command_all(live.cluster, command);
    redlock_config_t *config = live_config();
    ck_assert_int_eq(redlock_config_set_auth(config, "waiter", "pw"), REDLOCK_OK);
    live.client = live_open(config);
    take_by_another();
    wait_for("busy", KEEP_WAITING, outcome);
    if (table[_i].text == NULL) {
        ck_assert(WAIT_UNTIL(teller() < NODES, TIME_LIMIT_MS));
    } else {
        ck_assert(
            WAIT_UNTIL(live_stats(live.client).attempts >= 4 && refusals() > 0, TIME_LIMIT_MS));
        for (unsigned i = 0; i < NODES; i++) {
            const redlock_node_stats_t stats = live_node_stats(live.client, i);
            ck_assert_msg(stats.notify_state != REDLOCK_NOTIFY_REFUSED ||
                              strcasestr(stats.notify_text, table[_i].text) != NULL,
                          "%s", stats.notify_text);
        }
        ck_assert_uint_eq(teller(), NODES);
    }
    let_go();
    check_had(outcome);
    live_disconnect();
    cluster_command_all(live.cluster, "ACL DELUSER waiter");
}
END_TEST

/* ---- one client ---- */

struct served {
    pthread_mutex_t mutex;
    unsigned count, order[10];
};
static struct served served = {.mutex = PTHREAD_MUTEX_INITIALIZER};

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

static unsigned served_count(void)
{
    pthread_mutex_lock(&served.mutex);
    unsigned count = served.count;
    pthread_mutex_unlock(&served.mutex);
    return count;
}

/* No matter how often another client comes between. */
START_TEST(first_come_first_served)
{
    redlock_opts_t opts = redlock_opts(LONG_TTL_MS);
    served.count = 0;
    opts.wait_ms = KEEP_WAITING;
    live_connect();
    take_by_another();
    for (uintptr_t i = 0; i < 10; i++)
        ck_assert_int_eq(redlock_acquire_start(live.client, "busy", &opts, note_served, (void *)i),
                         REDLOCK_OK);
    ck_assert(WAIT_UNTIL(live_stats(live.client).queued == 9, TIME_LIMIT_MS));
    ck_assert_uint_eq(live_stats(live.client).waiting, 10);
    let_go();
    ck_assert(WAIT_UNTIL(served_count() == 10, TIME_LIMIT_MS));
    for (unsigned i = 0; i < 10; i++)
        ck_assert_uint_eq(served.order[i], i);
    ck_assert_uint_eq(live_stats(live.client).queued, 0);
    ck_assert(live_wait_no_keys(TIME_LIMIT_MS));
}
END_TEST

START_TEST(the_queue_is_full)
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
    CHECK_STATUS(live_acquire("busy", LONG_TTL_MS, 0, &lock), REDLOCK_ECONTENDED); /* asks */
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

/* One of three that wait ends; the others get the lock in their order. */
START_TEST(the_end_of_one_at_any_place)
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

/* The first one asks the nodes, the others wait behind it. One of them is canceled; the others get
 * the lock in their order. */
START_TEST(canceled_at_any_place)
{
    static struct outcome canceled;
    const unsigned left[3][2] = {{1, 2}, {0, 2}, {0, 1}};
    redlock_opts_t opts = redlock_opts(LONG_TTL_MS);
    redlock_cancel_t *cancel = NULL;
    served.count = 0;
    canceled = (struct outcome)OUTCOME;
    opts.wait_ms = KEEP_WAITING;
    live_connect();
    take_by_another();
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
    let_go();
    ck_assert(WAIT_UNTIL(served_count() == 2, TIME_LIMIT_MS));
    for (unsigned i = 0; i < 2; i++)
        ck_assert_uint_eq(served.order[i], left[_i][i]);
    ck_assert(live_wait_no_keys(TIME_LIMIT_MS));
}
END_TEST

/* Of the lock ahead it is known what the nodes said to it. */
START_TEST(evidence_of_the_lock_ahead)
{
    static struct outcome ahead;
    struct outcome *outcome = fresh_outcome();
    ahead = (struct outcome)OUTCOME;
    live_connect();
    take_by_another();
    wait_for("busy", KEEP_WAITING, &ahead);
    ck_assert(WAIT_UNTIL(live_stats(live.client).attempts >= 1, TIME_LIMIT_MS));
    wait_for("busy", wait_scaled_ms(200), outcome);
    CHECK_STATUS(outcome_wait(live.client, outcome), REDLOCK_ECONTENDED);
    ck_assert_msg(strstr(outcome->text, "; for the lock ahead in the queue of this client: "), "%s",
                  outcome->text);
    ck_assert_uint_eq(outcome->info.attempts, 0);
    ck_assert_uint_eq(outcome->info.granted, 0);
    let_go();
    check_had(&ahead);
}
END_TEST

static Suite *waiting_suite(void)
{
    Suite *suite = suite_create("waiting");
    live_add(suite, "release", a_release_wakes_who_waits_elsewhere);
    live_add(suite, "foreign", clients_of_any_make_wake_us);
    live_add(suite, "flushed", so_does_an_empty_server);
    live_add(suite, "off", without_wakeups_it_sleeps);
    live_add(suite, "states", states_are_shown);
    live_add(suite, "broken", the_second_connection_breaks);
    live_add(suite, "dead", the_server_that_tells_dies);
    live_add(suite, "restarted", a_restarted_server_tells_again);
    live_add_each(suite, "rights", a_user_who_may_not_listen, 6);
    live_add(suite, "order", first_come_first_served);
    live_add(suite, "full", the_queue_is_full);
    live_add(suite, "ahead", evidence_of_the_lock_ahead);
    live_add_each(suite, "ends", the_end_of_one_at_any_place, 3);
    live_add_each(suite, "canceled", canceled_at_any_place, 3);
    return suite;
}

int main(void)
{
    if (!cluster_available())
        return suite_skip(CLUSTER_MISSING);
    live_start_servers();
    const int status = suite_run_nofork(waiting_suite());
    live_stop_servers();
    return status;
}
