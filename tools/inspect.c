/* SPDX-License-Identifier: MIT
 * Inspects several locks at once. inspect_once() starts an inspection for each lock, at most
 * AT_ONCE at a time, and waits until all have ended; inspect_all() repeats those without a quorum.
 * on_inspected() runs on the library's thread, records each result, and posts a semaphore on which
 * the calling thread waits.
 */
#include "inspect.h"

#include <errno.h>
#include <poll.h>
#include <semaphore.h>
#include <stdlib.h>

#include "clock.h"
#include "say.h"

/* Largest number of inspections that are under way at once. */
#define AT_ONCE 64
/* How long, and with what pause, inspections that failed without a quorum are repeated. */
#define TIME_LIMIT_MS 500
#define PAUSE_MS      20

/* An inspection that is under way. */
struct request {
    struct inspection *inspection; /* where the result goes */
    sem_t *ended;                  /* counts inspections that have ended; shared by all */
};

/* Records the result of one inspection in the struct request `userdata`, and signals its end. Runs
 * on the library's thread. */
static void on_inspected(redlock_t *rl, int status, redlock_lock_t *lock,
                         const redlock_report_t *report, void *userdata)
{
    struct request *request = userdata;

    (void)rl;
    (void)lock;
    request->inspection->error = status;
    request->inspection->report = report ? must(redlock_report_ref(report)) : NULL;
    sem_post(request->ended);
}

/* Waits until one more inspection has ended. */
static void wait_for_one(sem_t *ended)
{
    while (sem_wait(ended) != 0 && errno == EINTR)
        continue;
}

/* Inspects those locks whose recorded error code is `error`, and waits until all these inspections
 * have ended. So REDLOCK_OK selects all locks at first, and REDLOCK_ENOQUORUM those to be repeated.
 */
static void inspect_matching(redlock_t *rl, struct request *requests, size_t count, int error)
{
    size_t under_way = 0;

    for (size_t i = 0; i < count; i++) {
        struct inspection *inspection = requests[i].inspection;
        if (inspection->error != error)
            continue;
        redlock_report_free(inspection->report);
        inspection->report = NULL;
        if (under_way == AT_ONCE) {
            wait_for_one(requests[i].ended);
            under_way--;
        }
        int status = redlock_inspect_start(rl, inspection->name, NULL, on_inspected, &requests[i]);
        if (status == REDLOCK_OK)
            under_way++;
        else
            inspection->error = status;
    }
    for (; under_way > 0; under_way--)
        wait_for_one(requests[0].ended);
}

/* Returns true if at least one inspection failed because too few servers replied. */
static bool lacks_quorum(const struct inspection *inspections, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (inspections[i].error == REDLOCK_ENOQUORUM)
            return true;
    return false;
}

/* Inspects all locks, and repeats for `patience_ms` those to which too few servers replied. Fills
 * in `error` and `report` of each. Blocks. */
static void inspect_for(redlock_t *rl, struct inspection *inspections, size_t count,
                        uint64_t patience_ms)
{
    struct request *requests = must(calloc(count, sizeof *requests));
    sem_t ended;

    sem_init(&ended, 0, 0);
    for (size_t i = 0; i < count; i++) {
        requests[i] = (struct request){&inspections[i], &ended};
        inspections[i].error = REDLOCK_OK;
        inspections[i].report = NULL;
    }
    inspect_matching(rl, requests, count, REDLOCK_OK);
    uint64_t give_up_ns = boottime_ns() + patience_ms * NS_PER_MS;
    while (lacks_quorum(inspections, count) && boottime_ns() < give_up_ns) {
        poll(NULL, 0, PAUSE_MS);
        inspect_matching(rl, requests, count, REDLOCK_ENOQUORUM);
    }
    sem_destroy(&ended);
    free(requests);
}

/* Inspects all locks once. */
void inspect_once(redlock_t *rl, struct inspection *inspections, size_t count)
{
    inspect_for(rl, inspections, count, 0);
}

/* Inspects all locks, and repeats for TIME_LIMIT_MS those to which too few servers replied. */
void inspect_all(redlock_t *rl, struct inspection *inspections, size_t count)
{
    inspect_for(rl, inspections, count, TIME_LIMIT_MS);
}

/* Inspects one lock. Returns the report, to be freed by the caller; NULL if there is none. Sets
 * *ret_error to the error code of the inspection. */
redlock_report_t *inspect_one(redlock_t *rl, const char *name, int *ret_error)
{
    struct inspection inspection = {.name = text_copy(name)};

    inspect_all(rl, &inspection, 1);
    free(inspection.name);
    *ret_error = inspection.error;
    return inspection.report;
}
