/* SPDX-License-Identifier: MIT
 * The guardian: a small process that kills everything a command has started when its time has
 * come, even if the wrapper (the `redlock` process that the user started) is stopped or killed.
 *
 *   wrapper ── guardian (own session, child subreaper) ── starter (wrapper's session) ── command
 *
 * Which process does what:
 * - The wrapper owns the lock and the client. It computes the kill time from the deadline of the
 *   lock and sends it to the guardian after each change. It passes signals on to the command.
 * - The guardian holds no lock and opens no connection. It waits for the kill time or for the end
 *   of the pipe from the wrapper. Then it sends KILL to all of its descendants but the starter.
 * - The starter (starter.h) is the parent of the command. It executes what the wrapper requests and
 *   reports each start, stop, continuation and end. It decides nothing.
 * - The command and all that it starts descend from the starter, and so from the guardian.
 *
 * What each signal does:
 * - KILL to the wrapper closes its end of the pipe, so the guardian kills the command at once.
 * - STOP to the wrapper ends the extensions, so the guardian kills the command at the kill time.
 * - KILL to the guardian kills the starter and the command as well (parent-death signal). Orphans
 *   become children of the wrapper, which is a subreaper, too, and kills them.
 * - STOP to the guardian: the wrapper kills the command itself, 50 ms after the kill time, and
 *   continues the guardian, which has to end.
 * - Other signals do not reach the guardian from a terminal, because it has a session of its own.
 *
 * Invariants:
 * - The guardian has the current kill time before the command is started.
 * - The starter starts nothing before the guardian is ready to kill.
 * - A descendant of the command cannot leave: new sessions and process groups do not change its
 *   ancestors, and an orphan becomes a child of the nearest subreaper, which is the guardian.
 * - No descendant outlives the guardian's kill, except processes of other users and those that are
 *   stuck in the kernel.
 *
 * The starter exists because a command whose parent is in another session cannot be stopped with
 * Ctrl-Z. Guardian and starter have process names of their own, so that one `pkill redlock` does
 * not end all three processes.
 */
#ifndef TOOLS_GUARDIAN_H
#define TOOLS_GUARDIAN_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "descendants.h"

/* Names of the two processes, as ps and pkill show them. */
#define GUARDIAN_TITLE "rl-guardian"
#define STARTER_TITLE  "rl-starter"

/* The wrapper's view of the guardian and of the pipes to it and to the starter. Filled by
 * guardian_start(); only guardian.c changes the fields. Descriptors are -1 once they are closed. */
struct guardian {
    pid_t pid; /* process id of the guardian; 0: not started */
    /* start time of the guardian in clock ticks since boot, see descendants_started() */
    uint64_t started_ticks;
    bool ended;         /* true once the process has ended and was waited for */
    int status;         /* wait status of the process; valid if `ended` */
    bool end_requested; /* guardian_end() was called */
    int feed_fd; /* pipe from wrapper to guardian: struct guardian_message; end of file: kill now */
    int request_fd; /* pipe from wrapper to starter: see starter_request() */
    int report_fd;  /* pipe from starter to wrapper: struct start_report */
};

/* Forks the guardian, which forks the starter. Call it while the process has one thread and with
 * all signals blocked. If `remove_dir` is not NULL, it is the directory of a sandbox: the guardian
 * calls sandbox_remove() for it when it ends, unless the guardian itself is killed. Waits until
 * both processes are ready. Returns 0, or -1 with errno if one of them could not be made. */
int guardian_start(struct guardian *ret_guardian, const char *remove_dir);

/* Prints `what` could not be done for want of a process, and what to do. `error`: errno of
 * guardian_start(), or of REPORT_NO_PROCESS. */
void guardian_say_no_process(const char *what, int error);

/* Prints why guardian and starter have ended before they have started a command: an error in their
 * first report, or that they were killed; `killed` says what follows. `name`: of the lock. Returns
 * the exit code. */
int guardian_explain_end(int report_fd, const char *name, const char *killed);

/* Sends the guardian the time at which it has to kill, in ns of CLOCK_BOOTTIME; UINT64_MAX means
 * never. Does nothing if the guardian has ended; the end of the starter's reports shows that. */
void guardian_set_kill_time(struct guardian *guardian, uint64_t at_ns);

/* Sends the guardian the pid of the command, which it kills before it searches for descendants.
 * `own_group`: the pid is also the process group of the command, and the whole group is killed. */
void guardian_set_command(struct guardian *guardian, pid_t command, bool own_group);

/* Closes the pipe of requests. The starter then starts nothing more, and ends with the last
 * command. */
void guardian_close_requests(struct guardian *guardian);

/* Waits for those children of the wrapper that have ended, and records the end of the guardian.
 * Call it after SIGCHLD. Does not block. */
void guardian_reap(struct guardian *guardian);

/* Searches once for all that descends from the command and sends `sig` to each process; 0 sends
 * nothing and only counts. The ancestor is the guardian while that runs, and then the wrapper.
 * `starter` is the pid of the starter, which gets no signal; 0 if it is not known. */
struct descendants_pass guardian_signal_rest(struct guardian *guardian, pid_t starter, int sig);

/* Sends SIGCONT to the guardian, in case that it was stopped. */
void guardian_continue(const struct guardian *guardian);

/* Ends the guardian after the end of the job, and waits for it. With `kill_rest`, everything
 * that still descends from the command is killed first, by the guardian or, if the guardian was
 * killed, by the caller. Returns true if the guardian killed because the kill time had come. A
 * second call does nothing and returns false. */
bool guardian_end(struct guardian *guardian, bool kill_rest);

/* Runs the guardian's own process; never returns. Writes one byte to `gate_fd` when it is ready
 * to kill, which allows the starter to start commands. The other parameters: the pipe from the
 * wrapper, a timerfd of CLOCK_BOOTTIME for the kill time, the pid of the starter, and the directory
 * to remove at the end (NULL: none). */
_Noreturn void guardian_main(int feed_fd, int timer_fd, int gate_fd, pid_t starter,
                             const char *remove_dir);

/* What the wrapper may order. ORDER_KILL_TIME: replace the kill time. ORDER_COMMAND: remember the
 * pid of the command. ORDER_LEAVE: end without killing. ORDER_KILL: kill all descendants, then end.
 */
enum guardian_order { ORDER_KILL_TIME = 1, ORDER_COMMAND, ORDER_LEAVE, ORDER_KILL };

/* One order on the pipe from the wrapper to the guardian. */
struct guardian_message {
    uint64_t value;     /* ORDER_KILL_TIME: ns of CLOCK_BOOTTIME; ORDER_COMMAND: pid; else 0 */
    uint32_t order;     /* enum guardian_order */
    uint32_t own_group; /* ORDER_COMMAND: 1 if the pid is also a process group */
};

/* Exit codes of the guardian: it was ordered to end; the kill time came; the wrapper has ended
 * or the guardian could not do its work. */
enum guardian_exit { GUARDIAN_LEFT = 0, GUARDIAN_KILLED_IN_TIME = 1, GUARDIAN_ORPHANED = 2 };

#endif
