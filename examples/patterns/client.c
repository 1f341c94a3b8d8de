/* SPDX-License-Identifier: MIT
 * Creates a client, the same way in every program. */
#include "client.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

/* Creates a client for the servers in REDLOCK_SERVERS. Returns NULL after a message on stderr. */
redlock_t *example_connect(example_settings settings)
{
    const char *servers = getenv("REDLOCK_SERVERS");
    redlock_config_t *config = NULL;
    redlock_t *rl = NULL;

    if (servers == NULL) {
        fputs("REDLOCK_SERVERS is not set; try: redlock sandbox -- PROGRAM ...\n", stderr);
        return NULL;
    }
    int rc = redlock_config_new(&config, NULL);
    if (rc == REDLOCK_OK)
        rc = redlock_config_add_nodes(config, servers);
    if (rc == REDLOCK_OK && settings != NULL)
        rc = settings(config);
    if (rc == REDLOCK_OK)
        rc = redlock_new(&rl, config);
    if (rc != REDLOCK_OK)
        fprintf(stderr, "%s: %s\n", redlock_strerror(rc), redlock_config_error(config));
    redlock_config_free(config);
    return rl;
}

/* Waits up to SHUTDOWN_MS for pending undos and frees the client. */
void example_leave(redlock_t *rl)
{
    redlock_shutdown(rl, SHUTDOWN_MS);
    redlock_free(rl);
}

/* Prints the reason, frees the report and returns EX_HELD, EX_USAGE or EX_NO_QUORUM. */
int example_not_acquired(int error, redlock_report_t *report)
{
    fprintf(stderr, "not acquired: %s\n",
            report != NULL ? redlock_report_text(report) : redlock_strerror(error));
    redlock_report_free(report);
    return error == REDLOCK_ECONTENDED ? EX_HELD
           : error == REDLOCK_EINVAL   ? EX_USAGE
                                       : EX_NO_QUORUM;
}

/* Parses a decimal number from 0 to `most`. Returns false if the text is anything else. */
bool example_number(const char *text, uint64_t most, uint64_t *ret)
{
    char *end;

    errno = 0;
    unsigned long long number = strtoull(text, &end, 10);
    if (!isdigit((unsigned char)*text) || *end != '\0' || errno != 0 || number > most)
        return false;
    *ret = number;
    return true;
}
