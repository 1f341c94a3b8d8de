/* SPDX-License-Identifier: MIT
 * Finds the children of the calling process without /proc. A subreaper gets the orphans among
 * its descendants as children. Killing each child that is found therefore reaches all
 * descendants, one generation after the other.
 */
#ifndef TOOLS_CHILDREN_H
#define TOOLS_CHILDREN_H

#include <stdbool.h>
#include <sys/types.h>

/* Returns true if `pid` is a child of the calling process that has not ended. */
bool child_runs(pid_t pid);

/* Sends `sig` to each running child except `spare`; signal 0 sends nothing and only counts. If
 * `since` is not 0, children that are older than that process are excluded. Returns how many
 * children run, without those of other users, which may not be signalled. */
unsigned children_signal(pid_t spare, pid_t since, int sig);

#endif
