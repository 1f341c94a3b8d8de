/* SPDX-License-Identifier: MIT
 * Blocks, reads and names signals. All signals that this program handles are blocked in all threads
 * and read from one descriptor (signalfd), so no handler runs.
 */
#include "signals.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "exits.h"
#include "say.h"

/* Fills `set` with the signals that are read as events: all but those that report a fault of
 * this process and those that are ignored. */
static void handled_set(sigset_t *set)
{
    static const int others[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGPIPE, SIGXFSZ};

    sigfillset(set);
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        sigdelset(set, others[i]);
}

/* Ignores SIGPIPE and SIGXFSZ. */
void signals_ignore_output(void)
{
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN);
}

/* Blocks the signals of handled_set(), and resets SIGCHLD to its default. */
void signals_block(void)
{
    sigset_t set;

    handled_set(&set);
    sigprocmask(SIG_SETMASK, &set, NULL);
    /* An inherited disposition of "ignore" would hide the end of children. */
    signal(SIGCHLD, SIG_DFL);
}

/* Returns a non-blocking, close-on-exec descriptor for the blocked signals. Ends the process with
 * EXIT_SYSTEM if there is none. */
int signals_open(void)
{
    sigset_t set;

    handled_set(&set);
    int fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    if (fd < 0) {
        say(SAY_ERROR, "cannot watch signals: %s; raise the limit of open files (ulimit -n)",
            strerror(errno));
        exit(EXIT_SYSTEM);
    }
    return fd;
}

/* Reads one pending signal into *ret_info. Returns false if none is pending. */
bool signals_next(int signal_fd, struct signalfd_siginfo *ret_info)
{
    return read(signal_fd, ret_info, sizeof *ret_info) == (ssize_t)sizeof *ret_info;
}

/* Returns true if the signal ends a wait for a lock, and ends a command if it comes twice. */
bool signal_ends(int sig)
{
    switch (sig) {
    case SIGHUP:
    case SIGINT:
    case SIGQUIT:
    case SIGTERM:
    case SIGALRM:
    case SIGVTALRM:
    case SIGPROF:
    case SIGXCPU:
    case SIGABRT:
    case SIGSYS:
    case SIGIO:
    case SIGPWR:
#ifdef SIGSTKFLT
    case SIGSTKFLT:
#endif
        return true;
    default:
        return false;
    }
}

/* Returns true if SIGINT is ignored, as in a program that was started with `cmd &` by a shell
 * without job control. */
bool signals_of_background(void)
{
    struct sigaction now;

    return sigaction(SIGINT, NULL, &now) == 0 && now.sa_handler == SIG_IGN;
}

/* Returns true if the kernel sent the signal because of the terminal (Ctrl-C, hang-up, resize and
 * so on), so that the whole foreground group got it. */
bool signal_from_terminal(const struct signalfd_siginfo *info)
{
    int sig = (int)info->ssi_signo;

    return info->ssi_code == SI_KERNEL && (sig == SIGHUP || sig == SIGINT || sig == SIGQUIT ||
                                           sig == SIGTSTP || sig == SIGCONT || sig == SIGWINCH);
}

/* Numbers and names of the signals that a user may name. */
static const struct {
    int number;
    const char *name;
} names[] = {{SIGHUP, "HUP"},   {SIGINT, "INT"},   {SIGQUIT, "QUIT"},  {SIGABRT, "ABRT"},
             {SIGKILL, "KILL"}, {SIGUSR1, "USR1"}, {SIGUSR2, "USR2"},  {SIGALRM, "ALRM"},
             {SIGTERM, "TERM"}, {SIGCONT, "CONT"}, {SIGSTOP, "STOP"},  {SIGTSTP, "TSTP"},
             {SIGPIPE, "PIPE"}, {SIGSEGV, "SEGV"}, {SIGWINCH, "WINCH"}};

/* Returns the number of the signal that `text` names or is the number of; 0 if there is none.
 * Ignores case and a "SIG" in front. */
int signal_parse(const char *text)
{
    char *end;
    long number = strtol(text, &end, 10);

    if (end != text)
        return !*end && number > 0 && number < NSIG ? (int)number : 0;
    if (!strncasecmp(text, "SIG", 3))
        text += 3;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (!strcasecmp(text, names[i].name))
            return names[i].number;
    return 0;
}

/* Returns the name of the signal, or its number as text if it has no name here. Valid until the
 * next call. */
const char *signal_text(int sig)
{
    static char number[16];

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (names[i].number == sig)
            return names[i].name;
    snprintf(number, sizeof number, "%d", sig);
    return number;
}
