/* SPDX-License-Identifier: MIT
 * metrics [RESOURCE]: prints the figures of a client for Prometheus while it holds a lock.
 *
 * A program with an HTTP server gives this text as reply to GET /metrics, with the content type
 * "text/plain; version=0.0.4". The servers come from REDLOCK_SERVERS. Exit status: 0 done; 1 the
 * lock was not acquired.
 *
 *     cc metrics.c $(pkg-config --cflags --libs redlock) -o metrics
 *     redlock sandbox -- ./metrics */
#include <redlock/redlock.h>

#include <stdio.h>
#include <stdlib.h>

#define TTL_MS     10000 /* of the lock */
#define WAIT_MS    2000  /* longest wait for the lock */
#define FIRST_SIZE 32768 /* bytes of the first buffer: enough for five servers */

/* Returns the figures of the client as text, to be freed. Returns NULL without memory, or if the
 * client is shutting down. */
static char *figures(redlock_t *rl)
{
    const redlock_label_t labels[] = {{"service", "billing"}}; /* added to each figure */
    size_t size = FIRST_SIZE;
    char *text = NULL;

    for (;;) {
        char *larger = realloc(text, size);
        if (!larger)
            break;
        text = larger;
        int len = redlock_stats_prometheus(rl, labels, 1, text, size);
        if (len < 0)
            break;
        if ((size_t)len < size)
            return text;
        size = (size_t)len + 1024; /* the numbers may have grown until the next try */
    }
    free(text);
    return NULL;
}

/* Creates a client for the servers in the environment. Returns NULL if that fails. */
static redlock_t *connect_nodes(void)
{
    const char *servers = getenv("REDLOCK_SERVERS");
    redlock_config_t *config = NULL;
    redlock_t *rl = NULL;

    int rc = redlock_config_new(&config, NULL);
    if (rc == REDLOCK_OK)
        rc = redlock_config_add_nodes(config, servers ? servers : "");
    if (rc == REDLOCK_OK)
        rc = redlock_new(&rl, config);
    if (rc != REDLOCK_OK)
        fprintf(stderr, "%s: %s\n", redlock_strerror(rc), redlock_config_error(config));
    redlock_config_free(config);
    return rl;
}

/* Acquires a lock, prints the figures and releases the lock. Returns the exit status. */
int main(int argc, char **argv)
{
    redlock_opts_t opts = redlock_opts(TTL_MS);
    redlock_lock_t *lock = NULL;
    redlock_t *rl = connect_nodes();

    if (!rl)
        return 1;
    opts.wait_ms = WAIT_MS;
    int rc = redlock_acquire(rl, argc > 1 ? argv[1] : "example:metrics", &opts, &lock, NULL);
    if (rc != REDLOCK_OK)
        fprintf(stderr, "not acquired: %s\n", redlock_strerror(rc));
    char *text = figures(rl);
    if (text)
        fputs(text, stdout);
    free(text);
    if (lock)
        redlock_release(lock, NULL);
    redlock_lock_free(lock);
    redlock_free(rl);
    return rc == REDLOCK_OK && text ? 0 : 1;
}
