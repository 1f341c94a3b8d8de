/* SPDX-License-Identifier: MIT
 * The memory of held locks: all bytes that a client requests from its allocator, with five nodes.
 *
 * Uses live.h: five real servers, nodes 0 to 4, that run as long as the program, and `live`, the
 * settings and the client of the running case. After each case all servers are made healthy, and a
 * key or descriptor that is left fails the case. live_connect() creates live.client and waits
 * until all nodes are eligible. live_release() returns the status of one call and keeps its
 * report. WAIT_UNTIL(condition, ms) polls and returns false after the deadline. wait_scaled_ms()
 * stretches a time for slow builds. CHECK_STATUS() compares two REDLOCK_* codes. LONG_TTL_MS is a
 * TTL that no case reaches. */
#include "live.h"
#include "suite.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#define LOCKS     1000 /* held at once */
#define BYTES_MAX 1408 /* for each, with its share of all tables */
#define TRIES     8    /* measurements, because late replies use memory as well */
#define WAIT_MS   2000 /* for late replies */

/* Before each block: its size. */
union header {
    size_t size;
    max_align_t align;
};

/* The mutex guards bytes_in_use: what the client has allocated, without the headers. */
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static size_t bytes_in_use;
static redlock_lock_t *locks[LOCKS]; /* the held locks */

/* Adds `more` and subtracts `less` from the bytes in use. */
static void count(size_t more, size_t less)
{
    pthread_mutex_lock(&mutex);
    bytes_in_use += more - less;
    pthread_mutex_unlock(&mutex);
}

/* Returns the bytes in use. */
static size_t counted(void)
{
    pthread_mutex_lock(&mutex);
    const size_t bytes = bytes_in_use;
    pthread_mutex_unlock(&mutex);
    return bytes;
}

/* Allocator that keeps the size of each block in a header before it. */
static void *count_realloc(void *old, size_t size, void *userdata)
{
    union header *header = old != NULL ? (union header *)old - 1 : NULL;
    const size_t before = header != NULL ? header->size : 0;

    (void)userdata;
    header = realloc(header, sizeof *header + size);
    if (header == NULL)
        return NULL;
    header->size = size;
    count(size, before);
    return header + 1;
}

/* The same for malloc(). */
static void *count_malloc(size_t size, void *userdata)
{
    return count_realloc(NULL, size, userdata);
}

/* The same for free(). */
static void count_free(void *block, void *userdata)
{
    union header *header = block;

    (void)userdata;
    if (header == NULL)
        return;
    count(0, header[-1].size);
    free(header - 1);
}

static const redlock_allocator_t counting = {sizeof counting, count_malloc, count_realloc,
                                             count_free, NULL};

/* Acquires a lock whose name has 24 bytes. */
static redlock_lock_t *acquire(unsigned number, const redlock_opts_t *opts)
{
    char resource[32];
    redlock_lock_t *lock = NULL;
    redlock_report_t *report = NULL;

    snprintf(resource, sizeof resource, "warehouse:orders:%07u", number);
    const int status = redlock_acquire(live.client, resource, opts, &lock, &report);
    live_keep_report(report);
    CHECK_STATUS(status, REDLOCK_OK);
    return lock;
}

/* Returns the bytes for each of LOCKS held locks of a new client. */
static size_t measure(void)
{
    redlock_opts_t opts = redlock_opts(LONG_TTL_MS);
    redlock_config_t *config = live_config();

    opts.flags = REDLOCK_FLAG_AUTO_EXTEND;
    opts.wait_ms = wait_scaled_ms(TIME_LIMIT_MS);
    /* The name of this host, a part of the default, may be long. */
    ck_assert_int_eq(redlock_config_set_owner(config, "web3/4711/1769860800"), REDLOCK_OK);
    live.client = live_open(config);
    CHECK_STATUS(live_release(acquire(LOCKS, &opts)), REDLOCK_OK); /* allocates the buffers */
    live_keep_report(NULL);
    const size_t before = counted();
    for (unsigned i = 0; i < LOCKS; i++)
        locks[i] = acquire(i, &opts);
    live_keep_report(NULL);
    /* A request whose reply is late needs memory, too. */
    (void)WAIT_UNTIL((counted() - before) / LOCKS <= BYTES_MAX, WAIT_MS);
    const size_t each = (counted() - before) / LOCKS;
    for (unsigned i = 0; i < LOCKS; i++) {
        CHECK_STATUS(redlock_lock_check(locks[i], 1), REDLOCK_OK);
        CHECK_STATUS(live_release(locks[i]), REDLOCK_OK);
    }
    live_leave();
    ck_assert_uint_eq(counted(), 0);
    return each;
}

/* Repeats the measurement if it is too large, because late replies enlarge buffers permanently. */
START_TEST(a_held_lock_costs_little_memory)
{
    size_t each = SIZE_MAX;

    live.allocator = &counting;
    for (unsigned i = 0; i < TRIES && each > BYTES_MAX; i++) {
        each = measure();
        printf("# %zu bytes for each of %d locks\n", each, LOCKS);
    }
    ck_assert_msg(each <= BYTES_MAX, "%zu bytes for each of %d locks", each, LOCKS);
}
END_TEST

/* Returns the suite of all cases. The names are those of CK_RUN_CASE, which runs one group. */
static Suite *memory_suite(void)
{
    Suite *suite = suite_create("memory");

    live_add(suite, "held", a_held_lock_costs_little_memory);
    return suite;
}

/* Starts the servers, runs all cases and stops the servers. Skips without a server program. */
int main(void)
{
    if (!cluster_available())
        return suite_skip(CLUSTER_MISSING);
    live_start_servers();
    const int status = suite_run(memory_suite());
    live_stop_servers();
    return status;
}
