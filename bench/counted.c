/* SPDX-License-Identifier: MIT
 * Counts instructions and system calls per acquire and release, in child processes that run this
 * program under valgrind or strace. */
#include "counted.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define WORDS_MAX 20 /* words of the command that is started, with the NULL at the end */

/* A program that runs another one and counts something. */
struct watcher {
    const char *program;  /* name of the executable, and of its Debian package */
    const char *what;     /* what it counts, for people */
    const char *schema;   /* of the JSON object */
    const char *option;   /* of redlock-bench that selects it */
    const char *words[4]; /* its arguments before the name of its output file; NULL: no more */
    const char *glue;     /* prefix of the argument with the name of its output file */
    uint64_t (*read_total)(FILE *file); /* returns the count from its output; 0: not found */
    uint64_t pairs_short, pairs_long;   /* pairs of the two runs whose difference counts */
};

/* Reads the total from a file of callgrind: "totals:", or "summary:" if there is no such line. */
static uint64_t read_callgrind(FILE *file)
{
    char line[512];
    uint64_t total = 0;
    while (fgets(line, sizeof line, file) != NULL) {
        if (strncmp(line, "totals:", 7) == 0 || (total == 0 && strncmp(line, "summary:", 8) == 0))
            total = strtoull(strchr(line, ':') + 1, NULL, 10);
    }
    return total;
}

/* Reads the total from the last line of strace's table: per cent, seconds, microseconds per call,
 * calls, errors if there are any, "total". */
static uint64_t read_strace(FILE *file)
{
    char line[512];
    uint64_t total = 0, calls;
    while (fgets(line, sizeof line, file) != NULL) {
        if (strstr(line, " total") != NULL && sscanf(line, "%*f %*f %*u %" SCNu64, &calls) == 1)
            total = calls;
    }
    return total;
}

/* The two programs, by enum counted. */
static const struct watcher watchers[] = {
    [COUNTED_INSTRUCTIONS] = {"valgrind",
                              "instructions",
                              "redlock.bench.instructions/1",
                              "--instructions",
                              {"--tool=callgrind"},
                              "--callgrind-out-file=",
                              read_callgrind,
                              1000,
                              4000},
    [COUNTED_SYSCALLS] = {"strace",
                          "system calls",
                          "redlock.bench.syscalls/1",
                          "--syscalls",
                          {"-f", "-c", "-o"},
                          "",
                          read_strace,
                          500,
                          2000},
};

/* Replaces this child by a program, with its output discarded. */
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

/* Runs a program and waits for its end. Returns false after a message if it failed. */
static bool run_child(const struct watcher *watcher, const char *const *argv)
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
        fprintf(stderr, "redlock-bench: %s needs %s: apt-get install %s\n", watcher->option,
                watcher->program, watcher->program);
    else
        fprintf(stderr, "redlock-bench: the measured program failed under %s\n", watcher->program);
    return false;
}

/* Reads the total from the output file `fd`, and closes it. */
static uint64_t read_total(const struct watcher *watcher, int fd)
{
    FILE *file = fdopen(fd, "r");
    if (file == NULL) {
        (void)close(fd);
        return 0;
    }
    uint64_t total = watcher->read_total(file);
    fclose(file);
    return total;
}

/* Returns the total of one run of this program with `pairs` pairs, 0 if it failed. The watcher
 * writes into a memory file, so an interrupted run leaves no file behind. */
static uint64_t count(const struct watcher *watcher, const struct scenario *scenario,
                      const struct scenario_settings *settings, const char *side, uint64_t pairs)
{
    char program[4096], output[96], number[24];
    ssize_t len = readlink("/proc/self/exe", program, sizeof program - 1);
    int fd = memfd_create("redlock-bench", MFD_CLOEXEC);
    if (len <= 0 || fd < 0) {
        perror("redlock-bench");
        return 0;
    }
    program[len] = '\0';
    snprintf(output, sizeof output, "%s/proc/%ld/fd/%d", watcher->glue, (long)getpid(), fd);
    snprintf(number, sizeof number, "%" PRIu64, pairs);
    /* The run is slow under the watcher. The long node timeout keeps the library from treating the
     * servers as unresponsive. */
    const char *const tail[] = {output,
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
                                settings->servers.tls ? "--tls" : NULL,
                                NULL};
    const char *argv[WORDS_MAX] = {watcher->program};
    size_t words = 1;
    for (size_t i = 0; i < 4 && watcher->words[i] != NULL; i++)
        argv[words++] = watcher->words[i];
    memcpy(argv + words, tail, sizeof tail);
    if (run_child(watcher, argv))
        return read_total(watcher, fd);
    (void)close(fd);
    return 0;
}

/* Returns the count per pair, as the difference of a long and a short run. 0: a run failed. */
static double per_pair(const struct watcher *watcher, const struct scenario *scenario,
                       const struct scenario_settings *settings, const char *side)
{
    uint64_t few = count(watcher, scenario, settings, side, watcher->pairs_short);
    uint64_t many = few == 0 ? 0 : count(watcher, scenario, settings, side, watcher->pairs_long);
    return many <= few
               ? 0.0
               : (double)(many - few) / (double)(watcher->pairs_long - watcher->pairs_short);
}

/* Counts per pair of both sides of a scenario and prints one line or JSON object. Returns 0, or 69
 * if a program is missing or failed. */
int counted_run(enum counted what, const struct scenario *scenario,
                const struct scenario_settings *settings, bool json)
{
    const struct watcher *watcher = &watchers[what];
    double baseline = per_pair(watcher, scenario, settings, "baseline");
    double library = baseline > 0.0 ? per_pair(watcher, scenario, settings, "library") : 0.0;
    if (library <= 0.0)
        return 69;
    bool variant = scenario->kind == SCENARIO_VARIANT;
    int digits = what == COUNTED_INSTRUCTIONS ? 0 : 2;
    const char *a = variant ? scenario->variant : "library", *b = variant ? "plain" : "baseline";
    if (json)
        printf("{\"schema\":\"%s\",\"scenario\":\"%s\",\"%s\":%.*f,\"%s\":%.*f,\"ratio\":%.3f}\n",
               watcher->schema, scenario->name, a, digits, library, b, digits, baseline,
               library / baseline);
    else
        printf("%-14s %s per pair: %s %.*f, %s %.*f, ratio %.2fx\n", scenario->name, watcher->what,
               a, digits, library, b, digits, baseline, library / baseline);
    fflush(stdout);
    return 0;
}
