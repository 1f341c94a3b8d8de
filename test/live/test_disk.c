/* SPDX-License-Identifier: MIT
 * Servers that are listed with waitaof=1, whatever their version: one that does not know WAITAOF,
 * answers it too early or keeps no file does not vote; one that does both, and syncs, grants locks
 * that are on its disk. */
#include "live.h"
#include "suite.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *list(const char *login)
{
    static char urls[1024];
    size_t len = 0;

    for (unsigned i = 0; i < NODES; i++)
        len += (size_t)snprintf(urls + len, sizeof urls - len,
                                "%sredis://%s127.0.0.1:%d?waitaof=1&fresh=1", i == 0 ? "" : ",",
                                login, cluster_port(live.cluster, i));
    return urls;
}

static void on_all(const char *command)
{
    for (unsigned i = 0; i < NODES; i++)
        free(cluster_command(live.cluster, i, command));
}

static void as_before(void)
{
    on_all("CONFIG SET appendonly no");
    on_all("ACL DELUSER quiet");
}

static bool all_have_cause(int cause)
{
    for (unsigned i = 0; i < NODES; i++) {
        if (live_node_stats(live.client, i).cause != cause)
            return false;
    }
    return true;
}

static void connect_to(const char *urls)
{
    redlock_config_t *config = live_config_of(urls);

    ck_assert_int_eq(redlock_new(&live.client, config), REDLOCK_OK);
    redlock_config_free(config);
}

START_TEST(without_a_file_there_is_no_vote)
{
    redlock_lock_t *lock = NULL;

    connect_to(list(""));
    ck_assert(WAIT_UNTIL(all_have_cause(REDLOCK_CAUSE_NO_AOF), PATIENCE_MS));
    ck_assert_uint_ne(live_node_stats(live.client, 0).facts & REDLOCK_FACT_WAITAOF, 0);
    CHECK_STATUS(live_acquire("disk", LONG_TTL_MS, 0, &lock), REDLOCK_EREFUSED);
    const char *why = live_node(0).text;
    bool fit = strstr(why, "keeps no append-only file") != NULL;
    ck_assert_msg(fit || strstr(why, "does not know WAITAOF") != NULL ||
                      strstr(why, "answers WAITAOF too early") != NULL,
                  "%s", live_text());
    ck_assert_int_eq(redlock_wait_ready(live.client, 1), REDLOCK_EREFUSED);
    live.heal = as_before;
    on_all("CONFIG SET appendonly yes");
    if (!fit) { /* a file is not enough; it was looked at again by then */
        ck_assert(WAIT_UNTIL((live_node_stats(live.client, 0).facts & REDLOCK_FACT_AOF) != 0,
                             PATIENCE_MS));
        ck_assert(all_have_cause(REDLOCK_CAUSE_NO_AOF));
        return;
    }
    ck_assert(WAIT_UNTIL(live_voters(live.client) == NODES, PATIENCE_MS));
    CHECK_STATUS(live_acquire("disk", LONG_TTL_MS, wait_scaled_ms(PATIENCE_MS), &lock), REDLOCK_OK);
    CHECK_STATUS(live_extend(lock, LONG_TTL_MS), REDLOCK_OK);
    CHECK_STATUS(live_release(lock), REDLOCK_OK);
    ck_assert_uint_gt(live_calls(0, "waitaof"), 0);
}
END_TEST

/* One that does not say who it is: what it answers decides, and what it granted is taken back. */
START_TEST(an_error_is_no_vote)
{
    redlock_lock_t *lock = NULL;

    live.heal = as_before;
    on_all("ACL SETUSER quiet reset on >pw ~* +@all -info");
    live.admission = REDLOCK_ADMISSION_LENIENT;
    connect_to(list("quiet:pw@"));
    ck_assert(WAIT_UNTIL(live_voters(live.client) == NODES, PATIENCE_MS));
    CHECK_STATUS(live_acquire("disk", LONG_TTL_MS, 0, &lock), REDLOCK_ENOQUORUM);
    unsigned failed = 0;
    for (unsigned i = 0; i < NODES; i++) {
        const redlock_node_report_t node = live_node(i);
        failed += node.vote == REDLOCK_VOTE_FAILED && node.cause == REDLOCK_CAUSE_NO_AOF &&
                  strstr(node.text, "WAITAOF") != NULL;
    }
    ck_assert_msg(failed >= QUORUM, "%s", live_text());
    ck_assert(live_wait_no_keys(PATIENCE_MS));
    ck_assert(
        WAIT_UNTIL(live_stats(live.client).undone > 0, PATIENCE_MS)); /* and we have heard it */
}
END_TEST

static Suite *disk_suite(void)
{
    Suite *suite = suite_create("disk");
    live_add(suite, "bar", without_a_file_there_is_no_vote);
    live_add(suite, "error", an_error_is_no_vote);
    return suite;
}

int main(void)
{
    if (!cluster_available())
        return suite_skip(CLUSTER_MISSING);
    live_start_servers();
    const int status = suite_run_nofork(disk_suite());
    live_stop_servers();
    return status;
}
