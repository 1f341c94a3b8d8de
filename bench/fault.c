/* SPDX-License-Identifier: MIT
 * Injects faults: signals to servers, restarts of servers, and a proxy that slows servers down. */
#include "fault.h"

#include "delay_list.h"
#include "result.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define SLOW_MS    20                                  /* delay in each direction of FAULT_SLOW */
#define REPLIES_NS (UINT64_C(10) * 1000 * 1000 * 1000) /* for servers to reply after a fault */
#define RECHECK_US 5000 /* pause between two checks whether the servers reply */

/* A fault of a run, between fault_open() and fault_close(). */
struct fault {
    struct servers *servers; /* borrowed */
    struct fault_plan plan;
    unsigned steps;          /* 0: not begun, 1: begun, 2: ended */
    const char *directory;   /* of the sandbox; NULL: none */
    struct delay_list *list; /* of the proxy, owned; NULL: no proxy */
    pid_t proxy;             /* 0: none */
    int control;             /* pipe with commands for the proxy; -1: none */
};

/* Texts of the marks in the timeline, by enum fault_kind. */
static const char *const begin_texts[] = {"", "stopped", "killed", "killed",
                                          "slow, 20 ms each way"};
/* Texts of the marks at the end of a fault, by enum fault_kind. */
static const char *const end_texts[] = {"", "continued", "", "restarted", "fast again"};

/* Returns true for the faults that signals to the servers' processes cause. */
bool fault_needs_processes(enum fault_kind kind)
{
    return kind == FAULT_STOPPED || kind == FAULT_KILLED || kind == FAULT_RESTARTED;
}

/* Starts a server again, with the program and the configuration that the sandbox keeps in its
 * directory. */
static void start_server(struct fault *fault, size_t index)
{
    char program[512], conf[512];
    snprintf(program, sizeof program, "%s/redis-server", fault->directory);
    snprintf(conf, sizeof conf, "%s/%zu/conf", fault->directory,
             fault->servers->list[index].number);
    pid_t pid = fork();
    if (pid == 0) {
        int null = open("/dev/null", O_RDWR);
        (void)setpgid(0, 0);
        for (int fd = 0; null >= 0 && fd <= 2; fd++)
            (void)dup2(null, fd);
        execl(program, "redis-server", conf, (char *)NULL);
        _exit(127);
    }
    fault->servers->list[index].pid = pid > 0 ? pid : 0;
}

/* Kills a server and waits for its end if it is a child of this process. */
static void kill_server(struct fault *fault, size_t index)
{
    pid_t pid = fault->servers->list[index].pid;
    (void)kill(pid, SIGKILL);
    (void)waitpid(pid, NULL, 0); /* fails if the sandbox has started it */
}

/* Sets the delay of the servers in the plan. 0 ms removes it. */
static void command_proxy(struct fault *fault, uint64_t delay_ms)
{
    for (size_t i = fault->servers->count - fault->plan.nodes; i < fault->servers->count; i++)
        (void)dprintf(fault->control, "delay %zu %llums\n", i, (unsigned long long)delay_ms);
}

/* Begins the fault. */
static void begin(struct fault *fault)
{
    size_t count = fault->servers->count;
    if (fault->plan.kind == FAULT_STOPPED)
        servers_stop(fault->servers, fault->plan.nodes, true);
    else if (fault->plan.kind == FAULT_SLOW)
        command_proxy(fault, SLOW_MS);
    for (size_t i = count - fault->plan.nodes; i < count; i++) {
        if (fault->plan.kind == FAULT_KILLED || fault->plan.kind == FAULT_RESTARTED)
            kill_server(fault, i);
    }
}

/* Ends the fault: continues, restarts or speeds up the servers. */
static void end(struct fault *fault)
{
    size_t count = fault->servers->count;
    if (fault->plan.kind == FAULT_STOPPED)
        servers_stop(fault->servers, fault->plan.nodes, false);
    else if (fault->plan.kind == FAULT_SLOW)
        command_proxy(fault, 0);
    for (size_t i = count - fault->plan.nodes; i < count; i++) {
        if (fault->plan.kind == FAULT_KILLED || fault->plan.kind == FAULT_RESTARTED)
            start_server(fault, i);
    }
}

/* Adds a mark to the timeline: the number of servers and `text`. */
static void mark(const struct fault *fault, uint64_t at_ns, const char *text,
                 struct timeline *timeline)
{
    char line[48];
    snprintf(line, sizeof line, "%u %s", fault->plan.nodes, text);
    timeline_mark(timeline, at_ns, line);
}

/* Begins the fault at plan.from_ns and ends it at plan.to_ns, and marks both in the timeline.
 * Returns when to call again, UINT64_MAX for never. FAULT_KILLED does not end here. */
uint64_t fault_step(void *state, uint64_t elapsed_ns, struct timeline *timeline)
{
    struct fault *fault = state;
    bool ends = fault->plan.kind != FAULT_KILLED && fault->plan.kind != FAULT_NONE;
    if (fault->plan.kind == FAULT_NONE)
        return UINT64_MAX;
    if (fault->steps == 0 && elapsed_ns >= fault->plan.from_ns) {
        begin(fault);
        mark(fault, elapsed_ns, begin_texts[fault->plan.kind], timeline);
        fault->steps = 1;
    } else if (fault->steps == 1 && ends && elapsed_ns >= fault->plan.to_ns) {
        end(fault);
        mark(fault, elapsed_ns, end_texts[fault->plan.kind], timeline);
        fault->steps = 2;
    }
    if (fault->steps == 0)
        return fault->plan.from_ns;
    return fault->steps == 1 && ends ? fault->plan.to_ns : UINT64_MAX;
}

/* Starts the proxy in a process of its own, without a delay. Returns 0 or -1. */
static int start_proxy(struct fault *fault, char *error, size_t error_size)
{
    int control[2];
    fault->list = calloc(1, sizeof *fault->list);
    struct delay *delay = fault->list == NULL ? NULL
                                              : delay_list_open(fault->list, fault->servers, "0",
                                                                "0", 1, error, error_size);
    if (delay == NULL || pipe2(control, O_CLOEXEC) != 0)
        return -1; /* on this path the program ends, and its descriptors with it */
    pid_t parent = getpid();
    fault->proxy = fork();
    if (fault->proxy == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        (void)close(control[1]);
        _exit(getppid() == parent && delay_run(delay, control[0]) == 0 ? 0 : 1);
    }
    (void)close(control[0]);
    fault->control = control[1];
    delay_close(delay);
    return fault->proxy > 0 ? 0 : -1;
}

/* Checks that the fault is possible, and starts the proxy of FAULT_SLOW. Returns NULL and a text in
 * `error` on failure. */
struct fault *fault_open(struct servers *servers, const struct fault_plan *plan, char *error,
                         size_t error_size)
{
    struct fault *fault = calloc(1, sizeof *fault);
    snprintf(error, error_size, "no memory");
    if (fault == NULL)
        return NULL;
    *fault = (struct fault){.servers = servers,
                            .plan = *plan,
                            .directory = getenv("REDLOCK_SANDBOX_DIR"),
                            .control = -1};
    bool fine = true;
    if (plan->nodes > servers->count) {
        snprintf(error, error_size, "there are only %zu servers", servers->count);
        fine = false;
    } else if (fault_needs_processes(plan->kind)) {
        fine = servers_find_pids(servers, error, error_size) == 0;
    } else if (plan->kind == FAULT_SLOW) {
        fine = start_proxy(fault, error, error_size) == 0;
    }
    if (fine)
        return fault;
    free(fault->list);
    free(fault);
    return NULL;
}

/* Returns the list of URLs for clients, through the proxy if there is one. */
const char *fault_servers(const struct fault *fault)
{
    return fault->list != NULL ? fault->list->text : servers_measured(fault->servers);
}

/* Returns true if all servers reply. */
static bool all_reply(const struct servers *servers)
{
    for (size_t i = 0; i < servers->count; i++) {
        char version[64];
        servers_version(&servers->list[i], version, sizeof version);
        if (strcmp(version, "unknown") == 0)
            return false;
    }
    return true;
}

/* Ends a fault that still lasts, stops the proxy, waits up to REPLIES_NS until all servers reply,
 * and frees `fault`. Returns 0, or -1 and a text in `error`. */
int fault_close(struct fault *fault, char *error, size_t error_size)
{
    if (fault == NULL)
        return 0;
    if (fault->steps == 1)
        end(fault);
    if (fault->proxy > 0) {
        (void)close(fault->control);
        (void)waitpid(fault->proxy, NULL, 0);
    }
    uint64_t start_ns = result_now_ns();
    bool fine;
    while (!(fine = all_reply(fault->servers)) && result_now_ns() - start_ns < REPLIES_NS)
        (void)usleep(RECHECK_US);
    if (!fine)
        snprintf(error, error_size, "a server does not reply after its fault");
    free(fault->list);
    free(fault);
    return fine ? 0 : -1;
}
