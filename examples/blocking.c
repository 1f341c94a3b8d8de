/* SPDX-License-Identifier: MIT
 * blocking [RESOURCE]: acquires a lock, works, checks the lock before the side effect, releases it.
 *
 * The servers come from REDLOCK_SERVERS. Exit status: 0 done; 75 another client held the lock for
 * the whole wait; 69 no quorum, or not acquired for another reason; 1 the lock was lost before the
 * side effect, and nothing was done.
 *
 *     cc blocking.c $(pkg-config --cflags --libs redlock) -o blocking
 *     redlock sandbox -- ./blocking customer:42 */
#include <redlock/redlock.h>

#include <stdio.h>
#include <stdlib.h>

#define TTL_MS       10000 /* of the lock */
#define WAIT_MS      2000  /* longest wait for the lock */
#define MARGIN_MS    1000  /* longer than the side effect can take */
#define SHUTDOWN_MS  1000  /* for pending undos at the end */
#define EX_NO_QUORUM 69    /* exit status: not acquired for another reason than EX_HELD */
#define EX_HELD      75    /* exit status: another client held the lock for the whole wait */

/* Creates a client for a list of servers. Returns NULL after a message if that fails. */
static redlock_t *connect_nodes(const char *servers)
{
    redlock_config_t *config = NULL;
    redlock_t *rl = NULL;
    int rc = redlock_config_new(&config, NULL);
    if (rc == REDLOCK_OK)
        rc = redlock_config_add_nodes(config, servers);
    if (rc == REDLOCK_OK)
        rc = redlock_config_set_owner(config, "example-blocking"); /* `redlock status` shows it */
    if (rc == REDLOCK_OK)
        rc = redlock_new(&rl, config); /* connects in the background */
    if (rc != REDLOCK_OK)
        fprintf(stderr, "%s: %s\n", redlock_strerror(rc), redlock_config_error(config));
    redlock_config_free(config); /* redlock_new() has made a copy */
    return rl;
}

/* Prints why the lock was not acquired: a summary in one line, then the result of each server. */
static void print_refusal(const redlock_report_t *report)
{
    redlock_node_report_t node;
    fprintf(stderr, "not acquired: %s\n", redlock_report_text(report));
    for (size_t i = 0; redlock_report_get_node(report, i, &node, sizeof node) == REDLOCK_OK; i++)
        fprintf(stderr, "  %s: %s\n", node.node, node.text);
}

/* Works under the lock. Returns the exit status. */
static int work(redlock_lock_t *lock)
{
    printf("%s is held for %llu ms\n", redlock_lock_resource(lock, 0),
           (unsigned long long)redlock_lock_remaining_ms(lock));
    /* ... prepare whatever has no effect outside this process ... */
    if (redlock_lock_check(lock, MARGIN_MS) != REDLOCK_OK) {
        fputs("too late: nothing was done\n", stderr);
        return 1;
    }
    puts("the side effect");
    return 0;
}

/* Acquires the lock, works and releases it. Returns the exit status. */
static int work_under_lock(redlock_t *rl, const char *resource)
{
    redlock_lock_t *lock = NULL;
    redlock_report_t *report = NULL;
    redlock_opts_t opts = redlock_opts(TTL_MS);
    opts.wait_ms = WAIT_MS;

    int rc = redlock_acquire(rl, resource, &opts, &lock, &report);
    if (rc != REDLOCK_OK)
        print_refusal(report);
    redlock_report_free(report);
    if (rc != REDLOCK_OK)
        return rc == REDLOCK_ECONTENDED ? EX_HELD : EX_NO_QUORUM;

    int status = work(lock);

    /* A failed release needs a message, not a retry: the library repeats it on the servers that did
     * not reply, and the lock expires at the end of its TTL in any case. */
    rc = redlock_release(lock, NULL);
    printf("released: %s\n", redlock_strerror(rc));
    redlock_lock_free(lock);
    return status;
}

/* Creates a client, works once under the lock and returns the exit status. */
int main(int argc, char **argv)
{
    const char *servers = getenv("REDLOCK_SERVERS");
    if (!servers) {
        fputs("REDLOCK_SERVERS is not set; try: redlock sandbox -- ./blocking\n", stderr);
        return 64;
    }
    redlock_t *rl = connect_nodes(servers);
    if (!rl)
        return 78;
    int status = work_under_lock(rl, argc > 1 ? argv[1] : "example:blocking");
    redlock_shutdown(rl, SHUTDOWN_MS); /* pending undos get one second to be sent */
    redlock_free(rl);
    return status;
}
