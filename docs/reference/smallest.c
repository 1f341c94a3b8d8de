/* SPDX-License-Identifier: MIT
 * The smallest program, on the page redlock(3): holds a lock while it
 * works. */
#include <redlock/redlock.h>
#include <stdio.h>
#include <stdlib.h>

int main(void)
{
    /* The servers, such as a:6379,b:6379,c:6379. */
    const char *servers = getenv("REDLOCK_SERVERS");
    redlock_config_t *config = NULL;
    redlock_t *client = NULL;
    redlock_lock_t *lock = NULL;
    redlock_report_t *report = NULL;
    redlock_opts_t opts = redlock_opts(10000); /* TTL: 10 s */

    int rc = redlock_config_new(&config, NULL);
    if (rc == REDLOCK_OK)
        rc = redlock_config_add_nodes(config, servers);
    if (rc == REDLOCK_OK)
        rc = redlock_new(&client, config);
    if (rc == REDLOCK_OK)
        rc = redlock_acquire(client, "invoice:42", &opts, &lock,
                             &report);
    if (rc == REDLOCK_OK) {
        puts("the lock is held"); /* the work, for at most 10 s */
        redlock_report_free(report);
        rc = redlock_release(lock, &report);
    }
    if (rc != REDLOCK_OK)
        fprintf(stderr, "%s\n",
                report ? redlock_report_text(report)
                       : redlock_config_error(config));
    redlock_report_free(report);
    redlock_lock_free(lock);
    redlock_free(client);
    redlock_config_free(config);
    return rc == REDLOCK_OK ? EXIT_SUCCESS : EXIT_FAILURE;
}
