/* SPDX-License-Identifier: MIT
 * redlock-delay: runs the proxy alone, or around another command. */
#include "delay_list.h"
#include "number.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define EXIT_USAGE 64 /* the command line is not valid, or the proxy cannot start */
#define EXIT_OS    71 /* the operating system refused a pipe, a process or epoll */

/* Text of --help. */
static const char usage[] =
    "usage: redlock-delay [options] [-- COMMAND [ARGUMENT]...]\n"
    "  Proxy in front of servers that forwards all bytes later. It changes no bytes and keeps\n"
    "  their order within a connection.\n"
    "  --servers LIST  host:port or redis://host:port, separated by commas\n"
    "                  (default $REDLOCK_SERVERS)\n"
    "  --delay TIME    delay in each direction: a round trip takes twice as long (0)\n"
    "  --jitter TIME   additional random delay from 0 to TIME (0)\n"
    "                  TIME: 5ms, 250us, 1s; or one for each server, separated by commas\n"
    "  --seed N        of the jitter (1)\n"
    "  With COMMAND: sets REDLOCK_SERVERS to the proxy's list, runs COMMAND and ends with its\n"
    "  exit code.\n"
    "  Without COMMAND: prints the list and serves until standard input ends. Lines on standard\n"
    "  input change the proxy; N is the number of a server, from 0:\n"
    "  delay N TIME, jitter N TIME, stall N, go N\n"
    "example: redlock sandbox -- redlock-delay --delay 5ms -- redlock nodes\n";

/* The command line; see delay_parse_times() for the times. */
struct options {
    const char *servers, *delays, *jitters;
    uint64_t seed;
};

/* Parses the value of --seed. Returns false after a message if it is not a number. */
static bool parse_seed(const char *text, uint64_t *ret_seed)
{
    if (number_parse(text, 0, UINT64_MAX, ret_seed))
        return true;
    fprintf(stderr, "redlock-delay: --seed: '%s' is not a number; see redlock-delay --help\n",
            text);
    return false;
}

/* Parses the command line up to the command. Returns false after a message if it is not valid. */
static bool parse_options(struct options *options, int argc, char **argv)
{
    static const struct option list[] = {
        {"servers", required_argument, NULL, 's'}, {"delay", required_argument, NULL, 'd'},
        {"jitter", required_argument, NULL, 'j'},  {"seed", required_argument, NULL, 'S'},
        {"help", no_argument, NULL, 'h'},          {NULL, 0, NULL, 0}};
    int letter;
    while ((letter = getopt_long(argc, argv, "+s:d:j:h", list, NULL)) != -1) {
        switch (letter) {
        case 's':
            options->servers = optarg;
            break;
        case 'd':
            options->delays = optarg;
            break;
        case 'j':
            options->jitters = optarg;
            break;
        case 'S':
            if (!parse_seed(optarg, &options->seed))
                return false;
            break;
        case 'h':
            fputs(usage, stdout);
            exit(0);
        default: /* getopt has printed the reason */
            fputs("see redlock-delay --help\n", stderr);
            return false;
        }
    }
    return true;
}

/* Waits for the end of the child and returns its exit code, as a shell reports it. */
static int wait_for(pid_t child)
{
    int status = 0;
    while (waitpid(child, &status, 0) < 0) {
        if (errno != EINTR)
            return EXIT_OS;
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* Runs the command with REDLOCK_SERVERS set to `list`, and serves it. The command and the processes
 * that it starts inherit the other end of the control pipe, so the proxy serves until all of them
 * have ended. Returns the command's exit code. */
static int run_around(struct delay *delay, const char *list, char **command)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0)
        return EXIT_OS;
    pid_t child = fork();
    if (child == 0) {
        (void)fcntl(ends[1], F_SETFD, 0);
        (void)setenv("REDLOCK_SERVERS", list, 1);
        (void)signal(SIGINT, SIG_DFL);
        (void)execvp(command[0], command);
        fprintf(stderr, "redlock-delay: %s: %s\n", command[0], strerror(errno));
        _exit(errno == ENOENT ? 127 : 126);
    }
    (void)close(ends[1]);
    (void)signal(SIGINT, SIG_IGN); /* Ctrl-C is for the command to handle */
    if (child < 0 || delay_run(delay, ends[0]) != 0)
        return EXIT_OS;
    return wait_for(child);
}

/* Opens the proxy, then runs the command around it or serves until standard input ends. Returns the
 * command's exit code, or 0, EXIT_USAGE or EXIT_OS. */
int main(int argc, char **argv)
{
    struct options options = {
        .servers = getenv("REDLOCK_SERVERS"), .delays = "0", .jitters = "0", .seed = 1};
    static struct servers servers;
    static struct delay_list list;
    char error[512] = "no servers: set REDLOCK_SERVERS";
    if (!parse_options(&options, argc, argv))
        return EXIT_USAGE;
    if (options.servers == NULL ||
        servers_parse(&servers, options.servers, error, sizeof error) != 0) {
        fprintf(stderr, "redlock-delay: %s\n", error);
        return EXIT_USAGE;
    }
    struct delay *delay = delay_list_open(&list, &servers, options.delays, options.jitters,
                                          options.seed, error, sizeof error);
    if (delay == NULL) {
        fprintf(stderr, "redlock-delay: %s\n", error);
        return EXIT_USAGE;
    }
    int code;
    if (optind < argc) {
        code = run_around(delay, list.text, argv + optind);
    } else {
        printf("%s\n", list.text);
        fflush(stdout);
        code = delay_run(delay, STDIN_FILENO) == 0 ? 0 : EXIT_OS;
    }
    delay_close(delay);
    return code;
}
