/* SPDX-License-Identifier: MIT
 * The guardian: a small process that makes sure that nothing of a job lives past a given time, even
 * if the wrapper is killed or stopped.
 *
 *   wrapper ── guardian (own session, child subreaper) ── starter (wrapper's session) ── command
 *
 * All that descends from the command also descends from the guardian, whatever sessions and process
 * groups it makes, because orphans come to the nearest subreaper. The starter (starter.h) stands in
 * between since a command whose parent is in another session could not be stopped with Ctrl-Z.
 */
#ifndef TOOLS_GUARDIAN_H
#define TOOLS_GUARDIAN_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct guardian {
    pid_t pid;
    int feed_fd;    /* wrapper to guardian: when to kill; its end means: kill now */
    int request_fd; /* wrapper to starter: what to start */
    int report_fd;  /* starter to wrapper: what became of it */
};

/* Forks guardian and starter. Call while the process has one thread and with all signals blocked.
 * `remove_dir`, unless NULL, is removed with all in it when the job is over, by whatever end.
 * Returns 0, or -1 with errno. */
int guardian_start(struct guardian *ret_guardian, const char *remove_dir);

/* On CLOCK_BOOTTIME; UINT64_MAX: never. Without a guardian it does nothing: the end of the
 * starter's reports tells. */
void guardian_set_kill_time(struct guardian *guardian, uint64_t at_ns);

/* The command's process group: where /proc cannot be read, the guardian kills that much. */
void guardian_set_group(struct guardian *guardian, pid_t group);

/* Nothing more will be started: the starter ends with the last command. */
void guardian_close_requests(struct guardian *guardian);

/* The job is over. `kill_rest`: what still runs is killed first. Waits for the end of the
 * guardian; true if it had to kill because of its time. */
bool guardian_end(struct guardian *guardian, bool kill_rest);

/* Inside the guardian's own process; never returns. Says through the gate that it is on watch. */
_Noreturn void guardian_main(int feed_fd, int gate_fd, pid_t starter, const char *remove_dir);

enum guardian_order { ORDER_KILL_TIME = 1, ORDER_GROUP, ORDER_LEAVE, ORDER_KILL };

struct guardian_message {
    uint64_t value;
    uint32_t order;
    uint32_t unused;
};

enum guardian_exit { GUARDIAN_LEFT = 0, GUARDIAN_KILLED_IN_TIME = 1, GUARDIAN_ORPHANED = 2 };

#endif
