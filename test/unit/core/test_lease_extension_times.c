/* SPDX-License-Identifier: MIT
 * When locks are extended that share a client with thousands of others: spread over time, and
 * several together. Virtual time.
 *
 * Uses lease_rig.h: one lease in virtual time. The test passes events to it: rig_grant(),
 * rig_deny() and rig_fail() are votes in the running round, rig_tick() is a timer that is due.
 * rig_pass() only advances the clocks. rig.fx holds the effects of the last step. */
#include "core/lease.h"

#include "lease_rig.h"
#include "suite.h"
#include <stdlib.h>

#define THIRD_NS (RIG_USABLE_NS / 3)

/* Makes the lease held: all nodes grant at once. */
static void hold(struct rig *rig)
{
    rig->params.terms.auto_extend = true;
    rig_start(rig);
    for (unsigned i = 0; i < rig->params.terms.nodes; i++)
        rig_grant(rig, i);
    ck_assert_uint_eq(rig->lease.state, RL_STATE_HELD);
}

/* Advances time to the lease's next due time and runs its timer. */
static void wake(struct rig *rig)
{
    ck_assert_uint_gt(rig->lease.wake_ns, rig->view.now.boot_ns);
    rig_pass(rig, rig->lease.wake_ns - rig->view.now.boot_ns);
    rig_tick(rig);
}

/* Runs the timer of the lease until an extension begins, and fails it on all nodes. */
static void fail_extension(struct rig *rig)
{
    while (rig->lease.state != RL_STATE_EXTENDING)
        wake(rig);
    for (unsigned i = 0; rig->lease.state == RL_STATE_EXTENDING; i++)
        rig_fail(rig, i);
    ck_assert_uint_ne(rig->fx.flags & RL_FX_EXTEND_FAILED, 0);
}

/* The pause after the first failure is the shortest one, also after earlier failures if an
 * extension has won in between: automatic (0), or requested by the caller (1). */
START_TEST(a_won_extension_ends_the_growth_of_pauses)
{
    struct rig rig;

    rig_init(&rig, 3);
    hold(&rig);
    const uint64_t shortest_ns = rig.params.terms.backoff.min_ns;
    for (unsigned failures = 1; failures < 10; failures++) {
        for (unsigned i = 0; i < failures; i++) {
            rig.view.random = rl_mix(100 * failures + i);
            fail_extension(&rig);
            const uint64_t pause_ns = rl_remaining_ns(rig.lease.next, rig.view.now);
            ck_assert_uint_ge(pause_ns, shortest_ns);
            if (i == 0)
                ck_assert_uint_eq(pause_ns, shortest_ns);
        }
        if (_i == 1)
            rig_extend(&rig, 0);
        while (rig.lease.state != RL_STATE_EXTENDING)
            wake(&rig);
        for (unsigned i = 0; i < 3; i++)
            rig_grant(&rig, i);
        ck_assert_uint_eq(rig.lease.state, RL_STATE_HELD);
    }
}
END_TEST

#define MANY 10000u

/* Compares two uint64_t, for qsort(). */
static int compare_times(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return (x > y) - (x < y);
}

/* Sorts `times` and returns how many distinct ones it has. `ret_most`: how often the most frequent
 * one occurs. */
static unsigned count_distinct_times(uint64_t *times, unsigned count, unsigned *ret_most)
{
    unsigned different = 0, same = 0;

    *ret_most = 0;
    qsort(times, count, sizeof times[0], compare_times);
    for (unsigned i = 0; i < count; i++) {
        bool new = i == 0 || times[i] != times[i - 1];
        different += new;
        same = new ? 1 : same + 1;
        *ret_most = same > *ret_most ? same : *ret_most;
    }
    return different;
}

/* Checks that the due times of all leases within `span_ns` fall on few distinct instants. */
static void check_timer_is_batched(uint64_t *times, unsigned count, uint64_t span_ns)
{
    unsigned most;

    ck_assert_uint_gt(count, MANY);
    ck_assert_uint_le(count_distinct_times(times, count, &most), span_ns / (8 * RL_MS) + 1);
}

/* For leases acquired in one tick (0) or one after the other (1): extensions are spread over at
 * least a fifth of their delay. At most three times the average number begin together. The due
 * times before the extension are batched, too. */
START_TEST(extensions_of_many_leases_are_spread_and_batched)
{
    static uint64_t begins[MANY], due_times[8 * MANY];
    uint64_t apart_ns = _i == 0 ? 0 : 100 * RL_US;
    unsigned due_count = 0, most;
    struct rig rig;

    for (unsigned i = 0; i < MANY; i++) {
        rig_init(&rig, 3);
        rig.params.salt = i * UINT64_C(0x9e3779b97f4a7c15) + 1;
        rig_pass(&rig, i * apart_ns);
        hold(&rig);
        while (rig.lease.state == RL_STATE_HELD) {
            ck_assert_uint_lt(due_count, 8 * MANY);
            due_times[due_count++] = rig.lease.wake_ns;
            wake(&rig);
        }
        ck_assert_uint_eq(rig.lease.state, RL_STATE_EXTENDING);
        begins[i] = rig.view.now.boot_ns;
    }
    unsigned times = count_distinct_times(begins, MANY, &most);
    uint64_t span_ns = begins[MANY - 1] - begins[0];
    ck_assert_uint_ge(span_ns, THIRD_NS / 5);
    ck_assert_uint_ge(times, 50);
    ck_assert_uint_le(times, span_ns / (8 * RL_MS) + 1);
    ck_assert_uint_le(most, 3 * MANY / times);
    check_timer_is_batched(due_times, due_count, THIRD_NS + MANY * apart_ns);
}
END_TEST

/* With a TTL of 20 to 119 ms, the extension begins when 11/48 to 1/3 of the validity are used. */
START_TEST(short_ttls_are_extended_in_time)
{
    struct rig rig;

    rig_init(&rig, 3);
    rig.params.terms.ttl_ns = (uint64_t)_i * RL_MS;
    rig.params.terms.margin_ns = RL_MS;
    rig.params.salt = (uint64_t)_i;
    hold(&rig);
    uint64_t validity_ns = rig_remaining_ns(&rig);
    struct rl_now begun = rig.view.now;
    while (rig.lease.state == RL_STATE_HELD)
        wake(&rig);
    ck_assert_uint_eq(rig.lease.state, RL_STATE_EXTENDING);
    uint64_t elapsed_ns = rl_elapsed_ns(begun, rig.view.now);
    ck_assert_uint_le(elapsed_ns, validity_ns / 3);
    ck_assert_uint_ge(elapsed_ns, validity_ns / 3 * 11 / 16);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("core_lease_extension_times");
    TCase *tcase = tcase_create("lease_spread");
    suite_add_tcase(suite, tcase);
    tcase_add_loop_test(tcase, a_won_extension_ends_the_growth_of_pauses, 0, 2);
    tcase_add_loop_test(tcase, extensions_of_many_leases_are_spread_and_batched, 0, 2);
    tcase_add_loop_test(tcase, short_ttls_are_extended_in_time, 20, 120);
    return suite_run(suite);
}
