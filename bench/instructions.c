/* SPDX-License-Identifier: MIT
 * Instructions per acquire and release, counted by callgrind in child processes. */
#include "instructions.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define PAIRS_SHORT UINT64_C(1000)
#define PAIRS_LONG  UINT64_C(4000)

static void exec_child(const char *const *argv)
{
    int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
    if (null >= 0) {
        (void)dup2(null, STDOUT_FILENO);
        (void)dup2(null, STDERR_FILENO);
    }
    execvp(argv[0], (char *const *)(uintptr_t)argv);
    _exit(errno == ENOENT ? 127 : 126);
}

static bool run_child(const char *const *argv)
{
    pid_t pid = fork();
    if (pid == 0)
        exec_child(argv);
    int status = 0;
    while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
        continue;
    if (pid > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return true;
    if (pid > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 127)
        fprintf(stderr, "redlock-bench: --instructions needs valgrind: apt-get install valgrind\n");
    else
        fprintf(stderr, "redlock-bench: the measured program failed under valgrind\n");
    return false;
}

static uint64_t read_total(const char *path)
{
    char line[512];
    uint64_t total = 0;
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return 0;
    while (fgets(line, sizeof line, file) != NULL) {
        if (strncmp(line, "totals:", 7) == 0 || (total == 0 && strncmp(line, "summary:", 8) == 0))
            total = strtoull(strchr(line, ':') + 1, NULL, 10);
    }
    fclose(file);
    return total;
}

/* Instructions of one whole child, 0 if it failed. */
static uint64_t count(const struct scenario *scenario, const struct scenario_settings *settings,
                      const char *side, uint64_t pairs)
{
    char program[4096], directory[] = "/tmp/redlock-bench-XXXXXX";
    char path[64], output[96], number[24];
    ssize_t len = readlink("/proc/self/exe", program, sizeof program - 1);
    if (len <= 0 || mkdtemp(directory) == NULL) {
        perror("redlock-bench");
        return 0;
    }
    program[len] = '\0';
    snprintf(path, sizeof path, "%s/out", directory);
    snprintf(output, sizeof output, "--callgrind-out-file=%s", path);
    snprintf(number, sizeof number, "%" PRIu64, pairs);
    /* Everything is slow in there, and no node is to blame: hence the node timeout. */
    const char *argv[] = {"valgrind",
                          "--tool=callgrind",
                          output,
                          program,
                          "--servers",
                          settings->servers.text,
                          "--scenario",
                          scenario->name,
                          "--side",
                          side,
                          "--ops",
                          number,
                          "--node-timeout",
                          "60000",
                          NULL};
    uint64_t total = run_child(argv) ? read_total(path) : 0;
    (void)unlink(path);
    (void)rmdir(directory);
    return total;
}

static double per_pair(const struct scenario *scenario, const struct scenario_settings *settings,
                       const char *side)
{
    uint64_t few = count(scenario, settings, side, PAIRS_SHORT);
    uint64_t many = few == 0 ? 0 : count(scenario, settings, side, PAIRS_LONG);
    return many <= few ? 0.0 : (double)(many - few) / (double)(PAIRS_LONG - PAIRS_SHORT);
}

int instructions_run(const struct scenario *scenario, const struct scenario_settings *settings,
                     bool json)
{
    double floor = per_pair(scenario, settings, "floor");
    double library = floor > 0.0 ? per_pair(scenario, settings, "library") : 0.0;
    if (library <= 0.0)
        return 69;
    bool fenced = scenario->kind == SCENARIO_FENCED;
    const char *a = fenced ? "fenced" : "library", *b = fenced ? "plain" : "floor";
    if (json)
        printf("{\"schema\":\"redlock.bench.instructions/1\",\"scenario\":\"%s\",\"%s\":%.0f,"
               "\"%s\":%.0f,\"ratio\":%.3f}\n",
               scenario->name, a, library, b, floor, library / floor);
    else
        printf("%-14s instructions per pair: %s %.0f, %s %.0f, ratio %.2fx\n", scenario->name, a,
               library, b, floor, library / floor);
    fflush(stdout);
    return 0;
}
