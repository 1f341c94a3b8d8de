/* SPDX-License-Identifier: MIT
 * Memory runs out while a configuration is built, while a client is created, connects and greets,
 * and while it is freed. All cases but the first are scenarios of rig.h: rig_sweep() runs
 * prepare(), act() and judge() once for each allocation of act(), which then fails, alone or with
 * all later ones. rig.call[i] is the operation number i of a run; rig.hit is true if an allocation
 * has failed.
 */
#include <string.h>

#include "alloc_fail.h"
#include "rig.h"

#define READY_MS    40  /* time to wait for the nodes without memory */
#define EXPIRE_MS   300 /* TTL of keys that a freed client leaves */
#define SHUTDOWN_MS 60  /* time limit of the shutdown */

static redlock_opts_t opts; /* of the acquisitions */

/* ---- the configuration ---- */

/* Builds a configuration with every setter that allocates. Returns 0 or the first error. The caller
 * frees the configuration in either case. */
static int build(redlock_config_t **ret_config)
{
    int error = redlock_config_new(ret_config, NULL);
    if (error != REDLOCK_OK)
        return error;
    redlock_config_t *config = *ret_config;
    error = redlock_config_add_nodes(config, "redis://ada:secret@one:6379/3, two:6380, "
                                             "unix:///run/three.sock");
    if (error == REDLOCK_OK)
        error = redlock_config_add_nodes(config, "redis://:other@[::1]:6381");
    if (error == REDLOCK_OK)
        error = redlock_config_set_auth(config, "user", "password");
    if (error == REDLOCK_OK)
        error = redlock_config_set_key_prefix(config, "prefix:");
    if (error == REDLOCK_OK)
        error = redlock_config_set_owner(config, "owner");
    return error;
}

/* Builds the configuration once for each allocation, which fails; with `starve` all later ones
 * fail, too. Checks that the error is ENOMEM and no block stays. */
static void sweep_config(bool starve)
{
    redlock_config_t *config;
    bool hit = true;

    for (uint64_t k = 0; hit; k++) {
        const int64_t live = alloc_fail_live();
        config = NULL;
        rig_note("configuration", starve, k);
        if (starve)
            alloc_fail_from(k, ALLOC_FAIL_ALL_THREADS);
        else
            alloc_fail_once(k, ALLOC_FAIL_ALL_THREADS);
        const int error = build(&config);
        hit = alloc_fail_stop();
        ck_assert_int_eq(error, hit ? REDLOCK_ENOMEM : REDLOCK_OK);
        if (hit && config != NULL)
            ck_assert_ptr_nonnull(strstr(redlock_config_error(config), "memory"));
        redlock_config_free(config);
        ck_assert_int_eq(alloc_fail_live(), live);
        ck_assert_msg(hit || k > 5, "only %u allocations", (unsigned)k);
        rig_end_note();
    }
}

START_TEST(configurations_without_memory)
{
    sweep_config(false);
    sweep_config(true);
}
END_TEST

/* ---- a client that connects ---- */

/* Prepares a configuration. */
static void configure(void)
{
    rig_new_config(REDLOCK_MODE_EMBEDDED);
}

/* Creates the client (call 0) and waits until it is ready (call 1). Waits again after READY_MS as
 * long as no allocation has failed. */
static void connect_and_wait(void)
{
    rig_started(0, redlock_new(&rig.client, rig.config));
    if (rig.call[0].started != REDLOCK_OK)
        return;
    rig.call[0].used = false;
    do {
        memset(&rig.call[1], 0, sizeof rig.call[1]);
        rig_started(1,
                    redlock_wait_ready_start(rig.client, READY_MS, NULL, rig_done, &rig.call[1]));
        rig_finish();
    } while (rig.call[1].status == REDLOCK_ENOQUORUM && !rig_has_failed());
}

/* Checks that only a lack of memory leaves no client, and the status of the wait. */
static void judge_connecting(void)
{
    if (rig.client == NULL) {
        ck_assert(rig.hit);
        ck_assert_int_eq(rig.call[0].started, REDLOCK_ENOMEM);
        ck_assert_ptr_nonnull(strstr(redlock_config_error(rig.config), "memory"));
        return;
    }
    RIG_EXPECT(1, REDLOCK_OK, REDLOCK_ENOQUORUM, REDLOCK_ENOMEM);
}

START_TEST(connecting_without_memory)
{
    rig_sweep(&(struct scenario){.name = "connect and greet",
                                 .prepare = configure,
                                 .act = connect_and_wait,
                                 .judge = judge_connecting,
                                 .bare = true});
}
END_TEST

/* ---- shutting down with a lock held, one waited for, and a pending undo ---- */

/* Holds the lock "resource" and waits for the lock "foreign" of another client (call 1). */
static void be_busy(void)
{
    opts = redlock_opts(RIG_TTL_MS);
    rig_hold_on_all("resource", &opts);
    rig_command_all("SET foreign foreign-token");
    opts.wait_ms = REDLOCK_WAIT_FOREVER;
    rig_acquire(1, "foreign", &opts);
}

/* Shuts the client down (call 0). */
static void shut_down(void)
{
    rig_started(
        0, redlock_shutdown_start(rig.client, wait_scaled_ms(SHUTDOWN_MS), rig_done, &rig.call[0]));
    if (rig.call[0].started == REDLOCK_OK)
        rig_finish();
}

/* Checks that all operations have ended and the lock is gone. A shutdown that was refused has
 * changed nothing, so the lock is released first. */
static void judge_shutdown(void)
{
    RIG_EXPECT(0, REDLOCK_OK, REDLOCK_ENOMEM, REDLOCK_ENOQUORUM);
    rig_command_all("DEL foreign");
    if (rig.call[0].started != REDLOCK_OK)
        rig_release(2, rig.lock); /* nothing has begun: the client is unchanged */
    rig_finish();
    ck_assert_int_eq(redlock_lock_check(rig.lock, 0), REDLOCK_ELOST);
    RIG_EXPECT(1, REDLOCK_ECLOSED, REDLOCK_OK, REDLOCK_ENOMEM);
    redlock_lock_free(rig.call[1].lock);
    redlock_lock_free(rig.lock);
    rig.lock = NULL;
    rig.call[1].lock = NULL;
    ck_assert_msg(rig_drive(rig_no_keys, 5000), "shut down, and keys stay");
}

START_TEST(shutting_down_without_memory)
{
    rig_sweep(&(struct scenario){.name = "shutdown",
                                 .prepare = be_busy,
                                 .act = shut_down,
                                 .judge = judge_shutdown,
                                 .last = true});
}
END_TEST

/* ---- freed with operations in flight: keys that it cannot undo any more expire ---- */

/* Holds a lock with a short TTL and starts three operations that are in flight when the client is
 * freed. */
static void be_busy_shortly(void)
{
    opts = redlock_opts(wait_scaled_ms(EXPIRE_MS));
    rig_hold_on_all("resource", &opts);
    rig_acquire(1, "other", &opts);
    rig_started(2, redlock_inspect_start(rig.client, "resource", NULL, rig_done, &rig.call[2]));
    rig_started(3, redlock_wait_ready_start(rig.client, 1000, NULL, rig_done, &rig.call[3]));
}

/* Frees the client. */
static void free_client(void)
{
    if (redlock_free(rig.client) != REDLOCK_OK)
        rig_die("free has failed");
    rig.client = NULL;
}

/* Checks that each operation has ended with the client: ECLOSED, or ENOMEM if memory was short. */
static void judge_freeing(void)
{
    RIG_EXPECT(1, REDLOCK_ECLOSED, REDLOCK_ENOMEM);
    RIG_EXPECT(2, REDLOCK_ECLOSED, REDLOCK_ENOMEM);
    RIG_EXPECT(3, REDLOCK_ECLOSED, REDLOCK_ENOMEM);
}

START_TEST(freeing_a_client_without_memory)
{
    rig_sweep(&(struct scenario){.name = "free",
                                 .prepare = be_busy_shortly,
                                 .act = free_client,
                                 .judge = judge_freeing,
                                 .last = true});
}
END_TEST

static Suite *client_suite(void)
{
    Suite *suite = suite_create("oom_client");
    TCase *tcase = tcase_create("client");
    rig_add_fixtures(tcase);
    tcase_add_test(tcase, configurations_without_memory);
    tcase_add_test(tcase, connecting_without_memory);
    tcase_add_test(tcase, shutting_down_without_memory);
    tcase_add_test(tcase, freeing_a_client_without_memory);
    suite_add_tcase(suite, tcase);
    return suite;
}

int main(void)
{
    return rig_main(client_suite());
}
