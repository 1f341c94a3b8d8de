/* SPDX-License-Identifier: MIT
 * Faults while clients wait in a line: the server of the line is killed, stopped or emptied, the
 * key of the line is another one, a user lacks a right. All clients get the lock, one at a time,
 * and nothing is left.
 *
 * Uses live.h: five real servers, nodes 0 to 4, that run as long as the program, and `live`, the
 * settings and the client of the running case. After each case all servers are made healthy, and a
 * key or descriptor that is left fails the case. live_open(config) creates a client and waits until
 * all nodes are eligible. live_pause(first, count) stops servers with SIGSTOP.
 * WAIT_UNTIL(condition, ms) polls and returns false after the deadline. CHECK_STATUS() compares two
 * REDLOCK_* codes. LONG_TTL_MS is a TTL that no case reaches. From live_events.h: note_done()
 * stores the result of an asynchronous call in a struct outcome, whose calls outcome_calls()
 * counts. */
#include "live_events.h"
#include "suite.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HOLD    "SET busy another PX 600000" /* makes a foreign client hold the lock */
#define LINE    "busy{#q}"                   /* the key of the line of "busy" */
#define WAITERS 8                            /* each with a client of its own */
/* The rights of a user who may wait in a line, but for those of the commands below. */
#define RIGHTS                                                                                     \
    "reset on >pw ~* -@all +set +get +getex +del +pttl +pexpire +evalsha +eval +script +info "     \
    "+time +ping +client +subscribe "

static redlock_t *clients[WAITERS];
static struct outcome outcomes[WAITERS];
static bool released[WAITERS];
static unsigned grants; /* of the running case */

/* live.heal: frees the clients that a failed case has left, and deletes the user. */
static void end_clients(void)
{
    for (unsigned i = 0; i < WAITERS; i++) {
        if (clients[i] != NULL)
            live_free(clients[i]);
        clients[i] = NULL;
    }
    cluster_command_all(live.cluster, "ACL DELUSER waiter");
    cluster_command_all(live.cluster, "DEL busy");
}

/* Creates the clients. Client 0 is `user`, unless that is NULL. A foreign client holds the lock. */
static void connect_waiters(const char *user)
{
    live.durable = true;
    live.heal = end_clients;
    grants = 0;
    for (unsigned i = 0; i < WAITERS; i++) {
        redlock_config_t *config = live_config();
        if (i == 0 && user != NULL)
            ck_assert_int_eq(redlock_config_set_auth(config, user, "pw"), REDLOCK_OK);
        clients[i] = live_open(config);
    }
    cluster_command_all(live.cluster, HOLD);
}

/* Returns how many records the line on this node has. */
static unsigned records(unsigned node)
{
    char *line = cluster_command(live.cluster, node, "GET " LINE);
    unsigned lines = 0;

    for (const char *at = line; at != NULL && (at = strchr(at, '\n')) != NULL; at++)
        lines++;
    free(line);
    return lines == 0 ? 0 : lines - 1; /* the first one is a mark */
}

/* Returns the node whose line has the most records, if all lines have at least `count`; else NODES.
 * On a busy machine a client may wait in another line than the others. */
static unsigned node_of_line(unsigned count)
{
    unsigned sum = 0, best = 0;

    for (unsigned i = 0; i < NODES; i++) {
        sum += records(i);
        best = records(i) > records(best) ? i : best;
    }
    return sum >= count ? best : NODES;
}

/* Starts to wait with all clients. */
static void start_all(void)
{
    redlock_opts_t opts = redlock_opts(LONG_TTL_MS);

    opts.wait_ms = REDLOCK_WAIT_FOREVER;
    for (unsigned i = 0; i < WAITERS; i++) {
        outcomes[i] = (struct outcome)OUTCOME;
        released[i] = false;
        ck_assert_int_eq(redlock_acquire_start(clients[i], "busy", &opts, note_done, &outcomes[i]),
                         REDLOCK_OK);
    }
}

/* Does that, and waits until all are in a line. Returns the node that has the longest one. */
static unsigned start_in_line(void)
{
    unsigned node = NODES;

    start_all();
    ck_assert(WAIT_UNTIL((node = node_of_line(WAITERS)) < NODES, TIME_LIMIT_MS));
    return node;
}

/* Kills a server, starts it again, and sets the foreign key, which it has lost. Otherwise a client
 * could acquire the lock before free_lock() has deleted all foreign keys, and free_lock() would
 * delete the client's key. */
static void restart(unsigned node)
{
    cluster_restart(live.cluster, node, false);
    ck_assert(cluster_replies(live.cluster, node, "OK", HOLD));
}

/* Deletes the foreign key on the servers that run. */
static void free_lock(void)
{
    cluster_command_all(live.cluster, "DEL busy");
}

/* Returns how many calls have ended. */
static unsigned ended(void)
{
    unsigned count = 0;

    for (unsigned i = 0; i < WAITERS; i++)
        count += outcome_calls(&outcomes[i]);
    return count;
}

/* Waits for the next `count` grants. Each holder releases before the next grant may come. */
static void take_turns(unsigned count)
{
    for (unsigned end = grants + count; grants < end; grants++) {
        unsigned i = 0;
        ck_assert_msg(WAIT_UNTIL(ended() > grants, TIME_LIMIT_MS), "no grant after %u", grants);
        ck_assert_uint_eq(ended(), grants + 1);
        while (released[i] || outcome_calls(&outcomes[i]) == 0)
            i++;
        CHECK_STATUS(outcomes[i].status, REDLOCK_OK);
        released[i] = true;
        /* A release may lack a majority for a moment while a server starts. The key is deleted. */
        const int status = redlock_release(outcomes[i].lock, NULL);
        ck_assert_msg(status == REDLOCK_OK, "release: %s", redlock_error_name(status));
        redlock_lock_free(outcomes[i].lock);
    }
}

/* Takes all turns that are left, and ends the clients. */
static void take_other_turns(void)
{
    take_turns(WAITERS - grants);
    for (unsigned i = 0; i < WAITERS; i++) {
        live.client = clients[i];
        clients[i] = NULL;
        live_leave();
    }
}

/* The server of the line is killed before the first grant, and started again after the third one.
 */
START_TEST(the_server_is_killed)
{
    connect_waiters(NULL);
    const unsigned node = start_in_line();
    cluster_kill(live.cluster, node);
    free_lock();
    take_turns(3);
    cluster_restart(live.cluster, node, false);
    take_other_turns();
}
END_TEST

/* It is killed and started at once, so that the key of the line is gone. */
START_TEST(the_server_is_restarted)
{
    connect_waiters(NULL);
    const unsigned node = start_in_line();
    restart(node);
    free_lock();
    take_other_turns();
}
END_TEST

/* It is stopped before the first grant, and continues after the third one. */
START_TEST(the_server_is_stopped)
{
    live.silence = true;
    connect_waiters(NULL);
    const unsigned node = start_in_line();
    live_pause(node, 1);
    for (unsigned i = 0; i < NODES; i++) {
        if (i != node)
            ck_assert_int_eq(cluster_integer(live.cluster, i, "DEL busy"), 1);
    }
    take_turns(3);
    live_resume_all();
    ck_assert_int_eq(cluster_integer(live.cluster, node, "DEL busy"), 1);
    take_other_turns();
}
END_TEST

/* Returns the node whose line all clients prefer: of several lines, inspecting shows that one.
 * Leaves no line. */
static unsigned preferred_node(void)
{
    redlock_waiter_t waiter = {.owner = ""};
    redlock_report_t *report = NULL;
    unsigned node = NODES;

    for (unsigned i = 0; i < NODES; i++) {
        char label[16];
        snprintf(label, sizeof label, "node%u", i);
        live_set_line(i, LINE, label);
    }
    CHECK_STATUS(redlock_inspect(clients[0], "busy", &report), REDLOCK_OK);
    ck_assert_int_eq(redlock_report_get_waiter(report, 0, &waiter, sizeof waiter), REDLOCK_OK);
    ck_assert_int_eq(sscanf(waiter.owner, "node%u", &node), 1);
    redlock_report_free(report);
    cluster_command_all(live.cluster, "DEL " LINE);
    return node;
}

/* Returns how many records there are in the lines of all nodes but this one. */
static unsigned records_beside(unsigned node)
{
    unsigned sum = 0;

    for (unsigned i = 0; i < NODES; i++)
        sum += i == node ? 0 : records(i);
    return sum;
}

/* The preferred server is killed (0) or stopped (1), and all join lines of other servers. When it
 * runs again, they all move back, and leave no record there. */
START_TEST(the_preferred_server_returns)
{
    live.silence = _i == 1;
    connect_waiters(NULL);
    const unsigned node = preferred_node();
    start_all();
    ck_assert(WAIT_UNTIL(records(node) == WAITERS, TIME_LIMIT_MS));
    if (_i == 0)
        cluster_kill(live.cluster, node);
    else
        live_pause(node, 1);
    ck_assert(WAIT_UNTIL(records_beside(node) == WAITERS, TIME_LIMIT_MS));
    if (_i == 0)
        restart(node);
    else
        live_resume_all();
    /* Clients stay away from a server for seconds after it was slow, as it may be on a busy
     * machine. */
    ck_assert(WAIT_UNTIL(records(node) == WAITERS && records_beside(node) == 0, 2 * TIME_LIMIT_MS));
    free_lock();
    take_other_turns();
}
END_TEST

/* All servers are emptied: the lock is free, and the line gone. */
START_TEST(the_servers_are_emptied)
{
    connect_waiters(NULL);
    (void)start_in_line();
    cluster_command_all(live.cluster, "FLUSHALL");
    take_other_turns();
}
END_TEST

/* The key of the line is a foreign one. The clients wait without a line, and leave the key alone.
 */
START_TEST(the_key_of_the_line_is_foreign)
{
    static const struct {
        const char *set, *get, *value;
    } table[] = {
        {"SET " LINE " mine", "GET " LINE, "mine"},
        {"SET " LINE " redlock-line", "GET " LINE, "redlock-line"},
        {"HSET " LINE " a 1", "HGET " LINE " a", "1"},
    };

    connect_waiters(NULL);
    cluster_command_all(live.cluster, table[_i].set);
    start_all();
    for (unsigned i = 0; i < WAITERS; i++)
        ck_assert(WAIT_UNTIL(live_stats(clients[i]).attempts > 0, TIME_LIMIT_MS));
    free_lock();
    take_other_turns();
    for (unsigned i = 0; i < NODES; i++) {
        ck_assert(cluster_replies(live.cluster, i, table[_i].value, table[_i].get));
        ck_assert_int_eq(cluster_integer(live.cluster, i, "DEL " LINE), 1);
    }
}
END_TEST

/* The user of one client lacks a right that lines need. It waits without a line, the others in one.
 */
START_TEST(a_user_lacks_a_right)
{
    static const char *const rights[] = {
        RIGHTS "+publish resetchannels &__redis__:invalidate",
        RIGHTS "+publish resetchannels &redlock:q:*",
        RIGHTS "allchannels",
        RIGHTS "+publish allchannels -getex",
        RIGHTS "+publish allchannels -subscribe",
    };
    char command[512];

    snprintf(command, sizeof command, "ACL SETUSER waiter %s", rights[_i]);
    cluster_command_all(live.cluster, command);
    connect_waiters("waiter");
    start_all();
    ck_assert(WAIT_UNTIL(node_of_line(WAITERS - 1) < NODES, TIME_LIMIT_MS));
    ck_assert(WAIT_UNTIL(live_stats(clients[0]).attempts > 0, TIME_LIMIT_MS));
    free_lock();
    take_other_turns();
}
END_TEST

/* Returns the suite of all cases. The names are those of CK_RUN_CASE, which runs one group. */
static Suite *line_faults_suite(void)
{
    Suite *suite = suite_create("line_faults");
    live_add(suite, "killed", the_server_is_killed);
    live_add(suite, "restarted", the_server_is_restarted);
    live_add(suite, "stopped", the_server_is_stopped);
    live_add_each(suite, "preferred server", the_preferred_server_returns, 2);
    live_add(suite, "emptied", the_servers_are_emptied);
    live_add_each(suite, "foreign key", the_key_of_the_line_is_foreign, 3);
    live_add_each(suite, "rights", a_user_lacks_a_right, 5);
    return suite;
}

/* Starts the servers, runs all cases and stops the servers. Skips without a server program. */
int main(void)
{
    if (!cluster_available())
        return suite_skip(CLUSTER_MISSING);
    live_start_servers();
    const int status = suite_run_nofork(line_faults_suite());
    live_stop_servers();
    return status;
}
