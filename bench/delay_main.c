/* SPDX-License-Identifier: MIT
 * redlock-delay: the proxy as a program, alone or around another one. */
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

#define EXIT_USAGE 64
#define EXIT_OS    71

static const char usage[] =
    "usage: redlock-delay [options] [-- COMMAND [ARGUMENT]...]\n"
    "  Stands before servers and hands on what is said, later. Bytes are not changed, and their\n"
    "  order within a connection is kept.\n"
    "  --servers LIST  host:port or redis://host:port, by comma (default $REDLOCK_SERVERS)\n"
    "  --delay TIME    in each direction: a round trip takes twice as long (0)\n"
    "  --jitter TIME   0 to so much more (0)\n"
    "                  TIME: 5ms, 250us, 1s; or a list by comma, one for each server\n"
    "  --seed N        of the jitter (1)\n"
    "  With COMMAND: runs it with the proxy's list in REDLOCK_SERVERS, and ends with its exit "
    "code.\n"
    "  Without: prints the list, and serves until standard input ends. Lines there change things:\n"
    "  delay N TIME, jitter N TIME, stall N, go N (N: number of the server, from 0)\n"
    "example: redlock sandbox -- redlock-delay --delay 5ms -- redlock nodes\n";

struct options {
    const char *servers, *delays, *jitters;
    uint64_t seed;
};

static bool parse_seed(const char *text, uint64_t *ret_seed)
{
    if (number_parse(text, 0, UINT64_MAX, ret_seed))
        return true;
    fprintf(stderr, "redlock-delay: --seed: '%s' is no number; see redlock-delay --help\n", text);
    return false;
}

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
        default: /* getopt has said what is wrong */
            fputs("see redlock-delay --help\n", stderr);
            return false;
        }
    }
    return true;
}

static int wait_for(pid_t child)
{
    int status = 0;
    while (waitpid(child, &status, 0) < 0) {
        if (errno != EINTR)
            return EXIT_OS;
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* The command holds the other end of the proxy's control pipe, and so do those that it starts: the
 * proxy serves as long as one of them is there. */
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
    (void)signal(SIGINT, SIG_IGN); /* the command decides what it means */
    if (child < 0 || delay_run(delay, ends[0]) != 0)
        return EXIT_OS;
    return wait_for(child);
}

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
