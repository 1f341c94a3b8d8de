/* SPDX-License-Identifier: MIT
 * Everything that descends from one process, found in /proc: new sessions and process groups do
 * not hide a process from this.
 */
#ifndef TOOLS_DESCENDANTS_H
#define TOOLS_DESCENDANTS_H

#include <stdbool.h>
#include <sys/types.h>

struct descendants_pass {
    bool seen;       /* /proc could be read */
    unsigned alive;  /* descendants that are not zombies, without `spare` */
    unsigned killed; /* of these, got the signal */
};

/* Looks once; sends `sig` (0: only look) to each living descendant of `ancestor` except `spare`
 * (0: nobody is spared). */
struct descendants_pass descendants_signal(pid_t ancestor, pid_t spare, int sig);

/* Counts the processes of a process group that are not zombies. */
struct descendants_pass descendants_in_group(pid_t group);

/* Is it, living or dead, a child of that process? One look, at one process. */
bool descendants_is_child(pid_t pid, pid_t parent);

#endif
