/* SPDX-License-Identifier: MIT
 * Memory runs out while a client with two shards is created, acquires a lock in each, and takes the
 * fence records of both into use. The cases are scenarios of rig.h: rig_sweep() runs prepare(),
 * act() and judge() once for each allocation of act(), which then fails, alone or with all later
 * ones. rig.call[i] is operation number i of a run; rig.hit is true if an allocation has failed. */
#include <stdio.h>
#include <string.h>

#include "rig.h"

#define SPLIT 3 /* number of servers in the first shard */

/* One name per shard, as redlock_shard_of() says, which judge_acquiring() checks. */
static const char *const NAMES[] = {"orders:43", "orders:42"};

/* Prepares a configuration with two shards. */
static void configure(void)
{
    char text[RIG_NODES * 256] = "";
    for (unsigned i = 0; i < RIG_NODES; i++) {
        const size_t at = strlen(text);
        snprintf(text + at, sizeof text - at, "%s%s,",
                 i == 0       ? "east="
                 : i == SPLIT ? "west="
                              : "",
                 cluster_url(rig.cluster, i));
    }
    rig_new_config_for(REDLOCK_MODE_EMBEDDED, text);
}

/* Creates the client as call 0. Returns false if that fails. */
static bool create_client(void)
{
    rig_started(0, redlock_new(&rig.client, rig.config));
    rig.call[0].callbacks = 1; /* it has no callback */
    return rig.call[0].started == REDLOCK_OK;
}

/* Acquires a lock in each shard. */
static void acquire_in_both(void)
{
    const redlock_opts_t opts = redlock_opts(RIG_TTL_MS);
    if (!create_client())
        return;
    rig_acquire(1, NAMES[0], &opts);
    rig_acquire(2, NAMES[1], &opts);
    rig_finish();
}

/* Checks that both locks are granted unless something has failed. */
static void judge_acquiring(void)
{
    if (rig.client == NULL) {
        ck_assert(rig.hit);
        ck_assert_int_eq(rig.call[0].started, REDLOCK_ENOMEM);
        return;
    }
    for (unsigned i = 1; i <= 2; i++) {
        ck_assert_int_eq(redlock_shard_of(rig.client, NAMES[i - 1]), (int)i - 1);
        RIG_EXPECT(i, REDLOCK_OK, REDLOCK_ENOMEM, REDLOCK_ENOQUORUM);
        if (!rig.hit)
            RIG_EXPECT(i, REDLOCK_OK);
        redlock_lock_free(rig.call[i].lock);
        rig.call[i].lock = NULL;
    }
}

START_TEST(acquiring_in_two_shards_without_memory)
{
    rig_sweep(&(struct scenario){.name = "two sets",
                                 .prepare = configure,
                                 .act = acquire_in_both,
                                 .judge = judge_acquiring,
                                 .bare = true});
}
END_TEST

/* Initializes the fence records of both shards as call 1. */
static void init(void)
{
    if (!create_client())
        return;
    rig_started(1,
                redlock_init_fence_records_start(rig.client, 5000, NULL, rig_done, &rig.call[1]));
    rig_finish();
}

/* Checks the status of the initialization, if there is a client: OK if nothing has failed. */
static void judge_init(void)
{
    if (rig.client == NULL)
        return;
    RIG_EXPECT(1, REDLOCK_OK, REDLOCK_ENOMEM, REDLOCK_ENOQUORUM, REDLOCK_EFENCE);
    if (!rig.hit)
        RIG_EXPECT(1, REDLOCK_OK);
}

START_TEST(initializing_the_records_of_two_shards_without_memory)
{
    rig_sweep(&(struct scenario){.name = "init of two sets",
                                 .prepare = configure,
                                 .act = init,
                                 .judge = judge_init,
                                 .bare = true});
}
END_TEST

static Suite *shards_suite(void)
{
    Suite *suite = suite_create("oom_sets");
    TCase *tcase = tcase_create("shards");
    rig_add_fixtures(tcase);
    tcase_add_test(tcase, acquiring_in_two_shards_without_memory);
    tcase_add_test(tcase, initializing_the_records_of_two_shards_without_memory);
    suite_add_tcase(suite, tcase);
    return suite;
}

int main(void)
{
    return rig_main(shards_suite());
}
