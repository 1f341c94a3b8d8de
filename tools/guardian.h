/* SPDX-License-Identifier: MIT
 * The guardian: a small process that makes sure that nothing of a job lives past a given time, even
 * if the wrapper is killed or stopped.
 *
 *   wrapper ── guardian (own session, child subreaper) ── starter (wrapper's session) ── command
 *
 * All that descends from the command also descends from the guardian, whatever sessions and process
 * groups it makes, because orphans come to the nearest subreaper. The starter (starter.h) stands in
 * between since a command whose parent is in another session could not be stopped with Ctrl-Z.
 *
 * The wrapper is a subreaper, too: if the guardian is killed, what it watched comes to the wrapper,
 * which then ends it. One signal to the name `redlock` must not reach all three, so guardian and
 * starter have names of their own.
 */
#ifndef TOOLS_GUARDIAN_H
#define TOOLS_GUARDIAN_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "descendants.h"

#define GUARDIAN_TITLE "rl-guardian"
#define STARTER_TITLE  "rl-starter"

struct guardian {
    pid_t pid;
    uint64_t started_ticks; /* descendants_started() */
    bool ended;             /* and was waited for: */
    int status;
    bool is_expired; /* guardian_end() was called */
    int feed_fd;     /* wrapper to guardian: when to kill; its end means: kill now */
    int request_fd;  /* wrapper to starter: what to start */
    int report_fd;   /* starter to wrapper: what became of it */
};

/* Forks guardian and starter. Call while the process has one thread and with all signals blocked.
 * `remove_dir`, unless NULL, is removed with all in it when the job is over, by whatever end.
 * Returns 0, or -1 with errno. */
int guardian_start(struct guardian *ret_guardian, const char *remove_dir);

/* On CLOCK_BOOTTIME; UINT64_MAX: never. Without a guardian it does nothing: the end of the
 * starter's reports tells. */
void guardian_set_kill_time(struct guardian *guardian, uint64_t at_ns);

/* Tells the guardian what to kill first. `own_group`: the pid of the command is also its group. */
void guardian_set_command(struct guardian *guardian, pid_t command, bool own_group);

/* Nothing more will be started: the starter ends with the last command. */
void guardian_close_requests(struct guardian *guardian);

/* Waits for the children of the wrapper that have ended. Call after SIGCHLD. */
void guardian_reap(struct guardian *guardian);

/* Looks once at what descends from the command, and sends `sig` (0: only look) to each. It descends
 * from the guardian as long as that runs, then from the wrapper. `starter`: spared, 0 if not known.
 */
struct descendants_pass guardian_signal_rest(struct guardian *guardian, pid_t starter, int sig);

/* Lets a stopped guardian go on. */
void guardian_continue(const struct guardian *guardian);

/* Ends the guardian after the end of the job, and waits for it. `kill_rest`: what still runs is
 * killed first, by the guardian or, if that was killed, by the caller. Returns true if the guardian
 * had to kill because of its time. A second call does nothing. */
bool guardian_end(struct guardian *guardian, bool kill_rest);

/* Inside the guardian's own process; never returns. Says through the gate that it is on watch. */
_Noreturn void guardian_main(int feed_fd, int gate_fd, pid_t starter, const char *remove_dir);

enum guardian_order { ORDER_KILL_TIME = 1, ORDER_COMMAND, ORDER_LEAVE, ORDER_KILL };

struct guardian_message {
    uint64_t value;
    uint32_t order;
    uint32_t own_group; /* ORDER_COMMAND */
};

enum guardian_exit { GUARDIAN_LEFT = 0, GUARDIAN_KILLED_IN_TIME = 1, GUARDIAN_ORPHANED = 2 };

#endif
