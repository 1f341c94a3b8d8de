/* SPDX-License-Identifier: MIT
 * A lock on a bare majority of servers. */
#include "bare_majority.h"

#include <stdio.h>
#include <string.h>

struct bare_majority bare_majority;

/* Sets the memory limit of the servers outside of the majority: "1" makes them refuse to store
 * keys, "0" means no limit. */
static void set_memory(const char *value)
{
    for (unsigned i = QUORUM; i < NODES; i++)
        ck_assert(cluster_replies(live.cluster, i, "OK", "CONFIG SET maxmemory %s", value));
}

/* Adds the settings of the case to the configuration of a client, and returns it. */
static redlock_config_t *configure(redlock_config_t *config, uint32_t beat_ms)
{
    ck_assert_int_eq(redlock_config_set_fence_records(config, REDLOCK_FENCE_RECORDS_VOLATILE),
                     REDLOCK_OK);
    ck_assert_int_eq(redlock_config_set_heartbeat_ms(config, beat_ms), REDLOCK_OK);
    if (bare_majority.admission != 0)
        ck_assert_int_eq(redlock_config_set_admission(config, bare_majority.admission), REDLOCK_OK);
    return config;
}

/* Acquires the lock NAME with the flags of the case and keeps the report for live_text(). */
static int acquire(redlock_t *client, uint64_t wait_ms, redlock_lock_t **ret_lock)
{
    redlock_report_t *report = NULL;
    redlock_opts_t opts = redlock_opts(bare_majority.max_ttl_ms);
    opts.wait_ms = wait_ms;
    opts.flags = bare_majority.flags;
    const int status = redlock_acquire(client, NAME, &opts, ret_lock, &report);
    live_keep_report(report);
    return status;
}

/* Makes the other client hold a lock of its own on all servers, so that it sends heartbeats. */
static void acquire_other_lock(void)
{
    redlock_opts_t opts = redlock_opts(bare_majority.max_ttl_ms);
    opts.flags = REDLOCK_FLAG_AUTO_EXTEND | bare_majority.flags;
    opts.wait_ms = wait_scaled_ms(TIME_LIMIT_MS);
    CHECK_STATUS(
        redlock_acquire(bare_majority.other, "other_lock", &opts, &bare_majority.other_lock, NULL),
        REDLOCK_OK);
    ck_assert(WAIT_UNTIL(live_nodes_with("other_lock") == NODES, TIME_LIMIT_MS));
}

/* Opens the holder (live.client) and the other client, and acquires the lock NAME on nodes 0 to
 * 2 alone: the other servers have no memory for the key meanwhile. */
void bare_majority_hold(void)
{
    if (bare_majority.max_ttl_ms == 0)
        bare_majority.max_ttl_ms = MAX_TTL_MS;
    live.max_ttl_ms = bare_majority.max_ttl_ms;
    live.client =
        live_open(configure(live_config(), bare_majority.holder_beats ? BEAT_MS : NO_BEAT_MS));
    bare_majority.other = live_open(configure(live_config(), BEAT_MS));
    if (!bare_majority.idle)
        acquire_other_lock();
    set_memory("1");
    CHECK_STATUS(acquire(live.client, wait_scaled_ms(TIME_LIMIT_MS), &bare_majority.held),
                 REDLOCK_OK);
    ck_assert_uint_eq(live_nodes_with(NAME), QUORUM);
    set_memory("0");
}

/* Checks that only a minority of servers has the key, and that the holder still believes that it
 * holds the lock. */
void bare_majority_check_free(void)
{
    ck_assert_uint_lt(live_nodes_with(NAME), QUORUM);
    ck_assert_int_eq(redlock_lock_check(bare_majority.held, 0), REDLOCK_OK);
}

/* Checks that the client does not get the lock while the first holder has it, because of that cause
 * for the victim, and that it gets it afterwards. */
static void check_refused(redlock_t *client, int cause)
{
    redlock_lock_t *lock = NULL;
    /* A client notices a missing record only when it requests a vote. An idle client notices
     * nothing earlier. */
    const bool noticed = cause == REDLOCK_CAUSE_FENCE_RECORD || bare_majority.idle ||
                         WAIT_UNTIL(live_node_stats(client, VICTIM).cause == cause, TIME_LIMIT_MS);
    ck_assert_msg(noticed, "cause %d, \"%s\"", live_node_stats(client, VICTIM).cause,
                  live_node_stats(client, VICTIM).text);
    const int status = acquire(client, 0, &lock);
    ck_assert_msg(redlock_lock_check(bare_majority.held, 0) == REDLOCK_OK,
                  "the lock expired before the other client was refused: the machine is too slow");
    ck_assert_msg(status != REDLOCK_OK, "two clients hold the lock at once");
    ck_assert_msg(live_node(VICTIM).cause == cause, "%s", live_text());
    /* With a wait budget it gets the lock, but not while the first holder has it. */
    CHECK_STATUS(acquire(client, wait_scaled_ms(TIME_LIMIT_MS), &lock), REDLOCK_OK);
    ck_assert_int_eq(redlock_lock_check(bare_majority.held, 0), REDLOCK_ELOST);
    CHECK_STATUS(redlock_release(lock, NULL), REDLOCK_OK);
    redlock_lock_free(lock);
}

/* Checks that the other client does not get the lock before the holder has lost it, because of
 * this cause (REDLOCK_CAUSE_*) for the victim. */
void bare_majority_check_refused(int cause)
{
    check_refused(bare_majority.other, cause);
}

/* Checks the same for a client that starts now and whose address of the victim does not say
 * fresh=1. */
void bare_majority_check_refused_anew(int cause)
{
    char urls[2048] = "";
    size_t len = 0;
    for (unsigned i = 0; i < NODES; i++) {
        const char *url = cluster_url(live.cluster, i);
        len += (size_t)snprintf(urls + len, sizeof urls - len, "%s%.*s", i == 0 ? "" : ",",
                                (int)(i == VICTIM ? strcspn(url, "?") : strlen(url)), url);
    }
    redlock_t *client = NULL;
    redlock_config_t *config = configure(live_config_of(urls), BEAT_MS);
    ck_assert_int_eq(redlock_new(&client, config), REDLOCK_OK);
    redlock_config_free(config);
    check_refused(client, cause);
    ck_assert_int_eq(redlock_free(client), REDLOCK_OK);
}

/* Checks that the other client gets the lock while the holder still believes that it holds it. */
void bare_majority_check_two_at_once(void)
{
    redlock_lock_t *lock = NULL;
    CHECK_STATUS(acquire(bare_majority.other, wait_scaled_ms(TIME_LIMIT_MS), &lock), REDLOCK_OK);
    ck_assert_int_eq(redlock_lock_check(bare_majority.held, 0), REDLOCK_OK);
    CHECK_STATUS(redlock_release(lock, NULL), REDLOCK_OK);
    redlock_lock_free(lock);
}

/* Releases the locks, frees the other client and resets all fields of bare_majority. */
void bare_majority_end(void)
{
    redlock_release(bare_majority.held, NULL);
    redlock_lock_free(bare_majority.held);
    redlock_release(bare_majority.other_lock, NULL);
    redlock_lock_free(bare_majority.other_lock);
    ck_assert_int_eq(redlock_free(bare_majority.other), REDLOCK_OK);
    memset(&bare_majority, 0, sizeof bare_majority);
}
