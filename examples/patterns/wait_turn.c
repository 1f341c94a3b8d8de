/* SPDX-License-Identifier: MIT
 * wait_turn NAME WAIT_MS TTL_MS: waits for a lock for a limited time, works until a line comes on
 * stdin, and learns from the release whether the lock was held for all that time.
 *
 * Exit status: 0 the lock was held until the release; 1 the lock was lost before the release; 75
 * not acquired within WAIT_MS; 69 no quorum; 64 wrong usage. */
#include "client.h"

#include <stdio.h>

/* Works under the lock: waits for a line on stdin. */
static void work(const redlock_lock_t *lock)
{
    char line[80];

    printf("working on %s for at most %llu ms\n", redlock_lock_resource(lock, 0),
           (unsigned long long)redlock_lock_remaining_ms(lock));
    fflush(stdout);
    if (fgets(line, sizeof line, stdin) == NULL)
        puts("end of input");
}

/* Acquires the lock, works and releases it. Returns the exit status. */
static int work_in_turn(redlock_t *rl, const char *name, uint64_t wait_ms, uint64_t ttl_ms)
{
    redlock_opts_t opts = redlock_opts(ttl_ms);
    redlock_report_t *report = NULL;
    redlock_lock_t *lock = NULL;

    opts.wait_ms = wait_ms; /* 0: one attempt; REDLOCK_WAIT_FOREVER: no limit */
    int rc = redlock_acquire(rl, name, &opts, &lock, &report);
    if (rc != REDLOCK_OK)
        return example_not_acquired(rc, report);
    redlock_report_free(report);
    work(lock);
    rc = redlock_release(lock, NULL);
    redlock_lock_free(lock);
    if (rc == REDLOCK_ELOST) {
        /* The end of the work may have overlapped with that of the next holder. */
        fputs("the lock was lost before the release: check what was done last\n", stderr);
        return 1;
    }
    printf("released: %s\n", redlock_strerror(rc));
    return 0;
}

/* Parses the arguments, works once under the lock and returns the exit status. */
int main(int argc, char **argv)
{
    uint64_t wait_ms, ttl_ms;

    if (argc < 4 || !example_number(argv[2], REDLOCK_WAIT_FOREVER, &wait_ms) ||
        !example_number(argv[3], REDLOCK_TTL_MS_MAX, &ttl_ms)) {
        fputs("usage: wait_turn NAME WAIT_MS TTL_MS; the servers come from REDLOCK_SERVERS\n",
              stderr);
        return EX_USAGE;
    }
    redlock_t *rl = example_connect(NULL);
    if (rl == NULL)
        return EX_CONFIG;
    int status = work_in_turn(rl, argv[1], wait_ms, ttl_ms);
    example_leave(rl);
    return status;
}
