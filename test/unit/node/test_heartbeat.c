/* SPDX-License-Identifier: MIT
 * Heartbeats of a node: when they are sent, and what their replies change.
 *
 * Uses node_rig.h: one node without a network, in virtual time. The test plays the server with
 * rig_reply() and rig_receive(). rig_take_sent() returns the commands that the node has sent, as
 * text; rig_check_vote() checks the vote that it has reported. */
#include "node_rig.h"

#include <stdio.h>
#include <string.h>

#include "suite.h"

#define SHORT_HEARTBEAT "TIME\nINFO server\nINFO replication\nINFO memory\n"
#define WHOLE_HEARTBEAT SHORT_HEARTBEAT "INFO persistence\nINFO cpu\n"
#define MEMORY          "maxmemory:0\r\nmaxmemory_policy:noeviction\r\n"
#define SERVER          "redis_version:7.0.15\r\nrun_id:0123abcd\r\nuptime_in_seconds:77\r\n"

static struct rig *rig;

/* Fixture: makes a node that has not been started. */
static void setup(void)
{
    rig = rig_new();
}

/* Fixture: closes and frees the node. */
static void teardown(void)
{
    rig_done(rig);
}

/* Replies with a bulk string. */
static void reply_bulk(const char *text)
{
    char bytes[1024];

    snprintf(bytes, sizeof bytes, "$%zu\r\n%s\r\n", strlen(text), text);
    rig_reply(rig, bytes);
}

/* Advances time by a second. Returns true if the node has sent exactly `said`. */
static bool sends_heartbeat(const char *said)
{
    rig_pass(rig, RL_SECOND);
    return strcmp(rig_take_sent(rig), said) == 0;
}

START_TEST(heartbeats_are_sent_only_while_active)
{
    rig_ready(rig);
    rig_pass(rig, 60 * RL_SECOND);
    ck_assert_str_eq(rig_take_sent(rig), "");
    rig->common.active = true;
    rig_pass(rig, 0);
    for (unsigned i = 1; i <= 16; i++) {
        ck_assert_str_eq(rig_take_sent(rig), i % 8 == 0 ? WHOLE_HEARTBEAT : SHORT_HEARTBEAT);
        rig_reply_time(rig, 0);
        reply_bulk(SERVER);
        for (unsigned k = 0; k < (i % 8 == 0 ? 4 : 2); k++)
            reply_bulk("role:master\r\n");
        rig_pass(rig, RL_SECOND - 1);
        ck_assert_str_eq(rig_take_sent(rig), "");
        rig_pass(rig, 1);
    }
    ck_assert_uint_eq(rig->closes, 0);
    ck_assert_uint_eq(rig->steps, 0);
}
END_TEST

/* The round trip of a heartbeat counts for the longest recent one, not for the smoothed one. */
START_TEST(heartbeats_measure_the_longest_recent_round_trip)
{
    rig_ready(rig);
    rig->common.active = true;
    ck_assert(sends_heartbeat(SHORT_HEARTBEAT));
    const uint64_t smoothed_ns = rl_detector_srtt_ns(&rig->node.detector);
    rig_pass(rig, 3 * RL_MS);
    rig_reply_time(rig, 0);
    ck_assert_uint_eq(rig->node.detector.worst_ns, 3 * RL_MS);
    ck_assert_uint_eq(rl_detector_srtt_ns(&rig->node.detector), smoothed_ns);
}
END_TEST

START_TEST(a_step_ahead_is_reported_and_any_step_excludes)
{
    const int64_t step_us = _i == 0 ? 60000000 : -60000000;

    rig_ready(rig);
    rig->common.active = true;
    ck_assert(sends_heartbeat(SHORT_HEARTBEAT));
    rig_reply_time(rig, step_us);
    ck_assert_uint_eq(rig->steps, _i == 0 ? 1 : 0);
    ck_assert_uint_eq(rig->node.eligibility.exclusions, RL_EXCLUSION_CLOCK_STEP);
    reply_bulk(SERVER);
    reply_bulk("role:master\r\n");
    reply_bulk(MEMORY);
    rig->common.active = false;
    rig_pass(rig, 30302 * RL_MS);
    ck_assert_uint_eq(rig->node.eligibility.exclusions, 0);
}
END_TEST

/* A proxy leads to another server: the node connects anew, and the server is in quarantine. */
START_TEST(another_server_at_the_address_is_disconnected)
{
    rig_ready(rig);
    rig->common.active = true;
    ck_assert(sends_heartbeat(SHORT_HEARTBEAT));
    rig_reply_time(rig, 0);
    reply_bulk("run_id:ffff\r\n");
    ck_assert_uint_eq(rig->node.conn.state, RL_NODE_DOWN);
    ck_assert_str_eq(rig->node.conn.text, "another server replies at this address");
    rig_pass(rig, 0);
    rig_connect(rig);
    rig_take_sent(rig);
    rig_greet_as(rig, "run_id:ffff\r\nuptime_in_seconds:86400\r\n", "role:master\r\n");
    ck_assert_uint_eq(rig->node.eligibility.exclusions, RL_EXCLUSION_RESTARTED);
}
END_TEST

/* Connects the node to a server whose policy evicts keys. */
static void greet_evicting(void)
{
    rig_start(rig);
    rig_connect(rig);
    rig_take_sent(rig);
    rig_reply(rig, "+OK\r\n");
    reply_bulk(SERVER);
    reply_bulk("role:master\r\n");
    reply_bulk("maxmemory:1\r\nmaxmemory_policy:allkeys-lru\r\n");
    reply_bulk("loading:0\r\n");
    reply_bulk("used_cpu_user_main_thread:1.5\r\n");
    rig_reply_time(rig, 0);
    for (unsigned i = 0; i < 3; i++)
        reply_bulk("x");
    rig_reply(rig, ":1\r\n:1\r\n");
    ck_assert_uint_eq(rig->node.eligibility.exclusions, RL_EXCLUSION_EVICTING);
    ck_assert(rl_node_is_up(&rig->node)); /* keys that are held there must be released there */
}

/* While the server is excluded, heartbeats are sent every second, even for an inactive client. */
START_TEST(a_corrected_eviction_policy_ends_the_exclusion)
{
    greet_evicting();
    ck_assert(sends_heartbeat(WHOLE_HEARTBEAT));
    rig_reply_time(rig, 0);
    reply_bulk(SERVER);
    reply_bulk("role:master\r\n");
    reply_bulk("maxmemory:1\r\nmaxmemory_policy:noeviction\r\n");
    ck_assert_uint_eq(rig->node.eligibility.exclusions, RL_EXCLUSION_EVICTING);
    reply_bulk("loading:0\r\n");
    reply_bulk("used_cpu_user_main_thread:1.5\r\n");
    ck_assert_uint_eq(rig->node.eligibility.exclusions, 0);
    ck_assert_uint_eq(rig->closes, 0);
    rig_pass(rig, 10 * RL_SECOND);
    ck_assert_str_eq(rig_take_sent(rig), "");
}
END_TEST

/* An operator sets a policy that evicts, and the next heartbeat shows it. */
START_TEST(a_new_eviction_policy_excludes)
{
    rig_ready(rig);
    rig->common.active = true;
    rig_pass(rig, RL_SECOND);
    rig_reply_time(rig, 0);
    reply_bulk(SERVER);
    reply_bulk("role:master\r\n");
    reply_bulk("maxmemory:1\r\nmaxmemory_policy:allkeys-lru\r\n");
    ck_assert_uint_eq(rig->node.eligibility.exclusions, RL_EXCLUSION_EVICTING);
    ck_assert_uint_eq(rig->closes, 0);
}
END_TEST

START_TEST(a_new_replica_is_disconnected)
{
    greet_evicting();
    ck_assert(sends_heartbeat(WHOLE_HEARTBEAT));
    rig_reply_time(rig, 0);
    reply_bulk(SERVER);
    reply_bulk("role:slave\r\n");
    reply_bulk("");
    reply_bulk("");
    reply_bulk("");
    ck_assert_uint_eq(rig->node.conn.state, RL_NODE_DOWN);
    ck_assert_uint_eq(rig->node.conn.cause, REDLOCK_CAUSE_REPLICA);
}
END_TEST

/* TIME and INFO may become forbidden. Other invalid replies are protocol errors. */
START_TEST(invalid_replies_end_the_connection_and_errors_do_not)
{
    static const struct {
        const char *time, *info;
        bool stays;
    } table[] = {
        {"-NOPERM\r\n", "-NOPERM\r\n", true},
        {"*2\r\n$1\r\nx\r\n$1\r\ny\r\n", "$0\r\n\r\n", true},
        {"*1\r\n$1\r\n1\r\n", "$0\r\n\r\n", true},
        {"*2\r\n$10\r\n1700000000\r\n$7\r\n1000000\r\n", "$0\r\n\r\n", true},
        {"*3\r\n$1\r\n1\r\n$1\r\n1\r\n$1\r\n1\r\n", "", false},
        {"*2\r\n:1\r\n:2\r\n", "", false},
        {"*2\r\n*1\r\n$1\r\n1\r\n$1\r\n1\r\n", "", false},
        {":1\r\n", "", false},
        {"-NOPERM\r\n", "*1\r\n$1\r\nx\r\n", false},
        {"-NOPERM\r\n", "+OK\r\n", false},
    };

    rig_ready(rig);
    rig->common.active = true;
    ck_assert(sends_heartbeat(SHORT_HEARTBEAT));
    rig_reply(rig, table[_i].time);
    if (table[_i].info[0] != '\0')
        rig_reply(rig, table[_i].info);
    ck_assert_uint_eq(rig->node.conn.state, table[_i].stays ? RL_NODE_READY : RL_NODE_DOWN);
    ck_assert_uint_eq(rig->node.eligibility.exclusions, 0);
}
END_TEST

/* The heartbeat is sent before the SET on the same connection, so its reply is judged first. */
START_TEST(a_heartbeat_precedes_the_first_vote_after_a_pause)
{
    struct rl_claim *claim = rig_claim(rig, "aa");

    rig_ready(rig);
    rig_pass(rig, 60 * RL_SECOND);
    rig->common.active = true;
    rig_request(rig, claim, 1, RL_VERB_ACQUIRE);
    ck_assert_str_eq(rig_take_sent(rig), SHORT_HEARTBEAT "SET key aa NX PX 30000\n");
    rig_reply_time(rig, 0);
    reply_bulk(SERVER);
    reply_bulk(_i == 0   ? "role:master\r\n"
               : _i == 1 ? "role:master\r\nmaster_replid2:abcd\r\nsecond_repl_offset:17\r\n"
                         : "role:slave\r\n");
    reply_bulk(MEMORY);
    ck_assert_uint_eq(rig->node.eligibility.exclusions, _i == 1 ? RL_EXCLUSION_PROMOTED : 0);
    if (_i == 2) {
        rig_check_vote(rig, claim, RL_VOTE_FAILED, REDLOCK_CAUSE_REPLICA, 1);
    } else {
        rig_no_vote(rig);
        rig_reply(rig, "+OK\r\n");
        rig_check_vote(rig, claim, RL_VOTE_GRANTED, 0, 1);
    }
    rig_undo(rig, claim, 0);
    rig_done(rig);
    rig_drop(claim);
    rig = rig_new();
}
END_TEST

/* Delivers bytes in a tick that began at `tick_ns`, before now. */
static void read_late(const char *bytes, size_t len, uint64_t tick_ns)
{
    rl_node_received(&rig->node, bytes, len, tick_ns);
    while ((rig->common.inbox.waiting & 1u << RL_INBOX_UNREAD) != 0)
        rl_node_next(&rig->node, tick_ns);
}

/* The process is suspended inside a tick, for longer than a quarantine, and the server is promoted
 * meanwhile. The quarantine counts from the clock, not from the beginning of the tick. */
START_TEST(a_quarantine_begins_when_the_reply_is_read)
{
    static const char promoted[] = "role:master\r\nmaster_replid2:ab\r\nsecond_repl_offset:17\r\n";
    char bytes[256];

    rig_ready(rig);
    rig->common.active = true;
    ck_assert(sends_heartbeat(SHORT_HEARTBEAT));
    rig_reply_time(rig, 0);
    const uint64_t tick_ns = rig->now_ns;
    rig_freeze(rig, 3600 * RL_SECOND);
    const int len = snprintf(bytes, sizeof bytes, "$%zu\r\n%s\r\n$%zu\r\n%s\r\n$0\r\n\r\n",
                             strlen(SERVER), SERVER, strlen(promoted), promoted);
    read_late(bytes, (size_t)len, tick_ns);
    ck_assert_uint_eq(rl_admission_exclusions(&rig->node.eligibility.admission, rig->now_ns),
                      RL_EXCLUSION_PROMOTED);
    ck_assert_uint_eq(
        rl_admission_exclusions(&rig->node.eligibility.admission, rig->now_ns + 30301 * RL_MS),
        RL_EXCLUSION_PROMOTED);
    ck_assert_uint_eq(
        rl_admission_exclusions(&rig->node.eligibility.admission, rig->now_ns + 30302 * RL_MS), 0);
}
END_TEST

/* The same for the greeting of a restarted server. */
START_TEST(a_quarantine_after_a_greeting_begins_when_it_is_read)
{
    static const char *const sections[] = {"run_id:ffff\r\n", "role:master\r\n", "maxmemory:0\r\n",
                                           "loading:0\r\n", "used_cpu_user:1\r\n"};
    char bytes[512] = "+OK\r\n";
    size_t len = strlen(bytes);

    rig_ready(rig);
    rig_lose(rig);
    rig_pass(rig, rl_node_wake_ns(&rig->node) - rig->now_ns);
    rig_connect(rig);
    for (unsigned i = 0; i < sizeof sections / sizeof sections[0]; i++)
        len += (size_t)snprintf(bytes + len, sizeof bytes - len, "$%zu\r\n%s\r\n",
                                strlen(sections[i]), sections[i]);
    snprintf(bytes + len, sizeof bytes - len,
             "*2\r\n$1\r\n1\r\n$1\r\n2\r\n-x\r\n-x\r\n-x\r\n"
             "-x\r\n-x\r\n");
    const uint64_t tick_ns = rig->now_ns;
    rig_freeze(rig, 3600 * RL_SECOND);
    read_late(bytes, strlen(bytes), tick_ns);
    ck_assert_uint_eq(rig->node.conn.state, RL_NODE_READY);
    ck_assert_uint_eq(rig->node.eligibility.exclusions, RL_EXCLUSION_RESTARTED);
    ck_assert_uint_eq(
        rl_admission_exclusions(&rig->node.eligibility.admission, rig->now_ns + 30301 * RL_MS),
        RL_EXCLUSION_RESTARTED);
    ck_assert_uint_eq(
        rl_admission_exclusions(&rig->node.eligibility.admission, rig->now_ns + 30302 * RL_MS), 0);
}
END_TEST

/* Fields of sections that a short heartbeat does not request keep their values. */
START_TEST(a_short_heartbeat_keeps_the_other_fields)
{
    rig_start(rig);
    rig_connect(rig);
    rig_greet_as(rig, SERVER, "role:master\r\nconnected_slaves:1\r\n");
    rig->common.active = true;
    rig_pass(rig, RL_SECOND);
    rig_reply_time(rig, 0);
    reply_bulk("redis_version:7.0.15\r\nrun_id:0123abcd\r\nuptime_in_seconds:78\r\n");
    reply_bulk("role:master\r\nconnected_slaves:2\r\n");
    reply_bulk("");
    ck_assert_str_eq(rig->node.eligibility.info.policy, "noeviction");
    ck_assert_uint_eq(rig->node.eligibility.info.replicas, 2);
    ck_assert_uint_eq(rig->node.eligibility.info.uptime_s, 78);
    ck_assert_uint_eq(rig->node.eligibility.exclusions, 0);
}
END_TEST

/* As with any request. The timer does not loop while the reply is missing. */
START_TEST(a_heartbeat_without_a_reply_makes_suspect)
{
    rig_ready_with_rtt(rig, RL_MS);
    rig->common.active = true;
    ck_assert(sends_heartbeat(SHORT_HEARTBEAT));
    rig_pass(rig, 100 * RL_MS);
    ck_assert(rig->node.detector.suspect);
    ck_assert_str_eq(rig_take_sent(rig), "PING\n");
    rig_reply_time(rig, 0);
    reply_bulk(SERVER);
    reply_bulk("role:master\r\n");
    reply_bulk(MEMORY);
    rig_reply(rig, "+PONG\r\n");
    ck_assert(!rig->node.detector.suspect);
    rig_pass(rig, 900 * RL_MS);
    ck_assert_str_eq(rig_take_sent(rig), SHORT_HEARTBEAT);
    rig_pass(rig, 10 * RL_SECOND);
    ck_assert_uint_ge(rig->closes, 1);
}
END_TEST

static Suite *heartbeat_suite(void)
{
    Suite *suite = suite_create("node_heartbeat");
    TCase *tcase = tcase_create("heartbeat");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, heartbeats_are_sent_only_while_active);
    tcase_add_test(tcase, heartbeats_measure_the_longest_recent_round_trip);
    tcase_add_loop_test(tcase, a_step_ahead_is_reported_and_any_step_excludes, 0, 2);
    tcase_add_test(tcase, another_server_at_the_address_is_disconnected);
    tcase_add_test(tcase, a_corrected_eviction_policy_ends_the_exclusion);
    tcase_add_test(tcase, a_new_eviction_policy_excludes);
    tcase_add_test(tcase, a_new_replica_is_disconnected);
    tcase_add_loop_test(tcase, invalid_replies_end_the_connection_and_errors_do_not, 0, 10);
    tcase_add_loop_test(tcase, a_heartbeat_precedes_the_first_vote_after_a_pause, 0, 3);
    tcase_add_test(tcase, a_quarantine_begins_when_the_reply_is_read);
    tcase_add_test(tcase, a_quarantine_after_a_greeting_begins_when_it_is_read);
    tcase_add_test(tcase, a_short_heartbeat_keeps_the_other_fields);
    tcase_add_test(tcase, a_heartbeat_without_a_reply_makes_suspect);
    suite_add_tcase(suite, tcase);
    return suite;
}

int main(void)
{
    return suite_run(heartbeat_suite());
}
