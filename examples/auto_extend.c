/* SPDX-License-Identifier: MIT
 * auto_extend [RESOURCE [STEPS]]: hold a short lock for longer than its TTL, and stop in time when
 * it is lost.
 *
 * The library extends the lock in the background. Three ways to notice that it cannot any more:
 * the ENDANGERED and LOST events, a descriptor that becomes readable, and a local check right
 * before each side effect. The check is the one that counts; the others save useless work.
 *
 * The nodes come from REDLOCK_SERVERS. Exit status: 0 all steps done, 1 lost on the way (the steps
 * so far were made under the lock), 75 held by somebody else, 69 no lock for another reason. */
#include <redlock/redlock.h>

#include <errno.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#define TTL_MS       1000
#define WAIT_MS      2000
#define DANGER_MS    400 /* ENDANGERED this long before the deadline */
#define MARGIN_MS    100 /* more than one side effect takes at worst */
#define STEP_MS      50
#define STEPS        40
#define SHUTDOWN_MS  1000
#define EX_NO_QUORUM 69
#define EX_HELD      75

struct job {
    atomic_bool endangered; /* set on the library's thread, read on ours */
    atomic_uint extended;
};

/* Runs on the library's I/O thread: note it, return, never wait. */
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

/* Sleeps for a step, but not past the loss of the lock. false: lost. */
static bool sleep_while_held(redlock_lock_t *lock)
{
    struct pollfd lost = {.fd = redlock_lock_fd(lock), .events = POLLIN};
    int ready = poll(&lost, 1, STEP_MS); /* a negative fd is ignored: then the check has to do */
    return ready == 0 || (ready < 0 && errno == EINTR);
}

static int work(redlock_lock_t *lock, struct job *job, int steps)
{
    for (int step = 1; step <= steps; step++) {
        if (atomic_load(&job->endangered))
            fputs("endangered: a real program would put off what is not urgent\n", stderr);
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

    rc = redlock_release(lock, NULL); /* ends the extensions first; no event follows */
    printf("released: %s\n", redlock_strerror(rc));
    redlock_lock_free(lock);
    return status;
}

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
