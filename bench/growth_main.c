/* SPDX-License-Identifier: MIT
 * redlock-growth KIND [OPTION]...: parses the options of one measurement. */
#include "environment.h"
#include "growth.h"
#include "number.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define EXIT_USAGE 64 /* the command line is not valid */

/* Text of --help. */
static const char usage[] =
    "usage: redlock-growth held|loop|threads|processes|environment [OPTION]...\n"
    "  --servers LIST   host:port, separated by commas (default $REDLOCK_SERVERS)\n"
    "  --tls            over TLS, at the addresses in $REDLOCK_TLS_SERVERS\n"
    "  --nodes N        number of servers, the first ones of the list (5)\n"
    "  --size N         number of locks held, in flight, of threads or of processes (1)\n"
    "  --pairs N        loop, threads, processes (each): pairs of acquire and release (2000)\n"
    "  --ttl MS         time to live of a lock (10000)\n"
    "  --hold MS        held: time for which the locks are held (3000)\n"
    "  --node-timeout MS  time limit of a request; 0: measured (0)\n";

/* Prints what is wrong with the command line. Returns the exit code. */
static int refuse(const char *text, const char *word)
{
    fprintf(stderr, "redlock-growth: %s %s\n%s", text, word, usage);
    return EXIT_USAGE;
}

/* Stores the first `nodes` URLs of the list, with their parameters: of `tls_text`, the same servers
 * at their addresses for TLS, unless it is NULL. Returns false after a message if there are too
 * few. */
static bool choose(struct growth_settings *settings, const char *text, const char *tls_text,
                   size_t nodes)
{
    char error[256], items[SERVERS_TEXT_MAX], *rest = NULL;
    size_t count = 0, at = 0;
    if (servers_parse(&settings->servers, text, error, sizeof error) != 0 ||
        (tls_text != NULL &&
         servers_add_tls(&settings->servers, tls_text, error, sizeof error) != 0)) {
        fprintf(stderr, "redlock-growth: %s\n", error);
        return false;
    }
    if (settings->servers.count < nodes) {
        fprintf(stderr, "redlock-growth: %zu servers for %zu nodes\n", settings->servers.count,
                nodes);
        return false;
    }
    settings->servers.tls = tls_text != NULL;
    strcpy(items, servers_measured(&settings->servers));
    for (char *item = strtok_r(items, ", \t\n", &rest); item != NULL && count < nodes;
         item = strtok_r(NULL, ", \t\n", &rest), count++)
        at += (size_t)snprintf(settings->list + at, sizeof settings->list - at, "%s%s",
                               count == 0 ? "" : ",", item);
    settings->servers.count = nodes;
    return true;
}

/* Prints the environment as a JSON object. Returns an exit code. */
static int print_environment(const struct servers *servers)
{
    struct environment environment;
    environment_read(&environment, servers);
    json_t *object = environment_json(&environment);
    int failed = json_dumpf(object, stdout, JSON_COMPACT | JSON_REAL_PRECISION(6));
    json_decref(object);
    return failed != 0 || puts("") == EOF ? 71 : 0;
}

/* Parses the command line and runs the measurement that its first word names. Returns the exit code
 * of the measurement, or EXIT_USAGE. */
int main(int argc, char **argv)
{
    struct growth_settings settings = {.held = 1};
    const char *servers = getenv("REDLOCK_SERVERS"), *tls_servers = NULL;
    uint64_t nodes = 5, size = 1, pairs = 2000, ttl = 10000, hold = 3000, timeout = 0;
    const struct {
        const char *name;
        uint64_t *value;
        uint64_t max;
    } options[] = {
        {"--nodes", &nodes, SERVERS_MAX}, {"--size", &size, 100000},
        {"--pairs", &pairs, 1000000000},  {"--ttl", &ttl, 30000},
        {"--hold", &hold, 600000},        {"--node-timeout", &timeout, 60000},
    };
    if (argc < 2)
        return refuse("a kind is missing", "");
    if (strcmp(argv[1], "-h") == 0 || strcmp(argv[1], "--help") == 0)
        return fputs(usage, stdout) < 0 ? 71 : 0;
    for (int i = 2; i < argc; i += 2) {
        if (strcmp(argv[i], "--tls") == 0) {
            if ((tls_servers = getenv("REDLOCK_TLS_SERVERS")) == NULL)
                return refuse("--tls:", "set REDLOCK_TLS_SERVERS, or run it by bench/with_tls.py");
            i--; /* an option without a value */
            continue;
        }
        bool known = strcmp(argv[i], "--servers") == 0 && i + 1 < argc;
        if (known)
            servers = argv[i + 1];
        for (size_t o = 0; o < sizeof options / sizeof options[0]; o++) {
            if (strcmp(argv[i], options[o].name) == 0 && i + 1 < argc)
                known = number_parse(argv[i + 1], 0, options[o].max, options[o].value);
        }
        if (!known)
            return refuse("not understood:", argv[i]);
    }
    if (nodes == 0 || size == 0 || pairs == 0 || ttl < 20)
        return refuse("too small:", "a number");
    if (servers == NULL)
        return refuse("no servers:", "--servers");
    if (!choose(&settings, servers, tls_servers, nodes))
        return EXIT_USAGE;
    snprintf(settings.prefix, sizeof settings.prefix, "redlock-bench:%ld:", (long)getpid());
    settings.held = settings.threads = settings.processes = settings.depth = (unsigned)size;
    settings.ttl_ms = ttl;
    settings.hold_ms = hold;
    settings.pairs = pairs;
    settings.node_timeout_ms = (uint32_t)timeout;
    if (strcmp(argv[1], "environment") == 0)
        return print_environment(&settings.servers);
    if (strcmp(argv[1], "held") == 0)
        return growth_held(&settings);
    if (strcmp(argv[1], "loop") == 0)
        return growth_loop(&settings);
    if (strcmp(argv[1], "threads") == 0)
        return growth_threads(&settings);
    if (strcmp(argv[1], "processes") == 0)
        return growth_processes(&settings);
    return refuse("there is no kind", argv[1]);
}
