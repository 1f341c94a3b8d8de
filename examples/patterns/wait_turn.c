/* SPDX-License-Identifier: MIT
 * wait_turn NAME WAIT_MS TTL_MS: waits for its turn, but not for ever; works until a line comes on
 * stdin; and hears at the release whether it was alone for all that time.
 *
 * Exit status: 0 worked alone, 1 the lock had passed to others before the work was done, 75 not its
 * turn within WAIT_MS, 69 no quorum, 64 wrong usage. */
#include "client.h"

#include <stdio.h>

static void work(const redlock_lock_t *lock)
{
    char line[80];

    printf("working on %s for at most %llu ms\n", redlock_lock_resource(lock, 0),
           (unsigned long long)redlock_lock_remaining_ms(lock));
    fflush(stdout);
    if (fgets(line, sizeof line, stdin) == NULL)
        puts("no more to do");
}

static int work_in_turn(redlock_t *rl, const char *name, uint64_t wait_ms, uint64_t ttl_ms)
{
    redlock_opts_t opts = redlock_opts(ttl_ms);
    redlock_report_t *report = NULL;
    redlock_lock_t *lock = NULL;

    opts.wait_ms = wait_ms; /* 0: one attempt; REDLOCK_WAIT_FOREVER */
    int rc = redlock_acquire(rl, name, &opts, &lock, &report);
    if (rc != REDLOCK_OK)
        return example_not_acquired(rc, report);
    redlock_report_free(report);
    work(lock);
    rc = redlock_release(lock, NULL);
    redlock_lock_free(lock);
    if (rc == REDLOCK_ELOST) {
        /* What was done last may have met the work of the next holder. */
        fputs("the lock was not ours any more: look at what was done\n", stderr);
        return 1;
    }
    printf("released: %s\n", redlock_strerror(rc));
    return 0;
}

int main(int argc, char **argv)
{
    uint64_t wait_ms, ttl_ms;

    if (argc < 4 || !example_number(argv[2], REDLOCK_WAIT_FOREVER, &wait_ms) ||
        !example_number(argv[3], REDLOCK_TTL_MS_MAX, &ttl_ms)) {
        fputs("usage: wait_turn NAME WAIT_MS TTL_MS; the nodes come from REDLOCK_SERVERS\n",
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
