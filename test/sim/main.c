/* SPDX-License-Identifier: MIT
 * The command redlock-sim: runs one seed with its trace, cases of contention, or a campaign on all
 * processors. */
#include "campaign.h"
#include "contention.h"
#include "world.h"

#include <getopt.h>
#include <inttypes.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define JOBS_MAX 64 /* largest number of processes of a campaign */

/* The options of the command. */
struct options {
    uint64_t seed;    /* of the only run, or of the first one */
    uint64_t runs;    /* 0: not given */
    uint64_t seconds; /* how long a campaign lasts; 0: until `runs` are done */
    uint64_t jobs;    /* number of processes of a campaign */
    bool one;         /* --seed was given */
    bool trace;
    bool no_lines;         /* the clients of a case of contention do not use lines */
    const char *case_name; /* NULL: no case of contention; "all": all of them */
};

/* Prints how the program is called. */
static void usage(FILE *to)
{
    fprintf(to,
            "usage: redlock-sim [--seed N] [--trace]        one run, the same every time\n"
            "       redlock-sim --case NAME|all [--seed N] [--lines on|off] [--trace]   measures "
            "contention\n"
            "       redlock-sim [--first N] [--runs N] [--minutes M] [--hours H] [--jobs J]\n");
}

/* Returns the number that an option has as its value, or exits with an error. */
static uint64_t number(const char *text)
{
    char *end = NULL;
    uint64_t value = strtoull(text, &end, 10);

    if (*text < '0' || *text > '9' || *end != '\0') {
        fprintf(stderr, "redlock-sim: '%s' is not a number\n", text);
        exit(64);
    }
    return value;
}

/* Returns whether an option is "off". Exits with an error if it is neither that nor "on". */
static bool is_off(const char *text)
{
    if (strcmp(text, "on") != 0 && strcmp(text, "off") != 0) {
        fprintf(stderr, "redlock-sim: '%s' is neither on nor off\n", text);
        exit(64);
    }
    return strcmp(text, "off") == 0;
}

/* Reads the options, or exits with an error. */
static void parse(struct options *options, int argc, char **argv)
{
    static const struct option names[] = {
        {"seed", required_argument, NULL, 's'},
        {"case", required_argument, NULL, 'c'},
        {"first", required_argument, NULL, 'f'},
        {"runs", required_argument, NULL, 'r'},
        {"minutes", required_argument, NULL, 'm'},
        {"hours", required_argument, NULL, 'h'},
        {"jobs", required_argument, NULL, 'j'},
        {"trace", no_argument, NULL, 't'},
        {"lines", required_argument, NULL, 'l'},
        {"help", no_argument, NULL, '?'},
        {NULL, 0, NULL, 0},
    };
    int option;

    *options = (struct options){.runs = 0, .jobs = (uint64_t)sysconf(_SC_NPROCESSORS_ONLN)};
    randombytes_buf(&options->seed, sizeof options->seed);
    options->seed >>= 16; /* short enough to be typed */
    while ((option = getopt_long(argc, argv, "", names, NULL)) != -1) {
        switch (option) {
        case 's':
            options->one = true;
            options->seed = number(optarg);
            break;
        case 'c':
            options->case_name = optarg;
            break;
        case 'f':
            options->seed = number(optarg);
            break;
        case 'r':
            options->runs = number(optarg);
            break;
        case 'm':
            options->seconds = 60 * number(optarg);
            break;
        case 'h':
            options->seconds = 3600 * number(optarg);
            break;
        case 'j':
            options->jobs = number(optarg);
            break;
        case 't':
            options->trace = true;
            break;
        case 'l':
            options->no_lines = is_off(optarg);
            break;
        default:
            usage(stderr);
            exit(64);
        }
    }
    if (options->trace && !options->one && options->case_name == NULL) {
        fprintf(stderr, "redlock-sim: --trace prints one run: say which one with --seed N\n");
        exit(64);
    }
    if (optind != argc || options->jobs == 0 || options->jobs > JOBS_MAX) {
        usage(stderr);
        exit(64);
    }
}

/* Runs one seed. Returns the exit status. */
static int run_one(const struct options *options)
{
    struct sim_world *world = malloc(sizeof *world);

    if (world == NULL)
        return 1;
    bool good = sim_world_run(world, options->seed, options->trace);
    printf("seed %" PRIu64 ": %" PRIu64 " events, %" PRIu64 " locks, trace %016" PRIx64 ", %s%s\n",
           options->seed, world->events, world->grants, world->hash,
           world->plan.env_faults != 0 ? "outside the assumptions, " : "",
           good ? "no violation" : world->violation);
    sim_world_free(world);
    free(world);
    return good ? 0 : 1;
}

/* Runs a case and prints its results. Returns false if it left its bounds. */
static bool run_case(const struct sim_case *scenario, const struct options *options)
{
    struct sim_world *world = malloc(sizeof *world);
    struct sim_contention *contention = malloc(sizeof *contention);

    if (world == NULL || contention == NULL)
        abort();
    bool good = sim_case_run(scenario, options->one ? options->seed : 1, !options->no_lines,
                             options->trace, world, contention);
    sim_case_print(scenario, world, contention);
    if (!good)
        printf("    %s\n", world->violation);
    sim_world_free(world);
    free(world);
    free(contention);
    return good;
}

/* Runs the cases that the options name. Returns the exit status: 0 if all stay within their bounds.
 */
static int run_cases(const struct options *options)
{
    bool all = strcmp(options->case_name, "all") == 0, good = true;

    if (!all && sim_case_find(options->case_name) == NULL) {
        fprintf(stderr, "redlock-sim: no case is called '%s'\n", options->case_name);
        return 64;
    }
    for (unsigned i = 0; i < sim_case_count(); i++) {
        if (all || strcmp(options->case_name, sim_case_at(i)->name) == 0)
            good = run_case(sim_case_at(i), options) && good;
    }
    return good ? 0 : 1;
}

static pid_t workers[JOBS_MAX]; /* 0: not started */

/* Handles SIGINT and SIGTERM: ends the campaign after the present runs, whose results are printed.
 * Passes the signal on to the workers. */
static void on_enough(int sig)
{
    sim_campaign_enough = 1;
    for (unsigned i = 0; i < JOBS_MAX && workers[i] > 0; i++)
        (void)kill(workers[i], sig);
}

/* Runs the seeds of one worker, and writes its totals to the descriptor `to`. Does not return. */
static void work(const struct options *options, uint64_t job, int to)
{
    struct sim_totals totals;

    memset(workers, 0, sizeof workers);
    prctl(PR_SET_PDEATHSIG, SIGTERM); /* without the parent nothing reads the totals */
    memset(&totals, 0, sizeof totals);
    sim_campaign(&totals, options->seed + job, options->jobs, options->runs / options->jobs,
                 options->seconds);
    if (write(to, &totals, sizeof totals) != (ssize_t)sizeof totals)
        exit(1);
    exit(0); /* not _exit(), because coverage builds write their counters now */
}

/* Runs a campaign in several processes, and prints the sum of their totals. Returns the exit
 * status.
 */
static int run_campaign(struct options *options)
{
    struct sim_totals totals, part;
    int ends[2];
    bool whole = true;

    memset(&totals, 0, sizeof totals);
    if (options->runs == 0)
        options->runs = options->seconds != 0 ? UINT64_MAX : 1000 * options->jobs;
    const struct sigaction enough = {.sa_handler = on_enough, .sa_flags = SA_RESTART};
    sigset_t ending, before;

    sigemptyset(&ending);
    sigaddset(&ending, SIGINT);
    sigaddset(&ending, SIGTERM);
    sigprocmask(SIG_BLOCK, &ending, &before); /* until all workers are listed */
    sigaction(SIGINT, &enough, NULL);
    sigaction(SIGTERM, &enough, NULL);
    printf("first seed %" PRIu64 ", %" PRIu64 " jobs\n", options->seed, options->jobs);
    fflush(stdout);
    if (pipe(ends) != 0)
        return 1;
    for (uint64_t job = 0; job < options->jobs; job++) {
        pid_t pid = fork();
        if (pid < 0)
            return 1;
        if (pid == 0) {
            sigprocmask(SIG_SETMASK, &before, NULL);
            work(options, job, ends[1]);
        }
        workers[job] = pid;
    }
    sigprocmask(SIG_SETMASK, &before, NULL);
    for (uint64_t job = 0; job < options->jobs; job++) {
        int status;
        whole = wait(&status) > 0 && status == 0 && whole;
    }
    close(ends[1]);
    while (read(ends[0], &part, sizeof part) == (ssize_t)sizeof part)
        sim_totals_add(&totals, &part);
    sim_totals_print_to(&totals, stdout);
    if (!whole)
        printf("a job died\n");
    return whole && totals.violations == 0 ? 0 : 1;
}

/* Runs one seed, contention cases or a campaign, as the options say. Returns 0 if nothing was
 * violated. */
int main(int argc, char **argv)
{
    struct options options;

    if (sodium_init() < 0)
        return 1;
    parse(&options, argc, argv);
    if (options.case_name != NULL)
        return run_cases(&options);
    return options.one ? run_one(&options) : run_campaign(&options);
}
