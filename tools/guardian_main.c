/* SPDX-License-Identifier: MIT
 * The guardian's own process: waits for the kill time or the end of the pipe, then kills whatever
 * descends from it. It holds two descriptors, prints nothing and leaves nothing behind.
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
#include "files.h"
#include "guardian.h"

#define REPORT_TIMEOUT_NS (500 * NS_PER_MS)
#define END_TIMEOUT_NS    (3 * UINT64_C(1000000000))

struct watch {
    int feed_fd, timer_fd;
    pid_t starter, command;
    bool own_group; /* the pid of the command is also its process group */
    const char *remove_dir;
};

static void pause_ms(long ms)
{
    struct timespec delay = {.tv_nsec = ms * 1000000L};

    nanosleep(&delay, NULL);
}

/* Kills the command and its group before anything else: that is nearly always all there is, and to
 * read all of /proc takes hundreds of milliseconds where many processes want the processor. While
 * the command is the starter's child, the pid is not that of another process. */
static void kill_command(const struct watch *watch)
{
    if (watch->command > 1 &&
        (descendants_is_child(watch->command, watch->starter) || !descendants_visible()))
        kill(watch->own_group ? -watch->command : watch->command, SIGKILL);
}

static void kill_all(const struct watch *watch)
{
    const struct descendants_scope scope = {.ancestor = getpid(), .spare = watch->starter};

    kill_command(watch);
    struct descendants_pass pass = descendants_signal(&scope, SIGKILL);
    /* A starter that has started nothing must not begin now: a wrapper that was stopped right
     * before it asked for that may go on at any moment. One that has must report the end. */
    if (watch->command <= 1 && pass.alive == 0)
        kill(watch->starter, SIGKILL);
    descendants_end(&scope);
}

static void wait_for_starter(const struct watch *watch, uint64_t timeout_ns_of)
{
    uint64_t give_up_ns = boottime_ns() + timeout_ns_of;

    while (boottime_ns() < give_up_ns && child_runs(watch->starter))
        pause_ms(1);
}

/* Returns only when the starter has ended: a `redlock run` around this one would take it for a
 * process that the command has left behind. */
static void end_starter(const struct watch *watch)
{
    if (child_runs(watch->starter))
        kill(watch->starter, SIGKILL);
    wait_for_starter(watch, END_TIMEOUT_NS);
}

static _Noreturn void leave(const struct watch *watch, bool kill_rest, enum guardian_exit code)
{
    const struct descendants_scope all = {.ancestor = getpid()};

    if (kill_rest) {
        kill_all(watch);
        /* It reports the end of the command, and ends by itself. */
        wait_for_starter(watch, REPORT_TIMEOUT_NS);
    }
    end_starter(watch);
    /* The children of the starter that were not found without /proc are now our own. */
    if (kill_rest && !descendants_visible())
        descendants_end(&all);
    if (watch->remove_dir)
        remove_tree(watch->remove_dir);
    _exit((int)code);
}

static void arm(const struct watch *watch, uint64_t at_ns)
{
    struct itimerspec when = {0};

    if (at_ns != NEVER_NS) {
        /* 0 would disarm the timer: a time in the past must fire at once. */
        if (at_ns == 0)
            at_ns = 1;
        when.it_value.tv_sec = (time_t)(at_ns / UINT64_C(1000000000));
        when.it_value.tv_nsec = (long)(at_ns % UINT64_C(1000000000));
    }
    timerfd_settime(watch->timer_fd, TFD_TIMER_ABSTIME, &when, NULL);
}

static void obey(struct watch *watch)
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

/* Where many processes want the processor, whoever wakes up waits for its turn; one that only wakes
 * up to kill must not. Where it may not have that, it has to wait as all others do. */
static void go_first(void)
{
    const struct sched_param param = {.sched_priority = sched_get_priority_min(SCHED_RR)};

    if (sched_setscheduler(0, SCHED_RR | SCHED_RESET_ON_FORK, &param) != 0)
        errno = 0;
}

/* Closes all descriptors but these; a held one would keep somebody else's pipe open. */
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

_Noreturn void guardian_main(int feed_fd, int gate_fd, pid_t starter, const char *remove_dir)
{
    struct watch watch = {.feed_fd = feed_fd, .starter = starter, .remove_dir = remove_dir};

    watch.timer_fd = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
    if (watch.timer_fd < 0)
        leave(&watch, true, GUARDIAN_ORPHANED);
    drop_descriptors(feed_fd, watch.timer_fd, gate_fd);
    go_first();
    if (chdir("/") != 0 || write(gate_fd, "", 1) != 1)
        _exit(GUARDIAN_ORPHANED);
    close(gate_fd);
    for (;;) {
        struct pollfd fds[2] = {{.fd = feed_fd, .events = POLLIN},
                                {.fd = watch.timer_fd, .events = POLLIN}};
        if (poll(fds, 2, -1) < 0)
            continue;
        /* Orders first: a new kill time that is already here replaces the one that has come. */
        if (fds[0].revents) {
            obey(&watch);
            continue;
        }
        uint64_t expirations;
        if (fds[1].revents && read(watch.timer_fd, &expirations, sizeof expirations) > 0)
            leave(&watch, true, GUARDIAN_KILLED_IN_TIME);
    }
}
