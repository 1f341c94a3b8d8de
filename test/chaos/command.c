/* SPDX-License-Identifier: MIT
 * The command as a client of a chaos run: one `redlock run` after the other, each with the program
 * chaos-hold, which logs how long it runs. Every third `redlock` is stopped for longer than the TTL
 * or killed; the program that it runs must end in time all the same.
 *
 *     chaos-command NAME LOG SEED MAX_TTL_MS plain|fenced URLS REDLOCK HOLD */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "history.h"
#include "wait.h"
#include "worker.h"

#define WORDS_MAX 32 /* more than the arguments of a run */

/* One `redlock run`. */
struct run {
    struct lock_choice workload;                              /* the resources */
    char permits[8];                                          /* number of permits; "0": none */
    char id[24], hold_ms[16], max_ttl[16], ttl[16], wait[16]; /* arguments */
    bool stop, kill;                                          /* its fault, if any */
    uint64_t after_ms, for_ms;                                /* delay and length of the fault */
};

/* Handles SIGTERM: no new runs from now on. */
static void on_signal(int number)
{
    (void)number;
    atomic_store(&world.stop, true);
}

/* Chooses the next run. Every third has a fault (stop and kill by turns) and holds for twice the
 * largest TTL; the others are short. */
static void choose(struct run *run, uint64_t *random)
{
    static unsigned count;
    const unsigned max_ttl_ms = (unsigned)world.max_ttl_ms, number = count++;
    *run = (struct run){.stop = false};
    workload_choose(&run->workload, random);
    snprintf(run->permits, sizeof run->permits, "%u", run->workload.permits);
    run->stop = number % 6 == 1;
    run->kill = number % 6 == 4;
    snprintf(run->id, sizeof run->id, "%" PRIu64, history_new_id());
    snprintf(run->hold_ms, sizeof run->hold_ms, "%u",
             run->stop || run->kill ? 2 * max_ttl_ms : draw(random, max_ttl_ms / 2));
    snprintf(run->max_ttl, sizeof run->max_ttl, "%ums", max_ttl_ms);
    snprintf(run->ttl, sizeof run->ttl, "%ums", max_ttl_ms * 7 / 8 + draw(random, max_ttl_ms / 8));
    snprintf(run->wait, sizeof run->wait, "%ums", 500 + draw(random, 3000));
    run->after_ms = 20 + draw(random, max_ttl_ms);
    run->for_ms = max_ttl_ms / 2 + draw(random, 2 * max_ttl_ms);
}

/* Replaces this process by `redlock run` with the arguments of the run; `argv`: of this program. */
static _Noreturn void exec_redlock(const struct run *run, char *const *argv)
{
    const char *words[WORDS_MAX] = {argv[7],      "run", "-q",     "-s", world.urls, "--max-ttl",
                                    run->max_ttl, "-t",  run->ttl, "-w", run->wait};
    size_t count = 11;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    setenv("REDLOCK_FENCE_RECORDS", "volatile", 1);
    if (world.fences && run->workload.also_count == 0)
        words[count++] = "--fence";
    if (run->workload.permits != 0) {
        words[count++] = "--permits";
        words[count++] = run->permits;
    }
    for (unsigned i = 0; i < run->workload.also_count; i++) {
        words[count++] = "-a";
        words[count++] = run->workload.also[i];
    }
    words[count++] = run->workload.resource;
    words[count++] = "--";
    words[count++] = argv[8];
    words[count++] = argv[2];
    words[count++] = run->workload.permits != 0 ? run->workload.resource : run->workload.text;
    words[count++] = run->id;
    words[count++] = run->hold_ms;
    words[count] = NULL;
    execv(argv[7], (char *const *)(uintptr_t)words);
    _exit(127);
}

/* Returns whether the child has ended; waitpid() can still read its status. */
static bool has_ended(pid_t pid)
{
    siginfo_t info = {.si_pid = 0};
    return waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == pid;
}

/* Waits for after_ms, kills or stops `redlock` as chosen unless it has ended before, and logs the
 * fault. Continues a stopped one after for_ms. */
static void inject_fault(const struct run *run, pid_t pid)
{
    if ((!run->stop && !run->kill) || WAIT_UNTIL(has_ended(pid), run->after_ms))
        return;
    if (run->kill) {
        history_write(history_now_ns(), "fault command_kill %s", world.name);
        kill(pid, SIGKILL);
        return;
    }
    history_write(history_now_ns(), "fault command_stop %s", world.name);
    kill(pid, SIGSTOP);
    if (!WAIT_UNTIL(has_ended(pid), run->for_ms))
        kill(pid, SIGCONT);
    history_write(history_now_ns(), "heal command_stop %s", world.name);
}

/* Runs the command once. Returns false if it ended in a way that no fault explains. Explained are
 * the exit statuses 0 (success), 69 (no quorum), 75 (another client holds the lock) and 124
 * (stopped because the lock was about to be lost), and any signal after a kill. */
static bool run_once(uint64_t *random, char *const *argv)
{
    struct run run;
    int status = 0;
    choose(&run, random);
    history_write(history_now_ns(), "call %s %s 0", run.workload.text, run.id);
    const pid_t pid = fork();
    if (pid == 0)
        exec_redlock(&run, argv);
    inject_fault(&run, pid);
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        continue;
    history_write(history_now_ns(), "ran %s %s %d", run.workload.text, run.id, status);
    if (run.kill && WIFSIGNALED(status))
        return true;
    const int code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    return code == 0 || code == 69 || code == 75 || code == 124;
}

int main(int argc, char **argv)
{
    const struct sigaction action = {.sa_handler = on_signal};
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (argc != 9 || !history_open(argv[2]))
        return 64;
    world.name = argv[1];
    world.seed = strtoull(argv[3], NULL, 10);
    world.max_ttl_ms = strtoull(argv[4], NULL, 10);
    world.fences = strcmp(argv[5], "fenced") == 0;
    world.urls = argv[6];
    sigaction(SIGTERM, &action, NULL);
    uint64_t random = random_of(0);
    while (!atomic_load(&world.stop))
        if (!run_once(&random, argv))
            return 70;
    return 0;
}
