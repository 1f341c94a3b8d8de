/* SPDX-License-Identifier: MIT
 * Forks and executes one command with clean state: in its process group, with no blocked signals
 * and with default dispositions. The kernel kills the command when its parent dies. Runs in the
 * starter (starter.h), the process that is the parent of every command.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "say.h"
#include "starter.h"
#include "terminal.h"

/* Resets all dispositions to the default and unblocks all signals. HUP, INT and QUIT stay
 * ignored if they were, because nohup and `cmd &` in a script rely on that. */
static void reset_signals(void)
{
    sigset_t none;
    struct sigaction now;

    for (int sig = 1; sig < NSIG; sig++) {
        if (sigaction(sig, NULL, &now) != 0)
            continue;
        bool kept = sig == SIGHUP || sig == SIGINT || sig == SIGQUIT;
        if (now.sa_handler != SIG_DFL && !(kept && now.sa_handler == SIG_IGN))
            signal(sig, SIG_DFL);
    }
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
}

/* Makes stdin /dev/null, and appends stdout and stderr to the file `log`. Returns false with
 * errno. */
static bool redirect(const char *log)
{
    int in = open("/dev/null", O_RDONLY | O_CLOEXEC);
    int out = open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);

    return in >= 0 && out >= 0 && dup2(in, STDIN_FILENO) >= 0 && dup2(out, STDOUT_FILENO) >= 0 &&
           dup2(out, STDERR_FILENO) >= 0;
}

/* Executes the program; returns only after a failure, with errno. A script without a #! line is
 * run by the shell, as execvp() does. */
static void execute(const struct start_request *request)
{
    execve(request->path, request->argv, request->envp);
    if (errno != ENOEXEC)
        return;
    size_t argc = 0;
    while (request->argv[argc])
        argc++;
    const char **argv = must(calloc(argc + 2, sizeof *argv));
    argv[0] = "sh";
    argv[1] = request->path;
    for (size_t i = 1; i < argc; i++)
        argv[i + 1] = request->argv[i];
    execve("/bin/sh", (char *const *)argv, request->envp);
    free(argv);
}

/* Turns the forked child into the command. `parent` is the pid of the starter; if the starter has
 * ended meanwhile, the child ends. If the exec fails, writes errno to `error_fd` and ends. */
static _Noreturn void become_command(const struct start_request *request, pid_t parent,
                                     int error_fd)
{
    if (prctl(PR_SET_PDEATHSIG, (long)SIGKILL) != 0 || getppid() != parent)
        _exit(1);
    if (request->flags & START_NEW_GROUP)
        setpgid(0, 0);
    else if (request->group)
        setpgid(0, request->group);
    if (request->flags & START_TERMINAL)
        tcsetpgrp(terminal_open(), getpgrp());
    bool ready = (!request->log || redirect(request->log)) &&
                 (!request->directory || chdir(request->directory) == 0);
    if (ready) {
        reset_signals();
        execute(request);
    }
    int error = errno;
    if (write(error_fd, &error, sizeof error) < 0)
        _exit(1);
    _exit(1);
}

/* Forks a child that becomes the command, and waits until its exec has succeeded or failed. Returns
 * 0 or an errno. Stores the pid in *ret_pid unless no process could be made. */
int spawn_command(const struct start_request *request, pid_t *ret_pid)
{
    int fds[2], error = 0;
    pid_t parent = getpid();

    if (pipe2(fds, O_CLOEXEC) != 0)
        return errno;
    pid_t pid = fork();
    if (pid < 0) {
        error = errno;
        close(fds[0]);
        close(fds[1]);
        return error;
    }
    if (pid == 0) {
        close(fds[0]);
        become_command(request, parent, fds[1]);
    }
    if (request->flags & START_NEW_GROUP)
        setpgid(pid, pid);
    close(fds[1]);
    ssize_t len;
    do
        len = read(fds[0], &error, sizeof error);
    while (len < 0 && errno == EINTR);
    close(fds[0]);
    *ret_pid = pid;
    /* The pipe closes without an error number when the exec succeeds. */
    if (len != (ssize_t)sizeof error)
        return 0;
    waitpid(pid, NULL, 0);
    return error;
}
