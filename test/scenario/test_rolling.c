/* SPDX-License-Identifier: MIT
 * A rolling restart by an operator: one server at a time, none of which keeps its data, with
 * `redlock nodes --wait` in between. Held locks stay held, and acquisitions succeed as before.
 *
 * Uses live.h: five real servers, nodes 0 to 4, that run as long as the group of cases, and
 * `live`, the settings and the client of the running case. After each case all servers are made
 * healthy, and a key or descriptor that is left fails the case. live_connect() creates live.client
 * and waits until all nodes are eligible. wait_scaled_ms() stretches a time for slow builds. */
#include "live.h"
#include "suite.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define TTL_MS 1500 /* of the locks; max_ttl, too, and so roughly the length of a quarantine */

/* A thread that acquires locks during the restart. */
static struct {
    pthread_t thread;
    atomic_bool over;  /* set at the end of the restart */
    unsigned acquired; /* number of locks */
    char failure[512]; /* report of the acquisition that failed; empty: none */
} load;

/* Acquires and frees locks until the restart is over or an acquisition fails. */
static void *acquire_locks(void *unused)
{
    (void)unused;
    while (!atomic_load(&load.over) && load.failure[0] == '\0') {
        redlock_lock_t *lock = NULL;
        redlock_report_t *report = NULL;
        redlock_opts_t opts = redlock_opts(TTL_MS);
        opts.wait_ms = wait_scaled_ms(900); /* shorter than a quarantine */
        const int status = redlock_acquire(live.client, "rolling", &opts, &lock, &report);
        if (status != REDLOCK_OK)
            snprintf(load.failure, sizeof load.failure, "%s", redlock_report_text(report));
        redlock_report_free(report);
        load.acquired += status == REDLOCK_OK;
        redlock_lock_free(lock);
        wait_pause();
    }
    return NULL;
}

/* Runs `redlock nodes --wait` with addresses as an operator writes them and with time for a busy
 * machine. Returns its exit status. */
static int wait_for_all(void)
{
    static char servers[2048], max_ttl[32];
    const char *const argv[] = {
        getenv("REDLOCK"), "nodes",     "--quiet", "--wait",         "-w", "1m", "-s",
        servers,           "--max-ttl", max_ttl,   "--node-timeout", "2s", NULL};
    size_t len = 0;
    int status = -1;
    for (unsigned i = 0; i < NODES; i++)
        len += (size_t)snprintf(
            servers + len, sizeof servers - len, "%s%s127.0.0.1:%d%s%s", i == 0 ? "" : ",",
            live_is_tls() ? cluster_scheme(live.cluster) : "", cluster_port(live.cluster, i),
            live_is_tls() ? "?cacert=" : "", live_is_tls() ? cluster_cacert(live.cluster) : "");
    snprintf(max_ttl, sizeof max_ttl, "%dms", TTL_MS);
    ck_assert_ptr_nonnull(argv[0]);
    const pid_t pid = fork();
    if (pid == 0) {
        dup2(STDERR_FILENO, STDOUT_FILENO);
        execv(argv[0], (char *const *)(uintptr_t)argv);
        _exit(127);
    }
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* Restarts each server without its data, one after the other, while one lock is held (extended
 * automatically) and a thread acquires another one again and again. */
START_TEST(rolling_restart_disturbs_no_lock)
{
    redlock_lock_t *held = NULL;
    live.max_ttl_ms = TTL_MS;
    live_connect();
    redlock_opts_t opts = redlock_opts(TTL_MS);
    opts.flags = REDLOCK_FLAG_AUTO_EXTEND;
    ck_assert_int_eq(redlock_acquire(live.client, "held", &opts, &held, NULL), REDLOCK_OK);
    const uint64_t begun_ms = wait_now_ms();
    memset(&load, 0, sizeof load);
    ck_assert_int_eq(pthread_create(&load.thread, NULL, acquire_locks, NULL), 0);
    for (unsigned i = 0; i < NODES; i++) {
        cluster_restart(live.cluster, i, false);
        ck_assert_int_eq(wait_for_all(), 0);
        ck_assert_int_eq(redlock_lock_check(held, 0), REDLOCK_OK);
    }
    atomic_store(&load.over, true);
    ck_assert_int_eq(pthread_join(load.thread, NULL), 0);
    ck_assert_msg(load.failure[0] == '\0', "%s", load.failure);
    ck_assert_uint_gt(load.acquired, 5 * NODES);
    ck_assert_uint_eq(live_stats(live.client).lost, 0);
    ck_assert_uint_ge(wait_now_ms() - begun_ms, NODES * TTL_MS); /* each server was quarantined */
    ck_assert_int_eq(redlock_release(held, NULL), REDLOCK_OK);
    redlock_lock_free(held);
}
END_TEST

/* Runs all cases. Skips without a server program. */
int main(void)
{
    if (!cluster_available())
        return suite_skip(CLUSTER_MISSING);
    Suite *suite = suite_create("rolling restart");
    live_add_with(suite, "rolling", rolling_restart_disturbs_no_lock, live_start_servers);
    return suite_run_nofork(suite);
}
