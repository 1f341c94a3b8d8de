/* SPDX-License-Identifier: MIT
 * Everything that descends from one process, found in /proc: new sessions and process groups do
 * not hide a process from this. Without /proc, children of the calling process are found.
 */
#ifndef TOOLS_DESCENDANTS_H
#define TOOLS_DESCENDANTS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct descendants_pass {
    bool seen;        /* in /proc; else only children were looked at */
    unsigned alive;   /* processes that are not zombies, without the spared ones */
    unsigned foreign; /* as many more, of other users: they may not be signalled */
};

/* Tells whether /proc shows the PID namespace of the calling process. The /proc of another
 * namespace has other processes under the same pids, and counts as unreadable for all functions
 * here. */
bool descendants_visible(void);

/* Which processes are meant: all that descend from `ancestor`, except `spare`. */
struct descendants_scope {
    pid_t ancestor;
    pid_t spare; /* its own descendants are not spared; 0: none */
    /* Children of the ancestor that are older than this process are spared, with all that descends
     * from them. 0: none. */
    pid_t since;
    uint64_t since_ticks; /* when that process was started: descendants_started() */
};

/* Looks once; sends `sig` (0: only look) to each living process of the scope. Without /proc, only
 * to those that are children, and to none if the ancestor is another process. */
struct descendants_pass descendants_signal(const struct descendants_scope *scope, int sig);

/* Kills the processes of the scope until two looks in a row find none alive. One look is not
 * enough: a child whose parent ended in the middle of the look has a parent that is not in the
 * list. Gives up after 30 s on processes that are stuck in the kernel. */
void descendants_end(const struct descendants_scope *scope);

/* Returns the start time of a process in clock ticks since boot, 0 if it is not known. */
uint64_t descendants_started(pid_t pid);

/* Counts the processes of a process group that are not zombies. */
struct descendants_pass descendants_in_group(pid_t group);

/* Is it, living or dead, a child of that process? One look, at one process. */
bool descendants_is_child(pid_t pid, pid_t parent);

#endif
