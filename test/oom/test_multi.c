/* SPDX-License-Identifier: MIT
 * Memory runs out while locks of several resources are acquired, waited for, extended and handed
 * over. The cases are scenarios of rig.h: rig_sweep() runs prepare(), act() and judge() once for
 * each allocation of act(), which then fails, alone or with all later ones. rig.call[0] is the
 * operation of a run; rig.hit is true if an allocation has failed. */
#include <string.h>

#include "rig.h"

#define WAIT_MS 60 /* wait budget of an acquisition that is not granted */

static const char *const also[] = {"other", "resource", "third"}; /* locked beside "name" */
static redlock_opts_t opts; /* of a lock on all four resources */
static char token[128];     /* of the keys that set_keys_with_token() sets */

/* Sets the options of a lock on four resources. */
static void set_options(void)
{
    opts = redlock_opts(RIG_TTL_MS);
    opts.also = also;
    opts.also_count = 3;
}

/* Returns how many servers have the key. */
static unsigned count_servers_with(const char *key)
{
    unsigned count = 0;
    for (unsigned i = 0; i < RIG_NODES; i++)
        count += cluster_integer(rig.cluster, i, "EXISTS %s", key) == 1;
    return count;
}

/* Checks that the lock of call `i`, if there is one, is held and each of its keys on a majority.
 * Frees the lock. */
static void judge_grant(unsigned i)
{
    if (rig.call[i].lock == NULL)
        return;
    ck_assert_int_eq(redlock_lock_check(rig.call[i].lock, 0), REDLOCK_OK);
    for (unsigned at = 0; redlock_lock_resource(rig.call[i].lock, at) != NULL; at++)
        ck_assert_uint_ge(count_servers_with(redlock_lock_resource(rig.call[i].lock, at)),
                          RIG_NODES / 2 + 1);
    redlock_lock_free(rig.call[i].lock);
    rig.call[i].lock = NULL;
}

/* Acquires all four resources as call 0. */
static void acquire(void)
{
    rig_acquire(0, "name", &opts);
    rig_finish();
}

/* Checks the status, the event and the lock. */
static void judge_acquire(void)
{
    RIG_EXPECT(0, REDLOCK_OK, REDLOCK_ENOMEM, REDLOCK_ENOQUORUM);
    ck_assert_uint_eq(rig.events[REDLOCK_EVENT_ACQUIRED], rig.call[0].lock != NULL);
    judge_grant(0);
}

START_TEST(acquiring_several_resources_without_memory)
{
    rig_sweep(&(struct scenario){
        .name = "several", .prepare = set_options, .act = acquire, .judge = judge_acquire});
}
END_TEST

/* Starts three acquisitions that follow each other in the queues of their client. The last one is
 * of a single resource. */
static void acquire_three(void)
{
    redlock_opts_t single = redlock_opts(RIG_TTL_MS), second = opts;

    opts.wait_ms = rig_wait_ms(WAIT_MS);
    single.wait_ms = second.wait_ms = wait_scaled_ms(WAIT_MS); /* no lock is released for these */
    rig_acquire(0, "name", &opts);
    rig_acquire(1, "name", &second);
    rig_acquire(2, "third", &single);
    rig_finish();
}

/* Checks that at most one of the three locks is granted. */
static void judge_three(void)
{
    unsigned granted = 0;
    RIG_EXPECT(0, REDLOCK_OK, REDLOCK_ENOMEM, REDLOCK_ENOQUORUM, REDLOCK_ECONTENDED);
    for (unsigned i = 0; i < 3; i++)
        granted += rig.call[i].lock != NULL;
    ck_assert_uint_le(granted, 1); /* the first one to get a resource keeps it */
    if (!rig.hit && !rig.hasty)
        ck_assert_uint_eq(granted, 1);
    for (unsigned i = 0; i < 3; i++)
        judge_grant(i);
}

START_TEST(queued_acquisitions_without_memory)
{
    rig_sweep(&(struct scenario){.name = "several at once",
                                 .prepare = set_options,
                                 .act = acquire_three,
                                 .judge = judge_three});
}
END_TEST

/* Sets one of the keys as another client. */
static void set_foreign_key(void)
{
    set_options();
    rig_command_all("SET other foreign-token");
}

/* Checks that the acquisition has failed and the other client's key is unchanged. */
static void judge_denied(void)
{
    RIG_EXPECT(0, REDLOCK_ECONTENDED, REDLOCK_ENOMEM, REDLOCK_ENOQUORUM);
    for (unsigned i = 0; i < RIG_NODES; i++)
        ck_assert(cluster_replies(rig.cluster, i, "foreign-token", "GET other"));
}

START_TEST(acquiring_a_partly_held_set_without_memory)
{
    rig_sweep(&(struct scenario){
        .name = "one is taken", .prepare = set_foreign_key, .act = acquire, .judge = judge_denied});
}
END_TEST

/* Sets all keys with a known token. */
static void set_keys_with_token(void)
{
    set_options();
    strcpy(token, "1234567890123456789012345678901234567890");
    rig_command_all("MSET name 1234567890123456789012345678901234567890 "
                    "other 1234567890123456789012345678901234567890 "
                    "resource 1234567890123456789012345678901234567890 "
                    "third 1234567890123456789012345678901234567890");
}

/* Adopts the lock by its token. */
static void adopt(void)
{
    rig_started(0, redlock_adopt_start(rig.client, "name", token, &opts, rig_done, &rig.call[0]));
    rig_finish();
}

/* Checks that the lock is adopted, or still has all its keys. */
static void judge_adoption(void)
{
    RIG_EXPECT(0, REDLOCK_OK, REDLOCK_ENOMEM, REDLOCK_ENOQUORUM);
    if (rig.call[0].lock == NULL) {
        ck_assert_uint_eq(count_servers_with("third"), RIG_NODES); /* its holder still has it */
        rig_command_all("DEL name other resource third");
    }
    judge_grant(0);
}

START_TEST(adopting_several_resources_without_memory)
{
    rig_sweep(&(struct scenario){.name = "several, adopted",
                                 .prepare = set_keys_with_token,
                                 .act = adopt,
                                 .judge = judge_adoption});
}
END_TEST

/* Releases all four resources by the token. */
static void release_by_token(void)
{
    static const char *const all[] = {"name", "other", "resource", "third"};

    rig_started(0, redlock_release_token_all_start(rig.client, all, 4, token, NULL, rig_done,
                                                   &rig.call[0]));
    rig_finish();
}

/* Checks the status; removes the keys if the release has failed. */
static void judge_release(void)
{
    RIG_EXPECT(0, REDLOCK_OK, REDLOCK_ENOMEM, REDLOCK_ENOQUORUM);
    if (rig.call[0].started != REDLOCK_OK || rig.call[0].status != REDLOCK_OK)
        rig_command_all("DEL name other resource third");
}

START_TEST(releasing_several_resources_without_memory)
{
    rig_sweep(&(struct scenario){.name = "several, by token",
                                 .prepare = set_keys_with_token,
                                 .act = release_by_token,
                                 .judge = judge_release});
}
END_TEST

static Suite *multi_suite(void)
{
    Suite *suite = suite_create("oom_many");
    TCase *tcase = tcase_create("multi");
    rig_add_fixtures(tcase);
    tcase_add_test(tcase, acquiring_several_resources_without_memory);
    tcase_add_test(tcase, queued_acquisitions_without_memory);
    tcase_add_test(tcase, acquiring_a_partly_held_set_without_memory);
    tcase_add_test(tcase, adopting_several_resources_without_memory);
    tcase_add_test(tcase, releasing_several_resources_without_memory);
    suite_add_tcase(suite, tcase);
    return suite;
}

int main(void)
{
    return rig_main(multi_suite());
}
