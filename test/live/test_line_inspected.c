/* SPDX-License-Identifier: MIT
 * Who waits, as the report of an inspection says it: whether it is known, and for the permits of a
 * semaphore.
 *
 * Uses live.h: five real servers, nodes 0 to 4, that run as long as the program, and `live`, the
 * settings and the client of the running case. After each case all servers are made healthy, and a
 * key or descriptor that is left fails the case. live_open(live_config()) returns a client.
 * WAIT_UNTIL(condition, ms) polls and returns false after the deadline. CHECK_STATUS() compares two
 * REDLOCK_* codes. LONG_TTL_MS is a TTL that no case reaches. From live_events.h: note_done()
 * stores the result of an asynchronous call in a struct outcome, and outcome_wait() waits for it
 * and returns its status. */
#include "live_events.h"
#include "suite.h"

#include <stdio.h>
#include <string.h>

#define SEMAPHORES 8 /* so many that they prefer different nodes */

/* Inspects the resource. Returns the outcome, and copies the label of the waiter in front to
 * `owner`; "": nobody waits. */
static redlock_report_info_t inspect(const char *resource, char owner[64])
{
    redlock_report_info_t info;
    redlock_waiter_t waiter = {.owner = ""};
    redlock_report_t *report = NULL;

    CHECK_STATUS(redlock_inspect(live.client, resource, &report), REDLOCK_OK);
    ck_assert_int_eq(redlock_report_get_info(report, &info, sizeof info), REDLOCK_OK);
    if (info.line_length > 0)
        CHECK_STATUS(redlock_report_get_waiter(report, 0, &waiter, sizeof waiter), REDLOCK_OK);
    snprintf(owner, 64, "%s", waiter.owner);
    redlock_report_free(report);
    return info;
}

/* Starts to wait for the only permit of a semaphore, which a foreign client holds. */
static void start_waiting(const char *name, struct outcome *outcome)
{
    redlock_opts_t opts = redlock_opts(LONG_TTL_MS);
    char command[64];

    *outcome = (struct outcome)OUTCOME;
    opts.wait_ms = REDLOCK_WAIT_FOREVER;
    opts.kind = REDLOCK_KIND_PERMIT;
    opts.permits = 1;
    snprintf(command, sizeof command, "SET %s{#0} foreign PX 600000", name);
    cluster_command_all(live.cluster, command);
    CHECK_STATUS(redlock_acquire_start(live.client, name, &opts, note_done, outcome), REDLOCK_OK);
}

/* Ends the wait, and deletes what the case has left of the semaphore. */
static void end_waiting(const char *name, struct outcome *outcome)
{
    char command[64];

    snprintf(command, sizeof command, "DEL %s{#0}", name);
    cluster_command_all(live.cluster, command);
    CHECK_STATUS(outcome_wait(live.client, outcome), REDLOCK_OK);
    CHECK_STATUS(live_release(outcome->lock), REDLOCK_OK);
    snprintf(command, sizeof command, "DEL %s{#}{#q}", name);
    cluster_command_all(live.cluster, command);
}

/* Lets a waiter join the line of the semaphore, sets another line on all other nodes, and inspects
 * the first slot. Returns whether the waiter is shown: whether it is in the line of the node that
 * is read first. */
static bool waiter_is_shown(const char *name)
{
    static struct outcome outcome;
    char key[64], slot[64], owner[64];

    snprintf(key, sizeof key, "%s{#}{#q}", name);
    start_waiting(name, &outcome);
    ck_assert(WAIT_UNTIL(live_nodes_with(key) == 1, TIME_LIMIT_MS));
    for (unsigned node = 0; node < NODES; node++)
        if (cluster_integer(live.cluster, node, "EXISTS %s", key) == 0)
            live_set_line(node, key, "other");
    CHECK_STATUS(redlock_slot_name(slot, sizeof slot, name, 0), REDLOCK_OK);
    ck_assert_uint_ge(inspect(slot, owner).line_length, 1);
    const bool shown = strcmp(owner, "real") == 0;
    CHECK_STATUS(redlock_slot_name(slot, sizeof slot, name, 1), REDLOCK_OK);
    ck_assert_uint_eq(inspect(slot, owner).line_length, 0);
    end_waiting(name, &outcome);
    ck_assert(live_wait_no_keys(TIME_LIMIT_MS));
    return shown;
}

/* The first slot has the waiters of the semaphore. Of several lines, that of the node is shown
 * which the waiters of the semaphore prefer. A waiter joins the line of another node if that one is
 * slow at the moment, so each semaphore may take several tries; all tries prefer the same node. */
START_TEST(the_first_slot_has_the_line_of_the_semaphore)
{
    char name[32];
    redlock_config_t *config = live_config();

    ck_assert_int_eq(redlock_config_set_owner(config, "real"), REDLOCK_OK);
    live.client = live_open(config);
    for (unsigned i = 0; i < SEMAPHORES; i++) {
        snprintf(name, sizeof name, "pool%u", i);
        ck_assert_msg(WAIT_UNTIL(waiter_is_shown(name), TIME_LIMIT_MS), "%s", name);
    }
}
END_TEST

/* A client without lines does not read them, so its report does not say that nobody waits. */
START_TEST(without_lines_nothing_is_known)
{
    static const char *const keys[] = {"job{#q}", "pool{#}{#q}"};
    static const char *const names[] = {"job", "pool{#0}"};
    char owner[64];

    for (size_t i = 0; i < 2; i++)
        for (unsigned node = 0; node < NODES; node++)
            live_set_line(node, keys[i], "other");
    live.client = live_open(live_config());
    for (size_t i = 0; i < 2; i++) {
        const redlock_report_info_t info = inspect(names[i], owner);
        ck_assert_uint_ge(info.line_servers, QUORUM);
        ck_assert_uint_eq(info.line_length, 1);
        ck_assert_str_eq(owner, "other");
    }
    live_disconnect();

    redlock_config_t *config = live_config();
    ck_assert_int_eq(redlock_config_set_line(config, false), REDLOCK_OK);
    live.client = live_open(config);
    for (size_t i = 0; i < 2; i++) {
        const redlock_report_info_t info = inspect(names[i], owner);
        ck_assert_uint_eq(info.line_servers, 0);
        ck_assert_uint_eq(info.line_length, 0);
    }
    cluster_command_all(live.cluster, "DEL job{#q} pool{#}{#q}");
}
END_TEST

/* Runs all cases. Skips without a server program. */
int main(void)
{
    if (!cluster_available())
        return suite_skip(CLUSTER_MISSING);
    Suite *suite = suite_create("live_line_inspected");
    live_add(suite, "permits", the_first_slot_has_the_line_of_the_semaphore);
    live_add(suite, "off", without_lines_nothing_is_known);
    live_start_servers();
    const int status = suite_run_nofork(suite);
    live_stop_servers();
    return status;
}
