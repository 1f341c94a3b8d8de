/* SPDX-License-Identifier: MIT
 * A node that is listed with waitaof=1: how long its disk may take, that what stands behind the
 * question is not late, and heartbeats between questions. */
#include "node_rig.h"

#include <stdio.h>
#include <string.h>

#include "suite.h"

#define SERVER  "redis_version:7.2.4\r\nrun_id:0123abcd\r\nuptime_in_seconds:77\r\n"
#define DISK_NS (3 * RL_SECOND)

static struct rig *rig;
static struct rl_claim *a, *b;

static void setup(void)
{
    rig = rig_new();
    a = rig_claim(rig, "aa");
    b = rig_claim(rig, "bb");
    rig_ready_with_disk(rig, SERVER);
}

static void teardown(void)
{
    rig_done(rig);
    rig_drop(a);
    rig_drop(b);
}

static const struct {
    uint64_t fixed_ns, silent_ns;
} LIMITS[] = {{0, 10 * RL_MS}, {50 * RL_MS, 50 * RL_MS}, {4 * RL_SECOND, 4 * RL_SECOND}};

/* The question has its own second, besides what any answer may take. */
START_TEST(no_answer_from_the_disk)
{
    rig->common.node_timeout_ns = LIMITS[_i].fixed_ns;
    rig_grant_on_disk(rig, a, 1);
    rig_pass(rig, RL_SECOND + LIMITS[_i].silent_ns - 1);
    rig_no_vote(rig);
    ck_assert(!rig->node.suspect);
    rig_pass(rig, 1);
    ck_assert(rig->node.suspect);
    rig_check_vote(rig, a, RL_VOTE_SILENT, REDLOCK_CAUSE_TIMEOUT, 1);
    if (_i == 0) { /* after all */
        rig_reply(rig, RIG_ON_DISK "+PONG\r\n");
        rig_check_vote(rig, a, RL_VOTE_GRANTED, 0, 1);
        ck_assert(!rig->node.suspect);
        ck_assert_uint_eq(rl_node_wake_ns(&rig->node), RL_NEVER);
        return;
    }
    rig_pass(rig, 2 * RL_SECOND); /* a new connection is tried */
    rig_check_vote(rig, a, RL_VOTE_FAILED, REDLOCK_CAUSE_TIMEOUT, 1);
    ck_assert_uint_eq(a->refs, 1);
}
END_TEST

static void not_yet(uint64_t for_ns)
{
    for (uint64_t passed = 0; passed < for_ns; passed += 100 * RL_MS) {
        rig_pass(rig, 100 * RL_MS);
        rig_reply(rig, "*2\r\n:0\r\n:0\r\n");
    }
    rig_said(rig);
}

/* A time limit that was asked for, and is longer, holds for the disk too. */
START_TEST(how_long_a_disk_may_take)
{
    uint64_t disk_ns = rl_max_u64(DISK_NS, LIMITS[_i].fixed_ns);

    rig->common.node_timeout_ns = LIMITS[_i].fixed_ns;
    rig_grant_on_disk(rig, a, 1);
    not_yet(disk_ns - 100 * RL_MS);
    rig_no_vote(rig);
    not_yet(100 * RL_MS);
    rig_check_vote(rig, a, RL_VOTE_FAILED, REDLOCK_CAUSE_NOT_ON_DISK, 1);
    ck_assert(!rig->node.suspect);
}
END_TEST

/* No answer any more when its time is over: it has failed, and an answer is nobody's. */
START_TEST(late_and_silent)
{
    rig_grant_on_disk(rig, a, 1);
    not_yet(DISK_NS - 100 * RL_MS);
    rig_pass(rig, RL_SECOND + 10 * RL_MS);
    ck_assert(rig->node.suspect);
    rig_check_vote(rig, a, RL_VOTE_FAILED, REDLOCK_CAUSE_NOT_ON_DISK, 1);
    ck_assert_uint_eq(a->refs, 1);
    rig_reply(rig, RIG_ON_DISK "+PONG\r\n");
    rig_no_vote(rig);
    ck_assert(!rig->node.suspect);
    ck_assert_uint_eq(rl_node_wake_ns(&rig->node), RL_NEVER);
}
END_TEST

/* What stands behind the question is given its time from the answer on, and says nothing of the
 * way; if there is no answer, it fails with it. */
START_TEST(behind_a_slow_disk)
{
    bool answered = _i == 0;

    rig_grant_on_disk(rig, a, 1);
    rig->node.srtt_ns = RL_MS;
    rig_pass(rig, 300 * RL_MS);
    rig_ask(rig, b, 2, RL_VERB_ACQUIRE);
    rig_pass(rig, 700 * RL_MS);
    rig_no_vote(rig);
    ck_assert(!rig->node.suspect);
    if (!answered) {
        rig_pass(rig, 250 * RL_MS);
        ck_assert_uint_eq(rig->vote_count, 3);
        ck_assert_uint_eq(rig->votes[0].ballot.vote, RL_VOTE_SILENT);
        ck_assert_uint_eq(rig->votes[1].ballot.vote, RL_VOTE_SILENT);
        ck_assert_ptr_eq(rig->votes[2].claim, b);
        ck_assert_uint_eq(rig->votes[2].ballot.vote, RL_VOTE_FAILED);
        ck_assert_uint_eq(rig->votes[2].ballot.cause, REDLOCK_CAUSE_TIMEOUT);
        return;
    }
    rig_reply(rig, RIG_ON_DISK);
    rig->vote_count = 0;
    rig_pass(rig, 9 * RL_MS);
    ck_assert(!rig->node.suspect);
    rig_reply(rig, "$-1\r\n");
    ck_assert_uint_eq(rig->votes[0].ballot.rtt_us, 709000);
    rig_check_vote(rig, b, RL_VOTE_DENIED, 0, 2);
    ck_assert_uint_eq(rig->node.srtt_ns, RL_MS);
    /* And the next one does again. */
    rig_ask(rig, b, 3, RL_VERB_ACQUIRE);
    rig_pass(rig, 9 * RL_MS);
    rig_reply(rig, "$-1\r\n");
    ck_assert_uint_eq(rig->node.srtt_ns, 2 * RL_MS);
}
END_TEST

/* Before the question there is an answer that does not come: the node is silent as any other. */
START_TEST(a_silent_node_is_silent)
{
    rig_ask(rig, a, 1, RL_VERB_ACQUIRE);
    rl_node_received(&rig->node, "+OK\r\n", 5, rig->now_ns);
    rig_ask(rig, b, 2, RL_VERB_ACQUIRE);
    rig_said(rig);
    rig_pass(rig, 10 * RL_MS);
    ck_assert(rig->node.suspect);
    ck_assert_uint_eq(rig->vote_count, 2); /* of both it is known that they may not come */
    ck_assert_uint_eq(rig->votes[0].ballot.vote, RL_VOTE_SILENT);
    ck_assert_ptr_eq(rig->votes[0].claim, a);
    ck_assert_uint_eq(rig->votes[1].ballot.vote, RL_VOTE_SILENT);
    rig->vote_count = 0;
    rig_pass(rig, 240 * RL_MS);
    rig_check_vote(rig, b, RL_VOTE_FAILED, REDLOCK_CAUSE_TIMEOUT, 2);
    rig_pass(rig, 3 * RL_SECOND); /* a new connection is tried */
    rig_check_vote(rig, a, RL_VOTE_FAILED, REDLOCK_CAUSE_TIMEOUT, 1);
}
END_TEST

/* ---- heartbeats ---- */

/* A clock that is read behind a disk tells little; one is read before the next question. */
START_TEST(clocks_are_read_before_it)
{
    rig_grant_on_disk(rig, a, 1);
    rig->common.wanted = true;
    rig_pass(rig, RL_SECOND + RL_MS); /* a heartbeat is due, and waits */
    ck_assert_str_eq(rig_said(rig), "");
    rig_ask(rig, b, 2, RL_VERB_ACQUIRE);
    ck_assert_str_eq(rig_said(rig), "SET key bb NX PX 30000\n");
    rig_reply(rig, RIG_ON_DISK "+OK\r\n");
    ck_assert_str_eq(rig_said(rig),
                     "TIME\nINFO server\nINFO replication\nINFO memory\n" RIG_DISK_ASKED);
    rig->vote_count = 0;
    rig_reply_time(rig, 0);
    rig_reply(rig, "$2\r\nx:\r\n$2\r\nx:\r\n$2\r\nx:\r\n" RIG_ON_DISK);
    rig_check_vote(rig, b, RL_VOTE_GRANTED, 0, 2);
}
END_TEST

static void answer_info(const char *persistence)
{
    const char *const sections[] = {SERVER, "", "", persistence, ""};
    char bytes[256];

    rig_reply_time(rig, 0);
    for (unsigned i = 0; i < 5; i++) {
        snprintf(bytes, sizeof bytes, "$%zu\r\n%s\r\n", strlen(sections[i]), sections[i]);
        rig_reply(rig, bytes);
    }
}

/* An error of that kind means that INFO shows something else by now. */
START_TEST(an_error_is_looked_into)
{
    rig_grant_on_disk(rig, a, 1);
    rig->common.wanted = true;
    rig_reply(rig,
              "-ERR WAITAOF cannot be used when numlocal is set but appendonly is disabled.\r\n");
    rig_said(rig);
    rig_check_vote(rig, a, RL_VOTE_FAILED, REDLOCK_CAUSE_NO_AOF, 1);
    rig_pass(rig, 0);
    ck_assert_str_eq(rig_said(rig), "TIME\nINFO server\nINFO replication\nINFO memory\n"
                                    "INFO persistence\nINFO cpu\n");
    answer_info("aof_enabled:0\r\n");
    ck_assert_uint_eq(rig->node.bars, RL_BAR_NO_AOF);
    /* It has to be mended: it is looked at each second, until it is. */
    rig->common.wanted = false;
    rig_pass(rig, RL_SECOND);
    rig_said(rig);
    answer_info("aof_enabled:1\r\n");
    ck_assert_uint_eq(rig->node.bars, 0);
}
END_TEST

static Suite *node_disk_suite(void)
{
    Suite *suite = suite_create("node_disk");
    TCase *tcase = tcase_create("waitaof");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_loop_test(tcase, no_answer_from_the_disk, 0, 3);
    tcase_add_loop_test(tcase, how_long_a_disk_may_take, 0, 3);
    tcase_add_test(tcase, late_and_silent);
    tcase_add_loop_test(tcase, behind_a_slow_disk, 0, 2);
    tcase_add_test(tcase, a_silent_node_is_silent);
    tcase_add_test(tcase, clocks_are_read_before_it);
    tcase_add_test(tcase, an_error_is_looked_into);
    suite_add_tcase(suite, tcase);
    return suite;
}

int main(void)
{
    return suite_run(node_disk_suite());
}
