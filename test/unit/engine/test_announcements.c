/* SPDX-License-Identifier: MIT
 * What an engine announces: in which order, how two announcements of one lock are merged, and how
 * long a lock that has ended stays in the list.
 *
 * Uses engine_rig.h: two engines, called clients 0 and 1, on three correct servers, in virtual
 * time. rig_hold() acquires a lock, rig_call() passes a call of the user to it, and rig_pass()
 * advances time and runs the servers and both engines. */
#include "engine/announcements.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "engine_rig.h"

static struct rl_announcements list;
static struct rl_announcement announcement;
static struct rl_lock a, b, c;

/* Fixture: empties the list and the three locks. */
static void setup(void)
{
    memset(&list, 0, sizeof list);
    memset(&a, 0, sizeof a);
    memset(&b, 0, sizeof b);
    memset(&c, 0, sizeof c);
}

/* Takes the first announcement of the list into `announcement`. Returns its lock, or NULL if
 * the list is empty. */
static struct rl_lock *take(void)
{
    memset(&announcement, 0xff, sizeof announcement);
    return rl_announcements_take(&list, &announcement);
}

/* Locks come in the order in which each was first announced; nothing is lost or repeated. */
START_TEST(order)
{
    ck_assert(!rl_announcements_wait(&list));
    rl_announcements_add(&list, &b, RL_FX_EXTENDED, REDLOCK_OK);
    rl_announcements_add(&list, &a, RL_FX_LOST, REDLOCK_ELOST);
    rl_announcements_add(&list, &b, RL_FX_ENDANGERED, REDLOCK_OK);
    rl_announcements_add(&list, &c, RL_FX_ENDED, REDLOCK_OK);
    ck_assert(rl_announcements_wait(&list));
    ck_assert_ptr_eq(take(), &b);
    ck_assert_uint_eq(announcement.flags, RL_FX_EXTENDED | RL_FX_ENDANGERED);
    rl_announcements_add(&list, &b, RL_FX_DEADLINE, REDLOCK_OK); /* behind the others now */
    ck_assert_ptr_eq(take(), &a);
    ck_assert_uint_eq(announcement.flags, RL_FX_LOST);
    ck_assert_ptr_eq(take(), &c);
    ck_assert_ptr_eq(take(), &b);
    ck_assert_uint_eq(announcement.flags, RL_FX_DEADLINE);
    ck_assert_ptr_null(take());
    ck_assert(!rl_announcements_wait(&list));
}
END_TEST

/* A lock is taken out of its turn; the order of the others stays, and the list can grow again. */
START_TEST(out_of_turn)
{
    struct rl_lock *const locks[] = {&a, &b, &c};

    for (unsigned i = 0; i < 3; i++)
        rl_announcements_add(&list, locks[i], RL_FX_LOST, REDLOCK_ELOST);
    ck_assert(rl_announcements_take_lock(&list, locks[_i], &announcement));
    ck_assert_uint_eq(announcement.flags, RL_FX_LOST);
    ck_assert(!rl_announcements_take_lock(&list, locks[_i], &announcement));
    rl_announcements_add(&list, locks[_i], RL_FX_ENDED, REDLOCK_OK);
    for (unsigned i = 0; i < 3; i++) {
        if (i != (unsigned)_i)
            ck_assert_ptr_eq(take(), locks[i]);
    }
    ck_assert_ptr_eq(take(), locks[_i]);
    ck_assert_uint_eq(announcement.flags, RL_FX_ENDED);
    ck_assert_ptr_null(take());
}
END_TEST

/* An attempt failed, then the operation did: both statuses are kept. */
START_TEST(a_failed_attempt_and_the_end)
{
    rl_announcements_add(&list, &a, RL_FX_WAITING, REDLOCK_ECONTENDED);
    rl_announcements_add(&list, &a, RL_FX_DONE | RL_FX_ENDED, REDLOCK_ECANCELED);
    ck_assert_ptr_eq(take(), &a);
    ck_assert_uint_eq(announcement.flags, RL_FX_WAITING | RL_FX_DONE | RL_FX_ENDED);
    ck_assert_int_eq(announcement.status, REDLOCK_ECANCELED);
    ck_assert_int_eq(announcement.event_status, REDLOCK_ECONTENDED);
}
END_TEST

/* A grant that ended before it was taken was none: the lock waits again. */
START_TEST(a_grant_that_was_none)
{
    rl_announcements_add(&list, &a, RL_FX_DONE | RL_FX_HELD | RL_FX_DEADLINE, REDLOCK_OK);
    rl_announcements_add(&list, &a, RL_FX_WAITING, REDLOCK_ETOOSLOW);
    ck_assert_ptr_eq(take(), &a);
    ck_assert_uint_eq(announcement.flags, RL_FX_DEADLINE | RL_FX_WAITING);
    ck_assert_int_eq(announcement.event_status, REDLOCK_ETOOSLOW);
    rl_announcements_add(&list, &a, RL_FX_DONE | RL_FX_HELD, REDLOCK_OK);
    rl_announcements_add(&list, &a, RL_FX_WAITING, REDLOCK_ETOOSLOW);
    rl_announcements_add(&list, &a, RL_FX_DONE, REDLOCK_ENOQUORUM);
    ck_assert_ptr_eq(take(), &a);
    ck_assert_uint_eq(announcement.flags, RL_FX_WAITING | RL_FX_DONE);
    ck_assert_int_eq(announcement.status, REDLOCK_ENOQUORUM);
}
END_TEST

/* An operation ends once: the caller confirms a grant, and sees itself that the lock has ended. */
START_TEST(the_first_end_counts)
{
    rl_announcements_add(&list, &a, RL_FX_DONE | RL_FX_HELD, REDLOCK_OK);
    rl_announcements_add(&list, &a, RL_FX_DONE | RL_FX_ENDED, REDLOCK_ECLOSED);
    ck_assert_ptr_eq(take(), &a);
    ck_assert_int_eq(announcement.status, REDLOCK_OK);
    ck_assert_uint_eq(announcement.flags, RL_FX_DONE | RL_FX_HELD | RL_FX_ENDED);
}
END_TEST

START_TEST(nodes_and_long_ttls)
{
    uint64_t pttl_ms;
    unsigned node;

    rl_announcements_add_node(&list, 3);
    rl_announcements_add_node(&list, 1);
    rl_announcements_add_node(&list, 3);
    rl_announcements_add_long_ttl(&list, 2, 5000);
    rl_announcements_add_long_ttl(&list, 2, 6000);
    ck_assert(rl_announcements_take_node(&list, &node));
    ck_assert_uint_eq(node, 1);
    ck_assert(rl_announcements_take_node(&list, &node));
    ck_assert_uint_eq(node, 3);
    ck_assert(!rl_announcements_take_node(&list, &node));
    ck_assert(rl_announcements_wait(&list));
    ck_assert(rl_announcements_take_long_ttl(&list, &node, &pttl_ms));
    ck_assert_uint_eq(node, 2);
    ck_assert_uint_eq(pttl_ms, 6000);
    ck_assert(!rl_announcements_take_long_ttl(&list, &node, &pttl_ms));
    ck_assert(!rl_announcements_wait(&list));
}
END_TEST

/* The engine is done with a lock that is not active. It is in the list until its end is taken, and
 * to free it before that is caught. */
static struct rig_lock *end_one(void)
{
    const struct rl_lease_params params = rig_params();

    rig_begin(NULL);
    rig_pass(50 * RL_MS);
    struct rig_lock *item = rig_hold(0, &params, "a");
    rl_lock_event(rig_engine(0), &item->lock, RL_EVENT_DETACH, 0, 0);
    ck_assert(!item->lock.active);
    ck_assert_uint_ne(item->lock.pending.announcement.flags & RL_FX_ENDED, 0);
    return item;
}

START_TEST(an_end_is_taken_before_the_lock_is_freed)
{
    const struct rig_lock *item = end_one();

    ck_assert_uint_eq(item->flags & RL_FX_ENDED, 0);
    rig_take(0);
    ck_assert_uint_ne(item->flags & RL_FX_ENDED, 0);
    ck_assert_ptr_null(
        rl_announcements_take(rl_engine_announcements(rig_engine(0)), &announcement));
    rig_end();
}
END_TEST

/* Moves the clocks to `ns` before the deadline of a lock, and turns the loop without taking what
 * that announces. */
static void tick_before_deadline(const struct rig_lock *it, uint64_t ns)
{
    world.now_ns += it->lock.lease.deadline.boot_ns - rl_engine_now(rig_engine(0)).boot_ns - ns;
    rl_engine_refresh(rig_engine(0));
    rl_engine_tick(rig_engine(0));
    rl_engine_flush(rig_engine(0));
}

/* Two locks have several announcements each before one is taken. Each lock comes once, with all of
 * them, although the engine has ended both in between. */
START_TEST(several_announcements_before_one_is_taken)
{
    const struct rl_lease_params params = rig_params();

    rig_begin(NULL);
    rig_pass(50 * RL_MS);
    struct rl_announcements *announced = rl_engine_announcements(rig_engine(0));
    struct rig_lock *lost = rig_hold(0, &params, "a"), *detached = rig_hold(0, &params, "b");
    tick_before_deadline(lost, params.terms.margin_ns / 2);
    ck_assert_uint_eq(lost->lock.pending.announcement.flags, RL_FX_ENDANGERED);
    ck_assert_uint_eq(detached->lock.pending.announcement.flags, RL_FX_ENDANGERED);
    tick_before_deadline(lost, 0);
    rl_lock_event(rig_engine(0), &detached->lock, RL_EVENT_DETACH, 0, 0);
    rl_engine_flush(rig_engine(0));
    ck_assert(!lost->lock.active && !detached->lock.active);
    ck_assert_ptr_eq(rl_announcements_take(announced, &announcement), &lost->lock);
    ck_assert_uint_eq(announcement.flags,
                      RL_FX_ENDANGERED | RL_FX_LOST | RL_FX_DEADLINE | RL_FX_ENDED);
    ck_assert_ptr_eq(rl_announcements_take(announced, &announcement), &detached->lock);
    ck_assert_uint_eq(announcement.flags, RL_FX_ENDANGERED | RL_FX_DEADLINE | RL_FX_ENDED);
    ck_assert_ptr_null(rl_announcements_take(announced, &announcement));
    rig_end();
}
END_TEST

/* Freeing a lock whose end was not taken fails an assertion. A child process does it. */
START_TEST(an_early_free_is_caught)
{
    struct rig_lock *item = end_one();
    int status;
    pid_t child = fork();

    ck_assert_int_ge(child, 0);
    if (child == 0) {
        (void)setrlimit(RLIMIT_CORE, &(struct rlimit){0});
        (void)close(STDERR_FILENO);
        rl_lock_dispose(rig_engine(0), &item->lock);
        _exit(0);
    }
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
    rig_take(0);
    rig_end();
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("engine_announcements");
    TCase *tcase = tcase_create("announcements");
    suite_add_tcase(suite, tcase);
    tcase_add_checked_fixture(tcase, setup, NULL);
    tcase_add_test(tcase, order);
    tcase_add_loop_test(tcase, out_of_turn, 0, 3);
    tcase_add_test(tcase, a_failed_attempt_and_the_end);
    tcase_add_test(tcase, a_grant_that_was_none);
    tcase_add_test(tcase, the_first_end_counts);
    tcase_add_test(tcase, nodes_and_long_ttls);
    tcase_add_test(tcase, an_end_is_taken_before_the_lock_is_freed);
    tcase_add_test(tcase, several_announcements_before_one_is_taken);
    if (LIBRARY_ASSERTS)
        tcase_add_test(tcase, an_early_free_is_caught);
    return suite_run(suite);
}
