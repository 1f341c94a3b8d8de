/* SPDX-License-Identifier: MIT
 * The children of the calling process, found without /proc. A subreaper gets the orphans among its
 * descendants as children, so where each child that is found is killed, all descendants come up.
 */
#ifndef TOOLS_CHILDREN_H
#define TOOLS_CHILDREN_H

#include <stdbool.h>
#include <sys/types.h>

/* Tells whether it is a child of the calling process that has not ended. */
bool child_runs(pid_t pid);

/* Sends `sig` (0: only look) to each child that runs, except `spare` (0: none). `since`: unless 0,
 * only to children that are not older than that process. Returns how many run, without those of
 * other users, which may not be signalled. */
unsigned children_signal(pid_t spare, pid_t since, int sig);

#endif
