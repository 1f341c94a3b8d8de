/* SPDX-License-Identifier: MIT
 * redlock-contended: parses the options and runs all cases. */
#include "contended.h"
#include "contended_print.h"
#include "delay.h"
#include "number.h"
#include "progress.h"
#include "result.h"

#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LIST_MAX      16 /* items of a list option */
#define EXIT_USAGE    64 /* the command line is not valid */
#define EXIT_NO_NODES 69 /* a measurement could not run */

/* The command line. Every combination of contenders, holds and delays is one case. */
struct options {
    const char *servers;
    uint64_t contenders[LIST_MAX], holds_us[LIST_MAX];
    char delays[LIST_MAX][128]; /* each as in delay_parse_times() */
    size_t contenders_count, holds_count, delays_count;
    const char *jitters;         /* one time for all cases */
    bool drivers[DRIVERS_COUNT]; /* which drivers run */
    uint64_t runs;               /* repetitions of all cases */
    enum contended_format format;
};

/* Prints the text of --help. */
static void print_usage(FILE *file)
{
    fputs(
        "usage: redlock-contended [options]\n"
        "  Measures how a contended lock passes from one holder to the next. Each contender\n"
        "  acquires the lock, holds it, releases it and begins again. Contenders of this library\n"
        "  are processes with a client each.\n"
        "  --servers LIST     host:port or redis://host:port, separated by commas or blanks\n"
        "                     (default $REDLOCK_SERVERS)\n"
        "  --contenders LIST  numbers of contenders, separated by commas (2,8,32,128)\n"
        "  --hold LIST        times between grant and release, separated by commas (0)\n"
        "  --delay LIST       delays in each direction, by a proxy; 0: no proxy (0,5ms);\n"
        "                     a/b/c/...: one for each server\n"
        "  --jitter TIME      additional random delay from 0 to TIME for each packet (0)\n"
        "  --driver LIST      redlock, node-redlock, redisson-fair: the fair lock of Redisson on "
        "the\n"
        "                     first server (default: those that are installed)\n"
        "  --peer SCRIPT      script that node runs (default $REDLOCK_BENCH_PEER)\n"
        "  --redisson DIR     where the driver of Redisson is (default $REDLOCK_BENCH_REDISSON)\n"
        "  --seconds N        length of each measurement (3)\n"
        "  --runs N           repetitions of everything (1)\n"
        "  --seed N           of names and jitter (default: from the clock; printed)\n"
        "  --ttl MS           time to live of a lock (10000)\n"
        "  --tls              over TLS, at the addresses in $REDLOCK_TLS_SERVERS; this library "
        "only\n"
        "  --no-notifications       without notifications: waiters of this library poll\n"
        "  --quiet            no progress on stderr\n"
        "  --json, --csv      instead of the table\n"
        "  TIME is like 5ms, 250us or 1s; a number alone is in milliseconds.\n"
        "exit: 0 success, 1 violation, leftover key or failed calls, 64 usage, 69 no servers\n"
        "example: redlock sandbox -- redlock-contended --contenders 2,32 --delay 5ms\n",
        file);
}

/* Prints what is wrong with an option. Returns false. */
static bool refuse(const char *what, const char *value)
{
    fprintf(stderr, "redlock-contended: %s: '%s'; see redlock-contended --help\n", what, value);
    return false;
}

/* Parses a number from `min` to `max` in the first `len` characters of `text`. Returns false after
 * a message if that fails. `name` is the option's. */
static bool parse_number(const char *name, const char *text, size_t len, uint64_t min, uint64_t max,
                         uint64_t *ret_number)
{
    return number_parse_part(text, len, min, max, ret_number) || refuse(name, text);
}

/* Parses one item of --delay and copies it with commas in place of slashes, as in
 * delay_parse_times(). Returns false if the item is not valid. */
static bool parse_delay(char *ret_delay, size_t size, const char *text, size_t len)
{
    uint64_t us[DELAY_NODES_MAX];
    if (len == 0 || len >= size)
        return false;
    memcpy(ret_delay, text, len);
    ret_delay[len] = '\0';
    for (size_t i = 0; i < len; i++)
        ret_delay[i] = (char)(ret_delay[i] == '/' ? ',' : ret_delay[i]);
    size_t nodes = 1;
    for (const char *at = ret_delay; (at = strchr(at, ',')) != NULL; at++)
        nodes++;
    if (nodes > DELAY_NODES_MAX || !delay_parse_times(ret_delay, nodes, us))
        return false;
    if (nodes == 1 && us[0] == 0)
        strcpy(ret_delay, "0");
    return true;
}

/* Parses one item of the list option `letter`. Returns false after a message if it is not valid. */
static bool parse_item(struct options *options, int letter, const char *item, size_t len)
{
    switch (letter) {
    case 'c':
        return (options->contenders_count < LIST_MAX || refuse("--contenders: too many", item)) &&
               parse_number("--contenders", item, len, 2, CONTENDERS_MAX,
                            &options->contenders[options->contenders_count++]);
    case 'H':
        return (options->holds_count < LIST_MAX &&
                delay_parse_time(item, len, &options->holds_us[options->holds_count++])) ||
               refuse("--hold", item);
    case 'd':
        return (options->delays_count < LIST_MAX &&
                parse_delay(options->delays[options->delays_count++], sizeof options->delays[0],
                            item, len)) ||
               refuse("--delay", item);
    default:
        for (unsigned i = 0; i < DRIVERS_COUNT; i++) {
            if (strlen(contended_driver_names[i]) == len &&
                memcmp(contended_driver_names[i], item, len) == 0)
                return options->drivers[i] = true;
        }
        return refuse("--driver", item);
    }
}

/* Parses all items of the list option `letter`, separated by commas. */
static bool parse_list(struct options *options, int letter, const char *list)
{
    for (;; list++) {
        size_t len = strcspn(list, ",");
        if (!parse_item(options, letter, list, len))
            return false;
        list += len;
        if (*list == '\0')
            return true;
    }
}

/* Stores one option. Returns false after a message if its value is not valid. */
static bool parse_option(struct options *options, struct contended_settings *settings, int letter,
                         const char *value)
{
    uint64_t seconds;
    size_t len = value == NULL ? 0 : strlen(value);
    switch (letter) {
    case 's':
        options->servers = value;
        return true;
    case 'J':
        options->jitters = value;
        return delay_parse_time(value, len, &seconds) || refuse("--jitter", value);
    case 'p':
        settings->peer = value;
        return true;
    case 'R':
        settings->redisson = value;
        return true;
    case 'T':
        if (!parse_number("--seconds", value, len, 1, 600, &seconds))
            return false;
        settings->run_ms = seconds * 1000;
        return true;
    case 'r':
        return parse_number("--runs", value, len, 1, 64, &options->runs);
    case 'S':
        return parse_number("--seed", value, len, 0, INT64_MAX, &settings->seed);
    case 't':
        return parse_number("--ttl", value, len, 100, 30000, &settings->ttl_ms);
    case 'l':
        settings->servers.tls = true;
        return true;
    case 'w':
        settings->no_notifications = true;
        return true;
    case 'q':
        progress_silence();
        return true;
    case 'j':
        options->format = CONTENDED_JSON;
        return true;
    case 'v':
        options->format = CONTENDED_CSV;
        return true;
    case 'h':
        print_usage(stdout);
        exit(0);
    case 'c':
    case 'H':
    case 'd':
    case 'D':
        return parse_list(options, letter, value);
    default: /* getopt has printed the reason */
        fputs("see redlock-contended --help\n", stderr);
        return false;
    }
}

/* Selects all drivers if none was selected, and leaves those out that are not installed, with a
 * message. */
static void leave_out_drivers(struct options *options, const struct contended_settings *settings)
{
    bool any = false;
    for (unsigned i = 0; i < DRIVERS_COUNT; i++)
        any = any || options->drivers[i];
    for (unsigned i = 0; i < DRIVERS_COUNT && !any; i++)
        options->drivers[i] = i == DRIVER_REDLOCK || !settings->servers.tls;
    if (options->drivers[DRIVER_NODE_REDLOCK] && settings->peer == NULL) {
        fputs("redlock-contended: node-redlock is left out: no --peer script\n", stderr);
        options->drivers[DRIVER_NODE_REDLOCK] = false;
    }
    if (options->drivers[DRIVER_REDISSON_FAIR] && settings->redisson == NULL) {
        fputs("redlock-contended: redisson-fair is left out: no --redisson directory\n", stderr);
        options->drivers[DRIVER_REDISSON_FAIR] = false;
    }
}

/* Reads the list of servers, with TLS also that of their addresses for TLS. Returns false after a
 * message if that is not possible. */
static bool read_servers(const struct options *options, struct servers *servers)
{
    const char *list = getenv("REDLOCK_TLS_SERVERS");
    bool tls = servers->tls;
    char error[512];

    if (options->servers == NULL) {
        fputs("redlock-contended: no servers: set REDLOCK_SERVERS, or run it in a sandbox:\n"
              "  redlock sandbox -- redlock-contended\n",
              stderr);
        return false;
    }
    if (tls && list == NULL) {
        fputs("redlock-contended: --tls: set REDLOCK_TLS_SERVERS, or run it by bench/with_tls.py\n",
              stderr);
        return false;
    }
    if (servers_parse(servers, options->servers, error, sizeof error) != 0 ||
        (tls && servers_add_tls(servers, list, error, sizeof error) != 0)) {
        fprintf(stderr, "redlock-contended: %s\n", error);
        return false;
    }
    servers->tls = tls;
    return true;
}

/* Parses the command line and fills in the defaults. Returns false after a message if it is not
 * valid. */
static bool parse_options(struct options *options, struct contended_settings *settings, int argc,
                          char **argv)
{
    static const struct option list[] = {{"servers", required_argument, NULL, 's'},
                                         {"contenders", required_argument, NULL, 'c'},
                                         {"hold", required_argument, NULL, 'H'},
                                         {"delay", required_argument, NULL, 'd'},
                                         {"jitter", required_argument, NULL, 'J'},
                                         {"driver", required_argument, NULL, 'D'},
                                         {"peer", required_argument, NULL, 'p'},
                                         {"redisson", required_argument, NULL, 'R'},
                                         {"seconds", required_argument, NULL, 'T'},
                                         {"runs", required_argument, NULL, 'r'},
                                         {"seed", required_argument, NULL, 'S'},
                                         {"ttl", required_argument, NULL, 't'},
                                         {"tls", no_argument, NULL, 'l'},
                                         {"no-notifications", no_argument, NULL, 'w'},
                                         {"quiet", no_argument, NULL, 'q'},
                                         {"json", no_argument, NULL, 'j'},
                                         {"csv", no_argument, NULL, 'v'},
                                         {"help", no_argument, NULL, 'h'},
                                         {NULL, 0, NULL, 0}};
    int letter;
    while ((letter = getopt_long(argc, argv, "s:c:h", list, NULL)) != -1) {
        if (!parse_option(options, settings, letter, optarg))
            return false;
    }
    if (optind != argc)
        return refuse("unexpected argument", argv[optind]);
    if (options->contenders_count == 0)
        (void)parse_list(options, 'c', "2,8,32,128");
    if (options->holds_count == 0)
        (void)parse_list(options, 'H', "0");
    if (options->delays_count == 0)
        (void)parse_list(options, 'd', "0,5ms");
    leave_out_drivers(options, settings);
    return true;
}

/* Runs all drivers of one case, one after the other, so that they meet the same conditions. Returns
 * the exit code of the program until now. */
static int run_case(const struct options *options, struct contended_settings *settings,
                    struct contended_case *what, unsigned run, struct contended_printer *printer)
{
    int code = 0;
    for (int driver = 0; driver < DRIVERS_COUNT; driver++) {
        struct contended_result result;
        char error[512] = "";
        if (!options->drivers[driver])
            continue;
        what->driver = (enum contended_driver)driver;
        if (contended_run(what, settings, &result, error, sizeof error) != 0) {
            fprintf(stderr, "redlock-contended: %s, %u contenders: %s\n",
                    contended_driver_names[driver], what->contenders, error);
            return EXIT_NO_NODES;
        }
        result.run = run;
        contended_printer_add(printer, &result);
        code = contended_passed(&result) ? code : 1;
    }
    return code;
}

/* Runs all cases, prints their results and returns the exit code. */
static int measure(const struct options *options, struct contended_settings *settings)
{
    struct environment environment;
    int code = 0;
    environment_read(&environment, &settings->servers);
    struct contended_printer *printer =
        contended_printer_open(options->format, &environment, settings);
    if (printer == NULL)
        return 71;
    size_t inner = options->contenders_count, middle = options->holds_count;
    size_t cases = options->delays_count * middle * inner;
    for (size_t i = 0; i < options->runs * cases && code != EXIT_NO_NODES; i++) {
        struct contended_case what = {
            .contenders = (unsigned)options->contenders[i % inner],
            .hold_us = options->holds_us[i / inner % middle],
            .delays = options->delays[i / inner / middle % options->delays_count],
            .jitters = options->jitters,
        };
        int one = run_case(options, settings, &what, (unsigned)(i / cases) + 1, printer);
        code = one > code ? one : code;
    }
    contended_printer_close(printer);
    return code;
}

/* Parses the options, runs all cases and returns the exit code that --help explains. */
int main(int argc, char **argv)
{
    struct options options = {.servers = getenv("REDLOCK_SERVERS"), .runs = 1, .jitters = "0"};
    static struct contended_settings settings = {.ttl_ms = 10000, .run_ms = 3000, .warm_ms = 500};
    char prefix[64];
    settings.seed = result_now_ns();
    settings.peer = getenv("REDLOCK_BENCH_PEER");
    settings.redisson = getenv("REDLOCK_BENCH_REDISSON");
    if (!parse_options(&options, &settings, argc, argv) ||
        !read_servers(&options, &settings.servers))
        return EXIT_USAGE;
    snprintf(prefix, sizeof prefix, "redlock-contended:%ld:%" PRIx64 ":", (long)getpid(),
             result_now_ns());
    settings.prefix = prefix;
    return measure(&options, &settings);
}
