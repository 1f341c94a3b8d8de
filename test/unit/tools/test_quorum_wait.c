/* SPDX-License-Identifier: MIT
 * For how long a wait goes on without a quorum: what counts, what does not, and when it ends. */
#include "../../../tools/clock.h"
#include "../../../tools/quorum_wait.h"
#include "suite.h"

#define MS(n) ((n)*NS_PER_MS)

/* Notes the state every 500 ms from `from_ms` on, until `to_ms`. */
static void note_until(struct quorum_wait *quorum, enum quorum_state state, uint64_t from_ms,
                       uint64_t to_ms)
{
    for (uint64_t ms = from_ms + 500; ms <= to_ms; ms += 500)
        quorum_wait_note(quorum, state, MS(ms));
}

/* The wait ends when the quorum has been missing for the limit, not before. */
START_TEST(missing)
{
    struct quorum_wait quorum;

    quorum_wait_start(&quorum, 3000, MS(100));
    note_until(&quorum, QUORUM_MISSING, 100, 2600);
    ck_assert(!quorum_wait_has_ended(&quorum));
    ck_assert_uint_eq(quorum_wait_left_ms(&quorum), 500);
    quorum_wait_note(&quorum, QUORUM_MISSING, MS(3099));
    ck_assert(!quorum_wait_has_ended(&quorum));
    ck_assert_uint_eq(quorum_wait_left_ms(&quorum), 1);
    quorum_wait_note(&quorum, QUORUM_MISSING, MS(3100));
    ck_assert(quorum_wait_has_ended(&quorum));
    ck_assert_uint_eq(quorum_wait_left_ms(&quorum), 0);
    ck_assert_uint_eq(quorum_wait_next_ns(&quorum), MS(3600));
}
END_TEST

/* A reply of a quorum begins the count again: only time in a row counts. */
START_TEST(quorum_resets)
{
    struct quorum_wait quorum;

    quorum_wait_start(&quorum, 2000, 0);
    note_until(&quorum, QUORUM_MISSING, 0, 1500);
    quorum_wait_note(&quorum, QUORUM_THERE, MS(1600));
    ck_assert_uint_eq(quorum.spent_ns, 0);
    note_until(&quorum, QUORUM_MISSING, 1600, 3100);
    ck_assert(!quorum_wait_has_ended(&quorum));
    note_until(&quorum, QUORUM_MISSING, 3100, 3600);
    ck_assert(quorum_wait_has_ended(&quorum));
}
END_TEST

/* The time of a quarantine does not count, but what was counted before it stays. */
START_TEST(quarantine_pauses)
{
    struct quorum_wait quorum;

    quorum_wait_start(&quorum, 2000, 0);
    note_until(&quorum, QUORUM_MISSING, 0, 1500);
    note_until(&quorum, QUORUM_QUARANTINE, 1500, 61500);
    ck_assert(!quorum_wait_has_ended(&quorum));
    ck_assert_uint_eq(quorum.spent_ns, MS(1500));
    note_until(&quorum, QUORUM_MISSING, 61500, 62000);
    ck_assert(quorum_wait_has_ended(&quorum));
}
END_TEST

/* Of a time in which the process was suspended, only two seconds count. */
START_TEST(suspension)
{
    struct quorum_wait quorum;

    quorum_wait_start(&quorum, 3000, 0);
    quorum_wait_note(&quorum, QUORUM_MISSING, MS(3600 * 1000));
    ck_assert_uint_eq(quorum.spent_ns, MS(2000));
    ck_assert(!quorum_wait_has_ended(&quorum));
}
END_TEST

/* The state is noted twice a second, and at the limit if that comes first. */
START_TEST(next)
{
    struct quorum_wait quorum;

    quorum_wait_start(&quorum, 1200, MS(10));
    ck_assert_uint_eq(quorum_wait_next_ns(&quorum), MS(510));
    note_until(&quorum, QUORUM_MISSING, 10, 1010);
    ck_assert_uint_eq(quorum_wait_next_ns(&quorum), MS(1210));
}
END_TEST

/* A limit of 0 is half a second, and there may be no limit. */
START_TEST(bounds)
{
    struct quorum_wait quorum;

    quorum_wait_start(&quorum, 0, 0);
    quorum_wait_note(&quorum, QUORUM_MISSING, MS(QUORUM_WAIT_MS_MIN) - 1);
    ck_assert(!quorum_wait_has_ended(&quorum));
    quorum_wait_note(&quorum, QUORUM_MISSING, MS(QUORUM_WAIT_MS_MIN));
    ck_assert(quorum_wait_has_ended(&quorum));

    quorum_wait_start(&quorum, UINT64_MAX, 0);
    note_until(&quorum, QUORUM_MISSING, 0, UINT64_C(1000) * 24 * 3600);
    ck_assert(!quorum_wait_has_ended(&quorum));
    ck_assert_uint_eq(quorum_wait_left_ms(&quorum), UINT64_MAX);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("tools_quorum_wait");
    TCase *tcase = tcase_create("quorum_wait");
    suite_add_tcase(suite, tcase);
    tcase_add_test(tcase, missing);
    tcase_add_test(tcase, quorum_resets);
    tcase_add_test(tcase, quarantine_pauses);
    tcase_add_test(tcase, suspension);
    tcase_add_test(tcase, next);
    tcase_add_test(tcase, bounds);
    return suite_run(suite);
}
