/* SPDX-License-Identifier: MIT
 * A node that is listed with waitaof=1: what it granted counts when it is on its disk, and not
 * before; one question for all that was granted. */
#include "node_rig.h"

#include <string.h>

#include "suite.h"

#define SERVER "redis_version:7.2.4\r\nrun_id:0123abcd\r\nuptime_in_seconds:77\r\n"

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

START_TEST(counts_when_it_is_on_disk)
{
    rig_ask(rig, a, 1, RL_VERB_ACQUIRE);
    ck_assert_str_eq(rig_said(rig), "SET key aa NX PX 30000\n");
    rig_pass(rig, RL_MS);
    rig_reply(rig, "+OK\r\n");
    ck_assert_str_eq(rig_said(rig), RIG_DISK_ASKED);
    rig_pass(rig, 700 * RL_MS);
    rig_no_vote(rig);
    ck_assert_uint_eq(rig->node.counters.granted, 0);
    rig_reply(rig, RIG_ON_DISK);
    ck_assert_uint_eq(rig->votes[0].ballot.rtt_us, 701000); /* what its owner waited */
    rig_check_vote(rig, a, RL_VOTE_GRANTED, 0, 1);
    ck_assert_uint_eq(rig->node.counters.granted, 1);
    ck_assert_uint_eq(rig->node.srtt_ns, RL_MS); /* not what the way takes */
    ck_assert_uint_eq(a->refs, 1);
    ck_assert_str_eq(rig_said(rig), "");
    ck_assert_uint_eq(rl_node_wake_ns(&rig->node), RL_NEVER);
}
END_TEST

static const struct {
    enum rl_verb verb;
    const char *granted, *denied; /* NULL: there is no such answer */
    bool waits;
} VERBS[] = {
    {RL_VERB_ACQUIRE, "+OK\r\n", "$-1\r\n", true},
    {RL_VERB_HEAL, "+OK\r\n", "$-1\r\n", true},
    {RL_VERB_EXTEND, ":1\r\n", ":0\r\n", true},
    {RL_VERB_RAISE, "$2\r\nA \r\n", "$1\r\nL\r\n", true},
    {RL_VERB_SEED, "$2\r\nA \r\n", "$1\r\nS\r\n", true},
    {RL_VERB_READ, "$2\r\n\n\n\r\n", NULL, false},
    {RL_VERB_GET, "$1\r\nx\r\n", "$-1\r\n", false},
    {RL_VERB_PTTL, ":5\r\n", ":-2\r\n", false},
};

START_TEST(what_has_to_survive)
{
    rl_claim_set_token(a, (struct rl_arg){"0123456789abcdef1:2", 19});
    rig_ask(rig, a, 1, VERBS[_i].verb);
    rig_said(rig);
    rig_reply(rig, VERBS[_i].granted);
    ck_assert_str_eq(rig_said(rig), VERBS[_i].waits ? RIG_DISK_ASKED : "");
    if (VERBS[_i].waits) {
        rig_no_vote(rig);
        rig_reply(rig, RIG_ON_DISK);
    }
    ck_assert_uint_eq(rig->votes[0].ballot.verb, VERBS[_i].verb);
    rig_check_vote(rig, a, RL_VOTE_GRANTED, 0, 1);
    if (VERBS[_i].denied == NULL)
        return;
    rig_ask(rig, a, 2, VERBS[_i].verb);
    rig_said(rig);
    rig_reply(rig, VERBS[_i].denied); /* what was not written waits for no disk */
    ck_assert_str_eq(rig_said(rig), "");
    rig_check_vote(rig, a, RL_VOTE_DENIED, 0, 2);
}
END_TEST

/* A release that is forgotten lasts no longer than the lock did; release_after promises more. */
START_TEST(of_what_is_given_back)
{
    bool keep = _i == 1;

    a->undo_verb = keep ? RL_VERB_SHORTEN : RL_VERB_RELEASE;
    a->keep_until_ns = rig->now_ns + 60 * RL_SECOND;
    rig_undo(rig, a, 1);
    rig_said(rig);
    rig_reply(rig, ":1\r\n");
    ck_assert_uint_eq(rig->undone, 1);
    ck_assert_str_eq(rig_said(rig), keep ? RIG_DISK_ASKED : "");
    if (keep) {
        rig_no_vote(rig);
        rig_reply(rig, RIG_ON_DISK);
    }
    rig_check_vote(rig, a, RL_VOTE_GRANTED, 0, 1);
    /* An undo that nobody waits for is not asked about. */
    rig_undo(rig, a, 0);
    rig_said(rig);
    rig_reply(rig, ":1\r\n");
    ck_assert_str_eq(rig_said(rig), "");
    rig_no_vote(rig);
}
END_TEST

/* ---- one question for all ---- */

START_TEST(one_for_all_of_a_read)
{
    rig_ask(rig, a, 1, RL_VERB_ACQUIRE);
    rig_ask(rig, b, 2, RL_VERB_ACQUIRE);
    rig_said(rig);
    rig_reply(rig, "+OK\r\n+OK\r\n");
    ck_assert_str_eq(rig_said(rig), RIG_DISK_ASKED);
    rig_no_vote(rig);
    rig_reply(rig, RIG_ON_DISK);
    ck_assert_uint_eq(rig->vote_count, 2);
    ck_assert_ptr_eq(rig->votes[0].claim, a);
    ck_assert_ptr_eq(rig->votes[1].claim, b);
}
END_TEST

/* What the tick has to say goes first: it is covered, and does not wait. */
START_TEST(the_question_goes_last)
{
    rig_ask(rig, a, 1, RL_VERB_ACQUIRE);
    rig_said(rig);
    rl_node_received(&rig->node, "+OK\r\n", 5, rig->now_ns);
    rig_ask(rig, b, 2, RL_VERB_ACQUIRE);
    ck_assert_str_eq(rig_said(rig), "SET key bb NX PX 30000\n" RIG_DISK_ASKED);
    rig_reply(rig, "+OK\r\n");
    ck_assert_str_eq(rig_said(rig), "");
    rig_no_vote(rig);
    rig_reply(rig, RIG_ON_DISK);
    ck_assert_uint_eq(rig->vote_count, 2);
    ck_assert_str_eq(rig_said(rig), "");
}
END_TEST

/* What was asked behind it is not covered by it, and is answered behind it. */
START_TEST(what_comes_behind_it)
{
    rig_grant_on_disk(rig, a, 1);
    rig_ask(rig, b, 2, RL_VERB_ACQUIRE);
    ck_assert_str_eq(rig_said(rig), "SET key bb NX PX 30000\n"); /* one question at a time */
    rig_reply(rig, RIG_ON_DISK "+OK\r\n");
    rig_check_vote(rig, a, RL_VOTE_GRANTED, 0, 1);
    ck_assert_str_eq(rig_said(rig), RIG_DISK_ASKED);
    rig_reply(rig, RIG_ON_DISK);
    rig_check_vote(rig, b, RL_VOTE_GRANTED, 0, 2);
}
END_TEST

/* ---- not yet ---- */

/* Disks of others do not count, nor do numbers that are none. */
static const char *const NOT_YET[] = {"*2\r\n:0\r\n:0\r\n", "*2\r\n:0\r\n:3\r\n",
                                      "*2\r\n:-1\r\n:0\r\n", "*2\r\n:10\r\n:0\r\n"};

START_TEST(asked_until_it_is)
{
    rig_grant_on_disk(rig, a, 1);
    rig_pass(rig, 100 * RL_MS);
    rig_ask(rig, b, 2, RL_VERB_ACQUIRE); /* runs between two questions */
    rig_said(rig);
    rig_reply(rig, NOT_YET[_i]);
    ck_assert_str_eq(rig_said(rig), RIG_DISK_ASKED);
    rig_reply(rig, "+OK\r\n");
    ck_assert_str_eq(rig_said(rig), "");
    rig_no_vote(rig);
    rig_reply(rig, RIG_ON_DISK);
    ck_assert_uint_eq(rig->vote_count, 2);
    ck_assert_uint_eq(rig->votes[0].ballot.vote, RL_VOTE_GRANTED);
    ck_assert_uint_eq(rig->votes[1].ballot.vote, RL_VOTE_GRANTED);
    ck_assert_str_eq(rig_said(rig), "");
}
END_TEST

/* It is to wait 20 ms for the disk; one that does not is not asked the faster for it. (Found by the
 * fuzzer: at the speed of the network, for three seconds.) */
START_TEST(a_server_that_does_not_wait)
{
    rig_grant_on_disk(rig, a, 1);
    for (unsigned i = 0; i < 5; i++) {
        rig_pass(rig, RL_MS);
        rig_reply(rig, NOT_YET[0]);
        ck_assert_str_eq(rig_said(rig), "");
        rig_pass(rig, 18 * RL_MS);
        rig_ask(rig, b, 2 + i, RL_VERB_GET); /* something else to say in between */
        ck_assert_str_eq(rig_said(rig), "GET key\n");
        rig_reply(rig, "$-1\r\n");
        rig->vote_count = 0;
        rig_pass(rig, RL_MS);
        ck_assert_str_eq(rig_said(rig), RIG_DISK_ASKED);
    }
    rig_reply(rig, RIG_ON_DISK);
    rig_check_vote(rig, a, RL_VOTE_GRANTED, REDLOCK_CAUSE_NONE, 1);
    ck_assert_uint_eq(rl_node_wake_ns(&rig->node), RL_NEVER);
}
END_TEST

/* Each grant has its own time. */
START_TEST(not_for_ever)
{
    rig_grant_on_disk(rig, a, 1);
    for (unsigned i = 1; i <= 39; i++) {
        if (i == 10) {
            rig_ask(rig, b, 2, RL_VERB_ACQUIRE);
            rig_said(rig);
        }
        rig_pass(rig, 100 * RL_MS);
        rig_reply(rig, NOT_YET[0]);
        ck_assert_str_eq(rig_said(rig), i == 39 ? "" : RIG_DISK_ASKED);
        if (i == 10)
            rig_reply(rig, "+OK\r\n");
        ck_assert_uint_eq(rig->vote_count, i == 30 || i == 39);
        if (i == 30)
            rig_check_vote(rig, a, RL_VOTE_FAILED, REDLOCK_CAUSE_NOT_ON_DISK, 1);
    }
    rig_check_vote(rig, b, RL_VOTE_FAILED, REDLOCK_CAUSE_NOT_ON_DISK, 2);
    ck_assert_str_eq(rig->node.text,
                     "granted, but not on disk after 3000 ms: is appendfsync everysec or always?");
    ck_assert(!rig->node.suspect);
    ck_assert_uint_eq(rig->node.counters.errors, 2);
}
END_TEST

/* ---- no ---- */

static const struct {
    const char *answer;
    int cause;
    bool stays;
    const char *text;
} REFUSALS[] = {
    {"-ERR WAITAOF cannot be used when numlocal is set but appendonly is disabled.\r\n",
     REDLOCK_CAUSE_NO_AOF, true,
     "ERR WAITAOF cannot be used when numlocal is set but appendonly is disabled."},
    {"-ERR unknown command 'WAITAOF', with args beginning with: '1' '0' '2000' \r\n",
     REDLOCK_CAUSE_NO_AOF, true, NULL},
    {"-NOPERM User x has no permissions to run the 'waitaof' command\r\n", REDLOCK_CAUSE_NOPERM,
     true, "NOPERM User x has no permissions to run the 'waitaof' command"},
    {"-ERR what is that\r\n", REDLOCK_CAUSE_ERROR_REPLY, true, "ERR what is that"},
    {"+OK\r\n", REDLOCK_CAUSE_PROTOCOL, false, NULL},
    {":1\r\n", REDLOCK_CAUSE_PROTOCOL, false, NULL},
    {"*1\r\n:1\r\n", REDLOCK_CAUSE_PROTOCOL, false, NULL},
    {"*3\r\n:1\r\n:0\r\n:0\r\n", REDLOCK_CAUSE_PROTOCOL, false, NULL},
    {"*2\r\n$1\r\n1\r\n$1\r\n0\r\n", REDLOCK_CAUSE_PROTOCOL, false, NULL},
    {"*2\r\n:1\r\n*1\r\n:0\r\n", REDLOCK_CAUSE_PROTOCOL, false, NULL},
};
#define REFUSALS_COUNT ((int)(sizeof REFUSALS / sizeof REFUSALS[0]))

START_TEST(anything_else)
{
    rig_grant_on_disk(rig, a, 1);
    rig_reply(rig, REFUSALS[_i].answer);
    ck_assert(!rig->votes[0].ballot.unsent); /* the key is there: its owner takes it back */
    rig_check_vote(rig, a, RL_VOTE_FAILED, REFUSALS[_i].cause, 1);
    ck_assert_uint_eq(rig->node.state == RL_NODE_READY, REFUSALS[_i].stays);
    ck_assert_uint_eq(rig->node.counters.granted, 0);
    ck_assert_uint_eq(rig->node.counters.errors, 1);
    ck_assert_uint_eq(a->refs, 1);
    if (REFUSALS[_i].text != NULL)
        ck_assert_str_eq(rig->node.text, REFUSALS[_i].text);
}
END_TEST

START_TEST(a_lost_connection)
{
    rig_grant_on_disk(rig, a, 1);
    rig_ask(rig, b, 2, RL_VERB_ACQUIRE);
    rig_lose(rig);
    ck_assert_uint_eq(rig->vote_count, 2);
    ck_assert_ptr_eq(rig->votes[0].claim, a);
    ck_assert_uint_eq(rig->votes[0].ballot.vote, RL_VOTE_FAILED);
    ck_assert_uint_eq(rig->votes[0].ballot.cause, REDLOCK_CAUSE_DISCONNECT);
    ck_assert(!rig->votes[0].ballot.unsent);
    ck_assert_uint_eq(rig->votes[1].ballot.vote, RL_VOTE_FAILED);
    ck_assert_uint_eq(a->refs, 1);
    rig->vote_count = 0;
    /* The next connection begins with nothing. */
    rig_pass(rig, RL_SECOND);
    rig_connect(rig);
    rig_said(rig);
    rig_greet_as(rig, SERVER, "role:master\r\naof_enabled:1\r\n");
    rig_grant_on_disk(rig, a, 3);
    rig_reply(rig, RIG_ON_DISK);
    rig_check_vote(rig, a, RL_VOTE_GRANTED, 0, 3);
}
END_TEST

/* A client that is closed in between tells nobody that it was granted. */
START_TEST(closed_for_good)
{
    rig_grant_on_disk(rig, a, 1);
    rl_node_close(&rig->node, REDLOCK_CAUSE_NONE, "client was closed", false, rig->now_ns);
    rig_check_vote(rig, a, RL_VOTE_FAILED, REDLOCK_CAUSE_NONE, 1);
}
END_TEST

/* After a fork nothing is closed: what was kept is dropped. */
START_TEST(abandoned)
{
    rig_grant_on_disk(rig, a, 1);
    rig->node.state = RL_NODE_DOWN;
    rl_node_free(&rig->node);
    ck_assert_uint_eq(a->refs, 1);
    memset(&rig->node, 0, sizeof rig->node);
    rl_node_init(&rig->node, &rig->common, 3);
}
END_TEST

/* ---- nobody wants it any more ---- */

START_TEST(taken_back)
{
    bool before = _i == 0;

    rig_ask(rig, a, 1, RL_VERB_ACQUIRE);
    rig_said(rig);
    rl_node_received(&rig->node, "+OK\r\n", 5, rig->now_ns);
    if (!before)
        rig_flush(rig);
    ck_assert_uint_eq(rig_undo(rig, a, 2), RL_VOTE_NONE);
    /* Where it is known in time, the disk is not asked: what follows need not wait. */
    ck_assert_str_eq(rig_said(rig), before ? "EVALSHA release 1 key aa\n"
                                           : RIG_DISK_ASKED "EVALSHA release 1 key aa\n");
    if (!before)
        rig_reply(rig, RIG_ON_DISK);
    rig_no_vote(rig);
    rig_reply(rig, ":1\r\n");
    rig_check_vote(rig, a, RL_VOTE_GRANTED, 0, 2);
    ck_assert_uint_eq(rig->undone, 1);
    ck_assert_str_eq(rig_said(rig), "");
}
END_TEST

START_TEST(without_an_owner)
{
    rig_grant_on_disk(rig, a, 1);
    a->owner = NULL;
    rig_reply(rig, RIG_ON_DISK);
    rig_no_vote(rig);
    ck_assert_uint_eq(a->refs, 1);
    rig_ask(rig, a, 2, RL_VERB_ACQUIRE);
    rig_said(rig);
    rig_reply(rig, "+OK\r\n");
    ck_assert_str_eq(rig_said(rig), "");
}
END_TEST

/* ---- fences ---- */

START_TEST(what_a_fenced_vote_said)
{
    rig->common.fence_record = (struct rl_arg){"rec", 3};
    rig->common.fence_config = (struct rl_arg){"cfg;", 4};
    a->fenced = true;
    a->proposal = 100;
    rig_ask(rig, a, 1, RL_VERB_ACQUIRE);
    rig_said(rig);
    rig_reply(rig, _i == 0 ? "$5\r\nA 99 \r\n" : "$6\r\nG 101 \r\n");
    ck_assert_str_eq(rig_said(rig), RIG_DISK_ASKED);
    rig_reply(rig, RIG_ON_DISK);
    struct rl_ballot vote = rig_only_vote(rig);
    ck_assert_uint_eq(vote.vote, RL_VOTE_GRANTED); /* it is as good as attested */
    ck_assert_uint_eq(vote.accepted, _i == 0);
    ck_assert_uint_eq(vote.number, _i == 0 ? 99 : 101);
    ck_assert_uint_eq(vote.record, RL_RECORD_ADMITTED);
}
END_TEST

/* ---- memory ---- */

static unsigned denied;

static void *deny(size_t size, void *ctx)
{
    (void)ctx;
    (void)size;
    denied++;
    return NULL;
}

/* No place for the question: nothing counts that would have waited for it. */
START_TEST(no_memory_to_ask)
{
    enum { MANY = 31 };

    rig->common.wanted = true;
    for (uint32_t i = 0; i < MANY; i++)
        rig_ask(rig, a, 1 + i, RL_VERB_ACQUIRE);
    ck_assert_uint_eq(rig->node.pipe.ring_cap, MANY + 1);
    rig_freeze(rig, RL_SECOND); /* a heartbeat takes the last place */
    struct rl_mem mem = rig->mem;
    for (unsigned i = 0; i + 1 < MANY; i++)
        rl_node_received(&rig->node, "+OK\r\n", 5, rig->now_ns);
    rig->mem.malloc_fn = deny;
    rig_reply(rig, "+OK\r\n");
    rig->mem = mem;
    ck_assert_uint_gt(denied, 0);
    ck_assert_uint_eq(rig->vote_count, MANY);
    for (unsigned i = 0; i < MANY; i++) {
        ck_assert_uint_eq(rig->votes[i].ballot.vote, RL_VOTE_FAILED);
        ck_assert_uint_eq(rig->votes[i].ballot.cause, REDLOCK_CAUSE_NO_MEMORY);
    }
    ck_assert_uint_eq(a->refs, 1);
}
END_TEST

static Suite *node_waitaof_suite(void)
{
    Suite *suite = suite_create("node_waitaof");
    TCase *tcase = tcase_create("waitaof");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, counts_when_it_is_on_disk);
    tcase_add_loop_test(tcase, what_has_to_survive, 0, (int)(sizeof VERBS / sizeof VERBS[0]));
    tcase_add_loop_test(tcase, of_what_is_given_back, 0, 2);
    tcase_add_test(tcase, one_for_all_of_a_read);
    tcase_add_test(tcase, the_question_goes_last);
    tcase_add_test(tcase, what_comes_behind_it);
    tcase_add_loop_test(tcase, asked_until_it_is, 0, 4);
    tcase_add_test(tcase, a_server_that_does_not_wait);
    tcase_add_test(tcase, not_for_ever);
    tcase_add_loop_test(tcase, anything_else, 0, REFUSALS_COUNT);
    tcase_add_test(tcase, a_lost_connection);
    tcase_add_test(tcase, closed_for_good);
    tcase_add_test(tcase, abandoned);
    tcase_add_loop_test(tcase, taken_back, 0, 2);
    tcase_add_test(tcase, without_an_owner);
    tcase_add_loop_test(tcase, what_a_fenced_vote_said, 0, 2);
    tcase_add_test(tcase, no_memory_to_ask);
    suite_add_tcase(suite, tcase);
    return suite;
}

int main(void)
{
    return suite_run(node_waitaof_suite());
}
