/* SPDX-License-Identifier: MIT
 * count_up FILE [TIMES]: adds one to the number in a file that other processes count in as well.
 * redlock_with() runs a function under a lock and releases the lock when the function returns.
 *
 * Exit status: 0 counted; 1 the function failed, and the lock was released; 2 the lock was lost
 * before the release; 75 other clients held the lock for the whole wait; 69 no quorum; 64 wrong
 * usage. */
#include "client.h"

#include <inttypes.h>
#include <stdio.h>

#define TTL_MS    10000 /* of the lock */
#define WAIT_MS   20000 /* longest wait for the lock */
#define MARGIN_MS 1000  /* validity that must be left for the write */

/* Reads the number and writes the next one, which two processes must not do at the same time.
 * redlock_with() calls this function with the held lock; `userdata` is the path of the file.
 * Returns 0, or 1 after a message on stderr. */
static int count_up(redlock_lock_t *lock, void *userdata)
{
    const char *path = userdata;
    uintmax_t number;

    FILE *file = fopen(path, "r+");
    if (file == NULL) {
        perror(path);
        return 1;
    }
    int result = 1;
    if (fscanf(file, "%ju", &number) != 1)
        fprintf(stderr, "%s: not a number\n", path);
    else if (redlock_lock_check(lock, MARGIN_MS) != REDLOCK_OK)
        fputs("too late: nothing was written\n", stderr);
    else if (fseek(file, 0, SEEK_SET) != 0 || fprintf(file, "%ju\n", number + 1) < 0)
        perror(path);
    else
        result = 0;
    if (fclose(file) != 0) {
        perror(path);
        result = 1;
    }
    return result;
}

/* Counts once under the lock. Returns the exit status. */
static int count_once(redlock_t *rl, const char *path)
{
    redlock_opts_t opts = redlock_opts(TTL_MS);
    redlock_report_t *report = NULL;
    int result = -1; /* stays negative if the function does not run */

    opts.wait_ms = WAIT_MS;
    int rc = redlock_with(rl, "example:count", &opts, &result, &report, count_up,
                          (void *)(uintptr_t)path);
    if (rc != REDLOCK_OK && result < 0)
        return example_not_acquired(rc, report);
    if (rc != REDLOCK_OK)
        fprintf(stderr, "at the release: %s\n", redlock_report_text(report));
    redlock_report_free(report);
    return result != 0 ? 1 : rc == REDLOCK_ELOST ? 2 : 0;
}

/* Counts TIMES times, or until counting fails. Returns the exit status. */
int main(int argc, char **argv)
{
    uint64_t times = 1;

    if (argc < 2 || (argc > 2 && !example_number(argv[2], INT32_MAX, &times))) {
        fputs("usage: count_up FILE [TIMES]; the servers come from REDLOCK_SERVERS\n", stderr);
        return EX_USAGE;
    }
    redlock_t *rl = example_connect(NULL);
    if (rl == NULL)
        return EX_CONFIG;
    int status = 0;
    for (; times > 0 && status == 0; times--)
        status = count_once(rl, argv[1]);
    example_leave(rl);
    return status;
}
