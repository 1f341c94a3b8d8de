/* SPDX-License-Identifier: MIT
 * Scenarios in which a client stands still: in the middle of an attempt, after it, or with only its
 * thread delayed. */
#include "live_events.h"
#include "other_client.h"
#include "suite.h"

#include <stdlib.h>
#include <string.h>

#define SHORT_TTL_MS 1500
#define SET_BYTES    90   /* at least; more than it takes to ask for the time */
#define LATE_TTL_MS  3000 /* it must be stopped before that is over */

static void wait_gone(const char *key)
{
    ck_assert_msg(WAIT_UNTIL(live_nodes_with(key) == 0, TIME_LIMIT_MS),
                  "%u nodes still have the key", live_nodes_with(key));
}

/* Its votes are grants of a majority; when it goes on, they are worth nothing any more. */
START_TEST(scenario_08_paused_before_the_replies)
{
    live_connect();
    struct other *other = other_start(false, 0);
    ck_assert_msg(other_process_replies(other, "ok", "state late"), "%s", other->answer);
    live_pause(0, NODES);
    other_process_send(other, "acquire late %d 0", LATE_TTL_MS);
    ck_assert(WAIT_UNTIL(nodes_with_unread(SET_BYTES) >= QUORUM, TIME_LIMIT_MS));
    other_stop(other);
    live_resume_all();
    ck_assert(WAIT_UNTIL(live_nodes_with("late") >= QUORUM, TIME_LIMIT_MS));
    wait_gone("late");
    redlock_lock_t *lock = live_lock("late", LONG_TTL_MS);
    other_continue(other);
    const char *answer = other_process_reply(other);
    ck_assert_msg(strncmp(answer, "REDLOCK_ETOOSLOW", 16) == 0 ||
                      strncmp(answer, "REDLOCK_ENOQUORUM", 17) == 0,
                  "%s", answer);
    CHECK_STATUS(live_release(lock), REDLOCK_OK);
    other_end(other);
}
END_TEST

/* What is written to: plain, and with fences compared. */
struct document {
    const char *plain, *fenced;
    uint64_t seen;
};

static void write_to(struct document *document, const char *who, uint64_t fence)
{
    document->plain = who;
    if (fence < document->seen)
        return;
    document->seen = fence;
    document->fenced = who;
}

static uint64_t fence_of(struct other *other)
{
    ck_assert_msg(other_process_replies(other, "ok", "fence doc"), "%s", other->answer);
    return strtoull(other->answer + 3, NULL, 10);
}

START_TEST(scenario_09_paused_after_the_check)
{
    struct document document = {.seen = 0};
    struct other *first = other_start(false, 0), *second = other_start(false, 0);
    ck_assert_msg(other_process_replies(first, "ok", "fenced doc %d 5000", SHORT_TTL_MS), "%s",
                  first->answer);
    const uint64_t first_fence = fence_of(first);
    ck_assert_msg(other_process_replies(first, "ok", "check doc"), "%s", first->answer);
    /* It has looked, and is stopped before it writes. */
    other_stop(first);
    wait_gone("doc");
    ck_assert_msg(other_process_replies(second, "ok", "fenced doc 20000 5000"), "%s",
                  second->answer);
    const uint64_t second_fence = fence_of(second);
    write_to(&document, "second", second_fence);
    other_continue(first);
    write_to(&document, "first", first_fence); /* no check: that was before */
    ck_assert_str_eq(document.plain, "first"); /* the damage */
    ck_assert_str_eq(document.fenced, "second");
    ck_assert_uint_gt(second_fence, first_fence);
    /* Who asks again is told. */
    ck_assert_msg(other_process_replies(first, "REDLOCK_ELOST", "check doc"), "%s", first->answer);
    ck_assert_msg(other_process_replies(second, "ok", "check doc"), "%s", second->answer);
    ck_assert_msg(other_process_replies(second, "ok", "release doc"), "%s", second->answer);
    other_end(first);
    other_end(second);
    cluster_command_all(live.cluster, "DEL redlock:fence");
}
END_TEST

/* Nobody turns the loop that would extend it: the answer is true all the same. */
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
    wait_gone("starved"); /* so others may have it from now on */
    ck_assert_int_eq(redlock_lock_check(outcome.lock, 0), REDLOCK_ELOST);
    redlock_lock_t *lock = live_lock("starved", LONG_TTL_MS);
    /* Late, it neither comes back to life nor disturbs the new one. */
    for (int i = 0; i < 20; i++)
        live_turn(starved, 5);
    ck_assert_int_eq(redlock_lock_check(outcome.lock, 0), REDLOCK_ELOST);
    CHECK_STATUS(live_extend(lock, 0), REDLOCK_OK);
    CHECK_STATUS(live_release(lock), REDLOCK_OK);
    redlock_lock_free(outcome.lock);
    ck_assert_int_eq(redlock_free(starved), REDLOCK_OK);
}
END_TEST

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
