/* SPDX-License-Identifier: MIT
 * Measures the limits of the servers with one redis-benchmark for each server, all at the same
 * time.
 *
 * redis-benchmark draws its keys at random from a range. There are many more keys than requests, so
 * that most acquisitions find no key, and all keys exist before the releases, so that most releases
 * find theirs. */
#include "server_limits.h"

#include "baseline.h"

#include <errno.h>
#include <fcntl.h>
#include <hiredis/hiredis.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define KEYS_PER_REQUEST 4 /* size of the range of keys, in keys for each request */
/* redis-benchmark measures time in milliseconds, so the rate of a shorter run is not usable. */
#define RUN_MIN_S 0.02
/* Keys that one script sets or deletes: few enough that a server is not blocked for long. */
#define CHUNK      5000
#define OUTPUT_MAX 8192 /* bytes of redis-benchmark's output that are read */
#define NOT_FOUND  127  /* exit code of a child whose program does not exist */

/* Value of all keys, as long as a token of the library. */
static const char token[] = "0123456789012345678901234567890123456789";

/* One running redis-benchmark. */
struct child {
    pid_t pid;
    int out; /* pipe from its standard output */
};

/* Replaces this child by redis-benchmark, with `out` as its standard output. */
static void exec_benchmark(const char *const *argv, int out)
{
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    (void)dup2(null, STDIN_FILENO);
    (void)dup2(out, STDOUT_FILENO);
    (void)dup2(null, STDERR_FILENO);
    execvp(argv[0], (char *const *)(uintptr_t)argv);
    _exit(errno == ENOENT ? NOT_FOUND : 126);
}

/* Starts redis-benchmark with `requests` times `command` (ends with NULL). Returns 0 or -1. */
static int start(struct child *child, const struct server *server, bool tls, uint64_t requests,
                 const char *const *command)
{
    char number[24], range[24];
    int ends[2];
    const char *host = tls ? server->tls_host : server->host;
    const char *port = tls ? server->tls_port : server->port;
    const char *argv[32] = {"redis-benchmark", "-h", host,   "-p", port, "-c", "4", "-P", "64",
                            "--csv",           "-n", number, "-r", range};
    size_t words = 14;
    if (tls)
        argv[words++] = "--tls";
    if (tls && server->cacert[0] != '\0') {
        argv[words++] = "--cacert";
        argv[words++] = server->cacert;
    }
    snprintf(number, sizeof number, "%" PRIu64, requests);
    snprintf(range, sizeof range, "%" PRIu64, requests * KEYS_PER_REQUEST);
    while (*command != NULL)
        argv[words++] = *command++;
    if (pipe2(ends, O_CLOEXEC) != 0)
        return -1;
    child->pid = fork();
    if (child->pid == 0)
        exec_benchmark(argv, ends[1]);
    (void)close(ends[1]);
    child->out = ends[0];
    return child->pid > 0 ? 0 : -1;
}

/* Waits for the end of a child. Returns requests per second: the second field of the last line. 0
 * if the child failed, -1 if there is no redis-benchmark. */
static double finish(struct child *child)
{
    char text[OUTPUT_MAX];
    size_t len = 0;
    ssize_t got;
    int status = 0;
    while (len < sizeof text - 1 && (got = read(child->out, text + len, sizeof text - 1 - len)) > 0)
        len += (size_t)got;
    text[len] = '\0';
    (void)close(child->out);
    if (waitpid(child->pid, &status, 0) < 0 || !WIFEXITED(status))
        return 0.0;
    if (WEXITSTATUS(status) == NOT_FOUND)
        return -1.0;
    while (len > 0 && text[len - 1] == '\n')
        text[--len] = '\0';
    char *line = strrchr(text, '\n');
    const char *field = strstr(line == NULL ? text : line + 1, "\",\"");
    return WEXITSTATUS(status) != 0 || field == NULL ? 0.0 : strtod(field + 3, NULL);
}

/* Runs redis-benchmark on all servers. Returns the rate of the slowest server, 0 or -1 as finish()
 * does. */
static double run_all(const struct servers *servers, uint64_t requests, const char *const *command)
{
    struct child children[SERVERS_MAX];
    size_t started = 0;
    double slowest = -1.0;
    while (started < servers->count &&
           start(&children[started], &servers->list[started], servers->tls, requests, command) == 0)
        started++;
    for (size_t i = 0; i < started; i++) {
        double rate = finish(&children[i]);
        if (i == 0 || rate < slowest)
            slowest = rate;
    }
    return started == servers->count ? slowest : 0.0;
}

/* Sets or deletes all keys that redis-benchmark may draw. Returns 0 or -1. */
static int change_keys(const struct servers *servers, const char *prefix, uint64_t keys, bool set)
{
    static const char script[] = "for i = tonumber(ARGV[1]), tonumber(ARGV[2]) do "
                                 "local key = string.format('%s%012d', ARGV[3], i) "
                                 "if ARGV[4] == '' then redis.call('del', key) "
                                 "else redis.call('set', key, ARGV[4], 'px', 60000) end end";
    for (size_t i = 0; i < servers->count; i++) {
        const struct server *server = &servers->list[i];
        redisContext *context = redisConnect(server->host, atoi(server->port));
        bool fine = context != NULL && context->err == 0;
        for (uint64_t at = 0; fine && at < keys; at += CHUNK) {
            redisReply *reply =
                redisCommand(context, "EVAL %s 0 %llu %llu %s %s", script, (unsigned long long)at,
                             (unsigned long long)(at + CHUNK - 1), prefix, set ? token : "");
            fine = reply != NULL && reply->type != REDIS_REPLY_ERROR;
            if (reply != NULL)
                freeReplyObject(reply);
        }
        if (context != NULL)
            redisFree(context);
        if (!fine)
            return -1;
    }
    return 0;
}

/* Measures both commands once, with `requests` of each on every server. Returns 0, 1 if there is no
 * redis-benchmark, or -1. */
static int measure(const struct servers *servers, const char *prefix, uint64_t requests,
                   const char *sha, struct server_limits *ret_limits)
{
    char key[128];
    uint64_t keys = requests * KEYS_PER_REQUEST;
    snprintf(key, sizeof key, "%s__rand_int__", prefix);
    const char *const acquire[] = {"SET", key, token, "NX", "PX", "60000", NULL};
    const char *const release[] = {"EVALSHA", sha, "1", key, token, NULL};
    memset(ret_limits, 0, sizeof *ret_limits);
    ret_limits->set_per_s = run_all(servers, requests, acquire);
    if (ret_limits->set_per_s < 0.0)
        return 1;
    int failed = change_keys(servers, prefix, keys, true);
    if (failed == 0)
        ret_limits->release_per_s = run_all(servers, requests, release);
    if (change_keys(servers, prefix, keys, false) != 0)
        failed = -1;
    return failed == 0 && ret_limits->set_per_s > 0.0 && ret_limits->release_per_s > 0.0 ? 0 : -1;
}

/* Measures both commands, with ten times the requests until each run lasts RUN_MIN_S. Returns 0, 1
 * if there is no redis-benchmark, or -1 with a text in `error`. */
int server_limits_run(const struct servers *servers, const char *prefix, uint64_t requests,
                      struct server_limits *ret_limits, char *error, size_t error_size)
{
    char keys_prefix[96], sha[41] = "";
    int status;
    snprintf(keys_prefix, sizeof keys_prefix, "%slimit:", prefix);
    snprintf(error, error_size, "redis-benchmark failed, or a server does not reply");
    for (size_t i = 0; i < servers->count; i++) {
        if (servers_load_script(&servers->list[i], baseline_release_script, sha) != 0)
            return -1;
    }
    while ((status = measure(servers, keys_prefix, requests, sha, ret_limits)) == 0 &&
           ((double)requests / ret_limits->set_per_s < RUN_MIN_S ||
            (double)requests / ret_limits->release_per_s < RUN_MIN_S))
        requests *= 10;
    return status;
}
