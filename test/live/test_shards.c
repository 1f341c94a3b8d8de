/* SPDX-License-Identifier: MIT
 * Two shards of five servers in one client: the shard of each key, and that all that works with one
 * shard works with the second. */
#include "fences.h"
#include "live_events.h"
#include "suite.h"
#include "two_shards.h"

#include <stdio.h>
#include <string.h>

#define NAMES 24

/* Those of all sets add up to the client's. */
static void expect_sums(redlock_t *client)
{
    redlock_stats_t all = live_stats(client), set;
    uint64_t sums[sizeof all / sizeof(uint64_t)] = {0}, words[sizeof all / sizeof(uint64_t)];

    _Static_assert(sizeof all % sizeof(uint64_t) == 0, "nothing but numbers of 64 bits");
    for (size_t i = 0; i < redlock_shard_count(client); i++) {
        ck_assert_int_eq(redlock_get_shard_stats(client, i, &set, sizeof set), REDLOCK_OK);
        memcpy(words, &set, sizeof words);
        for (size_t word = 0; word < sizeof words / sizeof words[0]; word++)
            sums[word] += words[word];
    }
    memcpy(words, &all, sizeof words);
    for (size_t word = 0; word < sizeof words / sizeof words[0]; word++)
        ck_assert_msg(words[word] == sums[word], "number %zu: %llu in all, %llu in the sets", word,
                      (unsigned long long)words[word], (unsigned long long)sums[word]);
}

START_TEST(spread)
{
    redlock_lock_t *locks[NAMES];
    unsigned counts[2] = {0, 0};
    char name[32];
    connect_client();
    for (unsigned i = 0; i < NAMES; i++) {
        snprintf(name, sizeof name, "spread-%u", i);
        locks[i] = live_lock(name, LONG_TTL_MS);
        const int set = redlock_shard_of(live.client, name);
        ck_assert_int_ge(set, 0);
        ck_assert_int_le(set, 1);
        counts[set]++;
        ck_assert(WAIT_UNTIL(count_in((unsigned)set, name) == EACH, TIME_LIMIT_MS));
        ck_assert_uint_eq(count_in((unsigned)!set, name), 0);
    }
    ck_assert_uint_gt(counts[0], NAMES / 5);
    ck_assert_uint_gt(counts[1], NAMES / 5);
    const redlock_stats_t all = live_stats(live.client);
    ck_assert_uint_eq(all.held, NAMES);
    ck_assert_uint_eq(all.acquired, NAMES);
    for (unsigned set = 0; set < 2; set++) {
        ck_assert_uint_eq(set_stats(set).held, counts[set]);
        ck_assert_uint_eq(set_stats(set).acquired, counts[set]);
    }
    expect_sums(live.client);
    redlock_stats_t none;
    ck_assert_int_eq(redlock_get_shard_stats(live.client, 2, &none, sizeof none), REDLOCK_EINVAL);
    for (unsigned i = 0; i < SERVERS; i++) {
        const redlock_node_stats_t node = live_node_stats(live.client, i);
        ck_assert_str_eq(node.shard, SETS[i / EACH]);
        ck_assert_uint_eq(node.shard_index, i / EACH);
        /* Times of the second set are read, too: nobody is farther away than the test has run. */
        ck_assert_uint_gt(node.rtt_us, 0);
        ck_assert_uint_lt(node.rtt_us, wait_scaled_ms(TIME_LIMIT_MS) * 1000);
        ck_assert(strstr(cluster_url(live.cluster, i), node.node) != NULL);
    }
    for (unsigned i = 0; i < NAMES; i++)
        CHECK_STATUS(live_release(locks[i]), REDLOCK_OK);
}
END_TEST

START_TEST(reports_are_of_one_set)
{
    char name[64];
    redlock_node_report_t node;
    connect_client();
    for (unsigned set = 0; set < 2; set++) {
        redlock_report_t *report = NULL;
        CHECK_STATUS(redlock_inspect(live.client, name_in(set, "report", 0, name), &report),
                     REDLOCK_OK);
        redlock_report_info_t info;
        ck_assert_int_eq(redlock_report_get_info(report, &info, sizeof info), REDLOCK_OK);
        ck_assert_str_eq(info.shard, SETS[set]);
        ck_assert_uint_eq(info.nodes, EACH);
        ck_assert_uint_eq(info.quorum, EACH / 2 + 1);
        ck_assert_uint_eq(info.node_first, set * EACH);
        for (unsigned i = 0; i < EACH; i++) {
            ck_assert_int_eq(redlock_report_get_node(report, i, &node, sizeof node), REDLOCK_OK);
            ck_assert_str_eq(node.node, live_node_stats(live.client, set * EACH + i).node);
        }
        ck_assert_int_eq(redlock_report_get_node(report, EACH, &node, sizeof node), REDLOCK_EINVAL);
        redlock_report_free(report);
    }
}
END_TEST

START_TEST(several_resources)
{
    char first[64], second[64], other[64];
    const char *also[1] = {second};
    redlock_opts_t opts = redlock_opts(LONG_TTL_MS);
    redlock_lock_t *lock = NULL;
    redlock_report_t *report = NULL;
    connect_client();
    opts.also = also;
    opts.also_count = 1;
    name_in(0, "several", 0, first);
    name_in(0, "several", 1, second);
    CHECK_STATUS(redlock_acquire(live.client, first, &opts, &lock, NULL), REDLOCK_OK);
    ck_assert(WAIT_UNTIL(count_in(0, first) == EACH && count_in(0, second) == EACH, TIME_LIMIT_MS));
    CHECK_STATUS(live_release(lock), REDLOCK_OK);
    also[0] = name_in(1, "several", 0, other);
    CHECK_STATUS(redlock_acquire(live.client, first, &opts, &lock, &report), REDLOCK_EINVAL);
    const char *text = redlock_report_text(report);
    ck_assert_msg(strstr(text, "is in shard east") != NULL && strstr(text, "in west:") != NULL &&
                      strstr(text, "into braces") != NULL,
                  "%s", text);
    redlock_report_free(report);
    CHECK_STATUS(redlock_release_token_all(live.client, (const char *const[]){first, other}, 2,
                                           "token", NULL),
                 REDLOCK_EINVAL);
    /* Each of them is looked at. */
    char third[64];
    opts.also = (const char *const[]){name_in(0, "several", 1, third), other};
    opts.also_count = 2;
    CHECK_STATUS(redlock_acquire(live.client, first, &opts, &lock, NULL), REDLOCK_EINVAL);
    opts.also = also;
    opts.also_count = 1;
    /* What the names share keeps them together, in either set. */
    for (unsigned set = 0; set < 2; set++) {
        char tag[64];
        name_in(set, "several", 2, tag);
        snprintf(first, sizeof first, "{%.20s}:pay", tag);
        snprintf(second, sizeof second, "ship:{%.20s}", tag);
        also[0] = second;
        CHECK_STATUS(redlock_acquire(live.client, first, &opts, &lock, NULL), REDLOCK_OK);
        ck_assert(WAIT_UNTIL(count_in(set, second) == EACH, TIME_LIMIT_MS));
        CHECK_STATUS(live_release(lock), REDLOCK_OK);
    }
}
END_TEST

/* All slots are where the semaphore is, and a slot can be adopted there. */
START_TEST(permits)
{
    enum { PERMITS = 4 };
    redlock_lock_t *locks[PERMITS], *taken = NULL;
    char name[64], slot[96];
    connect_client();
    for (unsigned set = 0; set < 2; set++) {
        redlock_opts_t opts = redlock_opts(LONG_TTL_MS);
        opts.kind = REDLOCK_KIND_PERMIT;
        opts.permits = PERMITS;
        name_in(set, "permits", 0, name);
        for (unsigned i = 0; i < PERMITS; i++)
            CHECK_STATUS(redlock_acquire(live.client, name, &opts, &locks[i], NULL), REDLOCK_OK);
        for (uint32_t i = 0; i < PERMITS; i++) {
            ck_assert_int_eq(redlock_slot_name(slot, sizeof slot, name, i), REDLOCK_OK);
            ck_assert_int_eq(redlock_shard_of(live.client, slot), (int)set);
            ck_assert(WAIT_UNTIL(count_in(set, slot) == EACH, TIME_LIMIT_MS));
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

/* A server of the set tells this client, and was asked about the key. */
static bool is_watching(redlock_t *client, unsigned set)
{
    for (unsigned i = set * EACH; i < (set + 1) * EACH; i++) {
        if (live_node_stats(client, i).notify_state == REDLOCK_NOTIFY_ON)
            return live_calls(i, "pttl") > 0;
    }
    return false;
}

/* By its own clock the client would not look again before the case is over. */
static redlock_t *open_patient(void)
{
    redlock_config_t *config = config_of(SETS[0], SETS[1]);
    ck_assert_int_eq(redlock_config_set_retry_ms(config, 60000, 60000), REDLOCK_OK);
    return live_open(config);
}

/* Word of a change comes over second connections of the second set, too. */
START_TEST(waiting)
{
    char name[64];
    connect_client();
    for (unsigned set = 0; set < 2; set++) {
        redlock_t *other = open_patient();
        redlock_lock_t *lock = live_lock(name_in(set, "waiting", 0, name), LONG_TTL_MS);
        struct outcome outcome = OUTCOME;
        redlock_opts_t opts = redlock_opts(LONG_TTL_MS);
        opts.wait_ms = REDLOCK_WAIT_FOREVER;
        cluster_command_all(live.cluster, "CONFIG RESETSTAT");
        ck_assert_int_eq(redlock_acquire_start(other, name, &opts, note_done, &outcome),
                         REDLOCK_OK);
        ck_assert(WAIT_UNTIL(is_watching(other, set), TIME_LIMIT_MS));
        struct outcome behind = OUTCOME; /* the other one of this client */
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
        ck_assert_int_eq(redlock_get_shard_stats(other, set, &stats, sizeof stats), REDLOCK_OK);
        ck_assert_uint_gt(stats.wakeups, 0);
        CHECK_STATUS(live_release(outcome.lock), REDLOCK_OK);
        redlock_free(other);
    }
}
END_TEST

static redlock_t *open_fenced(const char *east, const char *west)
{
    redlock_config_t *config = config_of(east, west);
    ck_assert_int_eq(redlock_config_set_fence_records(config, REDLOCK_FENCE_RECORDS_VOLATILE),
                     REDLOCK_OK);
    return live_open(config);
}

/* Records are each set's own; who knows other sets, or calls them otherwise, is refused. */
START_TEST(fences)
{
    char east[64], west[64];
    redlock_lock_t *lock;
    fences_begin();
    live.client = open_fenced("east", "west");
    name_in(0, "fences", 0, east);
    name_in(1, "fences", 0, west);
    const uint64_t first = fences_pass(live.client, east, 0);
    ck_assert(WAIT_UNTIL(fences_has_record(EACH - 1), TIME_LIMIT_MS));
    ck_assert(!fences_has_record(EACH));
    ck_assert_uint_gt(fences_pass(live.client, east, 0), first);
    ck_assert_uint_gt(fences_pass(live.client, west, 0), 0);
    ck_assert(WAIT_UNTIL(fences_has_record(SERVERS - 1), TIME_LIMIT_MS));
    ck_assert_uint_eq(set_stats(0).fence_one_round + set_stats(0).fence_two_rounds, 2);
    redlock_t *other = open_fenced("east", "north");
    redlock_t *swapped = open_fenced("west", "east");
    CHECK_STATUS(fences_acquire(other, east, 0, &lock), REDLOCK_EFENCE);
    CHECK_STATUS(fences_acquire(swapped, east, 0, &lock), REDLOCK_EFENCE);
    CHECK_STATUS(fences_acquire(swapped, west, 0, &lock), REDLOCK_EFENCE);
    redlock_free(swapped);
    /* The operator says who is right, on all sets at once. */
    CHECK_STATUS(redlock_init_fence_records(other, wait_scaled_ms(TIME_LIMIT_MS)), REDLOCK_OK);
    (void)fences_pass(other, east, 0);
    for (unsigned i = 0; i < NAMES; i++) {
        char name[32];
        snprintf(name, sizeof name, "fences-%u", i);
        (void)fences_pass(other, name, 0);
    }
    CHECK_STATUS(fences_acquire(live.client, east, 0, &lock), REDLOCK_EFENCE);
    redlock_free(other);
}
END_TEST

/* Time passes for all sets. */
START_TEST(kept)
{
    char name[64];
    redlock_lock_t *locks[2];
    connect_client();
    for (unsigned set = 0; set < 2; set++) {
        redlock_opts_t opts = redlock_opts(wait_scaled_ms(2000));
        opts.flags = REDLOCK_FLAG_AUTO_EXTEND;
        opts.extend_at_ms = opts.ttl_ms * 9 / 10;
        CHECK_STATUS(
            redlock_acquire(live.client, name_in(set, "kept", 0, name), &opts, &locks[set], NULL),
            REDLOCK_OK);
    }
    for (unsigned set = 0; set < 2; set++) {
        ck_assert(WAIT_UNTIL(set_stats(set).extended >= 2, TIME_LIMIT_MS));
        CHECK_STATUS(live_release(locks[set]), REDLOCK_OK);
    }
}
END_TEST

/* In the loop of somebody else, too; what is held in both is given back by a shutdown. */
START_TEST(modes_and_shutdown)
{
    static const int modes[] = {REDLOCK_MODE_THREADED, REDLOCK_MODE_EMBEDDED, REDLOCK_MODE_HYBRID};
    struct outcome outcomes[NAMES], ended = OUTCOME;
    live.mode = modes[_i];
    connect_client();
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
    ck_assert_uint_gt(set_stats(0).held, 0);
    ck_assert_uint_gt(set_stats(1).held, 0);
    ck_assert_int_eq(
        redlock_shutdown_start(live.client, wait_scaled_ms(TIME_LIMIT_MS), note_done, &ended),
        REDLOCK_OK);
    CHECK_STATUS(outcome_wait(live.client, &ended), REDLOCK_OK);
    ck_assert_uint_eq(cluster_count_all_keys(live.cluster), 0);
    for (unsigned i = 0; i < NAMES; i++)
        redlock_lock_free(outcomes[i].lock);
}
END_TEST

static Suite *shards_suite(void)
{
    Suite *suite = suite_create("shards");
    live_add(suite, "spread", spread);
    live_add(suite, "reports", reports_are_of_one_set);
    live_add(suite, "several", several_resources);
    live_add(suite, "permits", permits);
    live_add(suite, "waiting", waiting);
    live_add(suite, "fences", fences);
    live_add_each(suite, "modes", modes_and_shutdown, 3);
    live_add(suite, "kept", kept);
    return suite;
}

int main(void)
{
    if (!cluster_available())
        return suite_skip(CLUSTER_MISSING);
    start_servers();
    const int status = suite_run_nofork(shards_suite());
    live_stop_servers();
    return status;
}
