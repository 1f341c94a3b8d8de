/* SPDX-License-Identifier: MIT
 * The fence records of the nodes: the first start, nodes that lose their record and are readmitted,
 * clients with different configurations, and the operator's command after a majority has lost its
 * records.
 *
 * Uses live.h: five real servers, nodes 0 to 4, that run as long as the program, and `live`, the
 * settings and the client of the running case. After each case all servers are made healthy, and a
 * key or descriptor that is left fails the case. live_open() creates a client from a
 * configuration, such as that of live_config(), and waits until all nodes are eligible.
 * live_release() returns the status of one call and keeps its report, which live_info(),
 * live_node() and live_text() read. live_pause(first, count) stops servers with SIGSTOP.
 * live_voters() counts the eligible nodes, live_responsive() the nodes that reply.
 * WAIT_UNTIL(condition, ms) polls and returns false after the deadline. CHECK_STATUS() compares
 * two REDLOCK_* codes. From live_events.h: note_done() stores the result of an asynchronous call
 * in a struct outcome, and outcome_wait() waits for it and returns its status. From fences.h:
 * fences_begin() removes all fence records, fences_open() creates a client with volatile records,
 * fences_acquire() acquires a fenced lock, and fences_pass() also releases it and returns its
 * fencing token. */
#include "fences.h"
#include "live_events.h"
#include "suite.h"

#include <stdlib.h>
#include <string.h>

/* Checks that the last report has a node whose record is in this state. */
static void check_any_record(int state)
{
    bool found = false;

    for (unsigned i = 0; i < live_info().nodes; i++)
        found = found || live_node(i).record == state;
    ck_assert_msg(found, "%d: %s", state, live_text());
}

/* Returns the number of running servers whose record is in use. */
static unsigned records_in_use(void)
{
    unsigned count = 0;
    for (unsigned i = 0; i < NODES; i++)
        count += cluster_pid(live.cluster, i) != 0 && fences_has_record(i);
    return count;
}

/* Deletes all keys of a server, and with them its record. */
static void flush(unsigned node)
{
    ck_assert(cluster_replies(live.cluster, node, "OK", "FLUSHALL"));
}

/* The first fenced acquisition on servers without records creates the record of every node and
 * succeeds in its first attempt. */
START_TEST(the_first_start_is_automatic)
{
    fences_begin();
    live.client = fences_open();
    fences_pass(live.client, "first", 0); /* in the first attempt */
    ck_assert_uint_eq(records_in_use(), NODES);
}
END_TEST

/* Four clients start at once on servers without records. Each gets its lock, and the fencing
 * tokens of one resource then increase from client to client. */
START_TEST(several_clients_may_start_at_once)
{
    static struct outcome done[4];
    redlock_t *clients[4];
    uint64_t last = 0;

    fences_begin();
    redlock_opts_t opts = redlock_opts(live.max_ttl_ms);
    opts.wait_ms = TIME_LIMIT_MS;
    opts.flags = REDLOCK_FLAG_FENCE;
    for (unsigned i = 0; i < 4; i++) {
        clients[i] = fences_open();
        done[i] = (struct outcome)OUTCOME;
    }
    for (unsigned i = 0; i < 4; i++) {
        const char *names[] = {"a", "b", "c", "d"};
        ck_assert_int_eq(redlock_acquire_start(clients[i], names[i], &opts, note_done, &done[i]),
                         REDLOCK_OK);
    }
    for (unsigned i = 0; i < 4; i++) {
        ck_assert_int_eq(outcome_wait(clients[i], &done[i]), REDLOCK_OK);
        ck_assert_uint_gt(redlock_lock_fence(done[i].lock), 0);
        ck_assert_int_eq(redlock_release(done[i].lock, NULL), REDLOCK_OK);
        redlock_lock_free(done[i].lock);
    }
    for (unsigned i = 0; i < 4; i++) {
        const uint64_t fence = fences_pass(clients[i], "same", TIME_LIMIT_MS);
        ck_assert_uint_gt(fence, last);
        last = fence;
        ck_assert_int_eq(redlock_free(clients[i]), REDLOCK_OK);
    }
}
END_TEST

/* Without all nodes, a client cannot know that it is the first start. */
START_TEST(the_first_start_needs_all_nodes)
{
    redlock_lock_t *lock;

    fences_begin();
    cluster_kill(live.cluster, 4);
    redlock_config_t *config = fences_config();
    ck_assert_int_eq(redlock_new(&live.client, config), REDLOCK_OK);
    redlock_config_free(config);
    CHECK_STATUS(fences_acquire(live.client, "first", 0, &lock), REDLOCK_EFENCE);
    ck_assert_ptr_nonnull(strstr(live_text(), "first start"));
    ck_assert_uint_eq(records_in_use(), 0);
    for (unsigned i = 0; i < 4; i++)
        ck_assert(!live_has_key(i, "first"));
    cluster_restart(live.cluster, 4, false);
    fences_pass(live.client, "first", TIME_LIMIT_MS);
    ck_assert_uint_eq(records_in_use(), NODES);
}
END_TEST

/* Sets maxmemory on these servers. */
static void set_memory(unsigned first, unsigned last, const char *limit)
{
    for (unsigned i = first; i <= last; i++)
        ck_assert(cluster_replies(live.cluster, i, "OK", "CONFIG SET maxmemory %s", limit));
}

/* Three servers have no memory for their record in the middle of the first start. The client that
 * began it continues when they have memory. A server that has lost its data meanwhile waits for
 * max_ttl. */
START_TEST(a_first_start_that_broke_off_continues)
{
    redlock_lock_t *lock;

    fences_begin();
    cluster_kill(live.cluster, 4);
    redlock_config_t *config = fences_config();
    ck_assert_int_eq(redlock_new(&live.client, config), REDLOCK_OK);
    CHECK_STATUS(fences_acquire(live.client, "first", 0, &lock), REDLOCK_EFENCE);
    set_memory(1, 3, "1"); /* the marks are set already, and reading needs no memory */
    cluster_restart(live.cluster, 4, false);
    ck_assert(WAIT_UNTIL(records_in_use() == 2, TIME_LIMIT_MS));
    ck_assert(fences_has_record(0) && fences_has_record(4));
    CHECK_STATUS(fences_acquire(live.client, "first", 0, &lock), REDLOCK_EFENCE);
    ck_assert_msg(strstr(live_text(), "continues") != NULL, "%s", live_text());
    /* Another client cannot distinguish these servers from servers that have lost their records. */
    redlock_t *other;
    ck_assert_int_eq(redlock_new(&other, config), REDLOCK_OK);
    redlock_config_free(config);
    CHECK_STATUS(fences_acquire(other, "first", 0, &lock), REDLOCK_EFENCE);
    ck_assert_msg(strstr(live_text(), "fence_majority_lost") != NULL, "%s", live_text());
    const uint64_t flushed_ms = wait_now_ms();
    flush(3);
    cluster_kill(live.cluster, 4);
    set_memory(1, 3, "0");
    const uint64_t fence = fences_pass(live.client, "first", TIME_LIMIT_MS);
    ck_assert(fences_has_record(0) && fences_has_record(1) && fences_has_record(2));
    ck_assert_uint_gt(fences_pass(other, "first", TIME_LIMIT_MS), fence);
    cluster_restart(live.cluster, 4, false);
    while (records_in_use() < NODES)
        fences_pass(live.client, "first", TIME_LIMIT_MS); /* a vote shows the missing record */
    ck_assert_uint_ge(wait_now_ms() - flushed_ms, live.max_ttl_ms);
    ck_assert_int_eq(redlock_free(other), REDLOCK_OK);
}
END_TEST

/* Returns whether the node's record is in use. Otherwise acquires a lock, because the client learns
 * from a vote that a record is missing. */
static bool is_readmitted(unsigned node)
{
    if (fences_has_record(node))
        return true;
    fences_pass(live.client, FENCES_RESOURCE, TIME_LIMIT_MS);
    return false;
}

/* The node is excluded at once, and readmitted after max_ttl with the tokens of the others. */
START_TEST(a_node_that_lost_its_record_is_readmitted)
{
    redlock_lock_t *lock;

    fences_begin();
    live.client = fences_open();
    uint64_t last = fences_pass(live.client, FENCES_RESOURCE, TIME_LIMIT_MS);
    flush(2);
    const uint64_t flushed_ms = wait_now_ms();
    live_pause(0, 1); /* so that the client needs the reply of node 2 */
    CHECK_STATUS(fences_acquire(live.client, FENCES_RESOURCE, TIME_LIMIT_MS, &lock), REDLOCK_OK);
    ck_assert_uint_gt(redlock_lock_fence(lock), last);
    last = redlock_lock_fence(lock);
    CHECK_STATUS(live_release(lock), REDLOCK_OK);
    ck_assert(!fences_has_record(2));
    live_resume_all();
    ck_assert(WAIT_UNTIL(is_readmitted(2), TIME_LIMIT_MS));
    ck_assert_uint_ge(wait_now_ms() - flushed_ms, live.max_ttl_ms);
    ck_assert_uint_ge(fences_number(2), last);
    ck_assert_uint_eq(records_in_use(), NODES);
    live_pause(0, 2); /* the vote of node 2 is needed */
    ck_assert_uint_gt(fences_pass(live.client, FENCES_RESOURCE, TIME_LIMIT_MS), last);
}
END_TEST

/* A node that loses its record again while it waits begins the wait anew. */
START_TEST(a_node_that_loses_its_record_again_waits_again)
{
    redlock_lock_t *lock;
    char *mark;

    fences_begin();
    live.client = fences_open();
    fences_pass(live.client, "again", TIME_LIMIT_MS);
    flush(2);
    live_pause(0, 2);
    CHECK_STATUS(fences_acquire(live.client, "again", 0, &lock), REDLOCK_EFENCE);
    ck_assert(fences_is_refused(2));
    live_resume_all();
    ck_assert(WAIT_UNTIL(cluster_integer(live.cluster, 2, "HEXISTS " CLUSTER_RECORD " mark") == 1,
                         TIME_LIMIT_MS));
    mark = cluster_command(live.cluster, 2, "HGET " CLUSTER_RECORD " mark");
    ck_assert_uint_eq(strlen(mark), 16);
    flush(2);
    const uint64_t again_ms = wait_now_ms();
    ck_assert(WAIT_UNTIL(fences_has_record(2), TIME_LIMIT_MS));
    ck_assert_uint_ge(wait_now_ms() - again_ms, live.max_ttl_ms);
    free(mark);
}
END_TEST

/* Checks that a node that was restarted, with its keys or without, is excluded and readmitted after
 * max_ttl. Its data may be older than its last replies. */
static void check_restart(bool with_data)
{
    redlock_lock_t *lock;

    fences_begin();
    live.client = fences_open();
    uint64_t last = fences_pass(live.client, FENCES_RESOURCE, TIME_LIMIT_MS);
    cluster_restart(live.cluster, 2, with_data);
    const uint64_t restarted_ms = wait_now_ms();
    ck_assert(WAIT_UNTIL(live_voters(live.client) == NODES, TIME_LIMIT_MS));
    live_pause(0, 2);
    CHECK_STATUS(fences_acquire(live.client, FENCES_RESOURCE, 0, &lock), REDLOCK_EFENCE);
    ck_assert(fences_is_refused(2));
    if (with_data)
        ck_assert_ptr_nonnull(strstr(live_node(2).text, "restarted"));
    live_resume_all();
    ck_assert(WAIT_UNTIL(live_voters(live.client) == NODES, TIME_LIMIT_MS));
    ck_assert(WAIT_UNTIL(fences_pass(live.client, FENCES_RESOURCE, TIME_LIMIT_MS) > last &&
                             fences_has_record(2) &&
                             cluster_replies(live.cluster, 2, "", "HGET " CLUSTER_RECORD " mark"),
                         TIME_LIMIT_MS));
    ck_assert_uint_ge(wait_now_ms() - restarted_ms, live.max_ttl_ms);
    ck_assert_uint_ge(fences_number(2), last);
}

/* check_restart() for a server that has lost its data. */
START_TEST(a_node_restarted_without_data_is_readmitted)
{
    check_restart(false);
}
END_TEST

/* check_restart() for a server that has kept its data. */
START_TEST(a_node_restarted_with_data_is_readmitted)
{
    check_restart(true);
}
END_TEST

/* After a majority has lost its records, no client can know which tokens were granted, until an
 * operator restarts the records. */
START_TEST(a_lost_majority_needs_an_operator)
{
    redlock_lock_t *lock;

    fences_begin();
    live.client = fences_open();
    const uint64_t last = fences_pass(live.client, FENCES_RESOURCE, TIME_LIMIT_MS);
    ck_assert(WAIT_UNTIL(fences_number(4) == last, TIME_LIMIT_MS));
    for (unsigned i = 0; i < QUORUM; i++)
        flush(i);
    CHECK_STATUS(fences_acquire(live.client, FENCES_RESOURCE, 0, &lock), REDLOCK_EFENCE);
    ck_assert_msg(strstr(redlock_strerror(REDLOCK_EFENCE), "fence") != NULL &&
                      strstr(live_text(), "fence_majority_lost") != NULL,
                  "%s", live_text());
    /* Waiting does not help. */
    CHECK_STATUS(fences_acquire(live.client, FENCES_RESOURCE, 2 * live.max_ttl_ms, &lock),
                 REDLOCK_EFENCE);
    ck_assert_uint_eq(records_in_use(), NODES - QUORUM);
    CHECK_STATUS(redlock_init_fence_records(live.client, TIME_LIMIT_MS), REDLOCK_OK);
    ck_assert_uint_eq(records_in_use(), NODES);
    for (unsigned i = 0; i < NODES; i++)
        ck_assert_uint_gt(fences_number(i), last); /* made from the wall clock */
    ck_assert_uint_gt(fences_pass(live.client, FENCES_RESOURCE, TIME_LIMIT_MS), last);
}
END_TEST

/* All nodes lose their records at once, as before the first start. A client that has seen the
 * records refuses to start anew. */
START_TEST(the_loss_of_all_records_is_no_first_start_for_old_clients)
{
    redlock_lock_t *lock;

    fences_begin();
    live.client = fences_open();
    uint64_t last = fences_pass(live.client, FENCES_RESOURCE, TIME_LIMIT_MS);
    for (unsigned i = 0; i < NODES; i++)
        flush(i);
    CHECK_STATUS(fences_acquire(live.client, FENCES_RESOURCE, 0, &lock), REDLOCK_EFENCE);
    ck_assert_msg(strstr(live_text(), "fence_majority_lost") != NULL, "%s", live_text());
    check_any_record(REDLOCK_RECORD_MISSING);
    CHECK_STATUS(fences_acquire(live.client, FENCES_RESOURCE, 2 * live.max_ttl_ms, &lock),
                 REDLOCK_EFENCE); /* waiting does not help */
    ck_assert_uint_eq(records_in_use(), 0);
    ck_assert_uint_eq(live_nodes_with(FENCES_RESOURCE), 0);
    CHECK_STATUS(redlock_init_fence_records(live.client, TIME_LIMIT_MS), REDLOCK_OK);
    const uint64_t next = fences_pass(live.client, FENCES_RESOURCE, TIME_LIMIT_MS);
    ck_assert_uint_gt(next, last);
    last = next;
    /* A new client cannot know that there were records, and starts anew. The old client follows. */
    for (unsigned i = 0; i < NODES; i++)
        flush(i);
    redlock_t *other = fences_open();
    ck_assert_uint_gt(fences_pass(other, FENCES_RESOURCE, TIME_LIMIT_MS), 0);
    ck_assert_uint_eq(records_in_use(), NODES);
    ck_assert_uint_gt(fences_pass(live.client, FENCES_RESOURCE, TIME_LIMIT_MS), last);
    ck_assert_int_eq(redlock_free(other), REDLOCK_OK);
}
END_TEST

/* The new records begin above the largest token that can still be read, if it is above the clock.
 */
START_TEST(init_keeps_what_can_be_read)
{
    fences_begin();
    live.client = fences_open();
    fences_pass(live.client, FENCES_RESOURCE, TIME_LIMIT_MS);
    for (unsigned i = 0; i < QUORUM; i++)
        flush(i);
    free(cluster_command(live.cluster, 4,
                         "HSET " CLUSTER_RECORD " " FENCES_STRIPE " 9000000000000000"));
    CHECK_STATUS(redlock_init_fence_records(live.client, TIME_LIMIT_MS), REDLOCK_OK);
    for (unsigned i = 0; i < NODES; i++)
        ck_assert_uint_eq(fences_number(i), 9000000000000000);
    ck_assert_uint_eq(fences_pass(live.client, FENCES_RESOURCE, TIME_LIMIT_MS), 9000000000000001);
}
END_TEST

/* redlock_init_fence_records() fails with ENOQUORUM and writes no record while a majority of
 * servers is dead. */
START_TEST(init_needs_a_majority)
{
    fences_begin();
    redlock_config_t *config = fences_config();
    for (unsigned i = 0; i < QUORUM; i++)
        cluster_kill(live.cluster, i);
    ck_assert_int_eq(redlock_new(&live.client, config), REDLOCK_OK);
    redlock_config_free(config);
    CHECK_STATUS(redlock_init_fence_records(live.client, TIME_LIMIT_MS), REDLOCK_ENOQUORUM);
    ck_assert_uint_eq(records_in_use(), 0);
    ck_assert_int_eq(redlock_init_fence_records(NULL, 0), REDLOCK_EINVAL);
}
END_TEST

/* Also as the first call of a client. */
START_TEST(init_works_in_embedded_mode)
{
    static struct outcome done = OUTCOME, second = OUTCOME;

    fences_begin();
    live.mode = REDLOCK_MODE_EMBEDDED;
    redlock_config_t *config = fences_config();
    ck_assert_int_eq(redlock_new(&live.client, config), REDLOCK_OK);
    redlock_config_free(config);
    ck_assert_int_eq(redlock_init_fence_records(live.client, 0), REDLOCK_EMODE);
    ck_assert_int_eq(
        redlock_init_fence_records_start(live.client, TIME_LIMIT_MS, NULL, note_done, &done),
        REDLOCK_OK);
    /* A second one would share the state of the records with the first. */
    ck_assert_int_eq(
        redlock_init_fence_records_start(live.client, TIME_LIMIT_MS, NULL, note_done, &second),
        REDLOCK_EBUSY);
    ck_assert_int_eq(outcome_wait(live.client, &done), REDLOCK_OK);
    ck_assert_uint_eq(records_in_use(), NODES);
    ck_assert_int_eq(
        redlock_init_fence_records_start(live.client, TIME_LIMIT_MS, NULL, note_done, &second),
        REDLOCK_OK);
    ck_assert_int_eq(outcome_wait(live.client, &second), REDLOCK_OK);
}
END_TEST

/* Writes the addresses of all nodes, the first `count` of them attested as durable. */
static void write_durable_urls(char *urls, size_t size, unsigned count)
{
    size_t len = 0;

    for (unsigned i = 0; i < NODES; i++) {
        const char *url = cluster_url(live.cluster, i);
        len += (size_t)snprintf(urls + len, size - len, "%s%s%c%s", i == 0 ? "" : ",", url,
                                strchr(url, '?') != NULL ? '&' : '?',
                                i < count ? "durable=1" : "durable=0");
    }
}

/* Returns whether the last report names the missing attestation. Otherwise tries again if `retry`.
 */
static bool names_the_missing_attestation(bool retry)
{
    redlock_lock_t *lock;

    const char *text = live_text();

    /* A refused call counts the servers; a report names each of them. */
    if (strstr(text, "not attested as durable") != NULL)
        return true;
    if (retry)
        CHECK_STATUS(fences_acquire(live.client, "x", 0, &lock), REDLOCK_EFENCE);
    return false;
}

/* Without an attestation for a majority the call is refused, because waiting does not help. With
 * one, the first start still needs all nodes. */
START_TEST(a_majority_must_be_attested)
{
    redlock_lock_t *lock;
    char urls[1024];

    fences_begin();
    for (unsigned count = 0; count <= QUORUM; count++) {
        const bool enough = count == QUORUM;
        write_durable_urls(urls, sizeof urls, count);
        live.client = live_open(live_config_of(urls));
        CHECK_STATUS(fences_acquire(live.client, "x", enough ? 0 : REDLOCK_WAIT_FOREVER, &lock),
                     enough ? REDLOCK_EFENCE : REDLOCK_EINVAL);
        /* The nodes that are not attested may decide the attempt before this is reported. */
        ck_assert_msg(WAIT_UNTIL(names_the_missing_attestation(enough), TIME_LIMIT_MS), "%s",
                      live_text());
        ck_assert_int_eq(redlock_free(live.client), REDLOCK_OK);
    }
    live.client = NULL;
}
END_TEST

/* A client with another max_ttl, prefix, attestation or list of nodes is refused. */
START_TEST(clients_with_different_configurations_are_refused)
{
    redlock_lock_t *lock;
    char urls[1024];

    fences_begin();
    live.client = fences_open();
    fences_pass(live.client, "x", TIME_LIMIT_MS);
    for (unsigned i = 0; i < 4; i++) {
        redlock_config_t *config = fences_config();
        if (i == 0)
            ck_assert_int_eq(redlock_config_set_max_ttl_ms(config, live.max_ttl_ms + 1), 0);
        if (i == 1)
            ck_assert_int_eq(redlock_config_set_key_prefix(config, "other:"), 0);
        if (i == 2) {
            redlock_config_free(config);
            write_durable_urls(urls, sizeof urls, NODES);
            config = live_config_of(urls);
        }
        if (i == 3) {
            redlock_config_free(config);
            snprintf(urls, sizeof urls, "%s,%s,%s", cluster_url(live.cluster, 0),
                     cluster_url(live.cluster, 1), cluster_url(live.cluster, 2));
            config = live_config_of(urls);
            ck_assert_int_eq(
                redlock_config_set_fence_records(config, REDLOCK_FENCE_RECORDS_VOLATILE), 0);
        }
        redlock_t *other = live_open(config);
        CHECK_STATUS(fences_acquire(other, "x", 0, &lock), REDLOCK_EFENCE);
        ck_assert_msg(strstr(live_text(), "another configuration") != NULL, "%s", live_text());
        check_any_record(REDLOCK_RECORD_FOREIGN);
        ck_assert_uint_eq(live_nodes_with("x"), 0);
        ck_assert_int_eq(redlock_free(other), REDLOCK_OK);
    }
    /* The same nodes in another order agree. */
    snprintf(urls, sizeof urls, "%s,%s,%s,%s,%s", cluster_url(live.cluster, 3),
             cluster_url(live.cluster, 1), cluster_url(live.cluster, 0),
             cluster_url(live.cluster, 4), cluster_url(live.cluster, 2));
    redlock_config_t *config = live_config_of(urls);
    ck_assert_int_eq(redlock_config_set_fence_records(config, REDLOCK_FENCE_RECORDS_VOLATILE), 0);
    redlock_t *other = live_open(config);
    fences_pass(other, "x", TIME_LIMIT_MS);
    ck_assert_int_eq(redlock_free(other), REDLOCK_OK);
}
END_TEST

/* A record that is attested as durable counts at once after a restart. */
START_TEST(durable_records_survive_a_restart)
{
    char urls[1024];

    fences_begin();
    for (unsigned i = 0; i < NODES; i++)
        ck_assert(cluster_replies(live.cluster, i, "OK", "CONFIG SET appendfsync always"));
    write_durable_urls(urls, sizeof urls, NODES);
    live.client = live_open(live_config_of(urls));
    const uint64_t last = fences_pass(live.client, FENCES_RESOURCE, TIME_LIMIT_MS);
    cluster_restart(live.cluster, 2, true);
    ck_assert(WAIT_UNTIL(live_voters(live.client) == NODES, TIME_LIMIT_MS));
    live_pause(0, 2);
    ck_assert_uint_gt(fences_pass(live.client, FENCES_RESOURCE, TIME_LIMIT_MS), last);
    ck_assert(fences_has_record(2));
}
END_TEST

/* Records whose content is not what the library writes exclude their node: a number that is
 * none, a key of another type, a number that is too large. Two of them cost nothing; a third one
 * ends in EFENCE. */
START_TEST(corrupt_records_are_excluded)
{
    redlock_lock_t *lock;

    fences_begin();
    live.client = fences_open();
    const uint64_t last = fences_pass(live.client, FENCES_RESOURCE, TIME_LIMIT_MS);
    free(cluster_command(live.cluster, 0, "HSET " CLUSTER_RECORD " " FENCES_STRIPE " rubbish"));
    free(cluster_command(live.cluster, 1, "DEL " CLUSTER_RECORD));
    free(cluster_command(live.cluster, 1, "SET " CLUSTER_RECORD " rubbish"));
    ck_assert_uint_gt(fences_pass(live.client, FENCES_RESOURCE, TIME_LIMIT_MS), last);
    free(cluster_command(live.cluster, 2,
                         "HSET " CLUSTER_RECORD " " FENCES_STRIPE " 9007199254740990"));
    CHECK_STATUS(fences_acquire(live.client, FENCES_RESOURCE, 0, &lock), REDLOCK_EFENCE);
    check_any_record(REDLOCK_RECORD_CORRUPT);
    /* The undos are sent. A server with TLS reads one record after the other, and meanwhile replies
     * on other connections. */
    if (live_is_tls())
        ck_assert(live_wait_no_keys(TIME_LIMIT_MS));
    ck_assert_uint_eq(live_nodes_with(FENCES_RESOURCE), 0);
}
END_TEST

/* Returns the suite of all cases. The names are those of CK_RUN_CASE, which runs one group. */
static Suite *records_suite(void)
{
    Suite *suite = suite_create("live_fence_records");
    live_add(suite, "first start", the_first_start_is_automatic);
    live_add(suite, "first start of many", several_clients_may_start_at_once);
    live_add(suite, "first start without all", the_first_start_needs_all_nodes);
    live_add(suite, "first start breaks off", a_first_start_that_broke_off_continues);
    live_add(suite, "forgot", a_node_that_lost_its_record_is_readmitted);
    live_add(suite, "forgot again", a_node_that_loses_its_record_again_waits_again);
    live_add(suite, "restarted empty", a_node_restarted_without_data_is_readmitted);
    live_add(suite, "restarted", a_node_restarted_with_data_is_readmitted);
    live_add(suite, "majority lost", a_lost_majority_needs_an_operator);
    live_add(suite, "all lost", the_loss_of_all_records_is_no_first_start_for_old_clients);
    live_add(suite, "init keeps", init_keeps_what_can_be_read);
    live_add(suite, "init without a majority", init_needs_a_majority);
    live_add(suite, "init embedded", init_works_in_embedded_mode);
    live_add(suite, "attested", a_majority_must_be_attested);
    live_add(suite, "disagreement", clients_with_different_configurations_are_refused);
    live_add(suite, "durable", durable_records_survive_a_restart);
    live_add(suite, "corrupt", corrupt_records_are_excluded);
    return suite;
}

/* Starts the servers, runs all cases and stops the servers. Skips without a server program. */
int main(void)
{
    if (!cluster_available())
        return suite_skip(CLUSTER_MISSING);
    live_start_servers_with(&(struct cluster_opts){.nodes = NODES, .keep_data = true});
    const int status = suite_run_nofork(records_suite());
    live_stop_servers();
    return status;
}
