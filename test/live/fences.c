/* SPDX-License-Identifier: MIT
 * Clients that acquire locks with fencing tokens. */
#include "fences.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Prepares a case: removes the fence records of all servers, and sets max_ttl and the node
 * timeout of the clients. */
void fences_begin(void)
{
    cluster_command_all(live.cluster, "FLUSHALL");
    live.max_ttl_ms = wait_lived_ms(FENCE_TTL_MS);
    /* Half of the stretched value, because live_config() stretches by the whole factor. */
    live.node_time_ms = wait_scaled_ms(1) > 1 ? FENCE_TIME_MS / 2 : FENCE_TIME_MS;
}

/* Returns a configuration of all nodes whose fence records are volatile. The caller frees it. */
redlock_config_t *fences_config(void)
{
    redlock_config_t *config = live_config();
    ck_assert_int_eq(redlock_config_set_fence_records(config, REDLOCK_FENCE_RECORDS_VOLATILE),
                     REDLOCK_OK);
    return config;
}

/* Creates a client with that configuration and waits until all nodes are eligible. */
redlock_t *fences_open(void)
{
    return live_open(fences_config());
}

/* Acquires a lock with a fencing token and max_ttl as its TTL. Stores the handle (NULL after a
 * failure), keeps the report and returns the status. */
int fences_acquire(redlock_t *client, const char *resource, uint64_t wait_ms,
                   redlock_lock_t **ret_lock)
{
    redlock_opts_t opts = redlock_opts(live.max_ttl_ms);
    redlock_report_t *report = NULL;

    opts.flags = REDLOCK_FLAG_FENCE;
    opts.wait_ms = wait_ms;
    *ret_lock = NULL;
    const int status = redlock_acquire(client, resource, &opts, ret_lock, &report);
    live_keep_report(report);
    return status;
}

/* Acquires a lock within wait_ms and releases it. Returns its fencing token. Fails the case if
 * it is not granted. */
uint64_t fences_pass(redlock_t *client, const char *resource, uint64_t wait_ms)
{
    redlock_lock_t *lock;

    CHECK_STATUS(fences_acquire(client, resource, wait_ms, &lock), REDLOCK_OK);
    const uint64_t fence = redlock_lock_fence(lock);
    ck_assert_uint_gt(fence, 0);
    ck_assert_int_eq(redlock_release(lock, NULL), REDLOCK_OK);
    ck_assert_uint_eq(redlock_lock_fence(lock), fence);
    redlock_lock_free(lock);
    return fence;
}

/* Returns whether, in the kept report, the node's vote did not count because of its fence
 * record. */
bool fences_is_refused(unsigned node)
{
    return live_node(node).cause == REDLOCK_CAUSE_FENCE_RECORD;
}

/* Returns whether the server has a fence record that is in use: one with a configuration. */
bool fences_has_record(unsigned node)
{
    char *text = cluster_command(live.cluster, node, "HGET " CLUSTER_RECORD " cfg");
    const bool has = text != NULL && strncmp(text, "v1 ", 3) == 0;
    free(text);
    return has;
}

/* Returns the fencing token in the register of FENCES_RESOURCE on this server. 0 if there is
 * none. */
uint64_t fences_number(unsigned node)
{
    char *text = cluster_command(live.cluster, node, "HGET " CLUSTER_RECORD " " FENCES_STRIPE);
    const uint64_t number = text != NULL ? strtoull(text, NULL, 10) : 0;
    free(text);
    return number;
}
