/* SPDX-License-Identifier: MIT
 * redlock-storm: the clients of storm.py. Runs many clients in embedded mode in one loop, and
 * measures when each of them is connected to a majority of the servers and to all of them.
 *
 * Prints a line when the clients have been made. Then it obeys the lines on its standard input:
 * - "begin" begins a round. In the first one, the clients connect. In a later one, a server counts
 *   for a client once the client has connected to it again.
 * - "end" ends a round before all clients are connected to all servers.
 * At the end of a round it prints a line of JSON. The end of the input ends the program. */
#include "client.h"
#include "number.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <unistd.h>

#define CLIENTS_MAX 10000
#define TIMEOUT_MAX 60000 /* longest connect timeout, in ms */
#define EVENTS      64    /* taken at once from the loop */
#define EXIT_USAGE  64
#define INPUT_TAG   UINT32_MAX /* of the standard input in the loop */

/* A client, and what it has done in this round. */
struct stormer {
    redlock_t *client;
    uint64_t base[REDLOCK_NODES_MAX]; /* connections to each server before the round */
    uint64_t quorum_ns;             /* when a majority was connected: CLOCK_MONOTONIC; 0: not yet */
    uint64_t all_ns;                /* when all servers were connected; 0: not yet */
    bool was_up[REDLOCK_NODES_MAX]; /* has been connected to the server before the round */
};

/* The clients of this process, and the loop that runs them. */
struct storm {
    struct stormer *list;
    size_t count;
    bool running;    /* a round */
    size_t left;     /* clients that are not connected to all servers in this round */
    int loop;        /* epoll */
    char line[16];   /* the beginning of the next line of the input */
    size_t line_len; /* bytes in it */
};

/* Returns whether the client is connected to the server, which has replied to the greeting. */
static bool is_connected(const redlock_node_stats_t *stats)
{
    return stats->eligible == 1 || stats->cause == REDLOCK_CAUSE_RESTARTED;
}

/* Notes how often each client has connected to each server before the round that begins now. */
static void begin(struct storm *storm)
{
    for (size_t i = 0; i < storm->count; i++) {
        struct stormer *stormer = &storm->list[i];
        stormer->quorum_ns = stormer->all_ns = 0;
        for (size_t node = 0; node < redlock_node_count(stormer->client); node++) {
            redlock_node_stats_t stats = {0};
            (void)redlock_get_node_stats(stormer->client, node, &stats, sizeof stats);
            stormer->was_up[node] = stormer->was_up[node] || is_connected(&stats);
            stormer->base[node] = stats.reconnects;
        }
    }
    storm->left = storm->count;
    storm->running = true;
}

/* Counts the servers to which the client has connected in this round, and notes the time if that is
 * a majority, or all. */
static void look_at(struct storm *storm, struct stormer *stormer)
{
    size_t nodes = redlock_node_count(stormer->client), up = 0;
    if (!storm->running || stormer->all_ns != 0)
        return;
    for (size_t node = 0; node < nodes; node++) {
        redlock_node_stats_t stats = {0};
        (void)redlock_get_node_stats(stormer->client, node, &stats, sizeof stats);
        up += is_connected(&stats) &&
              (!stormer->was_up[node] || stats.reconnects > stormer->base[node]);
    }
    if (up > nodes / 2 && stormer->quorum_ns == 0)
        stormer->quorum_ns = result_now_ns();
    if (up == nodes) {
        stormer->all_ns = result_now_ns();
        storm->left--;
    }
}

/* Prints the time of each client in seconds, 0 for one without, as a list of JSON. `all`: the time
 * at which it was connected to all servers; else to a majority. */
static void print_times(const struct storm *storm, const char *name, bool all)
{
    printf("\"%s\": [", name);
    for (size_t i = 0; i < storm->count; i++) {
        uint64_t at_ns = all ? storm->list[i].all_ns : storm->list[i].quorum_ns;
        printf("%s%.6f", i == 0 ? "" : ", ", (double)at_ns / 1e9);
    }
    printf("]");
}

/* Prints the result of the round, and ends it. */
static void end(struct storm *storm)
{
    uint64_t connects = 0;
    for (size_t i = 0; i < storm->count; i++) {
        struct stormer *stormer = &storm->list[i];
        for (size_t node = 0; node < redlock_node_count(stormer->client); node++) {
            redlock_node_stats_t stats = {0};
            (void)redlock_get_node_stats(stormer->client, node, &stats, sizeof stats);
            connects += stats.reconnects - stormer->base[node];
            connects += !stormer->was_up[node] && is_connected(&stats);
        }
    }
    printf("{");
    print_times(storm, "quorum_s", false);
    printf(", ");
    print_times(storm, "all_s", true);
    printf(", \"connects\": %llu}\n", (unsigned long long)connects);
    (void)fflush(stdout);
    storm->running = false;
}

/* Reads the standard input and obeys each line in it. Returns false at its end. */
static bool obey(struct storm *storm)
{
    char bytes[64];
    ssize_t got = read(STDIN_FILENO, bytes, sizeof bytes);
    for (ssize_t i = 0; i < got; i++) {
        if (bytes[i] != '\n') {
            if (storm->line_len < sizeof storm->line - 1)
                storm->line[storm->line_len++] = bytes[i];
            continue;
        }
        storm->line[storm->line_len] = '\0';
        storm->line_len = 0;
        if (strcmp(storm->line, "begin") == 0)
            begin(storm);
        else if (strcmp(storm->line, "end") == 0 && storm->running)
            end(storm);
    }
    return got > 0;
}

/* Runs the loop until the input ends. Returns the status of the last call of the library. */
static int run(struct storm *storm)
{
    int status = REDLOCK_OK;
    bool goes_on = true;
    while (goes_on && status == REDLOCK_OK) {
        struct epoll_event events[EVENTS];
        int count = epoll_wait(storm->loop, events, EVENTS, -1);
        for (int i = 0; i < count && status == REDLOCK_OK; i++) {
            if (events[i].data.u32 == INPUT_TAG) {
                goes_on = obey(storm);
                continue;
            }
            struct stormer *stormer = &storm->list[events[i].data.u32];
            status = redlock_process(stormer->client);
            look_at(storm, stormer);
            if (storm->running && storm->left == 0)
                end(storm);
        }
    }
    return status;
}

/* Has the loop report a descriptor with this tag. Returns false on failure. */
static bool watch(const struct storm *storm, int fd, uint32_t tag)
{
    struct epoll_event event = {.events = EPOLLIN, .data.u32 = tag};
    return epoll_ctl(storm->loop, EPOLL_CTL_ADD, fd, &event) == 0;
}

/* Creates the clients and the loop. Returns false after a line on stderr. */
static bool prepare(struct storm *storm, size_t count, const struct client_settings *settings)
{
    char error[256];
    struct rlimit files;
    if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
        files.rlim_cur = files.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &files);
    }
    storm->loop = epoll_create1(EPOLL_CLOEXEC);
    storm->list = calloc(count, sizeof *storm->list);
    if (storm->loop < 0 || storm->list == NULL || !watch(storm, STDIN_FILENO, INPUT_TAG)) {
        fprintf(stderr, "redlock-storm: no loop: %s\n", strerror(errno));
        return false;
    }
    for (; storm->count < count; storm->count++) {
        redlock_t *client = client_new(settings, REDLOCK_MODE_EMBEDDED, error, sizeof error);
        if (client == NULL) {
            fprintf(stderr, "redlock-storm: %s\n", error);
            return false;
        }
        storm->list[storm->count].client = client;
        if (!watch(storm, redlock_get_fd(client), (uint32_t)storm->count)) {
            fprintf(stderr, "redlock-storm: no loop: %s\n", strerror(errno));
            return false;
        }
    }
    return true;
}

/* Text of --help. */
static const char usage[] =
    "usage: redlock-storm CLIENTS [CONNECT TIMEOUT MS]\n"
    "  Runs this many clients of the servers in REDLOCK_SERVERS in one loop, as storm.py needs\n"
    "  them. Lines on the standard input begin and end a round.\n";

/* Creates the clients, waits for the first line, and runs the loop. Returns an exit code. */
int main(int argc, char **argv)
{
    struct storm storm = {.loop = -1};
    uint64_t count = 0, timeout_ms = 0;
    const char *servers = getenv("REDLOCK_SERVERS");

    if (argc > 1 && (strcmp(argv[1], "-h") == 0 || strcmp(argv[1], "--help") == 0))
        return fputs(usage, stdout) < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
    if (argc < 2 || argc > 3 || !number_parse(argv[1], 1, CLIENTS_MAX, &count) ||
        (argc == 3 && !number_parse(argv[2], 0, TIMEOUT_MAX, &timeout_ms)) || servers == NULL) {
        fprintf(stderr, "%s", usage);
        return EXIT_USAGE;
    }
    const struct client_settings settings = {.servers = servers,
                                             .connect_timeout_ms = (uint32_t)timeout_ms};
    bool ok = prepare(&storm, count, &settings);
    if (ok) {
        printf("ready\n");
        (void)fflush(stdout);
        int status = obey(&storm) ? run(&storm) : REDLOCK_OK;
        ok = status == REDLOCK_OK;
        if (!ok)
            fprintf(stderr, "redlock-storm: %s\n", redlock_strerror(status));
    }
    for (size_t i = 0; i < storm.count; i++)
        (void)redlock_free(storm.list[i].client);
    free(storm.list);
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}
