/* SPDX-License-Identifier: MIT
 * poll_loop RESOURCE...: holds several locks at once in one thread, inside the program's own loop.
 *
 * Embedded mode: the library starts no thread for the network and never blocks. The program polls
 * one descriptor besides its own and calls redlock_process() when the descriptor is readable;
 * callbacks run inside that call. SIGINT and SIGTERM arrive through a signalfd and cancel the
 * acquisitions that still wait.
 *
 * The servers come from REDLOCK_SERVERS. Exit status: 0 each resource was locked and released, 1
 * not all of them. */
#include <redlock/redlock.h>

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

#define TTL_MS      5000 /* of each lock */
#define WAIT_MS     3000 /* longest wait for a lock */
#define WORK_MS     50   /* duration of the work under a lock */
#define MARGIN_MS   500  /* longer than the side effect can take */
#define SHUTDOWN_MS 1000 /* for pending undos at the end */

/* The program. */
struct app {
    redlock_t *rl;
    redlock_cancel_t *cancel; /* cancels all acquisitions */
    int signal_fd;            /* readable after SIGINT or SIGTERM */
    size_t unfinished;        /* jobs that have not ended */
    bool failed;              /* at least one job has failed */
    bool shut_down;           /* the client's last callback has run */
};

/* One resource, which is locked once. */
struct job {
    struct app *app;
    const char *resource;
    redlock_lock_t *lock; /* owned; NULL: not held */
    int64_t work_done_ms; /* when the work will be done, as now_ms(); INT64_MAX: it is finished */
};

/* Returns CLOCK_MONOTONIC in milliseconds. */
static int64_t now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * INT64_C(1000) + now.tv_nsec / 1000000;
}

/* Counts a job that has ended. */
static void job_finished(struct job *job, bool well)
{
    job->app->failed |= !well;
    job->app->unfinished--;
}

/* Ends an acquisition: starts the work, or ends the job if the lock was not acquired. */
static void on_acquired(redlock_t *rl, int status, redlock_lock_t *lock,
                        const redlock_report_t *report, void *userdata)
{
    struct job *job = userdata;
    (void)rl;
    if (status != REDLOCK_OK) {
        fprintf(stderr, "%s: %s\n", job->resource, redlock_report_text(report));
        job_finished(job, false);
        return;
    }
    printf("%s: held\n", job->resource);
    job->lock = lock; /* the callback owns the handle from here on */
    job->work_done_ms = now_ms() + WORK_MS;
}

/* Ends a release, and with it the job. */
static void on_released(redlock_t *rl, int status, redlock_lock_t *lock,
                        const redlock_report_t *report, void *userdata)
{
    struct job *job = userdata;
    (void)rl;
    (void)lock; /* the same handle as job->lock */
    (void)report;
    printf("%s: released: %s\n", job->resource, redlock_strerror(status));
    redlock_lock_free(job->lock);
    job->lock = NULL;
    job_finished(job, status == REDLOCK_OK);
}

/* Ends the shutdown of the client. */
static void on_shut_down(redlock_t *rl, int status, redlock_lock_t *lock,
                         const redlock_report_t *report, void *userdata)
{
    struct app *app = userdata;
    (void)rl;
    (void)status; /* undos that could not be sent: the locks expire at the end of their TTL */
    (void)lock;
    (void)report;
    app->shut_down = true;
}

/* Finishes the work of a job: makes its side effect if the lock is still held, then starts the
 * release. */
static void finish_work(struct job *job)
{
    bool held = redlock_lock_check(job->lock, MARGIN_MS) == REDLOCK_OK;
    printf("%s: %s\n", job->resource, held ? "done" : "too late, nothing was done");
    job->app->failed |= !held;
    job->work_done_ms = INT64_MAX;
    int rc = redlock_release_start(job->lock, on_released, job);
    if (rc != REDLOCK_OK) { /* then on_released is not called */
        fprintf(stderr, "%s: %s\n", job->resource, redlock_strerror(rc));
        redlock_lock_free(job->lock);
        job->lock = NULL;
        job_finished(job, false);
    }
}

/* Runs the loop once: waits until until_ms for the library or a signal, and processes what has
 * arrived. Returns REDLOCK_OK or an error. */
static int turn(struct app *app, int64_t until_ms)
{
    struct pollfd fds[] = {{.fd = redlock_get_fd(app->rl), .events = POLLIN},
                           {.fd = app->signal_fd, .events = POLLIN}};
    int timeout = -1;
    if (until_ms != INT64_MAX) {
        int64_t left_ms = until_ms - now_ms();
        timeout = left_ms < 0 ? 0 : left_ms > INT_MAX ? INT_MAX : (int)left_ms;
    }
    if (poll(fds, 2, timeout) < 0)
        return errno == EINTR ? REDLOCK_OK : REDLOCK_ESYS;
    if (fds[1].revents) {
        struct signalfd_siginfo info;
        if (read(app->signal_fd, &info, sizeof info) == sizeof info)
            redlock_cancel_trigger(app->cancel); /* waiting jobs end with REDLOCK_ECANCELED */
    }
    return fds[0].revents ? redlock_process(app->rl) : REDLOCK_OK;
}

/* Runs the loop until all jobs have ended. Returns REDLOCK_OK or an error. */
static int run_jobs(struct app *app, struct job *jobs, size_t count)
{
    while (app->unfinished > 0) {
        int64_t next_ms = INT64_MAX, now = now_ms();
        for (size_t i = 0; i < count; i++) {
            if (jobs[i].lock && jobs[i].work_done_ms <= now)
                finish_work(&jobs[i]);
            if (jobs[i].lock && jobs[i].work_done_ms < next_ms)
                next_ms = jobs[i].work_done_ms;
        }
        int rc = app->unfinished > 0 ? turn(app, next_ms) : REDLOCK_OK;
        if (rc != REDLOCK_OK)
            return rc;
    }
    return REDLOCK_OK;
}

/* Starts an acquisition for each resource, runs the loop, and shuts the client down. Returns
 * REDLOCK_OK, or an error of the client; failed jobs set app->failed. */
static int lock_all(struct app *app, struct job *jobs, char **resources, size_t count)
{
    redlock_opts_t opts = redlock_opts(TTL_MS);
    opts.wait_ms = WAIT_MS;
    opts.cancel = app->cancel;
    for (size_t i = 0; i < count; i++) {
        jobs[i] = (struct job){.app = app, .resource = resources[i]};
        app->unfinished++;
        int rc = redlock_acquire_start(app->rl, resources[i], &opts, on_acquired, &jobs[i]);
        if (rc != REDLOCK_OK) { /* then on_acquired is not called */
            fprintf(stderr, "%s: %s\n", resources[i], redlock_strerror(rc));
            job_finished(&jobs[i], false);
        }
    }
    int rc = run_jobs(app, jobs, count);
    if (rc == REDLOCK_OK)
        rc = redlock_shutdown_start(app->rl, SHUTDOWN_MS, on_shut_down, app);
    while (rc == REDLOCK_OK && !app->shut_down)
        rc = turn(app, INT64_MAX);
    return rc;
}

/* Creates the client in embedded mode, and the object that cancels its acquisitions. Returns
 * REDLOCK_OK, or an error after a message. */
static int connect_nodes(struct app *app, const char *servers)
{
    redlock_config_t *config = NULL;
    int rc = redlock_config_new(&config, NULL);
    if (rc == REDLOCK_OK)
        rc = redlock_config_set_mode(config, REDLOCK_MODE_EMBEDDED);
    if (rc == REDLOCK_OK)
        rc = redlock_config_add_nodes(config, servers);
    if (rc == REDLOCK_OK)
        rc = redlock_new(&app->rl, config);
    if (rc == REDLOCK_OK)
        rc = redlock_cancel_new(&app->cancel, app->rl);
    if (rc != REDLOCK_OK)
        fprintf(stderr, "%s: %s\n", redlock_strerror(rc), redlock_config_error(config));
    redlock_config_free(config);
    return rc;
}

/* Blocks SIGINT and SIGTERM and returns a descriptor that receives them. */
static int catch_signals(void)
{
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGTERM);
    sigprocmask(SIG_BLOCK, &signals, NULL);
    return signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
}

/* Creates the client, locks all resources once and returns the exit status. */
int main(int argc, char **argv)
{
    const char *servers = getenv("REDLOCK_SERVERS");
    if (argc < 2 || !servers) {
        fputs("usage: poll_loop RESOURCE... with REDLOCK_SERVERS set\n"
              "try:   redlock sandbox -- ./poll_loop a b c\n",
              stderr);
        return 64;
    }
    size_t count = (size_t)(argc - 1);
    struct app app = {.signal_fd = catch_signals()};
    struct job *jobs = calloc(count, sizeof *jobs);
    int rc = REDLOCK_ESYS;
    if (jobs && app.signal_fd >= 0)
        rc = connect_nodes(&app, servers);
    if (rc == REDLOCK_OK)
        rc = lock_all(&app, jobs, argv + 1, count);
    if (rc != REDLOCK_OK)
        fprintf(stderr, "poll_loop: %s\n", redlock_strerror(rc));
    redlock_cancel_free(app.cancel);
    if (app.rl)
        redlock_free(app.rl);
    free(jobs);
    if (app.signal_fd >= 0)
        close(app.signal_fd);
    return rc == REDLOCK_OK && !app.failed ? 0 : 1;
}
