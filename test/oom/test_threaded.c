/* SPDX-License-Identifier: MIT
 * Memory runs out in a client with its own thread, in the calling thread as well as in that one:
 * every blocking call, each with its report. The cases are scenarios of rig.h: rig_sweep() runs
 * prepare(), act() and judge() once for each allocation of act(), which then fails, alone or with
 * all later ones. rig.hit is true if an allocation has failed. */
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "rig.h"

#define READY_MS  30 /* time to wait for the nodes without memory */

#define LEAVE_MS  1000 /* time limit of the other shutdown */
#define STEPS_MAX 16   /* more than act() makes calls */

static redlock_opts_t opts;    /* of the acquisitions */
static int results[STEPS_MAX]; /* of the blocking calls, in their order */
static unsigned steps;         /* number of results */
static int fd;                 /* descriptor of the lock; negative: an error */

/* Prepares the configuration of a threaded client. */
static void configure(void)
{
    opts = redlock_opts(RIG_TTL_MS);
    rig.threaded = true;
    rig_new_config(REDLOCK_MODE_THREADED);
}

/* Records the result of a call and returns it. Reads all of the report `*written` and frees it;
 * `written` NULL: the call has no report. */
static int note(int result, redlock_report_t **written)
{
    redlock_report_t *report = written != NULL ? *written : NULL;
    redlock_report_info_t info;
    redlock_node_report_t node;

    if (report != NULL) {
        if (redlock_report_get_info(report, &info, sizeof info) != REDLOCK_OK ||
            info.status != result || redlock_report_text(report)[0] == '\0')
            rig_die("a report that does not fit");
        for (size_t i = 0; i < info.nodes; i++)
            if (redlock_report_get_node(report, i, &node, sizeof node) != REDLOCK_OK ||
                node.text[0] == '\0')
                rig_die("a report without its nodes");
    }
    redlock_report_free(report);
    if (steps < STEPS_MAX)
        results[steps++] = result;
    return result;
}

/* The function that redlock_with() runs while it holds the lock. Returns the result of
 * redlock_lock_check(). */
static int body(redlock_lock_t *lock, void *userdata)
{
    (void)userdata;
    return redlock_lock_check(lock, 1);
}

/* Makes all calls on the held lock. */
static void use_lock(void)
{
    redlock_report_t *report;

    fd = redlock_lock_fd(rig.lock);
    note(redlock_extend(rig.lock, RIG_TTL_MS, &report), &report);
    note(redlock_verify(rig.lock, &report), &report);
    note(redlock_inspect(rig.client, "resource", &report), &report);
    note(redlock_release(rig.lock, &report), &report);
}

/* Makes all blocking calls, one after the other, and records their results. Ends early if there is
 * no client or it does not become ready. */
static void call_everything(void)
{
    redlock_report_t *report;
    int result = -1;

    steps = 0;
    if (note(redlock_new(&rig.client, rig.config), NULL) != REDLOCK_OK)
        return;
    int error;
    do {
        error = redlock_wait_ready(rig.client, READY_MS);
    } while (error == REDLOCK_ENOQUORUM && !rig_has_failed());
    if (note(error, NULL) != REDLOCK_OK)
        return;
    error = redlock_acquire(rig.client, "resource", &opts, &rig.lock, &report);
    if (note(error, &report) == REDLOCK_OK)
        use_lock();
    note(redlock_with(rig.client, "other", &opts, &result, &report, body, NULL), &report);
    note(redlock_break(rig.client, "third", &report), &report);
    note(redlock_release_token(rig.client, "third", "token", &report), &report);
    if (redlock_cancel_new(&rig.cancel, rig.client) != REDLOCK_OK)
        rig.cancel = NULL;
    redlock_cancel_trigger(rig.cancel);
}

/* Checks that each result is OK or an error that a lack of memory explains, and that all ten calls
 * were made if nothing failed. */
static void judge_everything(void)
{
    ck_assert_uint_gt(steps, 0);
    for (unsigned i = 0; i < steps; i++) {
        const int result = results[i];
        const bool memory = result == REDLOCK_ENOMEM || result == REDLOCK_ENOQUORUM ||
                            (i == 0 && result == REDLOCK_ESYS);
        const bool last = i + 1 == steps && result == REDLOCK_ELOST; /* release of a token that no
                                                                      * lock has */
        ck_assert_msg(result == REDLOCK_OK || last || (rig.hit && memory), "step %u: %s", i,
                      redlock_error_name(result));
    }
    ck_assert_msg(rig.hit || steps == 10, "only %u calls were made", steps);
    if (rig.lock != NULL)
        ck_assert_int_ge(fd, 0);
}

START_TEST(blocking_calls_without_memory)
{
    rig_sweep(&(struct scenario){.name = "threaded",
                                 .prepare = configure,
                                 .act = call_everything,
                                 .judge = judge_everything,
                                 .bare = true});
}
END_TEST

/* ---- freed with a lock that cannot be released any more: its key expires ---- */

/* Creates a client that holds a lock with a short TTL. */
static void hold(void)
{
    configure();
    ck_assert_int_eq(redlock_new(&rig.client, rig.config), REDLOCK_OK);
    opts = redlock_opts(wait_scaled_ms(300));
    opts.wait_ms = wait_scaled_ms(2000);
    ck_assert_int_eq(redlock_acquire(rig.client, "resource", &opts, &rig.lock, NULL), REDLOCK_OK);
}

/* Shuts the client down and frees it. */
static void shut_down_and_free(void)
{
    steps = 0;
    note(redlock_shutdown(rig.client, wait_scaled_ms(LEAVE_MS)), NULL);
    if (redlock_free(rig.client) != REDLOCK_OK)
        rig_die("free has failed");
    rig.client = NULL;
}

/* Checks that the lock is lost, and that the shutdown succeeds without failures. */
static void judge_leaving(void)
{
    ck_assert_int_eq(redlock_lock_check(rig.lock, 0), REDLOCK_ELOST);
    ck_assert_msg(rig.hit || results[0] == REDLOCK_OK, "shutdown: %s",
                  redlock_error_name(results[0]));
}

START_TEST(shutting_down_without_memory)
{
    rig_sweep(&(struct scenario){.name = "threaded, leaving",
                                 .prepare = hold,
                                 .act = shut_down_and_free,
                                 .judge = judge_leaving,
                                 .bare = true,
                                 .last = true});
}
END_TEST

static Suite *threaded_suite(void)
{
    Suite *suite = suite_create("oom_threaded");
    TCase *tcase = tcase_create("threaded");
    rig_add_fixtures(tcase);
    tcase_add_test(tcase, blocking_calls_without_memory);
    tcase_add_test(tcase, shutting_down_without_memory);
    suite_add_tcase(suite, tcase);
    return suite;
}

int main(void)
{
    return rig_main(threaded_suite());
}
