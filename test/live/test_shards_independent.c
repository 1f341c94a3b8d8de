/* SPDX-License-Identifier: MIT
 * Two shards in one client: each has a quorum of its own, and what is done to the client is done in
 * both. */
#include "fdcheck.h"
#include "live_events.h"
#include "suite.h"
#include "two_shards.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* Two of five may be missing in each; a set without a majority is nobody else's trouble. */
START_TEST(each_a_quorum_of_its_own)
{
    char east[64], west[64];
    redlock_lock_t *held, *lock;
    live.event_fn = note_event;
    live.event_userdata = &client_events;
    events_reset();
    connect_client();
    name_in(0, "quorum", 0, east);
    name_in(1, "quorum", 0, west);
    held = live_lock(west, LONG_TTL_MS);
    for (unsigned i = 0; i < 2; i++) {
        cluster_kill(live.cluster, i);
        cluster_kill(live.cluster, EACH + i);
    }
    for (unsigned i = 0; i < 2; i++)
        ck_assert(WAIT_UNTIL(!live_is_responsive(live.client, i) &&
                                 !live_is_responsive(live.client, EACH + i),
                             TIME_LIMIT_MS));
    lock = live_lock(east, LONG_TTL_MS);
    CHECK_STATUS(live_release(lock), REDLOCK_OK);
    CHECK_STATUS(redlock_wait_ready(live.client, wait_scaled_ms(TIME_LIMIT_MS)), REDLOCK_OK);
    cluster_kill(live.cluster, 2);
    ck_assert(WAIT_UNTIL(!live_is_responsive(live.client, 2), TIME_LIMIT_MS));
    CHECK_STATUS(live_acquire(east, LONG_TTL_MS, 0, &lock), REDLOCK_ENOQUORUM);
    ck_assert_str_eq(live_info().shard, SETS[0]);
    CHECK_STATUS(redlock_wait_ready(live.client, 50), REDLOCK_ENOQUORUM);
    CHECK_STATUS(live_extend(held, 0), REDLOCK_OK);
    CHECK_STATUS(live_release(held), REDLOCK_OK);
    ck_assert_uint_eq(set_stats(0).no_quorum, 1);
    ck_assert_uint_eq(set_stats(1).no_quorum, 0);
    for (unsigned i = 0; i < SERVERS; i++) {
        const char *name = live_node_stats(live.client, i).node;
        const bool killed = i < 3 || i == EACH || i == EACH + 1;
        ck_assert_msg(WAIT_UNTIL((count_events_of(&client_events, REDLOCK_EVENT_NODE_DOWN, name) >
                                  0) == killed,
                                 TIME_LIMIT_MS),
                      "%s: events of it", name);
    }
}
END_TEST

/* It ends when nothing is left to do in any of them: not in the set whose servers stand still. */
START_TEST(shutdown_waits_for_both)
{
    char name[64];
    const unsigned silent = (unsigned)_i;
    connect_client();
    redlock_lock_t *lock = live_lock(name_in(silent, "both-end", 0, name), LONG_TTL_MS);
    for (unsigned i = 0; i < EACH; i++)
        cluster_pause(live.cluster, silent * EACH + i);
    CHECK_STATUS(redlock_shutdown(live.client, 1), REDLOCK_ENOQUORUM);
    for (unsigned i = 0; i < EACH; i++)
        cluster_resume(live.cluster, silent * EACH + i);
    CHECK_STATUS(redlock_shutdown(live.client, wait_scaled_ms(TIME_LIMIT_MS)), REDLOCK_OK);
    redlock_lock_free(lock);
    ck_assert(WAIT_UNTIL(cluster_count_all_keys(live.cluster) == 0, TIME_LIMIT_MS));
}
END_TEST

/* The releases of what was seen are sent to where it was seen. */
START_TEST(broken)
{
    char name[64];
    connect_client();
    for (unsigned set = 0; set < 2; set++) {
        redlock_lock_t *lock = live_lock(name_in(set, "broken", 0, name), LONG_TTL_MS);
        ck_assert(WAIT_UNTIL(count_in(set, name) == EACH, TIME_LIMIT_MS));
        CHECK_STATUS(redlock_break(live.client, name, NULL), REDLOCK_OK);
        ck_assert(WAIT_UNTIL(count_in(set, name) == 0, TIME_LIMIT_MS));
        (void)live_release(lock);
    }
}
END_TEST

START_TEST(canceled)
{
    char name[64];
    redlock_cancel_t *cancel;
    redlock_lock_t *held[2];
    struct outcome outcomes[2] = {OUTCOME, OUTCOME};
    connect_client();
    ck_assert_int_eq(redlock_cancel_new(&cancel, live.client), REDLOCK_OK);
    for (unsigned set = 0; set < 2; set++) {
        redlock_opts_t opts = redlock_opts(LONG_TTL_MS);
        opts.wait_ms = REDLOCK_WAIT_FOREVER;
        opts.cancel = cancel;
        held[set] = live_lock(name_in(set, "canceled", 0, name), LONG_TTL_MS);
        ck_assert_int_eq(redlock_acquire_start(live.client, name, &opts, note_done, &outcomes[set]),
                         REDLOCK_OK);
    }
    redlock_cancel_trigger(cancel);
    for (unsigned set = 0; set < 2; set++) {
        CHECK_STATUS(outcome_wait(live.client, &outcomes[set]), REDLOCK_ECANCELED);
        CHECK_STATUS(live_release(held[set]), REDLOCK_OK);
    }
    redlock_cancel_free(cancel);
}
END_TEST

START_TEST(forked)
{
    char name[64];
    redlock_lock_t *held[2];
    connect_client();
    for (unsigned set = 0; set < 2; set++)
        held[set] = live_lock(name_in(set, "forked", 0, name), LONG_TTL_MS);
    const pid_t child = fork();
    if (child == 0) {
        const bool dead = redlock_extend(held[1], 0, NULL) == REDLOCK_EFORKED;
        const size_t before = fdcheck_count();
        redlock_lock_free(held[0]);
        redlock_lock_free(held[1]);
        const bool freed = redlock_free(live.client) == REDLOCK_OK;
        _exit(dead && freed && fdcheck_count() + SERVERS <= before ? 0 : 1);
    }
    int status = -1;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_eq(status, 0);
    for (unsigned set = 0; set < 2; set++) {
        CHECK_STATUS(live_extend(held[set], 0), REDLOCK_OK);
        CHECK_STATUS(live_release(held[set]), REDLOCK_OK);
    }
}
END_TEST

static atomic_uint shared_lines;

static void note_line(int level, const char *message, void *userdata)
{
    (void)userdata;
    if (level == REDLOCK_LOG_WARN && strstr(message, "localhost:") != NULL &&
        strstr(message, "same server as ") != NULL)
        atomic_fetch_add(&shared_lines, 1);
}

/* Under two addresses, so nobody could know before they were connected. It costs no lock. */
START_TEST(one_server_in_both)
{
    char text[SERVERS * 256] = "", name[64];
    add_set(text, sizeof text, SETS[0], 0);
    const size_t at = strlen(text);
    snprintf(text + at, sizeof text - at, "%s=redis://localhost:%d?fresh=1,%s,%s", SETS[1],
             cluster_port(live.cluster, 0), cluster_url(live.cluster, EACH),
             cluster_url(live.cluster, EACH + 1));
    redlock_config_t *config = live_config_of(text);
    atomic_store(&shared_lines, 0);
    ck_assert_int_eq(redlock_config_set_log(config, REDLOCK_LOG_WARN, note_line, NULL), REDLOCK_OK);
    live.client = live_open(config);
    ck_assert(WAIT_UNTIL(atomic_load(&shared_lines) > 0, TIME_LIMIT_MS));
    for (unsigned set = 0; set < 2; set++)
        CHECK_STATUS(live_release(live_lock(name_in(set, "both", 0, name), LONG_TTL_MS)),
                     REDLOCK_OK);
}
END_TEST

/* One set can never be ready, and says so at once, while it is not known yet what the other can. */
START_TEST(told_of_the_first_that_cannot_be)
{
    char text[256];
    const int port = cluster_port(live.cluster, 0);
    snprintf(text, sizeof text,
             "east=redis://127.0.0.1:1;"
             "west=redis://127.0.0.1:%d?fresh=1,redis://localhost:%d?fresh=1",
             port, port);
    redlock_config_t *config = live_config_of(text);
    ck_assert_int_eq(redlock_new(&live.client, config), REDLOCK_OK);
    redlock_config_free(config);
    CHECK_STATUS(redlock_wait_ready(live.client, wait_scaled_ms(TIME_LIMIT_MS)),
                 REDLOCK_EDUPLICATE);
}
END_TEST

static Suite *sets_suite(void)
{
    Suite *suite = suite_create("live_sets_independent");
    live_add(suite, "quorums", each_a_quorum_of_its_own);
    live_add_each(suite, "shutdown", shutdown_waits_for_both, 2);
    live_add(suite, "broken", broken);
    live_add(suite, "canceled", canceled);
    live_add(suite, "forked", forked);
    live_add(suite, "told", told_of_the_first_that_cannot_be);
    live_add(suite, "shared", one_server_in_both);
    return suite;
}

int main(void)
{
    if (!cluster_available())
        return suite_skip(CLUSTER_MISSING);
    start_servers();
    const int status = suite_run_nofork(sets_suite());
    live_stop_servers();
    return status;
}
