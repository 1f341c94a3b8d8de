/* SPDX-License-Identifier: MIT
 * auto_extend [RESOURCE [STEPS]]: holds a lock for longer than its TTL, and stops in time if the
 * lock is lost.
 *
 * The library extends the lock in the background. A program notices a lost lock in three ways: by
 * the ENDANGERED and LOST events, by a descriptor that becomes readable, and by a local check right
 * before each side effect. Only the check protects the side effect; the other two save useless
 * work.
 *
 * The servers come from REDLOCK_SERVERS. Exit status: 0 all steps done; 1 the lock was lost, and
 * the steps before that were done under the lock; 75 another client holds the lock; 69 not acquired
 * for another reason. */
#include <redlock/redlock.h>

#include <errno.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#define TTL_MS       1000 /* of the lock */
#define WAIT_MS      2000 /* longest wait for the lock */
#define DANGER_MS    400  /* ENDANGERED comes this long before the deadline */
#define MARGIN_MS    100  /* longer than one side effect can take */
#define STEP_MS      50   /* duration of one step */
#define STEPS        40   /* steps without the argument: two TTLs */
#define SHUTDOWN_MS  1000 /* for pending undos at the end */
#define EX_NO_QUORUM 69   /* exit status: not acquired for another reason than EX_HELD */
#define EX_HELD      75   /* exit status: another client holds the lock */

/* What the event callback reports to the main thread. */
struct job {
    atomic_bool endangered; /* the lock may soon be lost, or is lost */
    atomic_uint extended;   /* number of extensions */
};

/* Stores what has happened to the lock. Runs on the library's callback thread, so other callbacks
 * wait for it. */
static void on_event(redlock_t *rl, const redlock_event_t *event, void *userdata)
{
    struct job *job = userdata;
    (void)rl;
    switch (event->kind) {
    case REDLOCK_EVENT_EXTENDED:
        atomic_fetch_add(&job->extended, 1);
        atomic_store(&job->endangered, false);
        break;
    case REDLOCK_EVENT_ENDANGERED:
    case REDLOCK_EVENT_LOST:
        atomic_store(&job->endangered, true);
        break;
    default:
        break;
    }
}

/* Sleeps for one step, but not past the loss of the lock. Returns false if the lock is lost. */
static bool sleep_while_held(redlock_lock_t *lock)
{
    struct pollfd lost = {.fd = redlock_lock_fd(lock), .events = POLLIN};
    /* poll() ignores a negative fd; the check below then suffices */
    int ready = poll(&lost, 1, STEP_MS);
    return ready == 0 || (ready < 0 && errno == EINTR);
}

/* Does all steps under the lock. Returns the exit status. */
static int work(redlock_lock_t *lock, struct job *job, int steps)
{
    for (int step = 1; step <= steps; step++) {
        if (atomic_load(&job->endangered))
            fputs("endangered: a real program would postpone what is not urgent\n", stderr);
        if (!sleep_while_held(lock) || redlock_lock_check(lock, MARGIN_MS) != REDLOCK_OK) {
            fprintf(stderr, "lost after %d steps\n", step - 1);
            return 1;
        }
        printf("step %d\n", step); /* the side effect */
        fflush(stdout);
    }
    printf("%d steps of %d ms under a lock of %d ms, extended %s\n", steps, STEP_MS, TTL_MS,
           atomic_load(&job->extended) ? "in time" : "never");
    return 0;
}

/* Acquires the lock, works and releases it. Returns the exit status. */
static int work_under_lock(redlock_t *rl, const char *resource, int steps)
{
    struct job job = {false, 0};
    redlock_lock_t *lock = NULL;
    redlock_report_t *report = NULL;
    redlock_opts_t opts = redlock_opts(TTL_MS);
    opts.wait_ms = WAIT_MS;
    opts.flags = REDLOCK_FLAG_AUTO_EXTEND;
    opts.margin_ms = DANGER_MS;
    opts.event_fn = on_event;
    opts.event_userdata = &job;

    int rc = redlock_acquire(rl, resource, &opts, &lock, &report);
    if (rc != REDLOCK_OK)
        fprintf(stderr, "not acquired: %s\n", redlock_report_text(report));
    redlock_report_free(report);
    if (rc != REDLOCK_OK)
        return rc == REDLOCK_ECONTENDED ? EX_HELD : EX_NO_QUORUM;

    int status = work(lock, &job, steps);

    rc = redlock_release(lock, NULL); /* ends the extensions first, so no event follows */
    printf("released: %s\n", redlock_strerror(rc));
    redlock_lock_free(lock);
    return status;
}

/* Creates a client for a list of servers. Returns NULL after a message if that fails. */
static redlock_t *connect_nodes(const char *servers)
{
    redlock_config_t *config = NULL;
    redlock_t *rl = NULL;
    int rc = redlock_config_new(&config, NULL);
    if (rc == REDLOCK_OK)
        rc = redlock_config_add_nodes(config, servers);
    if (rc == REDLOCK_OK)
        rc = redlock_new(&rl, config);
    if (rc != REDLOCK_OK)
        fprintf(stderr, "%s: %s\n", redlock_strerror(rc), redlock_config_error(config));
    redlock_config_free(config);
    return rl;
}

/* Parses the arguments, runs the steps under the lock and returns the exit status. */
int main(int argc, char **argv)
{
    const char *servers = getenv("REDLOCK_SERVERS");
    if (!servers) {
        fputs("REDLOCK_SERVERS is not set; try: redlock sandbox -- ./auto_extend\n", stderr);
        return 64;
    }
    redlock_t *rl = connect_nodes(servers);
    if (!rl)
        return 78;
    int status = work_under_lock(rl, argc > 1 ? argv[1] : "example:auto-extend",
                                 argc > 2 ? atoi(argv[2]) : STEPS);
    redlock_shutdown(rl, SHUTDOWN_MS);
    redlock_free(rl);
    return status;
}
