/* SPDX-License-Identifier: MIT
 * What the patterns share: a client of the nodes in REDLOCK_SERVERS, and words for failures. */
#ifndef EXAMPLE_PATTERNS_CLIENT_H
#define EXAMPLE_PATTERNS_CLIENT_H

#include <redlock/redlock.h>

#define SHUTDOWN_MS  1000

#define EX_USAGE     64
#define EX_NO_QUORUM 69
#define EX_HELD      75
#define EX_CONFIG    78

/* More settings before the client is made; returns 0 or an error code. */
typedef int (*example_settings)(redlock_config_t *config);

/* A client, or NULL after a line on stderr. `settings` may be NULL. */
redlock_t *example_connect(example_settings settings);
/* Waits a moment for what is still to be taken back, then frees the client. */
void example_leave(redlock_t *rl);

/* Says why there is no lock, frees the report, and gives the exit status for it. */
int example_not_acquired(int error, redlock_report_t *report);

/* Is the text a number up to `most`, and nothing else? */
bool example_number(const char *text, uint64_t most, uint64_t *ret);

#endif
