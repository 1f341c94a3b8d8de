/* SPDX-License-Identifier: MIT
 * The starter, the process that is the parent of every command (starter.h): both sides of its
 * pipes, and the loop of its process. The wrapper (the `redlock` process that the user started)
 * calls starter_request() and starter_read(). All other functions run in the starter. A request
 * travels as one block: a header, and then the strings, each with its terminating NUL byte.
 */
#include "starter.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "guardian.h"
#include "say.h"
#include "title.h"

/* Precedes the strings of one request: path, directory, log, arguments and environment, in this
 * order. */
struct request_header {
    size_t bytes;   /* length of all strings together, with their NUL bytes */
    uint32_t flags; /* enum start_flags */
    uint32_t argc;  /* number of arguments */
    uint32_t envc;  /* number of environment entries */
    int32_t group;  /* process group to join; 0: the starter's */
};

/* Reads exactly `len` bytes. Returns false at the end of file or on an error. */
static bool read_all(int fd, void *buffer, size_t len)
{
    char *at = buffer;

    while (len > 0) {
        ssize_t done = read(fd, at, len);
        if (done < 0 && errno == EINTR)
            continue;
        if (done <= 0)
            return false;
        at += done;
        len -= (size_t)done;
    }
    return true;
}

/* Writes exactly `len` bytes. Returns false on an error. */
static bool write_all(int fd, const void *buffer, size_t len)
{
    const char *at = buffer;

    while (len > 0) {
        ssize_t done = write(fd, at, len);
        if (done < 0 && errno == EINTR)
            continue;
        if (done <= 0)
            return false;
        at += done;
        len -= (size_t)done;
    }
    return true;
}

/* Returns the number of strings before the NULL. */
static uint32_t vector_count(char *const *vector)
{
    uint32_t count = 0;

    while (vector[count])
        count++;
    return count;
}

/* Copies `text` (NULL: an empty string) with its NUL byte to `at`, and returns the address after
 * it. */
static char *append(char *at, const char *text)
{
    return stpcpy(at, text ? text : "") + 1;
}

/* Packs the request into one block and writes it to the pipe. Returns 0, or -1 if the starter has
 * ended. */
int starter_request(int request_fd, const struct start_request *request)
{
    struct request_header header = {.flags = request->flags,
                                    .group = (int32_t)request->group,
                                    .argc = vector_count(request->argv),
                                    .envc = vector_count(request->envp)};
    const char *fixed[] = {request->path, request->directory, request->log};

    for (size_t i = 0; i < 3; i++)
        header.bytes += (fixed[i] ? strlen(fixed[i]) : 0) + 1;
    for (uint32_t i = 0; i < header.argc; i++)
        header.bytes += strlen(request->argv[i]) + 1;
    for (uint32_t i = 0; i < header.envc; i++)
        header.bytes += strlen(request->envp[i]) + 1;
    char *strings = must(malloc(header.bytes));
    char *at = strings;
    for (size_t i = 0; i < 3; i++)
        at = append(at, fixed[i]);
    for (uint32_t i = 0; i < header.argc; i++)
        at = append(at, request->argv[i]);
    for (uint32_t i = 0; i < header.envc; i++)
        at = append(at, request->envp[i]);
    bool sent = write_all(request_fd, &header, sizeof header) &&
                write_all(request_fd, strings, header.bytes);
    free(strings);
    return sent ? 0 : -1;
}

/* Reads the next report, and blocks until there is one. Returns false if the starter has ended. */
bool starter_read(int report_fd, struct start_report *ret_report)
{
    return read_all(report_fd, ret_report, sizeof *ret_report);
}

/* Sends one report to the wrapper. */
void starter_report(int report_fd, enum report_kind kind, pid_t pid, int value)
{
    struct start_report message = {
        .kind = (int32_t)kind, .pid = (int32_t)pid, .value = value, .starter = (int32_t)getpid()};

    write_all(report_fd, &message, sizeof message);
}

/* Returns the string at *at and moves *at to the next one. */
static const char *next_string(char **at)
{
    const char *text = *at;

    *at += strlen(text) + 1;
    return text;
}

/* Returns the string at *at, or NULL if it is empty, and moves *at to the next one. */
static const char *next_optional(char **at)
{
    const char *text = next_string(at);

    return *text ? text : NULL;
}

/* Returns the next `count` strings at *at as a vector that ends with NULL, and moves *at behind
 * them. The vector is to be freed; its strings are borrowed. */
static char **next_vector(char **at, uint32_t count)
{
    char **vector = must(calloc(count + 1, sizeof *vector));

    for (uint32_t i = 0; i < count; i++) {
        vector[i] = *at;
        next_string(at);
    }
    return vector;
}

/* Reads one request, starts the command and reports the result. Increments *children, the number of
 * commands that run, after a success. Returns false if the pipe of requests was closed. */
static bool serve(int request_fd, int report_fd, unsigned *children)
{
    struct request_header header;
    pid_t pid = -1;

    if (!read_all(request_fd, &header, sizeof header))
        return false;
    char *strings = must(malloc(header.bytes));
    if (!read_all(request_fd, strings, header.bytes)) {
        free(strings);
        return false;
    }
    char *at = strings;
    struct start_request request = {.flags = header.flags, .group = header.group};
    request.path = next_string(&at);
    request.directory = next_optional(&at);
    request.log = next_optional(&at);
    char **argv = next_vector(&at, header.argc);
    char **envp = next_vector(&at, header.envc);
    request.argv = argv;
    request.envp = envp;
    int error = spawn_command(&request, &pid);
    if (error) {
        starter_report(report_fd, pid > 0 ? REPORT_FAILED : REPORT_NO_PROCESS, -1, error);
    } else {
        ++*children;
        starter_report(report_fd, REPORT_STARTED, pid, 0);
    }
    free(argv);
    free(envp);
    free(strings);
    return true;
}

/* Reports every child that has stopped, continued or ended, and counts down *children for each
 * end. */
static void reap(int report_fd, unsigned *children)
{
    int status;
    pid_t pid;

    while ((pid = waitpid(-1, &status, WNOHANG | WUNTRACED | WCONTINUED)) > 0) {
        if (WIFSTOPPED(status)) {
            starter_report(report_fd, REPORT_STOPPED, pid, WSTOPSIG(status));
        } else if (WIFCONTINUED(status)) {
            starter_report(report_fd, REPORT_CONTINUED, pid, 0);
        } else {
            --*children;
            starter_report(report_fd, REPORT_ENDED, pid, status);
        }
    }
}

/* Runs the starter: waits for a byte through `gate_fd`, then executes requests and reports about
 * its children until the pipe of requests is closed and no child is left. Never returns. */
_Noreturn void starter_main(pid_t guardian, int gate_fd, int request_fd, int report_fd)
{
    unsigned children = 0;
    char byte;
    sigset_t child_ended;

    title_set(STARTER_TITLE);
    /* A process group of 0 is outside of our PID namespace. The command can only share it by
     * inheritance, so the starter stays in it. */
    if (getpgrp() != 0)
        setpgid(0, 0);
    signal(SIGCHLD, SIG_DFL);
    /* If the guardian dies, the kernel kills the starter, and the commands with it. */
    if (prctl(PR_SET_PDEATHSIG, (long)SIGKILL) != 0 || getppid() != guardian)
        _exit(1);
    sigemptyset(&child_ended);
    sigaddset(&child_ended, SIGCHLD);
    int signal_fd = signalfd(-1, &child_ended, SFD_CLOEXEC | SFD_NONBLOCK);
    if (signal_fd < 0)
        starter_report(report_fd, REPORT_NO_PROCESS, -1, errno);
    if (signal_fd < 0 || read(gate_fd, &byte, 1) != 1)
        _exit(1);
    close(gate_fd);
    while (request_fd >= 0 || children > 0) {
        struct pollfd fds[2] = {{.fd = signal_fd, .events = POLLIN},
                                {.fd = request_fd, .events = POLLIN}};
        struct signalfd_siginfo info;
        if (poll(fds, 2, -1) < 0)
            continue;
        while (read(signal_fd, &info, sizeof info) > 0)
            ;
        reap(report_fd, &children);
        if (fds[1].revents && !serve(request_fd, report_fd, &children)) {
            close(request_fd);
            request_fd = -1;
        }
    }
    _exit(0);
}
