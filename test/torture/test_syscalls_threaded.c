/* SPDX-License-Identifier: MIT
 * System calls fail in clients with a thread of their own, in the calling thread as well as in that
 * one: blocking calls of a threaded client, and a hybrid client whose callbacks run here. */
#include <string.h>

#include "call_fail.h"
#include "rig.h"

#define WAIT_MS  3000 /* wait budget of acquisitions */
#define LEAVE_MS 1000 /* time limit of the shutdown */
#define STEPS    5    /* number of blocking calls in call_and_wait() */

static redlock_opts_t opts; /* of all acquisitions */
static int results[STEPS];  /* of the blocking calls, in their order */
static unsigned steps;      /* number of results */

/* Prepares the configuration of a threaded client. */
static void configure(void)
{
    opts = redlock_opts(RIG_TTL_MS);
    rig.threaded = true;
    rig_new_config(REDLOCK_MODE_THREADED);
}

/* Records the result of a call and returns it. */
static int note(int result)
{
    if (steps < STEPS)
        results[steps++] = result;
    return result;
}

/* The function that redlock_with() runs while it holds the lock. Returns whether the lock is held,
 * as redlock_lock_check() says it. */
static int body(redlock_lock_t *lock, void *userdata)
{
    (void)userdata;
    return redlock_lock_check(lock, 1);
}

/* Creates the client, acquires and releases a lock, runs body() under a lock, and inspects. Ends
 * early if the client or the first lock is refused. */
static void call_and_wait(void)
{
    int result = -1;

    steps = 0;
    if (note(redlock_new(&rig.client, rig.config)) != REDLOCK_OK)
        return;
    opts.wait_ms = rig.starve ? 0 : wait_scaled_ms(WAIT_MS);
    if (note(redlock_acquire(rig.client, "resource", &opts, &rig.lock, NULL)) != REDLOCK_OK)
        return;
    note(redlock_release(rig.lock, NULL));
    note(redlock_with(rig.client, "other", &opts, &result, NULL, body, NULL));
    note(redlock_inspect(rig.client, "resource", NULL));
}

/* Checks the results: the client may be missing only if one of the resources that exist once per
 * client was refused. */
static void judge_blocking(void)
{
    const bool must_succeed =
        !rig.hit || rig.fault->harmless || (!rig.starve && rig.client != NULL);

    ck_assert_uint_gt(steps, 0);
    ck_assert_msg(!must_succeed || steps == STEPS, "only %u calls were made", steps);
    for (unsigned i = 0; i < steps; i++) {
        const int result = results[i];
        const bool known = result == REDLOCK_ENOQUORUM || result == REDLOCK_ETOOSLOW ||
                           (i == 0 && result == REDLOCK_ESYS);
        ck_assert_msg(result == REDLOCK_OK || (!must_succeed && known), "step %u: %s", i,
                      redlock_error_name(result));
    }
}

START_TEST(failing_calls_in_a_threaded_client)
{
    rig_sweep_calls(&(struct scenario){.name = "threaded",
                                       .prepare = configure,
                                       .act = call_and_wait,
                                       .judge = judge_blocking,
                                       .bare = true});
}
END_TEST

/* ---- hybrid: its own thread for the network, callbacks here ---- */

/* Prepares the configuration of a hybrid client. */
static void configure_hybrid(void)
{
    opts = redlock_opts(RIG_TTL_MS);
    rig_new_config(REDLOCK_MODE_HYBRID);
}

/* Connects, acquires and releases a lock, with callbacks on this thread. */
static void start_and_process(void)
{
    opts.wait_ms = rig.starve ? 0 : wait_scaled_ms(WAIT_MS);
    if (!rig_take(&opts))
        return;
    rig_release(2, rig.lock);
    rig_finish();
}

/* Checks the client, the lock and the status of each call. */
static void judge_hybrid(void)
{
    if (rig.client == NULL) {
        ck_assert(rig.hit && !rig.fault->harmless);
        ck_assert_int_eq(rig.call[0].started, REDLOCK_ESYS);
        return;
    }
    RIG_EXPECT(1, REDLOCK_OK, REDLOCK_ENOQUORUM, REDLOCK_ETOOSLOW);
    if (!rig.starve || !rig.hit || rig.fault->harmless)
        ck_assert_msg(rig.lock != NULL, "acquire: %s", rig.call[1].text);
    if (rig.lock != NULL)
        RIG_EXPECT(2, REDLOCK_OK, REDLOCK_ENOQUORUM);
}

START_TEST(failing_calls_in_a_hybrid_client)
{
    rig_sweep_calls(&(struct scenario){.name = "hybrid",
                                       .prepare = configure_hybrid,
                                       .act = start_and_process,
                                       .judge = judge_hybrid,
                                       .bare = true,
                                       .calls = 1u << CALL_READ | 1u << CALL_EVENTFD |
                                                1u << CALL_THREAD | 1u << CALL_FCNTL |
                                                1u << CALL_EPOLL_WAIT | 1u << CALL_RECV});
}
END_TEST

/* ---- freed with a lock that cannot be released any more: its key expires ---- */

/* Creates a client that holds a lock with a short TTL. */
static void hold(void)
{
    configure();
    ck_assert_int_eq(redlock_new(&rig.client, rig.config), REDLOCK_OK);
    opts = redlock_opts(wait_scaled_ms(500));
    opts.wait_ms = wait_scaled_ms(WAIT_MS);
    ck_assert_int_eq(redlock_acquire(rig.client, "resource", &opts, &rig.lock, NULL), REDLOCK_OK);
}

/* Shuts the client down and frees it. */
static void shut_down_and_free(void)
{
    steps = 0;
    note(redlock_shutdown(rig.client, wait_scaled_ms(LEAVE_MS)));
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

START_TEST(failing_calls_during_a_shutdown)
{
    rig_sweep_calls(&(struct scenario){.name = "threaded, leaving",
                                       .prepare = hold,
                                       .act = shut_down_and_free,
                                       .judge = judge_leaving,
                                       .bare = true,
                                       .last = true});
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("torture_syscalls_threaded");
    TCase *tcase = tcase_create("threaded");
    rig_add_fixtures(tcase);
    tcase_add_test(tcase, failing_calls_in_a_threaded_client);
    tcase_add_test(tcase, failing_calls_in_a_hybrid_client);
    tcase_add_test(tcase, failing_calls_during_a_shutdown);
    suite_add_tcase(suite, tcase);
    return rig_main(suite);
}
