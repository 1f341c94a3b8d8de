/* SPDX-License-Identifier: MIT
 * Finds and signals everything that descends from one process, by means of /proc. New sessions
 * and process groups do not hide a process. Without /proc, only children of the calling process
 * are found.
 */
#ifndef TOOLS_DESCENDANTS_H
#define TOOLS_DESCENDANTS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* What one search for processes has found. */
struct descendants_pass {
    bool seen;        /* true if /proc was read; false if only children were searched for */
    unsigned alive;   /* processes that are not zombies, without spared ones and `foreign` */
    unsigned foreign; /* processes of other users, which may not be signalled */
};

/* Returns true if /proc shows the PID namespace of the calling process. The /proc of another
 * namespace shows other processes under the same pids, so all functions here treat it as
 * unreadable. */
bool descendants_visible(void);

/* Selects processes: all that descend from `ancestor`, except `spare`. Filled by the caller. */
struct descendants_scope {
    /* The process whose descendants are meant; not itself part of the scope. This process, or a
     * guardian: a subreaper with one thread. */
    pid_t ancestor;
    pid_t spare; /* gets no signal and is not counted, but its descendants are; 0: none */
    /* Excludes children of the ancestor that are older than this process, with all their
     * descendants. 0: no child is excluded. */
    pid_t since;
    uint64_t since_ticks; /* start time of `since`, from descendants_started(); 0 if `since` is 0 */
};

/* Searches once and sends `sig` to each living process of the scope; 0 sends nothing and only
 * counts. Without /proc, only children are signalled, and none if the ancestor is another
 * process. */
struct descendants_pass descendants_signal(const struct descendants_scope *scope, int sig);

/* Kills the processes of the scope until two searches in a row find none alive. One search is
 * not enough: a process whose parent ends during the search may be missed. Gives up after 30 s
 * on processes that are stuck in the kernel. Blocks. */
void descendants_end(const struct descendants_scope *scope);

/* Returns the start time of a process in clock ticks since boot, or 0 if it is not known. */
uint64_t descendants_started(pid_t pid);

/* Counts the processes of a process group that are not zombies. */
struct descendants_pass descendants_in_group(pid_t group);

/* Returns true if `pid`, living or dead, is a child of `parent`. Reads one entry of /proc. */
bool descendants_is_child(pid_t pid, pid_t parent);

#endif
