/* SPDX-License-Identifier: MIT
 * Runs one measurement from the first process to the last: starts the proxy and the contenders,
 * gives the start signal, waits for the end and counts the keys that are left on the servers. */
#include "contended.h"
#include "delay_list.h"
#include "progress.h"
#include "result.h"
#include "servers_commands.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define READY_MS      30000             /* for all contenders to connect */
#define LEFTOVER_MS   3000              /* for keys to disappear after the end */
#define TRIPS_BEFORE  15                /* PINGs to each server before the run */
#define TRIPS_EACH_MS 40                /* pause between PINGs during the run */
#define MS_NS         UINT64_C(1000000) /* nanoseconds of a millisecond */

/* Names of the drivers in options and output, by enum contended_driver. */
const char *const contended_driver_names[DRIVERS_COUNT] = {"redlock", "node-redlock",
                                                           "redisson-fair"};

/* Memory that the processes of one measurement share. */
struct arena {
    uint64_t end_ns; /* CLOCK_MONOTONIC time of the end; set before the start signal */
    struct contender contenders[];
};

/* Everything that one measurement has opened. clear() closes it. */
struct stage {
    const struct contended_case *what;   /* borrowed */
    struct contended_settings *settings; /* borrowed */
    char resource[128];                  /* name of the contended lock */
    const char *servers;                 /* list of URLs, through the proxy if there is one */
    struct delay_list *list;             /* owned; NULL without a proxy */
    pid_t proxy;                         /* 0: none */
    int proxy_control;                   /* pipe whose end stops the proxy; -1: none */
    struct arena *arena;
    size_t arena_size;          /* bytes */
    pid_t pids[CONTENDERS_MAX]; /* contenders of DRIVER_REDLOCK */
    unsigned started;           /* number of pids[] */
    int ready[2];               /* pipe: contenders report that they are ready; -1: closed */
    int go[2];                  /* pipe: its end is the start signal; -1: closed */
    struct peers *peers;        /* processes of the other drivers; NULL: none */
    struct trips *trips;        /* NULL: not open */
};

/* Writes "<what>: <text of errno>" to `error`. Returns -1. */
static int complain(char *error, size_t error_size, const char *what)
{
    snprintf(error, error_size, "%s: %s", what, strerror(errno));
    return -1;
}

/* Forks a child that the kernel kills when this process ends. Returns what fork() returns. */
static pid_t fork_bound(void)
{
    pid_t parent = getpid(), pid = fork();
    if (pid == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent)
            _exit(1);
    }
    return pid;
}

/* Returns true if the case needs the proxy. */
static bool is_delayed(const struct contended_case *what)
{
    return strcmp(what->delays, "0") != 0 || strcmp(what->jitters, "0") != 0;
}

/* Starts the proxy if the case has a delay or jitter, and sets stage->servers. Returns 0, or -1 and
 * a text in `error`. */
static int start_proxy(struct stage *stage, char *error, size_t error_size)
{
    int control[2];
    stage->servers = servers_measured(&stage->settings->servers);
    if (!is_delayed(stage->what))
        return 0;
    stage->list = calloc(1, sizeof *stage->list);
    if (stage->list == NULL)
        return complain(error, error_size, "no memory");
    struct delay *delay =
        delay_list_open(stage->list, &stage->settings->servers, stage->what->delays,
                        stage->what->jitters, stage->settings->seed, error, error_size);
    if (delay == NULL)
        return -1;
    if (pipe2(control, O_CLOEXEC) != 0) {
        delay_close(delay);
        return complain(error, error_size, "pipe");
    }
    stage->proxy = fork_bound();
    if (stage->proxy == 0) {
        (void)close(control[1]);
        _exit(delay_run(delay, control[0]) == 0 ? 0 : 1);
    }
    (void)close(control[0]);
    stage->proxy_control = control[1];
    delay_close(delay);
    stage->servers = stage->list->text;
    return stage->proxy > 0 ? 0 : complain(error, error_size, "fork");
}

/* Starts contender `number` of DRIVER_REDLOCK in a process of its own. Returns 0 or -1. */
static int start_one(struct stage *stage, unsigned number)
{
    const struct contender_task task = {
        .servers = stage->servers,
        .resource = stage->resource,
        .ttl_ms = stage->settings->ttl_ms,
        .hold_us = stage->what->hold_us,
        .ready = stage->ready[1],
        .go = stage->go[0],
        .end_ns = &stage->arena->end_ns,
        .no_notifications = stage->settings->no_notifications,
        .number = number,
    };
    pid_t pid = fork_bound();
    if (pid == 0) {
        if (stage->proxy_control >= 0)
            (void)close(stage->proxy_control);
        (void)close(stage->go[1]);
        contender_work(&task, &stage->arena->contenders[number]);
        _exit(0);
    }
    if (pid > 0)
        stage->pids[stage->started++] = pid;
    return pid > 0 ? 0 : -1;
}

/* Creates the shared memory and starts all contenders. Returns 0, or -1 and a text in `error`. */
static int start_contenders(struct stage *stage, char *error, size_t error_size)
{
    const struct contended_case *what = stage->what;
    stage->arena_size = sizeof *stage->arena + what->contenders * sizeof(struct contender);
    void *memory = mmap(NULL, stage->arena_size, PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED)
        return complain(error, error_size, "mmap");
    stage->arena = memory;
    if (what->driver != DRIVER_REDLOCK) {
        stage->peers =
            peers_start(stage->settings, stage->servers, stage->resource, what, error, error_size);
        return stage->peers == NULL ? -1 : 0;
    }
    if (pipe2(stage->ready, O_CLOEXEC) != 0 || pipe2(stage->go, O_CLOEXEC) != 0)
        return complain(error, error_size, "pipe");
    for (unsigned i = 0; i < what->contenders; i++) {
        if (start_one(stage, i) != 0)
            return complain(error, error_size, "fork");
    }
    (void)close(stage->ready[1]);
    stage->ready[1] = -1;
    return 0;
}

/* Waits until all contenders are ready. Returns 0, or -1 and a text in `error`. */
static int wait_ready(struct stage *stage, char *error, size_t error_size)
{
    uint64_t until_ns = result_now_ns() + READY_MS * MS_NS;
    unsigned ready = 0;
    while (stage->peers == NULL && ready < stage->started) {
        struct pollfd item = {.fd = stage->ready[0], .events = POLLIN};
        uint64_t now_ns = result_now_ns();
        char byte = 'x';
        if (now_ns >= until_ns || poll(&item, 1, (int)((until_ns - now_ns) / MS_NS) + 1) <= 0 ||
            read(stage->ready[0], &byte, 1) != 1 || byte != 'r') {
            snprintf(error, error_size, "%u of %u contenders are not ready", stage->started - ready,
                     stage->started);
            return -1;
        }
        ready++;
    }
    if (stage->peers != NULL && peers_wait_ready(stage->peers, until_ns) != 0) {
        snprintf(error, error_size, "the peer's processes are not ready");
        return -1;
    }
    return 0;
}

/* Starts the measurement, which ends at end_ns. */
static void go(struct stage *stage, uint64_t end_ns)
{
    stage->arena->end_ns = end_ns;
    if (stage->peers != NULL)
        peers_go(stage->peers, end_ns);
    else
        (void)close(stage->go[1]);
    stage->go[1] = -1;
}

/* Waits for the end of a child, if there is one, and sets *pid to 0. */
static void reap(pid_t *pid)
{
    while (*pid > 0 && waitpid(*pid, NULL, 0) < 0 && errno == EINTR) {
    }
    *pid = 0;
}

/* Waits for the end of all contenders and collects the records of a peer's processes. */
static void wait_contenders(struct stage *stage)
{
    for (unsigned i = 0; i < stage->started; i++)
        reap(&stage->pids[i]);
    stage->started = 0;
    if (stage->peers != NULL &&
        peers_finish(stage->peers, stage->arena->contenders, stage->what->contenders) != 0)
        stage->arena->contenders[0].failed = true;
    stage->peers = NULL;
}

/* Stops all processes that still run, and frees what the stage has opened. */
static void clear(struct stage *stage)
{
    int *const fds[] = {&stage->ready[0], &stage->ready[1], &stage->go[0], &stage->go[1],
                        &stage->proxy_control};
    for (unsigned i = 0; i < stage->started; i++)
        (void)kill(stage->pids[i], SIGKILL);
    if (stage->peers != NULL)
        (void)peers_finish(stage->peers, NULL, 0);
    stage->peers = NULL;
    wait_contenders(stage);
    trips_close(stage->trips);
    for (size_t i = 0; i < sizeof fds / sizeof fds[0]; i++) {
        if (*fds[i] >= 0)
            (void)close(*fds[i]);
    }
    reap(&stage->proxy);
    if (stage->arena != NULL)
        (void)munmap(stage->arena, stage->arena_size);
    free(stage->list);
}

/* Counts the keys that are left. Waits up to LEFTOVER_MS for late undos. -1: a server did not
 * reply. */
static long leftover_keys(const struct contended_settings *settings)
{
    uint64_t start_ns = result_now_ns();
    long count;
    do {
        count = servers_count_keys(&settings->servers, settings->prefix);
    } while (count > 0 && result_now_ns() - start_ns < LEFTOVER_MS * MS_NS && usleep(10000) == 0);
    return count;
}

/* Returns true if `name` is one of `words`, which have a blank before and behind each. */
static bool is_one_of(const char *name, const char *words)
{
    char word[40];
    snprintf(word, sizeof word, " %s ", name);
    return strstr(words, word) != NULL;
}

/* Commands that the scripts of the other drivers execute and that no client sends. Servers count
 * both. */
static const char *const inside[DRIVERS_COUNT] = {
    [DRIVER_REDLOCK] = "",
    [DRIVER_NODE_REDLOCK] = " exists set get del pexpire ",
    [DRIVER_REDISSON_FAIR] = (" exists del lindex zscore lpop zrem hexists hincrby hset zrange "
                              "zincrby zadd rpush pttl pexpire publish set get lrange lrem "),
};
/* Requests of this library about a lock, which the contenders count themselves: its scripts execute
 * some of them, too. */
static const char about_lock[] =
    " set get getex del delex delifeq pexpire pttl publish eval evalsha ";
/* Commands that a client sends however often it acquires a lock. */
static const char upkeep[] = " info time ping hello auth select config config|get subscribe script "
                             "script|load client|setname client|setinfo client|id client|tracking ";

/* Writes to `result` how many commands the servers received per grant, in total and by name. The
 * first two arguments are the servers' counters before and after the run; `requests` is the number
 * of requests about the lock that the contenders of DRIVER_REDLOCK have counted. */
static void note_commands(const struct commands *before, const struct commands *after,
                          uint64_t requests, uint64_t grants, struct contended_result *result)
{
    bool ours = result->what.driver == DRIVER_REDLOCK;
    uint64_t sum = requests, kept = 0;
    double each = grants == 0 ? 0.0 : 1.0 / (double)grants;
    size_t len = 0;
    for (size_t i = 0; i < after->count; i++) {
        const char *name = after->list[i].name;
        uint64_t calls = after->list[i].calls;
        for (size_t j = 0; j < before->count; j++)
            calls -= strcmp(before->list[j].name, name) == 0 ? before->list[j].calls : 0;
        /* The benchmark itself sends PING and SCAN. */
        if (calls == 0 || strcmp(name, "ping") == 0 || strcmp(name, "scan") == 0)
            continue;
        if (ours && strcmp(name, "publish") == 0)
            result->turns_per_grant = (double)calls * each;
        if (is_one_of(name, upkeep))
            kept += calls;
        else if (!is_one_of(name, ours ? about_lock : inside[result->what.driver]))
            sum += calls;
        int put = snprintf(result->commands + len, sizeof result->commands - len, "%s%s %.2f",
                           len == 0 ? "" : ", ", name, (double)calls * each);
        if (put > 0 && (size_t)put < sizeof result->commands - len)
            len += (size_t)put;
        else
            result->commands[len] = '\0';
    }
    result->commands_per_grant = (double)sum * each;
    result->upkeep_per_grant = (double)kept * each;
}

/* Runs the measurement once the contenders are ready. Returns 0, or -1 if a server does not
 * reply. */
static int measure(struct stage *stage, struct contended_result *result)
{
    const struct contended_settings *settings = stage->settings;
    const struct contended_case *what = stage->what;
    struct commands before, after;
    uint64_t grants = 0, requests = 0, notifications = 0;
    for (unsigned i = 0; i < TRIPS_BEFORE; i++)
        trips_ping(stage->trips);
    result->trip_idle_ns = trips_quorum_ns(stage->trips);
    if (servers_commands(&settings->servers, &before) != 0)
        return -1;
    uint64_t start_ns = result_now_ns(), end_ns = start_ns + settings->run_ms * MS_NS;
    go(stage, end_ns);
    do {
        trips_ping(stage->trips);
        progress_show(result_now_ns() - start_ns, end_ns - start_ns);
    } while (usleep(TRIPS_EACH_MS * 1000) == 0 && result_now_ns() < end_ns);
    result->trip_ns = trips_quorum_ns(stage->trips);
    wait_contenders(stage);
    if (servers_commands(&settings->servers, &after) != 0)
        return -1;
    for (unsigned i = 0; i < what->contenders; i++) {
        const struct contender *one = &stage->arena->contenders[i];
        grants += one->acquired;
        requests += one->requests;
        notifications += one->notifications;
    }
    note_commands(&before, &after, requests, grants, result);
    if (grants != 0)
        result->notifications_per_grant = (double)notifications / (double)grants;
    contended_figures(stage->arena->contenders, what->contenders,
                      start_ns + settings->warm_ms * MS_NS, end_ns, result);
    return 0;
}

/* Begins the progress of a case, with its name. */
static void begin_progress(const struct contended_case *what)
{
    static char text[192];
    snprintf(text, sizeof text, "%s, %u contenders, delay %s, hold %.1f ms",
             contended_driver_names[what->driver], what->contenders, what->delays,
             (double)what->hold_us / 1e3);
    progress_begin(text, 1, 1);
}

/* Runs one measurement, from the start of the proxy to the count of leftover keys. Returns 0, or -1
 * and a text in `error`; all processes have ended in both cases. */
int contended_run(const struct contended_case *what, struct contended_settings *settings,
                  struct contended_result *ret_result, char *error, size_t error_size)
{
    struct stage stage = {
        .what = what, .settings = settings, .proxy_control = -1, .ready = {-1, -1}, .go = {-1, -1}};
    memset(ret_result, 0, sizeof *ret_result);
    ret_result->what = *what;
    begin_progress(what);
    /* A new name each time, so that the contenders prefer another node each time. */
    settings->seed = settings->seed * UINT64_C(6364136223846793005) + 1442695040888963407u;
    snprintf(stage.resource, sizeof stage.resource, "%s%" PRIx64, settings->prefix, settings->seed);
    int failed = start_proxy(&stage, error, error_size) != 0 ||
                 start_contenders(&stage, error, error_size) != 0 ||
                 wait_ready(&stage, error, error_size) != 0;
    if (!failed && ((stage.trips = trips_open(&settings->servers, stage.servers)) == NULL ||
                    measure(&stage, ret_result) != 0)) {
        snprintf(error, error_size, "a server does not reply");
        failed = 1;
    }
    clear(&stage);
    if (!failed)
        ret_result->leftover_keys = leftover_keys(settings);
    return failed ? -1 : 0;
}

/* Returns true without violations and leftover keys, if at most one in a hundred grants met an
 * error. */
bool contended_passed(const struct contended_result *result)
{
    return result->violations == 0 && result->leftover_keys == 0 &&
           result->errors * 100 <= result->grants;
}
