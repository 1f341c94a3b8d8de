/* SPDX-License-Identifier: MIT
 * Scenarios in which one server loses the key of a lock that is held on a bare majority: restarts,
 * a promoted replica, eviction, a command, a rollback.
 *
 * Uses live.h: five real servers, nodes 0 to 4, that run as long as the group of cases, and
 * `live`, the settings and the client of the running case. After each case all servers are made
 * healthy, and a key or descriptor that is left fails the case. live_extend() returns the status
 * of one call and keeps its report. live_voters() counts the eligible nodes, live_responsive() the
 * nodes that reply. WAIT_UNTIL(condition, ms) polls and returns false after the deadline. From
 * bare_majority.h: bare_majority_hold() acquires a lock on nodes 0 to 2 alone and starts another
 * client; server 2 is the VICTIM, whose key a case removes. bare_majority_check_free() checks that
 * a majority of servers would grant the lock then. bare_majority_check_refused() checks that the
 * other client does not get it because of a given cause for the victim. */
#include "bare_majority.h"
#include "suite.h"

#include <glob.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Undoes what a case may have changed on the servers: replication, memory settings, keys and
 * fence records. */
static void heal(void)
{
    char *ignored = cluster_command(live.cluster, VICTIM, "REPLICAOF NO ONE");
    free(ignored);
    cluster_command_all(live.cluster, "CONFIG SET maxmemory-policy noeviction");
    cluster_command_all(live.cluster, "CONFIG SET maxmemory 0");
    cluster_command_all(live.cluster, "FLUSHALL");
}

/* Starts servers that keep their data over a restart. */
static void start_with_data(void)
{
    const struct cluster_opts opts = {.keep_data = true};
    live_start_servers_with(&opts);
}

/* Starts servers whose clocks a case can step. */
static void start_with_clocks(void)
{
    const struct cluster_opts opts = {.clocks = true};
    live_start_servers_with(&opts);
}

/* Starts servers that send a new replica their data at once. */
static void start_for_replicas(void)
{
    static const char *const args[] = {"--repl-diskless-sync-delay", "0", NULL};
    const struct cluster_opts opts = {.args = args};
    live_start_servers_with(&opts);
}

/* Restarts the victim without its keys. The clients that run already notice. */
START_TEST(scenario_16_restart_without_data)
{
    bare_majority_hold();
    cluster_restart(live.cluster, VICTIM, false);
    bare_majority_check_free();
    bare_majority_check_refused(REDLOCK_CAUSE_RESTARTED);
    bare_majority_end();
}
END_TEST

/* Restarts the victim without its keys. A client that starts only then does not count its vote. */
START_TEST(scenario_16_restart_and_a_new_client)
{
    bare_majority_hold();
    cluster_restart(live.cluster, VICTIM, false);
    bare_majority_check_free();
    bare_majority_check_refused_anew(REDLOCK_CAUSE_RESTARTED);
    bare_majority_end();
}
END_TEST

/* Gives the path of the append-only file to which the victim appends commands, in the layout of
 * version 6 or 7. A rewrite begins another file, with a larger number. */
static void find_log(char *ret_path, size_t size)
{
    static const char *const names[] = {"appendonlydir/*.incr.aof", "appendonly.aof"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        char pattern[512];
        glob_t found;
        snprintf(pattern, sizeof pattern, "%s/n%d/%s", cluster_dir(live.cluster), VICTIM, names[i]);
        if (glob(pattern, 0, NULL, &found) == 0) {
            snprintf(ret_path, size, "%s", found.gl_pathv[found.gl_pathc - 1]);
            globfree(&found);
            return;
        }
    }
    ck_abort_msg("no append-only file in %s", cluster_dir(live.cluster));
}

/* A crash of the machine loses what was not synced: the append-only file ends where it ended before
 * the lock. */
START_TEST(scenario_17_unsynced_log)
{
    char path[512];
    struct stat before;
    find_log(path, sizeof path);
    ck_assert_int_eq(stat(path, &before), 0);
    bare_majority_hold();
    cluster_kill(live.cluster, VICTIM);
    ck_assert_int_eq(truncate(path, before.st_size), 0);
    cluster_restart(live.cluster, VICTIM, true);
    bare_majority_check_free();
    bare_majority_check_refused(REDLOCK_CAUSE_RESTARTED);
    bare_majority_end();
}
END_TEST

/* Returns whether the victim is rewriting its append-only file. */
static bool rewrites(void)
{
    char *info = cluster_command(live.cluster, VICTIM, "INFO persistence");
    bool found = info != NULL && strstr(info, "aof_rewrite_in_progress:1") != NULL;
    free(info);
    return found;
}

/* Returns the process that rewrites the victim's file: its only child, which does not end with it.
 */
static pid_t rewriter(void)
{
    char path[64];
    int pid = 0;
    const int victim = (int)cluster_pid(live.cluster, VICTIM);
    snprintf(path, sizeof path, "/proc/%d/task/%d/children", victim, victim);
    FILE *file = fopen(path, "re");
    ck_assert_ptr_nonnull(file);
    ck_assert_int_eq(fscanf(file, "%d", &pid), 1);
    fclose(file);
    return (pid_t)pid;
}

/* A server that syncs every command, but not during a rewrite of its file: a crash of the machine
 * loses what came in meanwhile. The rewriting child takes a minute for its only key. */
START_TEST(scenario_18_unsynced_while_rewriting)
{
    char path[512];
    struct stat before;
    live.heal = heal;
    ck_assert(cluster_replies(live.cluster, VICTIM, "OK", "CONFIG SET appendfsync always"));
    ck_assert(
        cluster_replies(live.cluster, VICTIM, "OK", "CONFIG SET no-appendfsync-on-rewrite yes"));
    ck_assert(
        cluster_replies(live.cluster, VICTIM, "OK", "CONFIG SET rdb-key-save-delay 60000000"));
    ck_assert(cluster_replies(live.cluster, VICTIM, "OK", "SET filler 1"));
    free(cluster_command(live.cluster, VICTIM, "BGREWRITEAOF"));
    ck_assert(WAIT_UNTIL(rewrites(), TIME_LIMIT_MS));
    const pid_t child = rewriter();
    find_log(path, sizeof path);
    ck_assert_int_eq(stat(path, &before), 0);
    bare_majority_hold();
    ck_assert(rewrites());
    cluster_kill(live.cluster, VICTIM);
    ck_assert_int_eq(kill(child, SIGKILL), 0);
    ck_assert_int_eq(truncate(path, before.st_size), 0);
    cluster_restart(live.cluster, VICTIM, true);
    bare_majority_check_free();
    bare_majority_check_refused(REDLOCK_CAUSE_RESTARTED);
    bare_majority_end();
}
END_TEST

/* The clock of a server that has just started steps forward, so that its uptime looks long. */
START_TEST(scenario_19_restart_and_step)
{
    bare_majority_hold();
    cluster_restart(live.cluster, VICTIM, false);
    cluster_clock_step(live.cluster, VICTIM, 60000);
    ck_assert(WAIT_UNTIL(live_nodes_with(NAME) < QUORUM, TIME_LIMIT_MS));
    char *info = cluster_command(live.cluster, VICTIM, "INFO server");
    ck_assert_ptr_nonnull(info);
    ck_assert_ptr_nonnull(strstr(info, "uptime_in_seconds:6"));
    free(info);
    bare_majority_check_free();
    redlock_node_stats_t stats = live_node_stats(bare_majority.other, VICTIM);
    ck_assert_msg(WAIT_UNTIL((stats = live_node_stats(bare_majority.other, VICTIM)).cause ==
                                     REDLOCK_CAUSE_RESTARTED ||
                                 stats.cause == REDLOCK_CAUSE_CLOCK_STEP,
                             TIME_LIMIT_MS),
                  "cause %d", stats.cause);
    bare_majority_check_refused(stats.cause);
    bare_majority_end();
    cluster_clock_reset(live.cluster, VICTIM);
}
END_TEST

/* Checks a client that starts after the victim's restart and the step of its clock: it knows
 * nothing but what the server reports of itself. An uptime of a day with some milliseconds of work
 * is refused by strict admission; an uptime of a minute by proven admission, which wants a proof.
 */
static void step_before_a_new_client(int admission, int64_t step_ms)
{
    bare_majority.admission = admission;
    bare_majority_hold();
    cluster_restart(live.cluster, VICTIM, false);
    cluster_clock_step(live.cluster, VICTIM, step_ms);
    ck_assert(WAIT_UNTIL(live_nodes_with(NAME) < QUORUM, TIME_LIMIT_MS));
    bare_majority_check_free();
    bare_majority_check_refused_anew(REDLOCK_CAUSE_RESTARTED);
    bare_majority_end();
    cluster_clock_reset(live.cluster, VICTIM);
}

START_TEST(scenario_19_a_day_and_a_new_client)
{
    step_before_a_new_client(REDLOCK_ADMISSION_STRICT, 86400000);
}
END_TEST

START_TEST(scenario_19_a_minute_and_a_new_client)
{
    step_before_a_new_client(REDLOCK_ADMISSION_PROVEN, 60000);
}
END_TEST

/* The victim becomes a replica of a server without the key, and a master again. */
START_TEST(scenario_20_promoted)
{
    live.heal = heal;
    bare_majority.max_ttl_ms = 8000; /* longer than it takes to become a replica */
    bare_majority_hold();
    char *reply = cluster_command(live.cluster, VICTIM, "REPLICAOF 127.0.0.1 %d",
                                  cluster_port(live.cluster, 4));
    ck_assert_str_eq(reply, "OK");
    free(reply);
    ck_assert(WAIT_UNTIL(live_nodes_with(NAME) < QUORUM, TIME_LIMIT_MS));
    ck_assert(cluster_replies(live.cluster, VICTIM, "OK", "REPLICAOF NO ONE"));
    bare_majority_check_free();
    bare_majority_check_refused(REDLOCK_CAUSE_PROMOTED);
    bare_majority_end();
}
END_TEST

/* The same while the other client is idle and sends no request: the connection stays, and the
 * client notices with its next vote request. */
START_TEST(scenario_20_promoted_while_idle)
{
    live.heal = heal;
    bare_majority.max_ttl_ms = 8000;
    bare_majority.idle = true;
    bare_majority_hold();
    const uint64_t begun_ms = wait_now_ms();
    char *reply = cluster_command(live.cluster, VICTIM, "REPLICAOF 127.0.0.1 %d",
                                  cluster_port(live.cluster, 4));
    ck_assert_str_eq(reply, "OK");
    free(reply);
    ck_assert(WAIT_UNTIL(live_nodes_with(NAME) < QUORUM, TIME_LIMIT_MS));
    ck_assert(cluster_replies(live.cluster, VICTIM, "OK", "REPLICAOF NO ONE"));
    bare_majority_check_free();
    ck_assert_uint_eq(live_node_stats(bare_majority.other, VICTIM).reconnects, 0);
    ck_assert_int_eq(live_node_stats(bare_majority.other, VICTIM).eligible,
                     1); /* the client has not noticed yet */
    ck_assert(WAIT_UNTIL(wait_now_ms() > begun_ms + BEAT_MS, TIME_LIMIT_MS)); /* INFO is due */
    bare_majority_check_refused(REDLOCK_CAUSE_PROMOTED);
    bare_majority_end();
}
END_TEST

/* The victim evicts keys. It is not eligible, without an end, until an operator forbids eviction.
 */
START_TEST(scenario_22_eviction)
{
    live.heal = heal;
    bare_majority_hold();
    ck_assert(
        cluster_replies(live.cluster, VICTIM, "OK", "CONFIG SET maxmemory-policy volatile-ttl"));
    ck_assert(cluster_replies(live.cluster, VICTIM, "OK", "CONFIG SET maxmemory 1"));
    free(cluster_command(live.cluster, VICTIM, "SET filler v PX 100000"));
    ck_assert(WAIT_UNTIL(live_nodes_with(NAME) < QUORUM, TIME_LIMIT_MS));
    ck_assert(cluster_replies(live.cluster, VICTIM, "OK", "CONFIG SET maxmemory 100mb"));
    bare_majority_check_free();
    redlock_lock_t *lock = NULL;
    ck_assert(
        WAIT_UNTIL(live_node_stats(bare_majority.other, VICTIM).cause == REDLOCK_CAUSE_EVICTING,
                   TIME_LIMIT_MS));
    redlock_opts_t opts = redlock_opts(MAX_TTL_MS);
    ck_assert_int_ne(redlock_acquire(bare_majority.other, NAME, &opts, &lock, NULL), REDLOCK_OK);
    ck_assert_int_eq(redlock_lock_check(bare_majority.held, 0), REDLOCK_OK);
    ck_assert_uint_eq(live_node_stats(bare_majority.other, VICTIM).quarantine_ms, 0);
    ck_assert(
        cluster_replies(live.cluster, VICTIM, "OK", "CONFIG SET maxmemory-policy noeviction"));
    ck_assert(WAIT_UNTIL(live_voters(bare_majority.other) == NODES, TIME_LIMIT_MS));
    bare_majority_end();
}
END_TEST

/* FLUSHALL deletes the key of a plain lock. No client can notice, and two hold the lock: a limit
 * that docs/guarantees.md names. The holder's next extension reports the loss. */
START_TEST(scenario_24_deleted)
{
    live.heal = heal;
    bare_majority_hold();
    ck_assert(cluster_replies(live.cluster, VICTIM, "OK", "FLUSHALL"));
    bare_majority_check_free();
    bare_majority_check_two_at_once();
    ck_assert_int_ne(live_extend(bare_majority.held, 0), REDLOCK_OK);
    ck_assert(
        WAIT_UNTIL(redlock_lock_check(bare_majority.held, 0) == REDLOCK_ELOST, TIME_LIMIT_MS));
    bare_majority_end();
}
END_TEST

/* FLUSHALL deletes the fence record of the server, too, so that it does not vote for a lock with a
 * fence. */
START_TEST(scenario_24_deleted_with_fences)
{
    live.heal = heal;
    bare_majority.flags = REDLOCK_FLAG_FENCE;
    bare_majority_hold();
    ck_assert(cluster_replies(live.cluster, VICTIM, "OK", "FLUSHALL"));
    bare_majority_check_free();
    bare_majority_check_refused(REDLOCK_CAUSE_FENCE_RECORD);
    bare_majority_end();
}
END_TEST

/* A virtual machine is set back to a snapshot: older keys, an older time, the same run_id, and
 * broken connections. The step of the clock shows it. */
START_TEST(scenario_39_rolled_back)
{
    live.heal = heal;
    bare_majority_hold();
    ck_assert_int_eq(cluster_integer(live.cluster, VICTIM, "DEL " NAME), 1);
    cluster_clock_step(live.cluster, VICTIM, -30000);
    free(cluster_command(live.cluster, VICTIM, "CLIENT KILL TYPE normal"));
    bare_majority_check_free();
    bare_majority_check_refused(REDLOCK_CAUSE_CLOCK_STEP);
    bare_majority_end();
    cluster_clock_reset(live.cluster, VICTIM);
}
END_TEST

/* Runs all cases. Skips without a server program. */
int main(void)
{
    if (!cluster_available())
        return suite_skip(CLUSTER_MISSING);
    Suite *suite = suite_create("lost keys");
    live_add_with(suite, "16", scenario_16_restart_without_data, live_start_servers);
    live_add_with(suite, "16", scenario_16_restart_and_a_new_client, live_start_servers);
    live_add_with(suite, "17", scenario_17_unsynced_log, start_with_data);
    live_add_with(suite, "18", scenario_18_unsynced_while_rewriting, start_with_data);
    live_add_with(suite, "19", scenario_19_restart_and_step, start_with_clocks);
    live_add_with(suite, "19", scenario_19_a_day_and_a_new_client, start_with_clocks);
    live_add_with(suite, "19", scenario_19_a_minute_and_a_new_client, start_with_clocks);
    live_add_with(suite, "20", scenario_20_promoted, start_for_replicas);
    live_add_with(suite, "20", scenario_20_promoted_while_idle, start_for_replicas);
    live_add_with(suite, "22", scenario_22_eviction, live_start_servers);
    live_add_with(suite, "24", scenario_24_deleted, live_start_servers);
    live_add_with(suite, "24", scenario_24_deleted_with_fences, live_start_servers);
    live_add_with(suite, "39", scenario_39_rolled_back, start_with_clocks);
    return suite_run_nofork(suite);
}
