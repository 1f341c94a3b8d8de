/* SPDX-License-Identifier: MIT
 * usage: keeper REPORT GRACE COMMAND...
 *
 * Runs a test program in a session of its own, and then ends whatever it has left running, daemons
 * with sessions of their own included: the keeper is a child subreaper, so the kernel makes it the
 * parent of every orphan below it. Writes to the file REPORT, as fields that each end with NUL, the
 * wait status of the program, its processor seconds, and the names of the processes that did not
 * end by themselves within GRACE seconds. SIGTERM ends everything at once; the status is then -1.
 *
 * program.py compiles this file. It is in C, because it starts once for each program, and Python
 * takes longer to start than most of these take to run. */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define KILL_SECONDS 20       /* after that, a process that survives KILL is stuck in the kernel */
#define STEP_NS      20000000 /* between two looks at what is left */
#define STAT_SIZE    4096
#define NAMES_MAX    64
#define NAME_SIZE    64

static struct {
    char name[NAMES_MAX][NAME_SIZE];
    unsigned count;
} killed;

static sigset_t awaited; /* SIGCHLD and SIGTERM, which are blocked */

/* Returns the seconds of the monotonic clock. */
static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

/* Starts the program in a session of its own. Returns its pid. One that cannot be started exits
 * with 127. */
static pid_t start(char **words)
{
    sigset_t none;
    const pid_t program = fork();

    if (program != 0)
        return program;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    setsid();
    execvp(words[0], words);
    fprintf(stderr, "%s: %s\n", words[0], strerror(errno));
    _exit(127);
}

/* Waits for the end of the program, reaping orphans. Returns its wait status and its processor
 * seconds; -1 after SIGTERM. */
static int wait_for(pid_t program, double *ret_seconds)
{
    struct rusage used;
    int status;

    for (;;) {
        pid_t pid;
        while ((pid = wait4(-1, &status, WNOHANG, &used)) > 0) {
            if (pid != program)
                continue;
            *ret_seconds = (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
                           (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1e6;
            return status;
        }
        if (sigwaitinfo(&awaited, NULL) == SIGTERM)
            return -1;
    }
}

/* Reaps the children that have ended. Returns whether one is left. */
static bool reap(void)
{
    pid_t pid;

    while ((pid = waitpid(-1, NULL, WNOHANG)) > 0)
        continue;
    return pid == 0;
}

/* Adds a name to those of the killed processes, unless it is one of them. */
static void note(const char *name)
{
    for (unsigned i = 0; i < killed.count; i++)
        if (strcmp(killed.name[i], name) == 0)
            return;
    if (killed.count < NAMES_MAX)
        snprintf(killed.name[killed.count++], NAME_SIZE, "%s", name);
}

/* Kills the process if it is a child that runs. It is not reaped yet, so the pid is still that of
 * the child. */
static void kill_child(const char *pid)
{
    char path[sizeof "/proc//stat" + NAME_MAX], text[STAT_SIZE];

    snprintf(path, sizeof path, "/proc/%s/stat", pid);
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return;
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    fclose(file);
    char *name = strchr(text, '('), *end = strrchr(text, ')');
    char state;
    int parent;
    if (name == NULL || end == NULL || sscanf(end, ") %c %d", &state, &parent) != 2)
        return;
    if (parent != getpid() || state == 'Z' || state == 'X')
        return;
    *end = '\0';
    note(name + 1);
    kill(atoi(pid), SIGKILL);
}

/* Kills all children. */
static void kill_children(void)
{
    const struct dirent *entry;
    DIR *folder = opendir("/proc");

    while (folder != NULL && (entry = readdir(folder)) != NULL)
        if (isdigit((unsigned char)entry->d_name[0]))
            kill_child(entry->d_name);
    if (folder != NULL)
        closedir(folder);
}

/* Waits so many seconds until no child is left, and then kills the children and those that they
 * leave as orphans. */
static void end_children(double grace)
{
    const struct timespec step = {.tv_nsec = STEP_NS};
    const double deadline = now() + grace;
    sigset_t ended;

    sigemptyset(&ended);
    sigaddset(&ended, SIGCHLD);
    while (reap()) {
        const double late = now() - deadline;
        if (late > KILL_SECONDS)
            break;
        if (late >= 0)
            kill_children();
        sigtimedwait(&ended, NULL, &step);
    }
}

/* Compares two names. */
static int compare(const void *a, const void *b)
{
    return strcmp(a, b);
}

/* Writes the report. Returns whether it could be written. */
static bool write_report(const char *path, int status, double seconds)
{
    FILE *file = fopen(path, "we");

    if (file == NULL)
        return false;
    qsort(killed.name, killed.count, NAME_SIZE, compare);
    fprintf(file, "%d%c%.6f%c", status, 0, seconds, 0);
    for (unsigned i = 0; i < killed.count; i++)
        fprintf(file, "%s%c", killed.name[i], 0);
    return fclose(file) == 0;
}

int main(int count, char **words)
{
    double seconds = 0;

    if (count < 4)
        return 64;
    signal(SIGCHLD, SIG_DFL);
    sigemptyset(&awaited);
    sigaddset(&awaited, SIGCHLD);
    sigaddset(&awaited, SIGTERM);
    if (sigprocmask(SIG_BLOCK, &awaited, NULL) != 0 ||
        prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0)
        return 71;
    const pid_t program = start(words + 3);
    if (program < 0)
        return 71;
    const int status = wait_for(program, &seconds);
    end_children(status == -1 ? 0 : atof(words[2]));
    return write_report(words[1], status, seconds) ? 0 : 74;
}
