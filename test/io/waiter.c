/* SPDX-License-Identifier: MIT
 * An acquisition that waits, and what is known of it. */
#include "waiter.h"

#include "wait.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#define NEVER_MS 60000 /* later than the end of any case: who has the lock was told */

/* One acquisition at a time that waits. */
static struct {
    pthread_mutex_t mutex;
    bool done;
    int status;
    redlock_lock_t *lock;
} waiter = {.mutex = PTHREAD_MUTEX_INITIALIZER};

static void note_done(redlock_t *rl, int status, redlock_lock_t *lock,
                      const redlock_report_t *report, void *userdata)
{
    (void)rl;
    (void)report;
    (void)userdata;
    pthread_mutex_lock(&waiter.mutex);
    waiter.done = true;
    waiter.status = status;
    waiter.lock = lock;
    pthread_mutex_unlock(&waiter.mutex);
}

bool waiter_is_done(void)
{
    pthread_mutex_lock(&waiter.mutex);
    bool done = waiter.done;
    pthread_mutex_unlock(&waiter.mutex);
    return done;
}

uint64_t waiter_attempts(void)
{
    redlock_stats_t stats;
    ck_assert_int_eq(redlock_get_stats(trio.client, &stats, sizeof stats), REDLOCK_OK);
    return stats.attempts;
}

uint64_t waiter_wakeups(void)
{
    redlock_stats_t stats;
    ck_assert_int_eq(redlock_get_stats(trio.client, &stats, sizeof stats), REDLOCK_OK);
    return stats.wakeups;
}

static void take_by_another(void)
{
    char key[64];

    for (size_t i = 0; i < TRIO; i++) {
        fake_redis_put(trio.fake[i], WAITER_KEY, "another", 600000);
        for (uint32_t slot = 0; slot < trio.permits; slot++) {
            snprintf(key, sizeof key, WAITER_KEY "{#%u}", slot);
            fake_redis_put(trio.fake[i], key, "another", 600000);
        }
    }
}

void waiter_begin(void)
{
    redlock_opts_t opts = redlock_opts(TTL_MS);

    opts.wait_ms = REDLOCK_WAIT_FOREVER;
    trio_refine(&opts);
    take_by_another();
    uint64_t before = waiter_attempts();
    waiter.done = false;
    waiter.lock = NULL;
    ck_assert_int_eq(redlock_acquire_start(trio.client, WAITER_KEY, &opts, note_done, NULL),
                     REDLOCK_OK);
    ck_assert(WAIT_UNTIL(waiter_attempts() > before, PATIENCE_MS));
    ck_assert(!waiter_is_done());
}

bool waiter_somebody_tells(void)
{
    for (size_t i = 0; i < TRIO; i++) {
        if (trio_stats(i).wakeups == REDLOCK_WAKEUPS_ON)
            return true;
    }
    return false;
}

/* The server that will tell of the next change, or TRIO. */
size_t waiter_teller(void)
{
    for (size_t i = 0; i < TRIO; i++) {
        if (trio_stats(i).wakeups == REDLOCK_WAKEUPS_ON &&
            fake_redis_tells(trio.fake[i], WAITER_KEY))
            return i;
    }
    return TRIO;
}

bool waiter_is_watched(void)
{
    return waiter_teller() < TRIO;
}

uint64_t waiter_pushes_of_all(void)
{
    return trio_stats(0).pushes + trio_stats(1).pushes + trio_stats(2).pushes;
}

bool waiter_is_refused(void)
{
    for (size_t i = 0; i < TRIO; i++) {
        if (trio_stats(i).wakeups == REDLOCK_WAKEUPS_REFUSED)
            return true;
    }
    return false;
}

/* The server that is watched is the last to lose the key. */
void waiter_let_go(void)
{
    size_t last = waiter_teller();

    for (size_t i = 0; i < TRIO; i++) {
        if (i != last)
            fake_redis_remove(trio.fake[i], WAITER_KEY);
    }
    if (last < TRIO)
        fake_redis_remove(trio.fake[last], WAITER_KEY);
    for (size_t i = 0; i < TRIO && trio.permits != 0; i++)
        fake_redis_flush(trio.fake[i]);
}

const char *waiter_states(void)
{
    static char text[1024];
    size_t at = 0;

    for (size_t i = 0; i < TRIO; i++) {
        redlock_node_stats_t stats = trio_stats(i);
        at += (size_t)snprintf(text + at, sizeof text - at,
                               "\n  %zu: vote %d (%s), reconnects %llu, wakeups %d (%s)", i,
                               stats.may_vote, stats.text, (unsigned long long)stats.reconnects,
                               stats.wakeups, stats.wakeups_text);
    }
    return text;
}

void waiter_check_had(const char *name)
{
    ck_assert_msg(WAIT_UNTIL(waiter_is_done(), PATIENCE_MS), "%s: still waiting%s", name,
                  waiter_states());
    ck_assert_msg(waiter.status == REDLOCK_OK, "%s: %s%s", name, redlock_strerror(waiter.status),
                  waiter_states());
    int status = redlock_release(waiter.lock, NULL);
    ck_assert_msg(status == REDLOCK_OK, "%s: release: %s%s", name, redlock_strerror(status),
                  waiter_states());
    redlock_lock_free(waiter.lock);
    ck_assert_msg(trio_wait_no_keys(), "%s: keys left behind", name);
}

void waiter_connect_usual(void)
{
    trio_connect();
    ck_assert(trio_wait_all_vote());
}

void waiter_connect_patient(void)
{
    trio.retry_ms = NEVER_MS;
    waiter_connect_usual();
}

/* All is well again: somebody is told. */
void waiter_check_told_again(const char *name)
{
    ck_assert_msg(trio_wait_all_vote(), "%s:%s", name, waiter_states());
    waiter_begin();
    ck_assert_msg(WAIT_UNTIL(waiter_is_watched(), PATIENCE_MS), "%s: not told%s", name,
                  waiter_states());
    waiter_let_go();
    waiter_check_had(name);
}

uint64_t waiter_reconnects(void)
{
    return trio_stats(0).reconnects + trio_stats(1).reconnects + trio_stats(2).reconnects;
}
