/* SPDX-License-Identifier: MIT
 * Scenarios of extending, releasing and acquiring again: requests of a lock that has ended must not
 * affect the next one, however late the servers process them.
 *
 * Uses live.h: five real servers, nodes 0 to 4, that run as long as the group of cases, and
 * `live`, the settings and the client of the running case. After each case all servers are made
 * healthy, and a key or descriptor that is left fails the case. live_connect() creates live.client
 * and waits until all nodes are eligible. live_open(live_config()) returns such a client.
 * live_lock() acquires a lock, which must be granted. live_extend() and live_release() return the
 * status of one call and keep its report. live_pause(first, count) stops servers with SIGSTOP.
 * WAIT_UNTIL(condition, ms) polls and returns false after the deadline. wait_scaled_ms() stretches
 * a time for slow builds. CHECK_STATUS() compares two REDLOCK_* codes. LONG_TTL_MS is a TTL that
 * no case reaches. From other_client.h: other_start() starts a client in another process, which
 * can be stopped; other_replies() sends it a command and compares the first word of its reply. */
#include "other_client.h"
#include "suite.h"

#include <pthread.h>
#include <stdatomic.h>

#define SHORT_TTL_MS 1200 /* a TTL whose end a case waits for */
#define CONTENDERS   8    /* number of clients in scenario 28 */
#define TURNS        15   /* number of locks that each of them acquires in a run */
#define RUNS_MAX     20   /* number of runs to get a split vote */

/* Removes the memory limits at the end of a case. */
static void heal(void)
{
    cluster_command_all(live.cluster, "CONFIG SET maxmemory 0");
}

/* Counts the nodes whose key has the token of the lock. */
static unsigned nodes_with_token(const char *key, const redlock_lock_t *lock)
{
    unsigned count = 0;
    for (unsigned i = 0; i < NODES; i++)
        count += cluster_replies(live.cluster, i, redlock_lock_token(lock), "GET %s", key);
    return count;
}

/* Sets the memory limit of the nodes from `first` on: "1" makes them refuse to store keys. */
static void set_memory(unsigned first, const char *value)
{
    for (unsigned i = first; i < NODES; i++)
        ck_assert(cluster_replies(live.cluster, i, "OK", "CONFIG SET maxmemory %s", value));
}

/* A thread that acquires the lock again and again. */
struct contender {
    pthread_t thread;
    redlock_t *client;
    atomic_uint *holders;    /* of all contenders: how many hold the lock now */
    atomic_uint *violations; /* how often one acquired the lock while another held it */
    unsigned turns;          /* number of locks that it acquired */
};

/* Acquires and releases the lock TURNS times, and counts holders and violations. */
static void *contend(void *userdata)
{
    struct contender *self = userdata;
    redlock_opts_t opts = redlock_opts(LONG_TTL_MS);
    opts.wait_ms = wait_scaled_ms(20000);
    for (; self->turns < TURNS; self->turns++) {
        redlock_lock_t *lock = NULL;
        if (redlock_acquire(self->client, "storm", &opts, &lock, NULL) != REDLOCK_OK)
            break;
        if (atomic_fetch_add(self->holders, 1) != 0)
            atomic_fetch_add(self->violations, 1);
        atomic_fetch_sub(self->holders, 1);
        redlock_release(lock, NULL);
        redlock_lock_free(lock);
    }
    return NULL;
}

/* Runs CONTENDERS clients with connections of their own until each has acquired the lock TURNS
 * times. Checks that never two of them held it. Returns the number of attempts with split votes. */
static uint64_t run_contenders(void)
{
    struct contender contender[CONTENDERS];
    atomic_uint holders = 0, violations = 0;
    uint64_t split = 0;
    for (unsigned i = 0; i < CONTENDERS; i++)
        contender[i] = (struct contender){
            .client = live_open(live_config()), .holders = &holders, .violations = &violations};
    for (unsigned i = 0; i < CONTENDERS; i++)
        ck_assert_int_eq(pthread_create(&contender[i].thread, NULL, contend, &contender[i]), 0);
    for (unsigned i = 0; i < CONTENDERS; i++) {
        pthread_join(contender[i].thread, NULL);
        split += live_stats(contender[i].client).split_votes;
        ck_assert_int_eq(redlock_free(contender[i].client), REDLOCK_OK);
    }
    for (unsigned i = 0; i < CONTENDERS; i++)
        ck_assert_msg(contender[i].turns == TURNS, "contender %u acquired %u locks", i,
                      contender[i].turns);
    ck_assert_uint_eq(atomic_load(&violations), 0);
    return split;
}

/* Contenders split the votes: never two hold the lock, and each acquires it TURNS times. On a busy
 * machine the contenders may run one after the other, and no vote is split; then they run again. */
START_TEST(scenario_28_split_votes)
{
    uint64_t split = 0;
    for (unsigned i = 0; i < RUNS_MAX && split == 0; i++)
        split = run_contenders();
    ck_assert_msg(split > 0, "no vote was split: the case proves nothing");
}
END_TEST

/* The holder is stopped until after its deadline, and its keys are still there, because somebody
 * has prolonged them. Its extension fails before it is sent, and the keys are deleted. */
START_TEST(scenario_29_extended_too_late)
{
    struct other *other = other_start(false, 0);
    ck_assert_msg(other_replies(other, "ok", "acquire late %d 5000", SHORT_TTL_MS), "%s",
                  other->reply);
    const uint64_t over_ms = wait_now_ms() + SHORT_TTL_MS;
    other_stop(other);
    cluster_command_all(live.cluster, "PEXPIRE late 60000");
    ck_assert(WAIT_UNTIL(wait_now_ms() >= over_ms, TIME_LIMIT_MS));
    ck_assert_uint_ge(live_nodes_with("late"), QUORUM);
    other_send(other, "extend late 20000");
    other_continue(other);
    const char *reply = other_reply(other);
    ck_assert_msg(strncmp(reply, "REDLOCK_ELOST", 13) == 0, "%s", reply);
    ck_assert_msg(other_replies(other, "REDLOCK_ELOST", "check late"), "%s", other->reply);
    ck_assert_msg(WAIT_UNTIL(live_nodes_with("late") == 0, TIME_LIMIT_MS),
                  "the keys were not deleted");
    other_end(other);
}
END_TEST

/* The lock is on nodes 0 to 2, and node 2 loses the key; another client acquires and releases the
 * lock on the other nodes. An extension could then restore the keys on three free nodes. It must
 * not report success, because another holder was in between. */
START_TEST(scenario_30_healed_keys)
{
    redlock_lock_t *theirs = NULL;
    live_connect();
    live.heal = heal;
    set_memory(QUORUM, "1");
    redlock_lock_t *ours = live_lock("gap", LONG_TTL_MS);
    ck_assert_uint_eq(nodes_with_token("gap", ours), QUORUM);
    set_memory(QUORUM, "0");
    ck_assert_int_eq(cluster_integer(live.cluster, 2, "DEL gap"), 1);
    redlock_t *other = live_open(live_config());
    redlock_opts_t opts = redlock_opts(LONG_TTL_MS);
    opts.wait_ms = wait_scaled_ms(TIME_LIMIT_MS);
    CHECK_STATUS(redlock_acquire(other, "gap", &opts, &theirs, NULL), REDLOCK_OK);
    ck_assert_int_eq(redlock_lock_check(ours, 0), REDLOCK_OK); /* the lost key is not known yet */
    CHECK_STATUS(redlock_release(theirs, NULL), REDLOCK_OK);
    redlock_lock_free(theirs);
    ck_assert_int_eq(redlock_free(other), REDLOCK_OK);
    ck_assert_int_ne(live_extend(ours, 0), REDLOCK_OK);
    ck_assert(WAIT_UNTIL(redlock_lock_check(ours, 0) == REDLOCK_ELOST, TIME_LIMIT_MS));
    CHECK_STATUS(live_release(ours), REDLOCK_ELOST);
}
END_TEST

/* An extension with a shorter TTL never shortens a lock: neither its deadline nor its keys. */
START_TEST(scenario_31_smaller_ttl)
{
    live_connect();
    redlock_lock_t *lock = live_lock("short", LONG_TTL_MS);
    ck_assert(WAIT_UNTIL(live_nodes_with("short") == NODES, TIME_LIMIT_MS));
    live_pause(3, 2);
    CHECK_STATUS(live_extend(lock, 1000), REDLOCK_OK);
    live_resume_all();
    CHECK_STATUS(live_extend(lock, 1000), REDLOCK_OK);
    const uint64_t left_ms = redlock_lock_remaining_ms(lock);
    ck_assert_uint_gt(left_ms, LONG_TTL_MS / 2);
    for (unsigned i = 0; i < NODES; i++)
        ck_assert_int_ge(cluster_integer(live.cluster, i, "PTTL short"), (int)(LONG_TTL_MS / 2));
    CHECK_STATUS(live_release(lock), REDLOCK_OK);
}
END_TEST

/* The delete request of the first lock waits at two paused servers, and the SET of the second lock
 * after it. The late delete does not affect the second lock's keys. */
START_TEST(scenario_32_late_delete)
{
    live.node_time_ms = 5000;
    live_connect();
    live_pause(3, 2);
    redlock_lock_t *first = live_lock("again", LONG_TTL_MS);
    CHECK_STATUS(live_extend(first, 0), REDLOCK_OK);
    CHECK_STATUS(live_release(first), REDLOCK_OK);
    redlock_lock_t *second = live_lock("again", LONG_TTL_MS);
    live_resume_all();
    for (unsigned i = 3; i < NODES; i++)
        ck_assert_msg(WAIT_UNTIL(live_calls(i, "set") == 2, TIME_LIMIT_MS), "node %u: %d SETs", i,
                      (int)live_calls(i, "set"));
    ck_assert_msg(WAIT_UNTIL(nodes_with_token("again", second) == NODES, TIME_LIMIT_MS),
                  "%u nodes have the second token", nodes_with_token("again", second));
    CHECK_STATUS(live_extend(second, 0), REDLOCK_OK);
    CHECK_STATUS(live_release(second), REDLOCK_OK);
}
END_TEST

/* A release after the deadline reports REDLOCK_ELOST and leaves the next holder's keys alone. */
START_TEST(scenario_33_released_too_late)
{
    live_connect();
    redlock_lock_t *first = live_lock("next", wait_scaled_ms(SHORT_TTL_MS));
    redlock_lock_t *second = live_lock("next", LONG_TTL_MS); /* waits for the end of the first */
    ck_assert_int_eq(redlock_lock_check(first, 0), REDLOCK_ELOST);
    ck_assert(WAIT_UNTIL(nodes_with_token("next", second) == NODES, TIME_LIMIT_MS));
    CHECK_STATUS(live_release(first), REDLOCK_ELOST);
    ck_assert_uint_eq(nodes_with_token("next", second), NODES);
    CHECK_STATUS(live_extend(second, 0), REDLOCK_OK);
    ck_assert_uint_eq(nodes_with_token("next", second), NODES);
    CHECK_STATUS(live_release(second), REDLOCK_OK);
}
END_TEST

/* Runs all cases. Skips without a server program. */
int main(void)
{
    if (!cluster_available())
        return suite_skip(CLUSTER_MISSING);
    Suite *suite = suite_create("scenario_extend_and_release");
    live_add_with(suite, "28", scenario_28_split_votes, live_start_servers);
    live_add_with(suite, "29", scenario_29_extended_too_late, live_start_servers);
    live_add_with(suite, "30", scenario_30_healed_keys, live_start_servers);
    live_add_with(suite, "31", scenario_31_smaller_ttl, live_start_servers);
    live_add_with(suite, "32", scenario_32_late_delete, live_start_servers);
    live_add_with(suite, "33", scenario_33_released_too_late, live_start_servers);
    return suite_run_nofork(suite);
}
