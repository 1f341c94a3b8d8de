/* SPDX-License-Identifier: MIT
 * The part that all patterns share: a client for the servers in REDLOCK_SERVERS, and exit
 * statuses. */
#ifndef EXAMPLE_PATTERNS_CLIENT_H
#define EXAMPLE_PATTERNS_CLIENT_H

#include <redlock/redlock.h>

#define SHUTDOWN_MS 1000 /* for pending undos */

/* Exit statuses, as in <sysexits.h>. */
#define EX_USAGE     64 /* the command line is not valid */
#define EX_NO_QUORUM 69 /* too few servers granted the lock, for another reason than its holder */
#define EX_HELD      75 /* another client held the lock for the whole wait */
#define EX_CONFIG    78 /* no client: no or wrong REDLOCK_SERVERS */

/* Changes the configuration before the client is created. Returns REDLOCK_OK or an error. */
typedef int (*example_settings)(redlock_config_t *config);

/* Creates a client. Returns NULL after a message on stderr. `settings` may be NULL. */
redlock_t *example_connect(example_settings settings);
/* Gives pending undos a moment to be sent, then frees the client. */
void example_leave(redlock_t *rl);

/* Prints why the lock was not acquired, frees the report (may be NULL), and returns the exit
 * status. */
int example_not_acquired(int error, redlock_report_t *report);

/* Parses a decimal number from 0 to `most`. Returns false if the text is anything else. */
bool example_number(const char *text, uint64_t most, uint64_t *ret);

#endif
