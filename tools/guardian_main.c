/* SPDX-License-Identifier: MIT
 * The guardian's own process, a child of the wrapper (the `redlock` process that the user started).
 * guardian_main() waits for orders on the pipe from the wrapper and for a timer that expires at the
 * kill time. When the timer expires, when the pipe ends or when the wrapper orders it, the guardian
 * kills all of its descendants and ends. Its only child at the start is the starter, which is the
 * parent of the command; orphans below it become children of the guardian. It keeps two
 * descriptors, prints nothing and leaves no files behind.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "children.h"
#include "clock.h"
#include "descendants.h"
#include "guardian.h"
#include "sandbox_node.h"

/* Time limits for the starter: to report the end of the command after a kill, and to end itself. */
#define REPORT_TIMEOUT_NS (500 * NS_PER_MS)
#define END_TIMEOUT_NS    (3 * UINT64_C(1000000000))

/* The state of the guardian's process. guardian_main() fills it; handle_order() changes
 * `command` and `own_group`. */
struct watch {
    int feed_fd;            /* pipe of orders from the wrapper */
    int timer_fd;           /* timer that expires at the kill time */
    pid_t starter;          /* pid of the starter */
    pid_t command;          /* pid of the command; 0 until the wrapper has sent it */
    bool own_group;         /* the pid of the command is also its process group */
    const char *remove_dir; /* of a sandbox; removed at the end with its servers; NULL: none */
};

/* Sleeps for `ms` milliseconds. */
static void pause_ms(long ms)
{
    struct timespec delay = {.tv_nsec = ms * 1000000L};

    nanosleep(&delay, NULL);
}

/* Kills the command, with its group if it has one of its own, before any search. These are nearly
 * always all processes there are, and reading all of /proc takes hundreds of milliseconds on a busy
 * machine. As long as the command is a child of the starter, its pid cannot belong to another
 * process. */
static void kill_command(const struct watch *watch)
{
    if (watch->command > 1 &&
        (descendants_is_child(watch->command, watch->starter) || !descendants_visible()))
        kill(watch->own_group ? -watch->command : watch->command, SIGKILL);
}

/* Kills the command and all descendants except the starter, which has to report the end. */
static void kill_all(const struct watch *watch)
{
    const struct descendants_scope scope = {.ancestor = getpid(), .spare = watch->starter};

    kill_command(watch);
    struct descendants_pass pass = descendants_signal(&scope, SIGKILL);
    /* A starter that has started nothing is killed, because it must not start anything now.
     * Otherwise a wrapper that was stopped just before its request could go on and send it. */
    if (watch->command <= 1 && pass.alive == 0)
        kill(watch->starter, SIGKILL);
    descendants_end(&scope);
}

/* Waits until the starter has ended, at most for `timeout_ns` ns. */
static void wait_for_starter(const struct watch *watch, uint64_t timeout_ns)
{
    uint64_t give_up_ns = boottime_ns() + timeout_ns;

    while (boottime_ns() < give_up_ns && child_runs(watch->starter))
        pause_ms(1);
}

/* Kills the starter and waits for its end. Without the wait, an outer `redlock run` would take
 * the starter for a process that its command has left behind. */
static void end_starter(const struct watch *watch)
{
    if (child_runs(watch->starter))
        kill(watch->starter, SIGKILL);
    wait_for_starter(watch, END_TIMEOUT_NS);
}

/* Ends the guardian with exit code `code`. With `kill_rest`, all descendants are killed first.
 * Ends the servers in the directory of the sandbox, if there is one, and removes it. */
static _Noreturn void leave(const struct watch *watch, bool kill_rest, enum guardian_exit code)
{
    const struct descendants_scope all = {.ancestor = getpid()};

    if (kill_rest) {
        kill_all(watch);
        /* The starter reports the end of the command, and then ends by itself. */
        wait_for_starter(watch, REPORT_TIMEOUT_NS);
    }
    end_starter(watch);
    /* Without /proc, the children of the starter were not found. They are our own children now. */
    if (kill_rest && !descendants_visible())
        descendants_end(&all);
    if (watch->remove_dir)
        sandbox_remove(watch->remove_dir);
    _exit((int)code);
}

/* Sets the timer of the kill time to `at_ns` of CLOCK_BOOTTIME; NEVER_NS disarms it. */
static void arm(const struct watch *watch, uint64_t at_ns)
{
    struct itimerspec when = {0};

    if (at_ns != NEVER_NS) {
        /* A value of 0 would disarm the timer, but a time in the past must expire at once. */
        if (at_ns == 0)
            at_ns = 1;
        when.it_value.tv_sec = (time_t)(at_ns / UINT64_C(1000000000));
        when.it_value.tv_nsec = (long)(at_ns % UINT64_C(1000000000));
    }
    timerfd_settime(watch->timer_fd, TFD_TIMER_ABSTIME, &when, NULL);
}

/* Reads and executes one order of the wrapper. The end of the pipe means that the wrapper has
 * ended, so everything is killed. */
static void handle_order(struct watch *watch)
{
    struct guardian_message message;
    ssize_t len = read(watch->feed_fd, &message, sizeof message);

    if (len < 0 && errno == EINTR)
        return;
    if (len != (ssize_t)sizeof message)
        leave(watch, true, GUARDIAN_ORPHANED);
    switch (message.order) {
    case ORDER_KILL_TIME:
        arm(watch, message.value);
        break;
    case ORDER_COMMAND:
        watch->command = (pid_t)message.value;
        watch->own_group = message.own_group;
        break;
    case ORDER_LEAVE:
        leave(watch, false, GUARDIAN_LEFT);
    default:
        leave(watch, true, GUARDIAN_LEFT);
    }
}

/* Gives the guardian real-time priority, so that it kills in time on a busy machine. Without the
 * permission it keeps the normal priority. */
static void raise_priority(void)
{
    const struct sched_param param = {.sched_priority = sched_get_priority_min(SCHED_RR)};

    if (sched_setscheduler(0, SCHED_RR | SCHED_RESET_ON_FORK, &param) != 0)
        errno = 0;
}

/* Closes all descriptors of this process except these three. An inherited descriptor would keep a
 * pipe of another process open. */
static void drop_descriptors(int keep_a, int keep_b, int keep_c)
{
    DIR *dir = opendir("/proc/self/fd");

    if (!dir) {
        for (int fd = 0; fd < 1024; fd++)
            if (fd != keep_a && fd != keep_b && fd != keep_c)
                close(fd);
        return;
    }
    const struct dirent *entry;
    while ((entry = readdir(dir))) {
        int fd = atoi(entry->d_name);
        if (entry->d_name[0] != '.' && fd != keep_a && fd != keep_b && fd != keep_c &&
            fd != dirfd(dir))
            close(fd);
    }
    closedir(dir);
}

/* Runs the guardian: opens the gate for the starter by one byte, then waits for orders and for the
 * kill time until one of them ends it. Never returns. */
_Noreturn void guardian_main(int feed_fd, int timer_fd, int gate_fd, pid_t starter,
                             const char *remove_dir)
{
    struct watch watch = {
        .feed_fd = feed_fd, .timer_fd = timer_fd, .starter = starter, .remove_dir = remove_dir};

    drop_descriptors(feed_fd, watch.timer_fd, gate_fd);
    raise_priority();
    if (chdir("/") != 0 || write(gate_fd, "", 1) != 1)
        _exit(GUARDIAN_ORPHANED);
    close(gate_fd);
    for (;;) {
        struct pollfd fds[2] = {{.fd = feed_fd, .events = POLLIN},
                                {.fd = watch.timer_fd, .events = POLLIN}};
        if (poll(fds, 2, -1) < 0)
            continue;
        /* Orders come first: a new kill time that has already arrived replaces the expired one. */
        if (fds[0].revents) {
            handle_order(&watch);
            continue;
        }
        uint64_t expirations;
        if (fds[1].revents && read(watch.timer_fd, &expirations, sizeof expirations) > 0)
            leave(&watch, true, GUARDIAN_KILLED_IN_TIME);
    }
}
