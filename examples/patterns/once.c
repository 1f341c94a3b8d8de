/* SPDX-License-Identifier: MIT
 * once REQUEST KEEP_MS COMMAND...: runs the command only once for a request that may come twice (a
 * form that is sent again, a message that is delivered again).
 *
 * If the command succeeds, the key stays for KEEP_MS without a holder. The same request is a
 * duplicate for that time, even after this process has ended. If the command fails, the key is
 * deleted at once, so that the request can be tried again.
 *
 * Exit status: that of the command; 75 a duplicate, 69 no quorum, 64 wrong usage: the command was
 * not run. */
#include "client.h"

#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#define TTL_MS      10000 /* of the lock while the command runs; the library extends it */
#define KEEP_MS_MAX 30000 /* the max_ttl_ms of these servers; checked before the command runs */
#define EX_NOT_RUN  126   /* the command could not be started */
#define EX_SIGNALED 128   /* plus the number of the signal that ended the command */

/* Runs the command and returns its exit status, as a shell reports it. */
static int run_command(char **words)
{
    int status;
    pid_t child = fork();

    if (child < 0)
        return EX_NOT_RUN;
    if (child == 0) {
        execvp(words[0], words);
        perror(words[0]);
        _exit(EX_NOT_RUN);
    }
    while (waitpid(child, &status, 0) < 0)
        continue;
    return WIFEXITED(status) ? WEXITSTATUS(status) : EX_SIGNALED + WTERMSIG(status);
}

/* Runs the command unless the request is a duplicate. Returns the exit status. */
static int run_once(redlock_t *rl, const char *request, uint64_t keep_ms, char **words)
{
    redlock_opts_t opts = redlock_opts(TTL_MS);
    redlock_report_t *report = NULL;
    REDLOCK_SCOPED redlock_lock_t *lock = NULL;

    opts.flags = REDLOCK_FLAG_AUTO_EXTEND; /* the command may take longer than the TTL */
    int rc = redlock_acquire(rl, request, &opts, &lock, &report);
    if (rc == REDLOCK_ECONTENDED) {
        fprintf(stderr, "%s: a duplicate\n", request);
        redlock_report_free(report);
        return EX_HELD;
    }
    if (rc != REDLOCK_OK)
        return example_not_acquired(rc, report);
    redlock_report_free(report);
    int status = run_command(words);
    rc = status == 0 ? redlock_release_after(lock, keep_ms, NULL) : redlock_release(lock, NULL);
    if (rc != REDLOCK_OK)
        fprintf(stderr, "%s: duplicates may not be detected: %s\n", request, redlock_strerror(rc));
    return status;
}

/* Parses the arguments and runs the command once. Returns the exit status. */
int main(int argc, char **argv)
{
    uint64_t keep_ms;

    if (argc < 4 || !example_number(argv[2], KEEP_MS_MAX, &keep_ms)) {
        fputs("usage: once REQUEST KEEP_MS COMMAND...; KEEP_MS is at most 30000; the servers come "
              "from REDLOCK_SERVERS\n",
              stderr);
        return EX_USAGE;
    }
    redlock_t *rl = example_connect(NULL);
    if (rl == NULL)
        return EX_CONFIG;
    int status = run_once(rl, argv[1], keep_ms, &argv[3]);
    example_leave(rl);
    return status;
}
