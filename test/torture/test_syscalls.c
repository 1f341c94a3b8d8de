/* SPDX-License-Identifier: MIT
 * System calls fail in an embedded client that connects, acquires a lock, extends it, releases it
 * and is freed: each call, with each of its faults, once and lastingly. One failure of one
 * connection has no effect, because the other nodes are a majority. In any case each operation
 * ends, no key is left, and the client works after the failures. */
#include <string.h>

#include "call_fail.h"
#include "rig.h"

#define READY_MS    2000 /* wait budget of the acquisition, and limit for the grants of all nodes */
#define SHUTDOWN_MS 500  /* time limit of the shutdown */
#define EXPIRE_MS   700  /* TTL of keys that a failed shutdown leaves */

static redlock_opts_t opts;

/* Returns whether the fault concerns one node. The client as a whole has one poller, with two
 * descriptors of its own, and one timer. */
static bool is_of_one_node(void)
{
    switch (rig.fault->call) {
    case CALL_EPOLL_CTL:
        return rig.k > 1;
    case CALL_EPOLL_CREATE:
    case CALL_TIMERFD_CREATE:
    case CALL_EVENTFD:
    case CALL_FCNTL:
        return false;
    default:
        return true;
    }
}

/* Returns true if this run must not cost the caller anything. */
static bool must_succeed(void)
{
    return !rig.hit || rig.fault->harmless || (!rig.starve && is_of_one_node());
}

/* Fails the case unless the status of call `i` is in the list `allowed`, which ends with RIG_END,
 * and is OK if this run must not cost the caller anything. */
static void expect(unsigned i, const int *allowed)
{
    const int status = rig.call[i].started != REDLOCK_OK ? rig.call[i].started : rig.call[i].status;

    ck_assert_msg(!must_succeed() || status == REDLOCK_OK, "call %u: %s (%s)", i,
                  redlock_error_name(status), rig.call[i].text);
    rig_expect(i, allowed);
}

/* ---- from connecting to releasing ---- */

/* Prepares the configuration of an embedded client. */
static void configure(void)
{
    opts = redlock_opts(RIG_TTL_MS);
    rig_new_config(REDLOCK_MODE_EMBEDDED);
}

/* Returns whether the key is known to be on all nodes but one: a late grant does not count in the
 * extension that follows it. */
static bool is_widely_held(void)
{
    redlock_node_stats_t node;
    unsigned granted = 0;

    for (unsigned i = 0; i < RIG_NODES; i++)
        granted += redlock_get_node_stats(rig.client, i, &node, sizeof node) == REDLOCK_OK &&
                   node.granted > 0;
    return granted >= RIG_NODES - 1;
}

/* Connects, acquires, extends and releases a lock, and frees the client. */
static void acquire_extend_release(void)
{
    /* Connected or not: a quorum is enough, and it is enough that the greeting was sent. */
    opts.wait_ms = rig.starve ? 0 : wait_scaled_ms(READY_MS);
    if (!rig_take(&opts))
        return;
    if (!rig.starve)
        rig_drive(is_widely_held, READY_MS);
    rig_extend(2, rig.lock, RIG_TTL_MS);
    rig_finish();
    rig_release(3, rig.lock);
    rig_finish();
}

/* Checks that no node was connected again: results of system calls that are no failure were not
 * taken for one. */
static void check_connections(void)
{
    redlock_node_stats_t node;

    for (unsigned i = 0; i < RIG_NODES; i++) {
        ck_assert_int_eq(redlock_get_node_stats(rig.client, i, &node, sizeof node), REDLOCK_OK);
        ck_assert_msg(node.reconnects == 0, "node %u was connected again", i);
    }
}

/* Checks the status of each call. */
static void judge_calls(void)
{
    const int created[] = {REDLOCK_OK, REDLOCK_ESYS, RIG_END};
    const int acquired[] = {REDLOCK_OK, REDLOCK_ENOQUORUM, REDLOCK_ETOOSLOW, RIG_END};
    const int extended[] = {REDLOCK_OK, REDLOCK_ENOQUORUM, RIG_END};

    if (rig.client == NULL) {
        ck_assert_msg(!must_succeed(), "there is no client");
        ck_assert_int_eq(rig.call[0].started, REDLOCK_ESYS);
        return;
    }
    if (rig.fault != NULL && rig.fault->harmless)
        check_connections();
    expect(0, created);
    expect(1, acquired);
    if (rig.lock == NULL)
        return;
    expect(2, extended);
    expect(3, extended);
}

START_TEST(failing_calls_while_a_lock_is_used)
{
    rig_sweep_calls(&(struct scenario){.name = "a life",
                                       .prepare = configure,
                                       .act = acquire_extend_release,
                                       .judge = judge_calls,
                                       .bare = true});
}
END_TEST

/* ---- shut down with a lock held, one waited for and a pending undo: keys that it cannot delete
 * any more expire ---- */

/* Holds a lock on all nodes and waits for another one. */
static void hold_and_wait(void)
{
    opts = redlock_opts(wait_scaled_ms(EXPIRE_MS));
    rig_hold_on_all("resource", &opts);
    rig_acquire(1, "other", &opts);
}

/* Shuts the client down and frees it. */
static void shut_down_and_free(void)
{
    rig_started(
        0, redlock_shutdown_start(rig.client, wait_scaled_ms(SHUTDOWN_MS), rig_done, &rig.call[0]));
    if (rig.call[0].started == REDLOCK_OK)
        rig_finish();
    if (redlock_free(rig.client) != REDLOCK_OK)
        rig_die("free has failed");
    rig.client = NULL;
}

/* Checks the status of the calls, and that a shutdown that must succeed leaves no key. */
static void judge_leaving(void)
{
    RIG_EXPECT(0, REDLOCK_OK, REDLOCK_ENOQUORUM);
    RIG_EXPECT(1, REDLOCK_ECLOSED, REDLOCK_OK, REDLOCK_ENOQUORUM, REDLOCK_ETOOSLOW);
    if (must_succeed())
        ck_assert_msg(rig_no_keys(), "shut down, and keys stay: %s", rig.call[0].text);
}

START_TEST(failing_calls_during_a_shutdown)
{
    rig_sweep_calls(&(struct scenario){.name = "leaving",
                                       .prepare = hold_and_wait,
                                       .act = shut_down_and_free,
                                       .judge = judge_leaving,
                                       .last = true});
}
END_TEST

static Suite *calls_suite(void)
{
    Suite *suite = suite_create("torture_syscalls");
    TCase *tcase = tcase_create("calls");
    rig_add_fixtures(tcase);
    tcase_add_test(tcase, failing_calls_while_a_lock_is_used);
    tcase_add_test(tcase, failing_calls_during_a_shutdown);
    suite_add_tcase(suite, tcase);
    return suite;
}

int main(void)
{
    return rig_main(calls_suite());
}
