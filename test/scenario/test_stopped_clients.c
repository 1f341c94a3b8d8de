/* SPDX-License-Identifier: MIT
 * Scenarios in which a client is paused: during an attempt, after it, or because its loop is not
 * run.
 *
 * Uses live.h: five real servers, nodes 0 to 4, that run as long as the group of cases, and
 * `live`, the settings and the client of the running case. After each case all servers are made
 * healthy, and a key or descriptor that is left fails the case. live_connect() creates live.client
 * and waits until all nodes are eligible. live_open(live_config()) returns such a client.
 * live_lock() acquires a lock, which must be granted. live_extend() and live_release() return the
 * status of one call and keep its report. live_pause(first, count) stops servers with SIGSTOP.
 * live_turn() turns a client's loop once. WAIT_UNTIL(condition, ms) polls and returns false after
 * the deadline. wait_scaled_ms() stretches a time for slow builds. CHECK_STATUS() compares two
 * REDLOCK_* codes. LONG_TTL_MS is a TTL that no case reaches. From live_events.h: note_done()
 * stores the result of an asynchronous call in a struct outcome, and outcome_wait() waits for it
 * and returns its status. From other_client.h: other_start() starts a client in another process,
 * which can be stopped; other_replies() sends it a command and compares the first word of its
 * reply. */
#include "live_events.h"
#include "other_client.h"
#include "suite.h"

#include <stdlib.h>
#include <string.h>

#define SHORT_TTL_MS 1500  /* a TTL whose end a case waits for */
#define SET_BYTES    90    /* fewer than a SET request has */
#define NO_BEAT_MS   60000 /* longer than a case: no heartbeats */
/* The client undoes its requests at the end of this TTL. It must be stopped before, so the TTL is
 * as long as the case waits for the requests. */
#define LATE_TTL_MS TIME_LIMIT_MS

/* Waits until no node has the key. */
static void wait_gone(const char *key)
{
    ck_assert_msg(WAIT_UNTIL(live_nodes_with(key) == 0, LATE_TTL_MS + TIME_LIMIT_MS),
                  "%u nodes still have the key", live_nodes_with(key));
}

/* A client is stopped after a majority has received its requests and before it reads the replies.
 * It continues when the keys have expired and another client holds the lock: it must not report the
 * lock as acquired, although a majority granted it. */
START_TEST(scenario_08_paused_before_the_replies)
{
    live.heartbeat_ms = NO_BEAT_MS; /* what a server has not read is the SET */
    live_connect();
    live.node_time_ms = TIME_LIMIT_MS; /* the other client must not undo before it is stopped */
    struct other *other = other_start(false, 0);
    /* With a first lock on all servers, no greeting is under way any more. */
    ck_assert_msg(other_replies(other, "ok", "acquire early %d 0", LONG_TTL_MS), "%s",
                  other->reply);
    ck_assert(WAIT_UNTIL(live_nodes_with("early") == NODES, TIME_LIMIT_MS));
    ck_assert_msg(other_replies(other, "ok", "release early"), "%s", other->reply);
    wait_gone("early");
    live_pause(0, NODES);
    other_send(other, "acquire late %d 0", (int)wait_scaled_ms(LATE_TTL_MS));
    ck_assert(WAIT_UNTIL(nodes_with_unread(SET_BYTES) == NODES, TIME_LIMIT_MS));
    other_stop(other);
    live_resume_all();
    ck_assert(WAIT_UNTIL(live_nodes_with("late") >= QUORUM, TIME_LIMIT_MS));
    wait_gone("late");
    redlock_lock_t *lock = live_lock("late", LONG_TTL_MS);
    other_continue(other);
    const char *reply = other_reply(other);
    ck_assert_msg(strncmp(reply, "REDLOCK_ETOOSLOW", 16) == 0 ||
                      strncmp(reply, "REDLOCK_ENOQUORUM", 17) == 0,
                  "%s", reply);
    CHECK_STATUS(live_release(lock), REDLOCK_OK);
    other_end(other);
}
END_TEST

/* A document that two clients write to: which of them wrote last if every write is accepted, and if
 * writes with a fencing token below the largest one so far are refused. */
struct document {
    const char *plain, *fenced;
    uint64_t largest_fence;
};

/* Writes to the document as a client with that fencing token. */
static void write_to(struct document *document, const char *client, uint64_t fence)
{
    document->plain = client;
    if (fence < document->largest_fence)
        return;
    document->largest_fence = fence;
    document->fenced = client;
}

/* Returns the fencing token of the client's lock "doc". */
static uint64_t fence_of(struct other *other)
{
    ck_assert_msg(other_replies(other, "ok", "fence doc"), "%s", other->reply);
    return strtoull(other->reply + 3, NULL, 10);
}

/* A client is stopped between its check of the lock and its write, until another client has locked
 * and written. Its late write damages the plain document; the fencing token protects the other one.
 */
START_TEST(scenario_09_paused_after_the_check)
{
    struct document document = {.largest_fence = 0};
    struct other *first = other_start(false, 0), *second = other_start(false, 0);
    ck_assert_msg(other_replies(first, "ok", "fenced doc %d 5000", SHORT_TTL_MS), "%s",
                  first->reply);
    const uint64_t first_fence = fence_of(first);
    ck_assert_msg(other_replies(first, "ok", "check doc"), "%s", first->reply);
    other_stop(first);
    wait_gone("doc");
    ck_assert_msg(other_replies(second, "ok", "fenced doc 20000 5000"), "%s", second->reply);
    const uint64_t second_fence = fence_of(second);
    write_to(&document, "second", second_fence);
    other_continue(first);
    write_to(&document, "first", first_fence);
    ck_assert_str_eq(document.plain, "first");
    ck_assert_str_eq(document.fenced, "second");
    ck_assert_uint_gt(second_fence, first_fence);
    /* A check after the pause reports the loss. */
    ck_assert_msg(other_replies(first, "REDLOCK_ELOST", "check doc"), "%s", first->reply);
    ck_assert_msg(other_replies(second, "ok", "check doc"), "%s", second->reply);
    ck_assert_msg(other_replies(second, "ok", "release doc"), "%s", second->reply);
    other_end(first);
    other_end(second);
    cluster_command_all(live.cluster, "DEL redlock:fence");
}
END_TEST

/* Nobody runs the loop of an embedded client, so that its lock is not extended.
 * redlock_lock_check() reports the loss all the same, and running the loop again neither revives
 * the lock nor affects the next holder's. */
START_TEST(scenario_36_starved)
{
    struct outcome outcome = OUTCOME;
    redlock_opts_t opts = redlock_opts(wait_scaled_ms(SHORT_TTL_MS));
    live.mode = REDLOCK_MODE_EMBEDDED;
    redlock_t *starved = live_open(live_config());
    live.mode = 0;
    live_connect();
    opts.flags = REDLOCK_FLAG_AUTO_EXTEND;
    ck_assert_int_eq(redlock_acquire_start(starved, "starved", &opts, note_done, &outcome),
                     REDLOCK_OK);
    ck_assert_int_eq(outcome_wait(starved, &outcome), REDLOCK_OK);
    ck_assert_int_eq(redlock_lock_check(outcome.lock, 0), REDLOCK_OK);
    wait_gone("starved");
    ck_assert_int_eq(redlock_lock_check(outcome.lock, 0), REDLOCK_ELOST);
    redlock_lock_t *lock = live_lock("starved", LONG_TTL_MS);
    for (int i = 0; i < 20; i++)
        live_turn(starved, 5);
    ck_assert_int_eq(redlock_lock_check(outcome.lock, 0), REDLOCK_ELOST);
    CHECK_STATUS(live_extend(lock, 0), REDLOCK_OK);
    CHECK_STATUS(live_release(lock), REDLOCK_OK);
    redlock_lock_free(outcome.lock);
    ck_assert_int_eq(redlock_free(starved), REDLOCK_OK);
}
END_TEST

/* Runs all cases. Skips without a server program. */
int main(void)
{
    if (!cluster_available())
        return suite_skip(CLUSTER_MISSING);
    Suite *suite = suite_create("scenario_stopped_clients");
    live_add_with(suite, "08", scenario_08_paused_before_the_replies, live_start_servers);
    live_add_with(suite, "09", scenario_09_paused_after_the_check, live_start_servers);
    live_add_with(suite, "36", scenario_36_starved, live_start_servers);
    return suite_run_nofork(suite);
}
