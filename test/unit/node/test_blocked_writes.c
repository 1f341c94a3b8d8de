/* SPDX-License-Identifier: MIT
 * A node whose socket accepts no more bytes: its undos stay pending, without a busy loop. */
#include "node/node.h"

#include <stdio.h>
#include <string.h>

#include "redlock/redlock.h"
/* Saves the time of Check's note about each assertion; see suite.h. */
#define SUITE_MANY_ASSERTIONS
#include "suite.h"

#define TIMEOUT_NS (60 * RL_SECOND)
#define KEY_LEN    1000
#define GREETING                                                                                   \
    "+OK\r\n"                                                                                      \
    "$10\r\nrun_id:abc\r\n"                                                                        \
    "$11\r\nrole:master\r\n"                                                                       \
    "$1\r\nx\r\n$1\r\nx\r\n$1\r\nx\r\n*2\r\n$1\r\n1\r\n$1\r\n2\r\n"                                \
    "$1\r\nx\r\n$1\r\nx\r\n$1\r\nx\r\n:1\r\n:1\r\n"

static struct rl_mem mem;
static struct rl_log silent_log;
static struct rl_reply_text text;
static struct rl_node_common common;
static struct rl_node node;
static bool blocked;   /* the socket accepts no bytes */
static bool broken;    /* sending fails */
static uint64_t taken; /* bytes that the socket has accepted */
static unsigned sends;

static void ignore_open(void *ctx, unsigned index)
{
    (void)ctx;
    (void)index;
}

/* Sends as the kernel does: accepts all bytes, none, or fails. */
static ssize_t send_bytes(void *ctx, unsigned index, const char *bytes, size_t len)
{
    (void)ctx;
    (void)index;
    (void)bytes;
    sends++;
    taken += blocked || broken ? 0 : len;
    return broken ? -1 : blocked ? 0 : (ssize_t)len;
}

static void ignore_close(void *ctx, unsigned index, bool abortive)
{
    (void)ctx;
    (void)index;
    (void)abortive;
}

static struct rl_now read_clocks(void *ctx)
{
    (void)ctx;
    return (struct rl_now){.boot_ns = 1}; /* the time of the greeting */
}

/* Returns how many undos were given up for any reason. */
static uint64_t count_given_up(void)
{
    return common.inbox.undos[RL_UNDO_EXPIRED] + common.inbox.undos[RL_UNDO_DROPPED];
}

/* Returns a claim with a key of KEY_LEN bytes. */
static struct rl_claim *new_claim(void)
{
    static char key[KEY_LEN];

    memset(key, 'k', sizeof key);
    struct rl_claim *claim = rl_claim_new(&mem, (struct rl_arg){key, sizeof key}, 8);
    ck_assert_ptr_nonnull(claim);
    rl_claim_set_token(claim, (struct rl_arg){"token", 5});
    claim->ttl_ms = claim->ttl_max_ms = 100000;
    return claim;
}

/* Makes the node READY. */
static void connect_node(void)
{
    mem = rl_mem_libc();
    common = (struct rl_node_common){
        .mem = &mem,
        .log = &silent_log,
        .transport = {.open = ignore_open, .send = send_bytes, .close = ignore_close},
        .clocks = {read_clocks, NULL},
        .inbox = {.mem = &mem},
        .text = &text,
        .connect_timeout_ns = TIMEOUT_NS,
        .node_timeout_ns = TIMEOUT_NS,
    };
    blocked = broken = false;
    rl_node_init(&node, &common, 0);
    node.name = "node";
    rl_node_start(&node, 1);
    rl_node_tick(&node, 1);
    rl_node_opened(&node, true, 0, NULL, 1);
    rl_node_received(&node, GREETING, sizeof GREETING - 1, 1);
    while ((common.inbox.waiting & 1u << RL_INBOX_UNREAD) != 0)
        rl_node_next(&node, 1);
    ck_assert_int_eq(node.conn.state, RL_NODE_READY);
}

START_TEST(a_pending_undo_causes_no_busy_loop)
{
    uint64_t now_ns = RL_MS;
    int cause = 0;

    connect_node();
    struct rl_claim *claim = new_claim();
    ck_assert_int_eq(rl_node_request(&node, claim, 1, RL_VERB_ACQUIRE, now_ns), 0);
    rl_node_flush(&node, now_ns);
    blocked = true;
    struct rl_claim *filler = new_claim();
    while (rl_node_request(&node, filler, 1, RL_VERB_GET, now_ns + 1) == 0)
        ;
    ck_assert_uint_ge(node.pipe.out_len, RL_UNSENT_MAX);
    ck_assert_int_eq(rl_node_undo(&node, claim, 0, now_ns + 1, &cause), RL_VOTE_FAILED);
    ck_assert_uint_eq(node.undos.heap.count, 1);
    for (unsigned i = 0; i < 3; i++) {
        uint64_t wake_ns = rl_node_wake_ns(&node);
        ck_assert_msg(wake_ns > now_ns, "the node's timer is not in the future");
        now_ns = wake_ns;
        rl_node_tick(&node, now_ns);
        ck_assert_uint_eq(node.undos.heap.count, 1);
    }
    rl_claim_drop(claim);
    rl_claim_drop(filler);
    rl_node_close(&node, REDLOCK_CAUSE_NONE, NULL, false, now_ns);
    rl_node_free(&node);
    rl_inbox_free(&common.inbox);
    rl_encoded_free(common.mem, &common.cache.encoded);
}
END_TEST

#define BURST 12000

static struct rl_claim *burst[BURST]; /* all requested in one tick */

/* Connects the node and requests all locks of the burst in one tick. */
static void request_burst(void)
{
    connect_node();
    for (unsigned i = 0; i < BURST; i++) {
        burst[i] = new_claim();
        ck_assert_int_eq(rl_node_request(&node, burst[i], 1, RL_VERB_ACQUIRE, RL_MS), 0);
    }
    rl_node_flush(&node, RL_MS);
    ck_assert_uint_eq(node.pipe.out_len, 0);
}

/* Frees the node and the burst. */
static void end_burst(void)
{
    rl_node_close(&node, REDLOCK_CAUSE_NONE, NULL, false, 2 * RL_MS);
    rl_node_free(&node);
    rl_inbox_free(&common.inbox);
    for (unsigned i = 0; i < BURST; i++)
        rl_claim_drop(burst[i]);
    rl_encoded_free(common.mem, &common.cache.encoded);
}

/* Thousands of locks are requested in one tick and undone in one tick, 12 MB each. No undo is
 * refused or pending, and the buffer stays small. */
START_TEST(a_burst_is_written_before_the_tick_ends)
{
    int cause = 0;

    request_burst();
    ck_assert_uint_lt(node.pipe.out_cap, 4 * RL_FLUSH_BYTES);
    taken = 0;
    sends = 0;
    for (unsigned i = 0; i < BURST; i++)
        ck_assert_int_eq(rl_node_undo(&node, burst[i], 1, 2 * RL_MS, &cause), RL_VOTE_NONE);
    rl_node_flush(&node, 2 * RL_MS);
    ck_assert_uint_eq(node.undos.heap.count, 0);
    ck_assert_uint_eq(count_given_up(), 0);
    ck_assert_uint_gt(taken, (uint64_t)BURST * KEY_LEN);
    ck_assert_uint_le(sends, taken / RL_FLUSH_BYTES + 2); /* not one for each request */
    ck_assert_uint_lt(node.pipe.out_cap, 4 * RL_FLUSH_BYTES);
    end_burst();
}
END_TEST

/* Undos that exceed 1 MiB of unsent output stay pending, and are sent when there is room. */
START_TEST(undos_beyond_the_limit_stay_pending)
{
    unsigned queued = 0;
    int cause = 0;

    request_burst();
    blocked = true;
    for (unsigned i = 0; i < BURST; i++)
        queued += rl_node_undo(&node, burst[i], 1, 2 * RL_MS, &cause) == RL_VOTE_NONE;
    ck_assert_uint_gt(queued, 100);
    ck_assert_uint_eq(node.undos.heap.count, BURST - queued);
    ck_assert_uint_eq(rl_node_undos_pending(&node), BURST);
    uint64_t now_ns = rl_node_wake_ns(&node);
    rl_node_tick(&node, now_ns);
    ck_assert_uint_eq(node.undos.heap.count, BURST - queued);
    blocked = false;
    taken = 0;
    rl_node_flush(&node, now_ns);
    now_ns = rl_node_wake_ns(&node);
    rl_node_tick(&node, now_ns);
    rl_node_flush(&node, now_ns);
    ck_assert_uint_eq(node.undos.heap.count, 0);
    ck_assert_uint_gt(taken, (uint64_t)BURST * KEY_LEN);
    ck_assert_uint_eq(rl_node_undos_pending(&node), BURST); /* without replies */
    ck_assert_uint_eq(count_given_up(), 0);
    end_burst();
}
END_TEST

/* A server that reads nothing causes few sends, not one for each request. */
START_TEST(a_full_socket_is_written_to_rarely)
{
    connect_node();
    blocked = true;
    sends = 0;
    struct rl_claim *filler = new_claim();
    while (rl_node_request(&node, filler, 1, RL_VERB_GET, RL_MS) == 0)
        ;
    ck_assert_uint_ge(node.pipe.out_len, RL_UNSENT_MAX);
    ck_assert_uint_ge(sends, 1);
    ck_assert_uint_le(sends, RL_UNSENT_MAX / RL_FLUSH_BYTES + 1);
    rl_claim_drop(filler);
    rl_node_close(&node, REDLOCK_CAUSE_NONE, NULL, false, RL_MS);
    rl_node_free(&node);
    rl_inbox_free(&common.inbox);
    rl_encoded_free(common.mem, &common.cache.encoded);
}
END_TEST

/* Sending fails in the middle of a burst, and the node closes the connection at its flush. */
START_TEST(a_broken_connection_is_closed_when_the_tick_ends)
{
    connect_node();
    broken = true;
    struct rl_claim *filler = new_claim();
    while (node.pipe.out_len < 2 * RL_FLUSH_BYTES)
        ck_assert_int_eq(rl_node_request(&node, filler, 1, RL_VERB_GET, RL_MS), 0);
    ck_assert_int_eq(node.conn.state, RL_NODE_READY);
    rl_node_flush(&node, RL_MS);
    ck_assert_int_eq(node.conn.state, RL_NODE_DOWN);
    rl_claim_drop(filler);
    rl_node_close(&node, REDLOCK_CAUSE_NONE, NULL, false, RL_MS);
    rl_node_free(&node);
    rl_inbox_free(&common.inbox);
    rl_encoded_free(common.mem, &common.cache.encoded);
}
END_TEST

/* The memory of a burst is released when its last request has left the pipeline. The memory of a
 * few hundred requests is kept. */
START_TEST(the_memory_of_a_burst_is_released)
{
    static const char bytes[100] = "x";
    struct rl_pipeline pipe;
    struct rl_request request = {.round = 1};
    const unsigned sizes[] = {BURST, 400};

    mem = rl_mem_libc();
    memset(&pipe, 0, sizeof pipe);
    pipe.mem = &mem;
    pipe.inbox = &common.inbox;
    common.inbox.mem = &mem;
    for (unsigned i = 0; i < 2; i++) {
        for (unsigned j = 0; j < sizes[i]; j++)
            ck_assert(rl_pipeline_push(&pipe, &request, bytes, sizeof bytes));
        rl_pipeline_trim(&pipe);
        ck_assert_uint_eq(rl_pipeline_count(&pipe), sizes[i]);
        ck_assert_uint_eq(pipe.out_len, sizes[i] * sizeof bytes);
        rl_pipeline_sent(&pipe, pipe.out_len);
        while (rl_pipeline_count(&pipe) > 1)
            (void)rl_pipeline_pop(&pipe);
        rl_pipeline_trim(&pipe);
        ck_assert_uint_ge(pipe.ring_cap, sizes[i]); /* one request is in flight */
        (void)rl_pipeline_pop(&pipe);
        rl_pipeline_trim(&pipe);
        ck_assert_uint_eq(pipe.ring_cap != 0, sizes[i] != BURST);
        ck_assert_uint_eq(pipe.out_cap != 0, sizes[i] != BURST);
    }
    rl_pipeline_free(&pipe);
    rl_inbox_free(&common.inbox);
}
END_TEST

/* Returns the first request that is not reported, by looking at all of them. */
static uint64_t find_oldest_unreported(const struct rl_pipeline *pipe)
{
    uint64_t at = pipe->head;

    while (at != pipe->tail && rl_pipeline_at(pipe, at)->reported)
        at++;
    return at;
}

/* The oldest unreported request is always the one that a search finds, also after requests were
 * removed, and the requests before it are not examined again. */
START_TEST(the_oldest_unreported_request_is_found)
{
    struct rl_pipeline pipe;
    struct rl_claim *claims[4];
    uint64_t word = 88172645463325252u;
    unsigned removed = 0;

    mem = rl_mem_libc();
    for (unsigned i = 0; i < 4; i++)
        claims[i] = rl_claim_new(&mem, (struct rl_arg){"k", 1}, 8);
    memset(&pipe, 0, sizeof pipe);
    pipe.mem = &mem;
    pipe.inbox = &common.inbox;
    common.inbox.mem = &mem;
    for (unsigned i = 0; i < 60000; i++) {
        word ^= word << 13;
        word ^= word >> 7;
        word ^= word << 17;
        struct rl_request request = {
            .claim = claims[word >> 50 & 3], .round = 1, .reported = word % 7 == 0};
        uint64_t count = rl_pipeline_count(&pipe), at = pipe.head + (word >> 20) % (count + 1);
        /* Phases of filling, of reporting and of emptying. */
        if (word >> 32 & 1 && i / 1000 % 3 == 0)
            ck_assert(rl_pipeline_push(&pipe, &request, "x", 1));
        else if (count != 0 && i / 1000 % 3 != 2 && at != pipe.tail && word >> 33 & 1)
            rl_pipeline_at(&pipe, at)->reported = true;
        else if (count != 0 && i / 1000 % 3 != 2)
            (void)rl_pipeline_cut(&pipe, request.claim);
        else if (count != 0)
            rl_claim_drop(rl_pipeline_pop(&pipe).claim);
        removed += rl_pipeline_count(&pipe) + 1 < count;
        if ((word >> 34) % 16 == 0)
            rl_pipeline_sent(&pipe, pipe.out_len);
        if (i % 3 != 0)
            continue;
        ck_assert_uint_eq(rl_pipeline_oldest_unreported(&pipe), find_oldest_unreported(&pipe));
        ck_assert_uint_eq(pipe.first_unreported, find_oldest_unreported(&pipe));
    }
    ck_assert_uint_ne(removed, 0);
    rl_pipeline_free(&pipe);
    for (unsigned i = 0; i < 4; i++)
        rl_claim_drop(claims[i]);
    rl_inbox_free(&common.inbox);
}
END_TEST

static Suite *blocked_writes_suite(void)
{
    Suite *suite = suite_create("node_blocked_writes");
    TCase *tcase = tcase_create("blocked_writes");
    tcase_add_test(tcase, a_pending_undo_causes_no_busy_loop);
    tcase_add_test(tcase, a_burst_is_written_before_the_tick_ends);
    tcase_add_test(tcase, undos_beyond_the_limit_stay_pending);
    tcase_add_test(tcase, the_memory_of_a_burst_is_released);
    tcase_add_test(tcase, the_oldest_unreported_request_is_found);
    tcase_add_test(tcase, a_full_socket_is_written_to_rarely);
    tcase_add_test(tcase, a_broken_connection_is_closed_when_the_tick_ends);
    suite_add_tcase(suite, tcase);
    return suite;
}

int main(void)
{
    return suite_run(blocked_writes_suite());
}
