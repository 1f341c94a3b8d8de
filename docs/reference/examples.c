/* SPDX-License-Identifier: MIT
 * The examples of the manual pages: each function here is shown on the
 * pages that the comment before it names. test/docs/samples_test.py
 * compiles the program and runs it on temporary servers. */
#include <redlock/redlock.h>
#include <stdio.h>
#include <stdlib.h>

/* redlock_new, redlock_config_new, redlock_config_add_nodes,
 * redlock_config_error, redlock_free: Creates a client for the servers
 * of REDLOCK_SERVERS, or tells why that is not possible. */
static redlock_t *connect_to_servers(void)
{
    const char *servers = getenv("REDLOCK_SERVERS");
    redlock_config_t *config = NULL;
    redlock_t *client = NULL;
    int rc = redlock_config_new(&config, NULL);

    if (rc == REDLOCK_OK)
        rc = redlock_config_add_nodes(config, servers);
    if (rc == REDLOCK_OK)
        rc = redlock_new(&client, config);
    if (rc != REDLOCK_OK)
        fprintf(stderr, "bill: %s\n", redlock_config_error(config));
    redlock_config_free(config); /* the client has a copy */
    return client;               /* for redlock_free() */
}

/* redlock_acquire, redlock_release, redlock_lock_check, redlock_opts_t,
 * redlock_report_text: Waits up to 5 s for a lock, and holds it during
 * the work. */
static int bill(redlock_t *client)
{
    redlock_lock_t *lock = NULL;
    redlock_report_t *report = NULL;
    redlock_opts_t opts = redlock_opts(10000); /* TTL: 10 s */

    opts.wait_ms = 5000;
    int rc =
        redlock_acquire(client, "customer:42", &opts, &lock, &report);
    if (rc == REDLOCK_OK) {
        /* Valid for 500 ms more? Then the work may have its effect. */
        rc = redlock_lock_check(lock, 500);
        if (rc == REDLOCK_OK) {
            puts("billing customer 42");
            rc = redlock_release(lock, NULL);
        }
    } else {
        fprintf(stderr, "bill: %s\n", redlock_report_text(report));
    }
    redlock_report_free(report);
    redlock_lock_free(lock); /* releases it if it is still held */
    return rc;
}

/* redlock_extend:
 * Extends a lock between two steps of the work. If that fails, the lock
 * may be valid for a while, but no further step begins. */
static int work_in_steps(redlock_lock_t *lock)
{
    for (int step = 1; step <= 3; step++) {
        int rc = redlock_extend(lock, 10000, NULL); /* 10 s from now */
        if (rc != REDLOCK_OK)
            return rc;
        printf("step %d\n", step);
    }
    return REDLOCK_OK;
}

/* redlock_with, redlock_body_fn:
 * Runs a function under a lock that the client extends while the
 * function runs. */
static int nightly(redlock_lock_t *lock, void *userdata)
{
    const char *day = userdata;
    printf("report of %s, lock valid for %llu ms\n", day,
           (unsigned long long)redlock_lock_remaining_ms(lock));
    return 0;
}

static int report_once(redlock_t *client)
{
    char day[] = "2026-11-23";
    int status = 0;
    redlock_opts_t opts = redlock_opts(10000);

    opts.flags = REDLOCK_FLAG_AUTO_EXTEND;
    return redlock_with(client, "nightly", &opts, &status, NULL,
                        nightly, day);
}

/* redlock_inspect, redlock_state, redlock_report_get_info,
 * redlock_report_get_node: Prints who holds a lock, as each server
 * reports it. */
static int print_holder(redlock_t *client)
{
    redlock_report_t *report = NULL;
    redlock_report_info_t info;
    redlock_node_report_t node;
    int rc = redlock_inspect(client, "customer:42", &report);

    if (redlock_report_get_info(report, &info, sizeof info) == 0 &&
        info.state == REDLOCK_STATE_FREE)
        puts("free");
    for (size_t i = 0;
         redlock_report_get_node(report, i, &node, sizeof node) == 0;
         i++)
        printf("%s: %s\n", node.node, node.text);
    redlock_report_free(report);
    return rc;
}

/* redlock_kind, redlock_lock_slot:
 * Acquires one of three permits, so at most three programs render at a
 * time. */
static int render(redlock_t *client)
{
    redlock_lock_t *permit = NULL;
    redlock_opts_t opts = redlock_opts(10000);

    opts.kind = REDLOCK_KIND_PERMIT;
    opts.permits = 3;
    int rc = redlock_acquire(client, "render", &opts, &permit, NULL);
    if (rc == REDLOCK_OK) {
        printf("renders with permit %d\n", redlock_lock_slot(permit));
        rc = redlock_release(permit, NULL);
    }
    redlock_lock_free(permit);
    return rc;
}

/* redlock_lock_cleanup, REDLOCK_SCOPED: Releases the lock on each way
 * out of the function. */
static int print_labels(redlock_t *client)
{
    REDLOCK_SCOPED redlock_lock_t *lock = NULL;
    redlock_opts_t opts = redlock_opts(10000);
    int rc = redlock_acquire(client, "printer", &opts, &lock, NULL);

    if (rc != REDLOCK_OK)
        return rc;
    rc = redlock_lock_check(lock, 500);
    if (rc != REDLOCK_OK)
        return rc; /* releases the lock in the background */
    puts("printing");
    return redlock_release(lock, NULL);
}

/* redlock_lock_fence, redlock_flags, redlock_fence_records,
 * redlock_config_set_fence_records: Writes with a fencing token. The
 * database keeps the token of the last write of each row, and rejects a
 * smaller one. The fence records are volatile, because the servers of
 * `redlock sandbox` do not keep them when they are restarted. */
static redlock_t *connect_for_fences(void)
{
    const char *servers = getenv("REDLOCK_SERVERS");
    redlock_config_t *config = NULL;
    redlock_t *client = NULL;
    int rc = redlock_config_new(&config, NULL);

    if (rc == REDLOCK_OK)
        rc = redlock_config_add_nodes(config, servers);
    if (rc == REDLOCK_OK)
        rc = redlock_config_set_fence_records(
            config, REDLOCK_FENCE_RECORDS_VOLATILE);
    if (rc == REDLOCK_OK)
        rc = redlock_new(&client, config);
    redlock_config_free(config);
    return client;
}

static int set_balance(redlock_t *client)
{
    redlock_lock_t *lock = NULL;
    redlock_opts_t opts = redlock_opts(10000);

    opts.wait_ms = 5000;
    opts.flags = REDLOCK_FLAG_FENCE;
    int rc = redlock_acquire(client, "account:7", &opts, &lock, NULL);
    if (rc == REDLOCK_OK) {
        unsigned long long fence = redlock_lock_fence(lock);
        printf("UPDATE account SET balance = 90, fence = %llu"
               " WHERE id = 7 AND fence <= %llu;\n",
               fence, fence);
        rc = redlock_release(lock, NULL);
    }
    redlock_lock_free(lock);
    return rc;
}

/* Runs all examples. Returns whether each of them succeeded. */
static int run_all(redlock_t *client, redlock_t *fenced)
{
    redlock_lock_t *lock = NULL;
    redlock_opts_t opts = redlock_opts(10000);

    int rc = redlock_acquire(client, "steps", &opts, &lock, NULL);
    if (rc == REDLOCK_OK)
        rc = work_in_steps(lock);
    redlock_lock_free(lock);
    int (*const examples[])(redlock_t *) = {
        bill, report_once, print_holder, render, print_labels};
    for (size_t i = 0; i < sizeof examples / sizeof examples[0]; i++)
        if (rc == REDLOCK_OK)
            rc = examples[i](client);
    return rc == REDLOCK_OK ? set_balance(fenced) : rc;
}

/* Runs the examples with a client of each kind. */
int main(void)
{
    redlock_t *client = connect_to_servers();
    redlock_t *fenced = connect_for_fences();
    int rc = REDLOCK_EINVAL;

    if (client && fenced)
        rc = run_all(client, fenced);
    if (rc != REDLOCK_OK)
        fprintf(stderr, "examples: %s\n", redlock_strerror(rc));
    redlock_shutdown(fenced, 1000);
    redlock_free(fenced);
    redlock_shutdown(client, 1000);
    redlock_free(client);
    return rc == REDLOCK_OK ? EXIT_SUCCESS : EXIT_FAILURE;
}
