/* SPDX-License-Identifier: MIT
 * A client of this library as a program: reads one command per line from stdin and prints one reply
 * per line. The arguments of the program are the addresses of the nodes.
 *
 *     acquire NAME TTL_MS WAIT_MS     ok TOKEN
 *     extend NAME TTL_MS              ok
 *     release NAME                    ok
 *     state NAME                      ok held, ok free, ok unknown
 *     fenced NAME TTL_MS WAIT_MS      ok TOKEN, and the lock has a fence
 *     fence NAME                      ok FENCE
 *     check NAME                      ok REMAINING_MS
 *
 * The reply to a command that fails is the name of the error and a text. A lock stays with its name
 * until it is released or acquired again. The end of stdin ends the program. PEER_MAX_TTL_MS,
 * PEER_DRIFT_PPM and PEER_HEARTBEAT_MS replace the defaults. */
#include <inttypes.h>
#include <redlock/redlock.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LOCKS_MAX  16    /* number of names */
#define NAME_MAX_  64    /* bytes of a name, with the 0 at its end */
#define LINE_MAX_  256   /* bytes of a line, with the 0 at its end */
#define READY_MS   10000 /* how long the program waits for the nodes at its start */
#define TIMEOUT_MS 2000  /* node timeout: servers of a busy machine must not look unresponsive */

/* A lock by its name. */
struct held {
    char name[NAME_MAX_]; /* empty: the entry is free */
    redlock_lock_t *lock; /* NULL: not acquired */
};

static struct held held[LOCKS_MAX]; /* all names that were ever used */

/* Returns the entry with that name, or takes a free one for it. Ends the program with status 1 if
 * there is none. */
static struct held *find(const char *name)
{
    struct held *empty = NULL;

    for (size_t i = 0; i < LOCKS_MAX; i++) {
        if (strcmp(held[i].name, name) == 0)
            return &held[i];
        if (empty == NULL && held[i].name[0] == '\0')
            empty = &held[i];
    }
    if (empty == NULL) {
        fprintf(stderr, "more than %d names\n", LOCKS_MAX);
        exit(1);
    }
    snprintf(empty->name, sizeof empty->name, "%s", name);
    return empty;
}

/* Prints a reply: "ok" and `more`, or the name of the error and the text of the report. */
static void reply(int error, const redlock_report_t *report, const char *more)
{
    if (error == REDLOCK_OK)
        printf("ok %s\n", more);
    else
        printf("%s %s\n", redlock_error_name(error), redlock_report_text(report));
    fflush(stdout);
}

/* Acquires the lock of the entry and replies with its token. `flags`: REDLOCK_FLAG_*. A handle that
 * the entry had before is freed. */
static void acquire(redlock_t *rl, struct held *at, uint64_t ttl_ms, uint64_t wait_ms,
                    uint32_t flags)
{
    redlock_opts_t opts = redlock_opts(ttl_ms);
    redlock_report_t *report;
    redlock_lock_t *lock = NULL;

    opts.wait_ms = wait_ms;
    opts.flags = flags;
    const int error = redlock_acquire(rl, at->name, &opts, &lock, &report);
    if (error == REDLOCK_OK) {
        redlock_lock_free(at->lock);
        at->lock = lock;
    }
    reply(error, report, error == REDLOCK_OK ? redlock_lock_token(lock) : "");
    redlock_report_free(report);
}

/* Extends the lock of the entry and replies. */
static void extend(struct held *at, uint64_t ttl_ms)
{
    redlock_report_t *report;
    const int error = redlock_extend(at->lock, ttl_ms, &report);

    reply(error, report, "");
    redlock_report_free(report);
}

/* Releases the lock of the entry, frees its handle, and replies. */
static void release(struct held *at)
{
    redlock_report_t *report;
    const int error = redlock_release(at->lock, &report);

    reply(error, report, "");
    redlock_report_free(report);
    redlock_lock_free(at->lock);
    at->lock = NULL;
}

/* Inspects the resource and replies with held, free or unknown. */
static void print_state(redlock_t *rl, const char *name)
{
    static const char *const words[] = {"unknown", "free", "held"};
    redlock_report_t *report;
    redlock_report_info_t info = {0};
    const int error = redlock_inspect(rl, name, &report);

    if (error == REDLOCK_OK && redlock_report_get_info(report, &info, sizeof info) != REDLOCK_OK)
        info.state = REDLOCK_STATE_UNKNOWN;
    reply(error, report, words[info.state]);
    redlock_report_free(report);
}

/* Replies with the number, or with the error. */
static void print_number(int error, uint64_t number)
{
    char text[24];

    snprintf(text, sizeof text, "%" PRIu64, number);
    reply(error, NULL, text);
}

/* Executes one command. Returns false if the line is not valid. */
static bool execute(redlock_t *rl, const char *line)
{
    char verb[16] = "", name[NAME_MAX_] = "";
    uint64_t ttl_ms = 0, wait_ms = 0;
    const int words = sscanf(line, "%15s %63s %" SCNu64 " %" SCNu64, verb, name, &ttl_ms, &wait_ms);

    if (words == 4 && strcmp(verb, "acquire") == 0)
        acquire(rl, find(name), ttl_ms, wait_ms, 0);
    else if (words == 4 && strcmp(verb, "fenced") == 0)
        acquire(rl, find(name), ttl_ms, wait_ms, REDLOCK_FLAG_FENCE);
    else if (words == 3 && strcmp(verb, "extend") == 0)
        extend(find(name), ttl_ms);
    else if (words == 2 && strcmp(verb, "release") == 0)
        release(find(name));
    else if (words == 2 && strcmp(verb, "check") == 0)
        print_number(redlock_lock_check(find(name)->lock, 0),
                     redlock_lock_remaining_ms(find(name)->lock));
    else if (words == 2 && strcmp(verb, "fence") == 0)
        print_number(REDLOCK_OK, redlock_lock_fence(find(name)->lock));
    else if (words == 2 && strcmp(verb, "state") == 0)
        print_state(rl, name);
    else
        return false;
    return true;
}

/* Sets the options of the configuration, those from the environment included. Returns 0 or the
 * first error. */
static int configure(redlock_config_t *config)
{
    const char *max_ttl = getenv("PEER_MAX_TTL_MS"), *drift = getenv("PEER_DRIFT_PPM");
    const char *heartbeat = getenv("PEER_HEARTBEAT_MS");
    const char *timeout = getenv("PEER_NODE_TIMEOUT_MS");
    int error = redlock_config_set_node_timeout_ms(
        config, timeout != NULL ? (uint32_t)strtoul(timeout, NULL, 10) : TIMEOUT_MS);

    if (error == REDLOCK_OK && max_ttl != NULL)
        error = redlock_config_set_max_ttl_ms(config, strtoull(max_ttl, NULL, 10));
    if (error == REDLOCK_OK && heartbeat != NULL)
        error = redlock_config_set_heartbeat_ms(config, (uint32_t)strtoul(heartbeat, NULL, 10));
    if (error == REDLOCK_OK && drift != NULL)
        error = redlock_config_set_drift(config, (uint32_t)strtoul(drift, NULL, 10), 2000);
    if (error == REDLOCK_OK)
        error = redlock_config_set_fence_records(config, REDLOCK_FENCE_RECORDS_VOLATILE);
    return error;
}

/* Returns a client of the `count` addresses that is ready. Ends the program with status 1 if that
 * fails. */
static redlock_t *connect_to(int count, char *const *urls)
{
    redlock_config_t *config;
    redlock_t *rl = NULL;
    int error = redlock_config_new(&config, NULL);

    for (int i = 0; i < count && error == REDLOCK_OK; i++)
        error = redlock_config_add_nodes(config, urls[i]);
    if (error == REDLOCK_OK)
        error = configure(config);
    if (error == REDLOCK_OK)
        error = redlock_new(&rl, config);
    if (error != REDLOCK_OK)
        fprintf(stderr, "%s\n", redlock_config_error(config));
    redlock_config_free(config);
    if (error == REDLOCK_OK && (error = redlock_wait_ready(rl, READY_MS)) != REDLOCK_OK)
        fprintf(stderr, "%s\n", redlock_strerror(error));
    if (error != REDLOCK_OK)
        exit(1);
    return rl;
}

int main(int argc, char **argv)
{
    char line[LINE_MAX_];
    redlock_t *rl = connect_to(argc - 1, argv + 1);
    int status = 0;

    while (status == 0 && fgets(line, sizeof line, stdin) != NULL) {
        if (!execute(rl, line)) {
            fprintf(stderr, "not understood: %s", line);
            status = 64;
        }
    }
    for (size_t i = 0; i < LOCKS_MAX; i++)
        redlock_lock_free(held[i].lock);
    redlock_shutdown(rl, 1000);
    redlock_free(rl);
    return status;
}
