/* SPDX-License-Identifier: MIT
 * Reads /proc and signals the descendants of a process. One search reads all processes into a list
 * (list_read()), marks those that belong to the scope (mark()), and counts and signals each of
 * them. "Visible" means that /proc can be read and shows the PID namespace of this process. Before
 * a process is signalled, a pidfd pins it where the kernel allows that, and its start time is read
 * again. So a pid that the kernel has given to another process in the meantime gets no signal.
 */
#include "descendants.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "children.h"
#include "clock.h"

/* Time after which descendants_end() gives up on processes that survive KILL. */
#define KILL_TIMEOUT_NS (30 * UINT64_C(1000000000))
/* Pause between two searches of descendants_end(); the pause doubles while processes survive. */
#define PAUSE_NS_MIN ((long)NS_PER_MS)
#define PAUSE_NS_MAX (64 * (long)NS_PER_MS)

/* One process as /proc shows it. */
struct process {
    pid_t pid, parent, group; /* its id, that of its parent, and its process group */
    bool runs;     /* any thread of it runs; the state in /proc is only that of the first thread */
    bool descends; /* it belongs to the scope; set by mark() */
    uint64_t started; /* start time in clock ticks since boot */
};

/* All processes, sorted by pid after list_read(). The list is local to one search. */
struct process_list {
    struct process *items; /* owned */
    size_t count, room;    /* used and allocated items */
};

/* Reads /proc/PID/stat of the process `pid` into *ret. `proc_fd` is a descriptor of /proc. Returns
 * false if the process does not exist or cannot be read. */
static bool read_process(int proc_fd, pid_t pid, struct process *ret)
{
    char path[32], text[1024];
    int parent, group;
    long threads;
    char state;

    snprintf(path, sizeof path, "%d/stat", (int)pid);
    int fd = openat(proc_fd, path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    ssize_t len = read(fd, text, sizeof text - 1);
    close(fd);
    if (len <= 0)
        return false;
    text[len] = '\0';
    /* The name in parentheses may contain blanks and parentheses, so the fields begin after the
     * last one. */
    const char *rest = strrchr(text, ')');
    if (!rest || sscanf(rest + 1,
                        " %c %d %d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %ld %*d "
                        "%" SCNu64,
                        &state, &parent, &group, &threads, &ret->started) != 5)
        return false;
    ret->pid = pid;
    ret->parent = parent;
    ret->group = group;
    ret->runs = (state != 'Z' && state != 'X') || threads > 1;
    ret->descends = false;
    return true;
}

/* Appends a process to the list. Returns false if there is no memory. */
static bool list_add(struct process_list *list, struct process item)
{
    if (list->count == list->room) {
        size_t room = list->room ? list->room * 2 : 256;
        struct process *items = realloc(list->items, room * sizeof *items);
        if (!items)
            return false;
        list->items = items;
        list->room = room;
    }
    list->items[list->count++] = item;
    return true;
}

/* Compares two processes by pid, for qsort() and bsearch(). */
static int by_pid(const void *a, const void *b)
{
    pid_t left = ((const struct process *)a)->pid, right = ((const struct process *)b)->pid;
    return (left > right) - (left < right);
}

/* Reads all processes of the opened /proc into the list and sorts them by pid. Returns false if
 * there is no memory. The items are to be freed in both cases. */
static bool list_read(struct process_list *list, DIR *proc)
{
    const struct dirent *entry;

    while ((entry = readdir(proc))) {
        char *end;
        struct process item;
        long pid = strtol(entry->d_name, &end, 10);
        if (pid <= 0 || *end)
            continue;
        if (read_process(dirfd(proc), (pid_t)pid, &item) && !list_add(list, item))
            return false;
    }
    if (list->count > 0)
        qsort(list->items, list->count, sizeof *list->items, by_pid);
    return true;
}

/* Returns true if the process is a child of scope->ancestor and not older than scope->since. */
static bool is_child(const struct process *item, const struct descendants_scope *scope)
{
    if (item->parent != scope->ancestor)
        return false;
    return item->started > scope->since_ticks ||
           (item->started == scope->since_ticks && item->pid >= scope->since);
}

/* Sets `descends` for all processes of the scope. Repeats until nothing changes, because a child
 * may have a smaller pid than its parent. */
static void mark(struct process_list *list, const struct descendants_scope *scope)
{
    bool more = true;

    while (more) {
        more = false;
        for (size_t i = 0; i < list->count; i++) {
            struct process *item = &list->items[i];
            if (item->descends)
                continue;
            const struct process key = {.pid = item->parent};
            const struct process *parent =
                bsearch(&key, list->items, list->count, sizeof key, by_pid);
            if (is_child(item, scope) || (parent && parent->descends)) {
                item->descends = true;
                more = true;
            }
        }
    }
}

/* Sends the signal to exactly this process, unless it has ended. Many kernels and seccomp
 * profiles lack the system calls for pidfds, and descriptors may be used up. So after any error
 * but ESRCH, kill() is used without pinning. */
static void signal_pinned(int proc_fd, const struct process *item, int sig)
{
    struct process again;
    int pidfd = (int)syscall(SYS_pidfd_open, item->pid, 0);

    if (pidfd < 0 && errno == ESRCH)
        return;
    bool same = read_process(proc_fd, item->pid, &again) && again.started == item->started;
    bool sent = same && pidfd >= 0 && syscall(SYS_pidfd_send_signal, pidfd, sig, NULL, 0) == 0;
    if (same && !sent && (pidfd < 0 || errno != ESRCH))
        kill(item->pid, sig);
    if (pidfd >= 0)
        close(pidfd);
}

/* Returns true if /proc/self leads to the pid of this process, so that /proc shows its PID
 * namespace. */
bool descendants_visible(void)
{
    char text[24] = "";

    return readlink("/proc/self", text, sizeof text - 1) > 0 && atol(text) == (long)getpid();
}

/* Opens /proc, or returns NULL if it cannot be used. */
static DIR *open_proc(void)
{
    return descendants_visible() ? opendir("/proc") : NULL;
}

/* Adds one process to pass->alive or, if this process may not signal it, to pass->foreign. */
static void count(struct descendants_pass *pass, const struct process *item)
{
    if (kill(item->pid, 0) != 0 && errno == EPERM)
        pass->foreign++;
    else
        pass->alive++;
}

/* Returns true if the process has one thread and no child. The kernel reads the first child under a
 * lock, so an empty list is sure; a longer one is not. Returns false if the kernel has no such
 * list. */
static bool has_no_child(int proc_fd, pid_t pid)
{
    char path[48], byte;

    snprintf(path, sizeof path, "%d/task/%d/children", (int)pid, (int)pid);
    int fd = openat(proc_fd, path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    bool none = read(fd, &byte, 1) == 0;
    close(fd);
    return none;
}

/* Searches once and sends `sig` (0: nothing) to each running process of the scope but scope->spare.
 * Returns how many there are. Without /proc, uses children_signal(). The guardian gets the orphans
 * among its descendants as children. So one without a child has no descendant, and no other process
 * of the machine is read: there may be thousands. */
struct descendants_pass descendants_signal(const struct descendants_scope *scope, int sig)
{
    struct descendants_pass pass = {0};
    struct process_list list = {0};
    DIR *proc = open_proc();

    if (!proc) {
        if (scope->ancestor == getpid())
            pass.alive = children_signal(scope->spare, scope->since, sig);
        return pass;
    }
    pass.seen = scope->ancestor != getpid() && has_no_child(dirfd(proc), scope->ancestor);
    if (!pass.seen)
        pass.seen = list_read(&list, proc);
    mark(&list, scope);
    for (size_t i = 0; i < list.count; i++) {
        const struct process *item = &list.items[i];
        if (!item->descends || item->pid == scope->spare || !item->runs)
            continue;
        count(&pass, item);
        if (sig)
            signal_pinned(dirfd(proc), item, sig);
    }
    free(list.items);
    closedir(proc);
    return pass;
}

/* Repeats descendants_signal() with KILL until two searches in a row find none alive, or for 30
 * s. */
void descendants_end(const struct descendants_scope *scope)
{
    uint64_t give_up_ns = boottime_ns() + KILL_TIMEOUT_NS;
    struct timespec pause = {.tv_nsec = PAUSE_NS_MIN};
    int clean = 0;

    while (clean < 2 && boottime_ns() < give_up_ns) {
        struct descendants_pass pass = descendants_signal(scope, SIGKILL);
        clean = pass.alive == 0 ? clean + 1 : 0;
        if (clean > 0)
            continue;
        nanosleep(&pause, NULL);
        if (pause.tv_nsec < PAUSE_NS_MAX)
            pause.tv_nsec *= 2;
    }
}

/* Reads the process `pid` of our own PID namespace into *ret. Returns false if /proc does not show
 * that namespace or the process does not exist. */
static bool read_visible(pid_t pid, struct process *ret)
{
    int proc_fd = descendants_visible() ? open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;

    if (proc_fd < 0)
        return false;
    bool found = read_process(proc_fd, pid, ret);
    close(proc_fd);
    return found;
}

/* Returns the start time of the process in clock ticks since boot; 0 if it cannot be read. */
uint64_t descendants_started(pid_t pid)
{
    struct process item;

    return read_visible(pid, &item) ? item.started : 0;
}

/* Counts the running processes of the process group. All zero if /proc cannot be used. */
struct descendants_pass descendants_in_group(pid_t group)
{
    struct descendants_pass pass = {0};
    struct process_list list = {0};
    DIR *proc = open_proc();

    if (!proc)
        return pass;
    pass.seen = list_read(&list, proc);
    for (size_t i = 0; i < list.count; i++)
        if (list.items[i].group == group && list.items[i].runs)
            count(&pass, &list.items[i]);
    free(list.items);
    closedir(proc);
    return pass;
}

/* Returns true if /proc shows `pid` as a child of `parent`. */
bool descendants_is_child(pid_t pid, pid_t parent)
{
    struct process item;

    return read_visible(pid, &item) && item.parent == parent;
}
