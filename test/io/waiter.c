/* SPDX-License-Identifier: MIT
 * Runs an acquisition that waits, and reads the statistics about it. */
#include "waiter.h"

#include "wait.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#define NEVER_MS 60000 /* longer than any case: a waiter that gets the lock was notified */

/* The acquisition that waits. There is one at a time. */
static struct {
    pthread_mutex_t mutex;
    bool done;
    int status;
    redlock_lock_t *lock;
    uint64_t timeouts; /* of all nodes, when the key was released */
} waiter = {.mutex = PTHREAD_MUTEX_INITIALIZER};

/* Records the end of the acquisition. */
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

/* Returns whether the acquisition of waiter_begin() has had its callback. */
bool waiter_is_done(void)
{
    pthread_mutex_lock(&waiter.mutex);
    bool done = waiter.done;
    pthread_mutex_unlock(&waiter.mutex);
    return done;
}

/* Returns the client's number of attempts, from its statistics. */
uint64_t waiter_attempts(void)
{
    redlock_stats_t stats;
    ck_assert_int_eq(redlock_get_stats(three_servers.client, &stats, sizeof stats), REDLOCK_OK);
    return stats.attempts;
}

/* Returns the client's number of wake-ups, from its statistics. */
uint64_t waiter_wakeups(void)
{
    redlock_stats_t stats;
    ck_assert_int_eq(redlock_get_stats(three_servers.client, &stats, sizeof stats), REDLOCK_OK);
    return stats.wakeups;
}

/* Sets the key, or the keys of all slots, as another holder. */
static void set_keys_of_another(void)
{
    char key[64];

    for (size_t i = 0; i < THREE_SERVERS; i++) {
        fake_redis_put(three_servers.fake[i], WAITER_KEY, "another", 600000);
        for (uint32_t slot = 0; slot < three_servers.permits; slot++) {
            snprintf(key, sizeof key, WAITER_KEY "{#%u}", slot);
            fake_redis_put(three_servers.fake[i], key, "another", 600000);
        }
    }
}

/* Sets the key as another holder and starts an acquisition; returns when the client has
 * requested the key. One at a time. */
void waiter_begin(void)
{
    redlock_opts_t opts = redlock_opts(TTL_MS);

    opts.wait_ms = REDLOCK_WAIT_FOREVER;
    three_servers_refine(&opts);
    set_keys_of_another();
    uint64_t before = waiter_attempts();
    waiter.done = false;
    waiter.lock = NULL;
    ck_assert_int_eq(
        redlock_acquire_start(three_servers.client, WAITER_KEY, &opts, note_done, NULL),
        REDLOCK_OK);
    ck_assert(WAIT_UNTIL(waiter_attempts() > before, TIME_LIMIT_MS));
    ck_assert(!waiter_is_done());
}

/* Returns whether some server sends notifications to the client. */
bool waiter_any_notifies(void)
{
    for (size_t i = 0; i < THREE_SERVERS; i++) {
        if (three_servers_stats(i).notify_state == REDLOCK_NOTIFY_ON)
            return true;
    }
    return false;
}

/* Returns the index of the server that will send a notification when the key changes, or
 * THREE_SERVERS if there is none. */
size_t waiter_notifier(void)
{
    for (size_t i = 0; i < THREE_SERVERS; i++) {
        if (three_servers_stats(i).notify_state == REDLOCK_NOTIFY_ON &&
            fake_redis_notifies(three_servers.fake[i], WAITER_KEY))
            return i;
    }
    return THREE_SERVERS;
}

/* Returns whether some server will send a notification when the key changes. */
bool waiter_is_tracked(void)
{
    return waiter_notifier() < THREE_SERVERS;
}

/* Returns how many notifications all nodes have received, from their statistics. */
uint64_t waiter_notifications_of_all(void)
{
    return three_servers_stats(0).notifications + three_servers_stats(1).notifications +
           three_servers_stats(2).notifications;
}

/* Returns whether some server has refused to send notifications. */
bool waiter_is_refused(void)
{
    for (size_t i = 0; i < THREE_SERVERS; i++) {
        if (three_servers_stats(i).notify_state == REDLOCK_NOTIFY_REFUSED)
            return true;
    }
    return false;
}

/* Returns how often a server has not replied in time, from the statistics of the nodes. */
static uint64_t timeouts_of_all(void)
{
    return three_servers_stats(0).timeouts + three_servers_stats(1).timeouts +
           three_servers_stats(2).timeouts;
}

/* Deletes the other holder's key on all servers, last on the one whose notification the client
 * expects. */
void waiter_release_key(void)
{
    size_t last = waiter_notifier();

    waiter.timeouts = timeouts_of_all();
    for (size_t i = 0; i < THREE_SERVERS; i++) {
        if (i != last)
            fake_redis_remove(three_servers.fake[i], WAITER_KEY);
    }
    if (last < THREE_SERVERS)
        fake_redis_remove(three_servers.fake[last], WAITER_KEY);
    for (size_t i = 0; i < THREE_SERVERS && three_servers.permits != 0; i++)
        fake_redis_flush(three_servers.fake[i]);
}

/* Returns the states of the nodes, for messages. */
const char *waiter_states(void)
{
    static char text[1024];
    size_t at = 0;

    for (size_t i = 0; i < THREE_SERVERS; i++) {
        redlock_node_stats_t stats = three_servers_stats(i);
        at += (size_t)snprintf(text + at, sizeof text - at,
                               "\n  %zu: vote %d (%s), reconnects %llu, wakeups %d (%s)", i,
                               stats.eligible, stats.text, (unsigned long long)stats.reconnects,
                               stats.notify_state, stats.notify_text);
    }
    return text;
}

/* Waits until the acquisition has had its callback. On a busy machine an attempt may fail after the
 * release of the key, because a server does not reply in time: a patient waiter makes the next one
 * after NEVER_MS. Returns false if the acquisition has not ended. */
static bool wait_for_end(void)
{
    return WAIT_UNTIL(waiter_is_done(), TIME_LIMIT_MS) ||
           (timeouts_of_all() > waiter.timeouts && WAIT_UNTIL(waiter_is_done(), NEVER_MS));
}

/* Checks that the acquisition succeeds, and requests a release. Returns its status. */
int waiter_check_granted(const char *name)
{
    ck_assert_msg(wait_for_end(), "%s: still waiting%s", name, waiter_states());
    ck_assert_msg(waiter.status == REDLOCK_OK, "%s: %s%s", name, redlock_strerror(waiter.status),
                  waiter_states());
    int status = redlock_release(waiter.lock, NULL);
    redlock_lock_free(waiter.lock);
    return status;
}

/* Checks that the acquisition succeeds, and releases the lock. */
void waiter_check_acquired(const char *name)
{
    int status = waiter_check_granted(name);
    ck_assert_msg(status == REDLOCK_OK, "%s: release: %s%s", name, redlock_strerror(status),
                  waiter_states());
    ck_assert_msg(three_servers_wait_no_keys(), "%s: keys left behind", name);
}

/* Creates a client that polls soon, and waits until all its nodes are eligible. */
void waiter_connect_usual(void)
{
    three_servers_connect();
    ck_assert(three_servers_wait_all_vote());
}

/* Does the same, but the client does not poll before the end of any case: only a notification
 * can wake it. */
void waiter_connect_patient(void)
{
    three_servers.retry_ms = NEVER_MS;
    waiter_connect_usual();
}

/* Checks that the client recovers: all nodes are eligible, and an acquisition is notified. */
void waiter_check_notified_again(const char *name)
{
    ck_assert_msg(three_servers_wait_all_vote(), "%s:%s", name, waiter_states());
    waiter_begin();
    ck_assert_msg(WAIT_UNTIL(waiter_is_tracked(), TIME_LIMIT_MS), "%s: not tracked%s", name,
                  waiter_states());
    waiter_release_key();
    waiter_check_acquired(name);
}

/* Returns how often the nodes have connected again, from their statistics. */
uint64_t waiter_reconnects(void)
{
    return three_servers_stats(0).reconnects + three_servers_stats(1).reconnects +
           three_servers_stats(2).reconnects;
}
