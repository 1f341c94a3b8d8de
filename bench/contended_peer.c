/* SPDX-License-Identifier: MIT
 * Starts the processes of the other libraries' drivers, a script in node or a class in Java, and
 * exchanges lines with them. bench/peers/README.md describes the lines. */
#include "contended.h"
#include "result.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

/* The driver is measured as its users would run it: a few processes with many callers each. */
#define PROCESSES_MAX 4
/* Time after the end of a measurement in which operations that began earlier may finish. */
#define OVERRUN_NS (UINT64_C(30) * 1000 * 1000 * 1000)

/* One process. */
struct peer {
    pid_t pid;
    FILE *to, *from; /* its standard input and output */
    uint64_t cpu_ns; /* processor time of the process when the measurement began */
};

/* All processes. */
struct peers {
    unsigned count; /* of list[] */
    struct peer list[PROCESSES_MAX];
};

/* Replaces this process, a child, by the driver for the contenders `first` to `first` + `count`
 * - 1. `in` and `out` become its standard input and output. */
static void run_driver(const struct contended_settings *settings, const char *servers,
                       const char *resource, const struct contended_case *what, unsigned first,
                       unsigned count, int in, int out)
{
    char ttl[24], hold[24], from[24], number[24];
    snprintf(ttl, sizeof ttl, "%" PRIu64, settings->ttl_ms);
    snprintf(hold, sizeof hold, "%" PRIu64, what->hold_us);
    snprintf(from, sizeof from, "%u", first);
    snprintf(number, sizeof number, "%u", count);
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (dup2(in, STDIN_FILENO) < 0 || dup2(out, STDOUT_FILENO) < 0)
        _exit(1);
    const char *program = what->driver == DRIVER_NODE_REDLOCK ? "node" : "java";
    if (what->driver == DRIVER_NODE_REDLOCK) {
        (void)execlp(program, program, settings->peer, servers, resource, ttl, hold, from, number,
                     (char *)NULL);
    } else {
        char path[4096], one[256];
        snprintf(path, sizeof path, "%s/target/classes:%s/target/lib/*", settings->redisson,
                 settings->redisson);
        if (strncmp(servers, "redis://", 8) == 0)
            servers += 8;
        snprintf(one, sizeof one, "redis://%.*s", (int)strcspn(servers, "?, \t"), servers);
        (void)execlp(program, program, "-Dkind=fair", "-Dslf4j.internal.verbosity=ERROR", "-cp",
                     path, "Driver", one, resource, ttl, hold, from, number, (char *)NULL);
    }
    fprintf(stderr, "redlock-contended: %s: %s\n", program, strerror(errno));
    _exit(127);
}

/* Closes the child's ends of both pipes and opens ours as streams. Returns false if something
 * failed, which includes the fork. */
static bool connect_peer(struct peer *peer, const int to[2], const int from[2])
{
    (void)close(to[0]);
    (void)close(from[1]);
    peer->to = fdopen(to[1], "w");
    peer->from = fdopen(from[0], "r");
    return peer->pid > 0 && peer->to != NULL && peer->from != NULL;
}

/* Starts up to PROCESSES_MAX processes and divides the contenders among them. Returns NULL and a
 * text in `error` on failure. */
struct peers *peers_start(const struct contended_settings *settings, const char *servers,
                          const char *resource, const struct contended_case *what, char *error,
                          size_t error_size)
{
    struct peers *peers = calloc(1, sizeof *peers);
    unsigned processes = what->contenders < PROCESSES_MAX ? what->contenders : PROCESSES_MAX;
    unsigned first = 0;
    bool fine = peers != NULL;
    (void)signal(SIGPIPE, SIG_IGN);
    for (unsigned i = 0; fine && i < processes; i++) {
        unsigned count = (what->contenders - first) / (processes - i);
        int to[2], from[2];
        if (pipe2(to, O_CLOEXEC) != 0 || pipe2(from, O_CLOEXEC) != 0) {
            fine = false;
            break;
        }
        struct peer *peer = &peers->list[peers->count++];
        peer->pid = fork();
        if (peer->pid == 0)
            run_driver(settings, servers, resource, what, first, count, to[0], from[1]);
        fine = connect_peer(peer, to, from);
        first += count;
    }
    if (fine)
        return peers;
    snprintf(error, error_size, "cannot start the peer: %s", strerror(errno));
    if (peers != NULL)
        (void)peers_finish(peers, NULL, 0);
    return NULL;
}

/* Returns the processor time of the process until now, 0 if the process has ended. */
static uint64_t cpu_ns(const struct peer *peer)
{
    clockid_t clock;
    struct timespec time;
    if (clock_getcpuclockid(peer->pid, &clock) != 0 || clock_gettime(clock, &time) != 0)
        return 0;
    return (uint64_t)time.tv_sec * UINT64_C(1000000000) + (uint64_t)time.tv_nsec;
}

/* Waits until the process has written something or has closed its output. Returns false at
 * until_ns. Valid only when all its lines until now have been read: further lines in the stream's
 * buffer would not be noticed. */
static bool has_output(const struct peer *peer, uint64_t until_ns)
{
    struct pollfd item = {.fd = fileno(peer->from), .events = POLLIN};
    uint64_t now_ns = result_now_ns();
    while (now_ns < until_ns) {
        int count = poll(&item, 1, (int)((until_ns - now_ns) / 1000000) + 1);
        if (count != 0 && !(count < 0 && errno == EINTR))
            return count > 0;
        now_ns = result_now_ns();
    }
    return false;
}

/* Waits for the line "ready" of each process. Returns 0, or -1 if one sends another line or nothing
 * until until_ns. */
int peers_wait_ready(struct peers *peers, uint64_t until_ns)
{
    char line[64];
    for (unsigned i = 0; i < peers->count; i++) {
        if (!has_output(&peers->list[i], until_ns) ||
            fgets(line, sizeof line, peers->list[i].from) == NULL || strcmp(line, "ready\n") != 0)
            return -1;
    }
    return 0;
}

/* Sends end_ns to each process, which starts its measurement, and notes the processor time until
 * now. */
void peers_go(struct peers *peers, uint64_t end_ns)
{
    for (unsigned i = 0; i < peers->count; i++) {
        peers->list[i].cpu_ns = cpu_ns(&peers->list[i]);
        fprintf(peers->list[i].to, "%" PRIu64 "\n", end_ns);
        (void)fflush(peers->list[i].to);
    }
}

/* Adds one line of a process to the records of the contenders. The numbers a to d are those that
 * peers/README.md lists for each kind of line. Returns false if the line is not valid. */
static bool take_line(const char *line, struct contender *contenders, unsigned count)
{
    uint64_t a = 0, b = 0, c = 0, d = 0;
    char word[16];
    unsigned number;
    int got = sscanf(line, "%15s %u %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64, word, &number,
                     &a, &b, &c, &d);
    if (strcmp(line, "over\n") == 0)
        return true;
    if (got < 3 || number >= count)
        return false;
    struct contender *one = &contenders[number];
    if (strcmp(word, "hold") == 0 && got >= 5) {
        one->full = one->full || one->count == HOLDS_MAX;
        if (one->count < HOLDS_MAX)
            one->holds[one->count++] = (struct hold){a, b, c, number};
        one->waiting_ns = 0;
    } else if (strcmp(word, "failed") == 0 && got >= 4) {
        bool taken = strstr(line, " taken") != NULL;
        one->errors += !taken;
        if (taken)
            one->waiting_ns = a;
    } else if (strcmp(word, "sums") == 0 && got == 6) {
        one->acquired = a;
        one->attempts = b;
        one->split_votes = c;
        one->errors += d;
    } else {
        return false;
    }
    return true;
}

/* Reads the lines of one process up to the end of the measurement. Returns 0 or -1. */
static int read_records(const struct peer *peer, struct contender *contenders, unsigned count)
{
    char line[512];
    int code = 0;
    if (!has_output(peer, result_now_ns() + OVERRUN_NS))
        return -1;
    /* The process runs until its standard input ends, so its clock can still be read. */
    contenders[0].cpu_ns += cpu_ns(peer) - peer->cpu_ns;
    while (fgets(line, sizeof line, peer->from) != NULL) {
        if (!take_line(line, contenders, count))
            code = -1;
        if (strcmp(line, "over\n") == 0)
            break;
    }
    return code;
}

/* Reads the records of all processes into `contenders` (NULL: kills the processes), waits until the
 * processes have ended and frees `peers`. Returns 0, or -1 if any process failed or was killed. */
int peers_finish(struct peers *peers, struct contender *contenders, unsigned count)
{
    int status = 0, code = 0;
    for (unsigned i = 0; i < peers->count; i++) {
        struct peer *peer = &peers->list[i];
        bool reads = contenders != NULL && peer->from != NULL;
        if (!reads || read_records(peer, contenders, count) != 0) {
            code = -1;
            if (peer->pid > 0)
                (void)kill(peer->pid, SIGKILL);
        }
        if (peer->to != NULL)
            (void)fclose(peer->to);
        if (peer->from != NULL)
            (void)fclose(peer->from);
        while (peer->pid > 0 && waitpid(peer->pid, &status, 0) < 0 && errno == EINTR) {
        }
        if (peer->pid <= 0 || !WIFEXITED(status) || WEXITSTATUS(status) != 0)
            code = -1;
    }
    /* Not every driver counts its locks. */
    for (unsigned i = 0; contenders != NULL && i < count; i++) {
        if (contenders[i].acquired == 0)
            contenders[i].acquired = contenders[i].count;
    }
    free(peers);
    return code;
}
