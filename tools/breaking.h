/* SPDX-License-Identifier: MIT
 * Deletes the key of a lock and counts the servers on which that was done. The library's call
 * returns when a majority has no key any more; the lock is then inspected until the other servers
 * have no key either.
 */
#ifndef TOOLS_BREAKING_H
#define TOOLS_BREAKING_H

#include "reports.h"

/* What is known of one lock that is broken. The reports are owned; each may be NULL. */
struct breaking {
    redlock_report_t *before; /* of the inspection before */
    redlock_report_t *broken; /* of the call that deletes the key */
    redlock_report_t *after;  /* of the last inspection after it; NULL: the call has failed */
};

/* Deletes the key of the lock that `breaking->before` has shown, and fills in the other reports.
 * Returns the error code of the call. Blocks. */
int breaking_run(redlock_t *rl, const char *name, struct breaking *breaking);

/* Returns true if the key that a server had before is not there any more: the server has confirmed
 * that it deleted the key, or the key is missing now. `index`: of the server. */
bool breaking_has_deleted(const struct breaking *breaking, size_t index);

/* Returns the number of servers on which the key was deleted. */
unsigned breaking_count(const struct breaking *breaking);

/* Frees the reports. */
void breaking_free(struct breaking *breaking);

#endif
