/* SPDX-License-Identifier: MIT
 * The client processes of a chaos run: starts, stops, kills and restarts them, and logs that. A
 * client keeps its number, which is its index in `clients`, and its name; each of its processes has
 * another label, NAME.COUNT. In this file "client" is the record of such a process. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "chaos.h"
#include "history.h"
#include "wait.h"

#define END_MS    20000 /* time that clients have to end after SIGTERM */
#define PATH_LEN  512

#define NS_PER_MS INT64_C(1000000)

/* A client and its process. */
struct client {
    const char *kind; /* threaded, embedded, hybrid: this library; command; foreign: node-redlock */
    const char *name;
    unsigned count;           /* number of earlier processes of this client */
    char label[32];           /* name and count: the name of the process and of its log */
    pid_t pid;                /* 0: none */
    struct clockshim *clocks; /* NULL: the clocks of the machine */
    long mark;                /* size of its log at clients_mark() */
};

static struct client clients[CLIENTS_MAX] = {
    {.kind = "threaded", .name = "t1"}, {.kind = "threaded", .name = "t2"},
    {.kind = "embedded", .name = "e1"}, {.kind = "embedded", .name = "e2"},
    {.kind = "hybrid", .name = "h1"},   {.kind = "hybrid", .name = "h2"},
    {.kind = "command", .name = "c1"},  {.kind = "command", .name = "c2"},
    {.kind = "foreign", .name = "f1"},
};

/* Returns the number of clients: without the last one if node-redlock is not installed. */
unsigned clients_count(void)
{
    return chaos.foreign != NULL ? CLIENTS_MAX : OURS;
}

/* Returns whether the client uses TLS: every second one of this library's does, of each kind one.
 */
static bool uses_tls(const struct client *client)
{
    const long number = client - clients;
    return chaos.tls && number < OURS && number % 2 == 1;
}

/* Writes the path of the client's clock file to `ret_path`, which has PATH_LEN bytes. The file
 * holds the offset of the clock that the client's process sees. */
static void clock_path(const struct client *client, char *ret_path)
{
    snprintf(ret_path, PATH_LEN, "%s/%s.clock", chaos.dir, client->label);
}

/* Creates a wall clock for the client alone, because equal wall clocks would order the fencing
 * tokens by themselves. */
static void create_clock(struct client *client)
{
    char path[PATH_LEN];
    clock_path(client, path);
    clockshim_close(client->clocks);
    client->clocks = clockshim_create(path);
    if (client->clocks != NULL)
        client_step_clock((unsigned)(client - clients));
}

/* Steps the client's wall clock to a random offset of up to an hour in either direction. */
void client_step_clock(unsigned number)
{
    const int64_t step_ms = (int64_t)chance(7200000) - 3600000;
    clockshim_step(clients[number].clocks, CLOCKSHIM_REALTIME, step_ms * NS_PER_MS);
}

/* Replaces this process, a child after fork(), by the client's program with its arguments. Ends
 * with status 127 if there is none. */
static _Noreturn void exec_client(const struct client *client)
{
    char program[PATH_LEN], log[PATH_LEN], errors[PATH_LEN], hold[PATH_LEN], seed[24], ttl[16];
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    snprintf(log, sizeof log, "%s/%s.log", chaos.dir, client->label);
    snprintf(errors, sizeof errors, "%s/stderr", chaos.dir);
    snprintf(hold, sizeof hold, "%s/chaos-hold", chaos.programs);
    snprintf(seed, sizeof seed, "%u", chance(1u << 30) + (unsigned)getpid());
    snprintf(ttl, sizeof ttl, "%d", MAX_TTL_MS);
    const int file = open(errors, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (file >= 0)
        dup2(file, STDERR_FILENO);
    if (client->clocks != NULL) {
        char path[PATH_LEN];
        clock_path(client, path);
        setenv("LD_PRELOAD", clockshim_object(), 1);
        setenv("CLOCKSHIM_FILE", path, 1);
    }
    const char *urls = uses_tls(client) ? chaos.tls_urls : chaos.urls;
    const bool command = strcmp(client->kind, "command") == 0;
    snprintf(program, sizeof program, "%s/chaos-%s", chaos.programs,
             command ? "command" : "client");
    if (strcmp(client->kind, "foreign") == 0)
        execlp("node", "node", chaos.foreign, client->label, log, ttl, cluster_urls(chaos.cluster),
               (char *)NULL);
    else if (command)
        execl(program, program, client->label, log, seed, ttl, chaos.fences, urls, chaos.redlock,
              hold, (char *)NULL);
    else
        execl(program, program, client->kind, client->label, log, seed, ttl, chaos.fences, urls,
              (char *)NULL);
    _exit(127);
}

/* Starts a new process of the client and logs that. */
void client_start(unsigned number)
{
    struct client *client = &clients[number];
    snprintf(client->label, sizeof client->label, "%s.%u", client->name, client->count++);
    if (number < OURS)
        create_clock(client);
    chance(2); /* so that the next client has another seed */
    client->pid = fork();
    if (client->pid == 0)
        exec_client(client);
    if (client->pid < 0)
        client->pid = 0;
    client->mark = 0;
    history_write(history_now_ns(), "born %s %s %s", client->label, client->kind,
                  uses_tls(client) ? "tls" : "tcp");
}

/* Starts the process of each client and logs that. */
void clients_start_all(void)
{
    for (unsigned i = 0; i < clients_count(); i++)
        client_start(i);
}

/* Returns the client's name, without the count of its processes. */
const char *client_name(unsigned number)
{
    return clients[number].name;
}

/* Returns whether the client has a process, running or stopped. */
bool client_runs(unsigned number)
{
    return clients[number].pid != 0;
}

/* Kills the client's process, waits for its end, and logs that. */
void client_kill(unsigned number)
{
    struct client *client = &clients[number];
    kill(client->pid, SIGKILL);
    while (waitpid(client->pid, NULL, 0) < 0 && errno == EINTR)
        continue;
    client->pid = 0;
    history_write(history_now_ns(), "died %s", client->label);
}

/* Stops the client's process with SIGSTOP. */
void client_stop(unsigned number)
{
    kill(clients[number].pid, SIGSTOP);
}

/* Continues the client's process, if there is one. */
void client_continue(unsigned number)
{
    if (clients[number].pid != 0)
        kill(clients[number].pid, SIGCONT);
}

/* Logs the end of the client's process if it has ended. Returns whether the client has no process.
 */
static bool reap(struct client *client)
{
    int status = 0;
    if (client->pid == 0)
        return true;
    if (waitpid(client->pid, &status, WNOHANG) != client->pid)
        return false;
    client->pid = 0;
    history_write(history_now_ns(), "exit %s %d", client->label, status);
    return true;
}

/* Logs the clients that ended by themselves and starts them again. */
void clients_check(void)
{
    for (unsigned i = 0; i < clients_count(); i++)
        if (clients[i].pid != 0 && reap(&clients[i]))
            client_start(i);
}

/* Opens the client's log for reading. Returns NULL if there is none. */
static FILE *open_log(const struct client *client)
{
    char path[PATH_LEN];
    snprintf(path, sizeof path, "%s/%s.log", chaos.dir, client->label);
    return fopen(path, "re");
}

/* Records the present size of each client's log, for clients_served(). */
void clients_mark(void)
{
    for (unsigned i = 0; i < clients_count(); i++) {
        FILE *log = open_log(&clients[i]);
        clients[i].mark = log != NULL && fseek(log, 0, SEEK_END) == 0 ? ftell(log) : 0;
        if (log != NULL)
            fclose(log);
    }
}

/* Returns whether the client has logged an acquired lock since clients_mark(). */
static bool is_served(const struct client *client)
{
    char line[512];
    bool found = false;
    FILE *log = open_log(client);
    if (log == NULL || fseek(log, client->mark, SEEK_SET) != 0)
        found = false;
    else
        while (!found && fgets(line, sizeof line, log) != NULL)
            found = strstr(line, " hold ") != NULL;
    if (log != NULL)
        fclose(log);
    return found;
}

/* Returns whether each client has acquired a lock since clients_mark(). */
bool clients_served(void)
{
    for (unsigned i = 0; i < clients_count(); i++)
        if (!is_served(&clients[i]))
            return false;
    return true;
}

/* Reaps all clients. Returns whether none has a process any more. */
static bool all_ended(void)
{
    bool ended = true;
    for (unsigned i = 0; i < clients_count(); i++)
        ended = reap(&clients[i]) && ended;
    return ended;
}

/* Sends SIGTERM to all clients and waits for their end, at most END_MS (scaled). Logs and kills
 * those that do not end. */
void clients_end_all(void)
{
    history_write(history_now_ns(), "finish");
    for (unsigned i = 0; i < clients_count(); i++)
        if (clients[i].pid != 0)
            kill(clients[i].pid, SIGTERM);
    if (WAIT_UNTIL(all_ended(), END_MS))
        return;
    for (unsigned i = 0; i < clients_count(); i++) {
        if (clients[i].pid == 0)
            continue;
        history_write(history_now_ns(), "stuck %s", clients[i].label);
        client_kill(i);
    }
}
