/* SPDX-License-Identifier: MIT
 * How many naps a command takes while it waits for the first reply of each server. */
#include "../../../tools/settle.h"
#include "suite.h"

/* Returns how many naps a wait for five servers takes. `majority` and `all`: how many naps are
 * taken before three and before five of them have replied. */
static unsigned naps_for(unsigned majority, unsigned all)
{
    struct settle settle = {0};
    unsigned naps = 0;

    while (settle_naps_on(&settle, naps >= all ? 5 : naps >= majority ? 3 : 2, 5)) {
        naps++;
        ck_assert_uint_le(naps, 1000);
    }
    return naps;
}

#define NEVER 10000

/* The wait ends with the last reply. */
START_TEST(all_reply)
{
    ck_assert_uint_eq(naps_for(0, 0), 0);
    ck_assert_uint_eq(naps_for(3, 3), 3);
    ck_assert_uint_eq(naps_for(3, 15), 15);
    ck_assert_uint_eq(naps_for(100, 150), 150);
}
END_TEST

/* Two servers that do not reply cost as much time as the others have taken, and a little more. */
START_TEST(minority_is_silent)
{
    ck_assert_uint_eq(naps_for(0, NEVER), SETTLE_NAPS_MORE);
    ck_assert_uint_eq(naps_for(1, NEVER), 2 + SETTLE_NAPS_MORE);
    ck_assert_uint_eq(naps_for(40, NEVER), 80 + SETTLE_NAPS_MORE);
}
END_TEST

/* The wait is limited in any case. */
START_TEST(majority_is_late_or_silent)
{
    ck_assert_uint_eq(naps_for(100, NEVER), SETTLE_NAPS_MAX);
    ck_assert_uint_eq(naps_for(NEVER, NEVER), SETTLE_NAPS_MAX);
}
END_TEST

/* A majority is more than half, also of an even number. One server is all of them. */
START_TEST(majority_of_few)
{
    struct settle settle = {0};

    for (unsigned naps = 0; naps < SETTLE_NAPS_MAX; naps++)
        ck_assert(settle_naps_on(&settle, 2, 4));
    ck_assert(!settle_naps_on(&settle, 2, 4));
    settle = (struct settle){0};
    ck_assert(settle_naps_on(&settle, 0, 1));
    ck_assert(!settle_naps_on(&settle, 1, 1));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("tools_settle");
    TCase *tcase = tcase_create("settle");

    tcase_add_test(tcase, all_reply);
    tcase_add_test(tcase, minority_is_silent);
    tcase_add_test(tcase, majority_is_late_or_silent);
    tcase_add_test(tcase, majority_of_few);
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}
