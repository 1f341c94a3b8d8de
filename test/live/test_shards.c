/* SPDX-License-Identifier: MIT
 * Two shards of five servers in one client: the shard of each key, and that each kind of lock works
 * in both.
 *
 * Uses live.h: ten real servers in two shards, that run as long as the program, and `live`, the
 * settings and the client of the running case. After each case all servers are made healthy, and a
 * key or descriptor that is left fails the case. live_open() creates a client from a
 * configuration, such as that of live_config(), and waits until all nodes are eligible.
 * live_lock() acquires a lock, which must be granted. live_release() returns the status of one
 * call and keeps its report. WAIT_UNTIL(condition, ms) polls and returns false after the deadline.
 * wait_scaled_ms() stretches a time for slow builds. CHECK_STATUS() compares two REDLOCK_* codes.
 * LONG_TTL_MS is a TTL that no case reaches. From live_events.h: note_done() stores the result of
 * an asynchronous call in a struct outcome, and outcome_wait() waits for it and returns its
 * status. From fences.h: fences_begin() removes all fence records, fences_open() creates a client
 * with volatile records, fences_acquire() acquires a fenced lock, and fences_pass() also releases
 * it and returns its fencing token. From two_shards.h: servers 0 to 4 belong to shard 0 ("east"),
 * 5 to 9 to shard 1 ("west"); connect_both() creates live.client for both, and resource_in()
 * returns a name that belongs to one of them. */
#include "fences.h"
#include "live_events.h"
#include "suite.h"
#include "two_shards.h"

#include <stdio.h>
#include <string.h>

#define NAMES 24 /* resources; each shard should get several */

/* Checks that the statistics of all shards add up to those of the client. */
static void expect_sums(redlock_t *client)
{
    redlock_stats_t all = live_stats(client), shard;
    uint64_t sums[sizeof all / sizeof(uint64_t)] = {0}, words[sizeof all / sizeof(uint64_t)];

    _Static_assert(sizeof all % sizeof(uint64_t) == 0, "all fields are numbers of 64 bits");
    for (size_t i = 0; i < redlock_shard_count(client); i++) {
        ck_assert_int_eq(redlock_get_shard_stats(client, i, &shard, sizeof shard), REDLOCK_OK);
        memcpy(words, &shard, sizeof words);
        for (size_t word = 0; word < sizeof words / sizeof words[0]; word++)
            sums[word] += words[word];
    }
    memcpy(words, &all, sizeof words);
    for (size_t word = 0; word < sizeof words / sizeof words[0]; word++)
        ck_assert_msg(words[word] == sums[word], "field %zu: %llu in all, %llu in the shards", word,
                      (unsigned long long)words[word], (unsigned long long)sums[word]);
}

/* Of NAMES names, each is locked on the servers of its own shard only, both shards get a fair
 * part, and the statistics of the shards add up to those of the client. */
START_TEST(names_belong_to_one_shard_each)
{
    redlock_lock_t *locks[NAMES];
    unsigned counts[2] = {0, 0};
    char name[32];
    connect_both();
    for (unsigned i = 0; i < NAMES; i++) {
        snprintf(name, sizeof name, "spread-%u", i);
        locks[i] = live_lock(name, LONG_TTL_MS);
        const int shard = redlock_shard_of(live.client, name);
        ck_assert_int_ge(shard, 0);
        ck_assert_int_le(shard, 1);
        counts[shard]++;
        ck_assert(WAIT_UNTIL(count_in((unsigned)shard, name) == EACH, TIME_LIMIT_MS));
        ck_assert_uint_eq(count_in((unsigned)!shard, name), 0);
    }
    ck_assert_uint_gt(counts[0], NAMES / 5);
    ck_assert_uint_gt(counts[1], NAMES / 5);
    const redlock_stats_t all = live_stats(live.client);
    ck_assert_uint_eq(all.held, NAMES);
    ck_assert_uint_eq(all.acquired, NAMES);
    for (unsigned shard = 0; shard < 2; shard++) {
        ck_assert_uint_eq(shard_stats(shard).held, counts[shard]);
        ck_assert_uint_eq(shard_stats(shard).acquired, counts[shard]);
    }
    expect_sums(live.client);
    redlock_stats_t none;
    ck_assert_int_eq(redlock_get_shard_stats(live.client, 2, &none, sizeof none), REDLOCK_EINVAL);
    for (unsigned i = 0; i < SERVERS; i++) {
        const redlock_node_stats_t node = live_node_stats(live.client, i);
        ck_assert_str_eq(node.shard, SHARD_NAMES[i / EACH]);
        ck_assert_uint_eq(node.shard_index, i / EACH);
        /* The second shard has round trips of its own, none longer than the test has run. */
        ck_assert_uint_gt(node.rtt_us, 0);
        ck_assert_uint_lt(node.rtt_us, wait_scaled_ms(TIME_LIMIT_MS) * 1000);
        ck_assert(strstr(cluster_url(live.cluster, i), node.node) != NULL);
    }
    for (unsigned i = 0; i < NAMES; i++)
        CHECK_STATUS(live_release(locks[i]), REDLOCK_OK);
}
END_TEST

/* A report names the shard and has only the nodes of this shard. */
START_TEST(a_report_is_about_one_shard)
{
    char name[64];
    redlock_node_report_t node;
    connect_both();
    for (unsigned shard = 0; shard < 2; shard++) {
        redlock_report_t *report = NULL;
        CHECK_STATUS(redlock_inspect(live.client, resource_in(shard, "report", 0, name), &report),
                     REDLOCK_OK);
        redlock_report_info_t info;
        ck_assert_int_eq(redlock_report_get_info(report, &info, sizeof info), REDLOCK_OK);
        ck_assert_str_eq(info.shard, SHARD_NAMES[shard]);
        ck_assert_uint_eq(info.nodes, EACH);
        ck_assert_uint_eq(info.quorum, EACH / 2 + 1);
        ck_assert_uint_eq(info.node_first, shard * EACH);
        for (unsigned i = 0; i < EACH; i++) {
            ck_assert_int_eq(redlock_report_get_node(report, i, &node, sizeof node), REDLOCK_OK);
            ck_assert_str_eq(node.node, live_node_stats(live.client, shard * EACH + i).node);
        }
        ck_assert_int_eq(redlock_report_get_node(report, EACH, &node, sizeof node), REDLOCK_EINVAL);
        redlock_report_free(report);
    }
}
END_TEST

/* A lock of several resources works if all are in one shard, and is refused otherwise. Names
 * with a common hash tag are in one shard. */
START_TEST(resources_of_a_lock_share_a_shard)
{
    char first[64], second[64], other[64];
    const char *also[1] = {second};
    redlock_opts_t opts = redlock_opts(LONG_TTL_MS);
    redlock_lock_t *lock = NULL;
    redlock_report_t *report = NULL;
    connect_both();
    opts.also = also;
    opts.also_count = 1;
    resource_in(0, "several", 0, first);
    resource_in(0, "several", 1, second);
    CHECK_STATUS(redlock_acquire(live.client, first, &opts, &lock, NULL), REDLOCK_OK);
    ck_assert(WAIT_UNTIL(count_in(0, first) == EACH && count_in(0, second) == EACH, TIME_LIMIT_MS));
    CHECK_STATUS(live_release(lock), REDLOCK_OK);
    also[0] = resource_in(1, "several", 0, other);
    CHECK_STATUS(redlock_acquire(live.client, first, &opts, &lock, &report), REDLOCK_EINVAL);
    const char *text = redlock_report_text(report);
    ck_assert_msg(strstr(text, "is in shard east") != NULL && strstr(text, "in west:") != NULL &&
                      strstr(text, "into braces") != NULL,
                  "%s", text);
    redlock_report_free(report);
    CHECK_STATUS(redlock_release_token_all(live.client, (const char *const[]){first, other}, 2,
                                           "token", NULL),
                 REDLOCK_EINVAL);
    /* Also if another name is in the same shard. */
    char third[64];
    opts.also = (const char *const[]){resource_in(0, "several", 1, third), other};
    opts.also_count = 2;
    CHECK_STATUS(redlock_acquire(live.client, first, &opts, &lock, NULL), REDLOCK_EINVAL);
    opts.also = also;
    opts.also_count = 1;
    /* A common hash tag puts names into the same shard. */
    for (unsigned shard = 0; shard < 2; shard++) {
        char tag[64];
        resource_in(shard, "several", 2, tag);
        snprintf(first, sizeof first, "{%.20s}:pay", tag);
        snprintf(second, sizeof second, "ship:{%.20s}", tag);
        also[0] = second;
        CHECK_STATUS(redlock_acquire(live.client, first, &opts, &lock, NULL), REDLOCK_OK);
        ck_assert(WAIT_UNTIL(count_in(shard, second) == EACH, TIME_LIMIT_MS));
        CHECK_STATUS(live_release(lock), REDLOCK_OK);
    }
}
END_TEST

/* Also a slot that is adopted by its name. */
START_TEST(slots_are_in_the_shard_of_their_semaphore)
{
    enum { PERMITS = 4 };
    redlock_lock_t *locks[PERMITS], *taken = NULL;
    char name[64], slot[96];
    connect_both();
    for (unsigned shard = 0; shard < 2; shard++) {
        redlock_opts_t opts = redlock_opts(LONG_TTL_MS);
        opts.kind = REDLOCK_KIND_PERMIT;
        opts.permits = PERMITS;
        resource_in(shard, "permits", 0, name);
        for (unsigned i = 0; i < PERMITS; i++)
            CHECK_STATUS(redlock_acquire(live.client, name, &opts, &locks[i], NULL), REDLOCK_OK);
        for (uint32_t i = 0; i < PERMITS; i++) {
            ck_assert_int_eq(redlock_slot_name(slot, sizeof slot, name, i), REDLOCK_OK);
            ck_assert_int_eq(redlock_shard_of(live.client, slot), (int)shard);
            ck_assert(WAIT_UNTIL(count_in(shard, slot) == EACH, TIME_LIMIT_MS));
        }
        CHECK_STATUS(redlock_acquire(live.client, name, &opts, &taken, NULL), REDLOCK_ECONTENDED);
        ck_assert_int_eq(
            redlock_slot_name(slot, sizeof slot, name, (uint32_t)redlock_lock_slot(locks[0])),
            REDLOCK_OK);
        ck_assert_int_eq(redlock_lock_detach(locks[0]), REDLOCK_OK);
        opts = redlock_opts(LONG_TTL_MS);
        CHECK_STATUS(
            redlock_adopt(live.client, slot, redlock_lock_token(locks[0]), &opts, &taken, NULL),
            REDLOCK_OK);
        redlock_lock_free(locks[0]);
        CHECK_STATUS(live_release(taken), REDLOCK_OK);
        for (unsigned i = 1; i < PERMITS; i++)
            CHECK_STATUS(live_release(locks[i]), REDLOCK_OK);
    }
}
END_TEST

/* Returns whether a server of the shard notifies this client, and was asked to track the key. */
static bool is_tracking(redlock_t *client, unsigned shard)
{
    for (unsigned i = shard * EACH; i < (shard + 1) * EACH; i++) {
        if (live_node_stats(client, i).notify_state == REDLOCK_NOTIFY_ON)
            return live_calls(i, "pttl") > 0;
    }
    return false;
}

/* Creates a client that does not poll during the case, so that only a notification wakes it. */
static redlock_t *open_patient(void)
{
    redlock_config_t *config = config_of_shards(SHARD_NAMES[0], SHARD_NAMES[1]);
    ck_assert_int_eq(redlock_config_set_retry_ms(config, 60000, 60000), REDLOCK_OK);
    return live_open(config);
}

/* Notifications also arrive on the connections for notifications of the second shard. */
START_TEST(waiters_are_notified_in_both_shards)
{
    char name[64];
    connect_both();
    for (unsigned shard = 0; shard < 2; shard++) {
        redlock_t *other = open_patient();
        redlock_lock_t *lock = live_lock(resource_in(shard, "waiting", 0, name), LONG_TTL_MS);
        struct outcome outcome = OUTCOME;
        redlock_opts_t opts = redlock_opts(LONG_TTL_MS);
        opts.wait_ms = REDLOCK_WAIT_FOREVER;
        cluster_command_all(live.cluster, "CONFIG RESETSTAT");
        ck_assert_int_eq(redlock_acquire_start(other, name, &opts, note_done, &outcome),
                         REDLOCK_OK);
        ck_assert(WAIT_UNTIL(is_tracking(other, shard), TIME_LIMIT_MS));
        struct outcome behind = OUTCOME; /* waits in the queue of the client */
        redlock_cancel_t *cancel;
        ck_assert_int_eq(redlock_cancel_new(&cancel, other), REDLOCK_OK);
        opts.cancel = cancel;
        ck_assert_int_eq(redlock_acquire_start(other, name, &opts, note_done, &behind), REDLOCK_OK);
        ck_assert_uint_eq(live_stats(other).queued, 1);
        redlock_cancel_trigger(cancel);
        CHECK_STATUS(outcome_wait(other, &behind), REDLOCK_ECANCELED);
        redlock_cancel_free(cancel);
        CHECK_STATUS(live_release(lock), REDLOCK_OK);
        CHECK_STATUS(outcome_wait(other, &outcome), REDLOCK_OK);
        redlock_stats_t stats;
        ck_assert_int_eq(redlock_get_shard_stats(other, shard, &stats, sizeof stats), REDLOCK_OK);
        ck_assert_uint_gt(stats.wakeups, 0);
        CHECK_STATUS(live_release(outcome.lock), REDLOCK_OK);
        live_free(other);
    }
}
END_TEST

/* Creates a client with volatile fence records and these names of the shards. */
static redlock_t *open_fenced(const char *east, const char *west)
{
    redlock_config_t *config = config_of_shards(east, west);
    ck_assert_int_eq(redlock_config_set_fence_records(config, REDLOCK_FENCE_RECORDS_VOLATILE),
                     REDLOCK_OK);
    return live_open(config);
}

/* A client with other shards, or other names of them, is refused. */
START_TEST(each_shard_has_its_own_fence_records)
{
    char east[64], west[64];
    redlock_lock_t *lock;
    fences_begin();
    live.client = open_fenced("east", "west");
    resource_in(0, "fences", 0, east);
    resource_in(1, "fences", 0, west);
    const uint64_t first = fences_pass(live.client, east, 0);
    ck_assert(WAIT_UNTIL(fences_has_record(EACH - 1), TIME_LIMIT_MS));
    ck_assert(!fences_has_record(EACH));
    ck_assert_uint_gt(fences_pass(live.client, east, 0), first);
    ck_assert_uint_gt(fences_pass(live.client, west, 0), 0);
    ck_assert(WAIT_UNTIL(fences_has_record(SERVERS - 1), TIME_LIMIT_MS));
    ck_assert_uint_eq(shard_stats(0).fence_one_round + shard_stats(0).fence_two_rounds, 2);
    redlock_t *other = open_fenced("east", "north");
    redlock_t *swapped = open_fenced("west", "east");
    CHECK_STATUS(fences_acquire(other, east, 0, &lock), REDLOCK_EFENCE);
    CHECK_STATUS(fences_acquire(swapped, east, 0, &lock), REDLOCK_EFENCE);
    CHECK_STATUS(fences_acquire(swapped, west, 0, &lock), REDLOCK_EFENCE);
    live_free(swapped);
    /* An operator restarts the records of all shards with the configuration of `other`. */
    CHECK_STATUS(redlock_init_fence_records(other, wait_scaled_ms(TIME_LIMIT_MS)), REDLOCK_OK);
    (void)fences_pass(other, east, 0);
    for (unsigned i = 0; i < NAMES; i++) {
        char name[32];
        snprintf(name, sizeof name, "fences-%u", i);
        (void)fences_pass(other, name, 0);
    }
    CHECK_STATUS(fences_acquire(live.client, east, 0, &lock), REDLOCK_EFENCE);
    live_free(other);
}
END_TEST

/* Automatic extension works in both shards. */
START_TEST(locks_are_extended_in_both_shards)
{
    char name[64];
    redlock_lock_t *locks[2];
    connect_both();
    for (unsigned shard = 0; shard < 2; shard++) {
        redlock_opts_t opts = redlock_opts(wait_scaled_ms(2000));
        opts.flags = REDLOCK_FLAG_AUTO_EXTEND;
        opts.extend_at_ms = opts.ttl_ms * 9 / 10;
        CHECK_STATUS(redlock_acquire(live.client, resource_in(shard, "kept", 0, name), &opts,
                                     &locks[shard], NULL),
                     REDLOCK_OK);
    }
    for (unsigned shard = 0; shard < 2; shard++) {
        ck_assert(WAIT_UNTIL(shard_stats(shard).extended >= 2, TIME_LIMIT_MS));
        CHECK_STATUS(live_release(locks[shard]), REDLOCK_OK);
    }
}
END_TEST

/* A shutdown releases the locks of both shards, in each mode. */
START_TEST(shutdown_releases_in_both_shards)
{
    static const int modes[] = {REDLOCK_MODE_THREADED, REDLOCK_MODE_EMBEDDED, REDLOCK_MODE_HYBRID};
    struct outcome outcomes[NAMES], ended = OUTCOME;
    live.mode = modes[_i];
    connect_both();
    for (unsigned i = 0; i < NAMES; i++) {
        char name[32];
        const redlock_opts_t opts = redlock_opts(LONG_TTL_MS);
        outcomes[i] = (struct outcome)OUTCOME;
        snprintf(name, sizeof name, "modes-%u", i);
        ck_assert_int_eq(redlock_acquire_start(live.client, name, &opts, note_done, &outcomes[i]),
                         REDLOCK_OK);
    }
    for (unsigned i = 0; i < NAMES; i++)
        CHECK_STATUS(outcome_wait(live.client, &outcomes[i]), REDLOCK_OK);
    ck_assert_uint_gt(shard_stats(0).held, 0);
    ck_assert_uint_gt(shard_stats(1).held, 0);
    ck_assert_int_eq(
        redlock_shutdown_start(live.client, wait_scaled_ms(TIME_LIMIT_MS), note_done, &ended),
        REDLOCK_OK);
    CHECK_STATUS(outcome_wait(live.client, &ended), REDLOCK_OK);
    ck_assert_uint_eq(cluster_count_all_keys(live.cluster), 0);
    for (unsigned i = 0; i < NAMES; i++)
        redlock_lock_free(outcomes[i].lock);
}
END_TEST

/* Returns the suite of all cases. The names are those of CK_RUN_CASE, which runs one group. */
static Suite *shards_suite(void)
{
    Suite *suite = suite_create("shards");
    live_add(suite, "spread", names_belong_to_one_shard_each);
    live_add(suite, "reports", a_report_is_about_one_shard);
    live_add(suite, "several", resources_of_a_lock_share_a_shard);
    live_add(suite, "permits", slots_are_in_the_shard_of_their_semaphore);
    live_add(suite, "waiting", waiters_are_notified_in_both_shards);
    live_add(suite, "fences", each_shard_has_its_own_fence_records);
    live_add_each(suite, "modes", shutdown_releases_in_both_shards, 3);
    live_add(suite, "kept", locks_are_extended_in_both_shards);
    return suite;
}

/* Runs all cases. Skips without a server program. */
int main(void)
{
    if (!cluster_available())
        return suite_skip(CLUSTER_MISSING);
    start_servers();
    const int status = suite_run_nofork(shards_suite());
    live_stop_servers();
    return status;
}
