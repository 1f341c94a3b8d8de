/* SPDX-License-Identifier: MIT
 * The work of `redlock top`: search() finds names, refresh() inspects those that are due and reads
 * the statistics of the nodes, and break_lock() does what the user has asked for. All of them may
 * block for as long as servers do not reply. They hold the mutex only while they copy results.
 */
#include "top_collect.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "breaking.h"
#include "client.h"
#include "clock.h"
#include "inspect.h"
#include "reports.h"
#include "say.h"

/* Most locks that are inspected in one interval. */
#define INSPECT_MAX 256
/* A name that is inspected in each shard, so that the state and the round trip of each server are
 * known also if there is no lock. */
#define PROBE_STEM "redlock-top"

/* Adds the given names, and reads the names of the shards. */
static void fill_model(struct top *top, const struct options *options)
{
    struct top_model *model = &top->model;

    for (size_t i = 0; i < options->operand_count; i++) {
        struct top_lock *lock = top_add(model, options->operands[i]);
        if (lock)
            lock->given = true;
    }
    model->shard_count = redlock_shard_count(top->rl);
    for (size_t i = 0; i < model->shard_count; i++)
        model->shard_names[i] = redlock_shard_name(top->rl, i);
}

/* Reads the statistics of all nodes. */
static void read_servers(struct top *top)
{
    struct top_model *model = &top->model;

    model->server_count = redlock_node_count(top->rl);
    for (size_t i = 0; i < model->server_count; i++)
        redlock_get_node_stats(top->rl, i, &model->servers[i], sizeof model->servers[i]);
}

/* Prepares the model and, if no names were given, the search. */
void top_open(struct top *top, const struct options *options, const struct settings *settings,
              redlock_t *rl)
{
    *top = (struct top){.rl = rl,
                        .settings = settings,
                        .interval_ns = options->interval_ms * NS_PER_MS,
                        .searches = options->operand_count == 0,
                        .complete = options->operand_count > 0,
                        .work_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK),
                        .news_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
    pthread_mutex_init(&top->mutex, NULL);
    fill_model(top, options);
    read_servers(top);
    if (top->searches)
        scan_open(&top->scan, rl, settings, options->match ? options->match : "*",
                  options->scan_rate);
}

/* Makes an eventfd readable. */
static void notify(int fd)
{
    uint64_t one = 1;

    if (write(fd, &one, sizeof one) < 0)
        return; /* it is readable already */
}

/* Ends the thread, closes the connections of the search, and frees the model. */
void top_close(struct top *top)
{
    if (top->running) {
        pthread_mutex_lock(&top->mutex);
        top->stop = true;
        pthread_mutex_unlock(&top->mutex);
        notify(top->work_fd);
        pthread_join(top->thread, NULL);
    }
    if (top->searches)
        scan_close(&top->scan);
    top_free(&top->model);
    free(top->break_name);
    close(top->work_fd);
    close(top->news_fd);
    pthread_mutex_destroy(&top->mutex);
}

/* Adds a name that the search has found. `context` is the struct top. */
static void on_found(void *context, const char *name, size_t len)
{
    struct top *top = context;
    char text[REDLOCK_RESOURCE_LEN_MAX + 1];

    if (len > REDLOCK_RESOURCE_LEN_MAX || memchr(name, '\0', len))
        return; /* no Redlock client sets such a key */
    memcpy(text, name, len);
    text[len] = '\0';
    pthread_mutex_lock(&top->mutex);
    top_add(&top->model, text);
    pthread_mutex_unlock(&top->mutex);
}

/* Makes one step of the search, if it is due. */
static void search(struct top *top)
{
    if (!top->searches)
        return;
    scan_step(&top->scan, on_found, top);
    pthread_mutex_lock(&top->mutex);
    top->complete = top->complete || top->scan.complete;
    top->short_of = top->scan.short_of;
    snprintf(top->scan_error, sizeof top->scan_error, "%s", top->scan.error);
    pthread_mutex_unlock(&top->mutex);
}

/* Copies the names of the locks that are due to an array of inspections, and a name in each shard
 * behind them. Returns the array, to be freed with its names and reports. */
static struct inspection *list_due(struct top *top, size_t max, size_t *ret_count)
{
    size_t count, shards = top->model.shard_count;

    pthread_mutex_lock(&top->mutex);
    struct top_lock **due = top_due(&top->model, boottime_ns() - top->interval_ns / 2, max, &count);
    struct inspection *list = must(calloc(count + shards, sizeof *list));
    for (size_t i = 0; i < count; i++)
        list[i].name = text_copy(due[i]->name);
    pthread_mutex_unlock(&top->mutex);
    free(due);
    for (size_t i = 0; i < shards; i++)
        list[count + i].name = client_name_in(top->rl, i, PROBE_STEM);
    *ret_count = count + shards;
    return list;
}

/* Stores the result of one inspection. A lock that was found by the search leaves the list when its
 * key is gone or is none of a lock. */
static void take_inspection(struct top *top, const struct inspection *inspection)
{
    struct top_lock *lock = top_find(&top->model, inspection->name);

    if (!lock)
        return;
    int shard = redlock_shard_of(top->rl, lock->name);
    lock->shard = shard > 0 ? (size_t)shard : 0;
    if (!top_take_report(lock, inspection->report, boottime_ns()) && !lock->given)
        top_remove(&top->model, inspection->name);
}

/* Inspects up to `max` locks that are due, and reads the state of the servers. */
static void refresh(struct top *top, size_t max)
{
    size_t count;
    struct inspection *list = list_due(top, max, &count);

    inspect_all(top->rl, list, count);
    pthread_mutex_lock(&top->mutex);
    for (size_t i = 0; i < count; i++) {
        take_inspection(top, &list[i]);
        redlock_report_free(list[i].report);
        free(list[i].name);
    }
    read_servers(top);
    pthread_mutex_unlock(&top->mutex);
    free(list);
}

/* Searches until all locks were found or no server can be searched, and inspects them. */
void top_collect(struct top *top)
{
    uint64_t timeout_ms = client_timeout_ms(top->settings);

    int ready = redlock_wait_ready(top->rl, timeout_ms);
    say(SAY_DEBUG, "ready: %s", redlock_strerror(ready));
    client_settle(top->rl, timeout_ms);
    for (;;) {
        search(top);
        if (top->complete || top->short_of)
            break;
        poll(NULL, 0, poll_timeout(boottime_ns(), top->scan.due_ns));
    }
    refresh(top, TOP_LOCKS_MAX);
}

/* Takes the request of the user out of the struct. Returns the name, to be freed; NULL if there is
 * none. Copies the holder to `owner`. */
static char *take_request(struct top *top, char owner[TOP_OWNER_MAX])
{
    pthread_mutex_lock(&top->mutex);
    char *name = top->break_name;
    top->break_name = NULL;
    memcpy(owner, top->break_owner, TOP_OWNER_MAX);
    pthread_mutex_unlock(&top->mutex);
    return name;
}

/* Breaks the lock if the holder is still the same. Returns what became of it, to be freed. */
static char *break_if_same(struct top *top, const char *name, const char *owner)
{
    struct inspection seen = {.name = text_copy(name)};
    char *text;

    inspect_all(top->rl, &seen, 1);
    if (seen.error != REDLOCK_OK) {
        text = text_format("%s was not broken: %s", name, report_reason(seen.report, seen.error));
    } else if (report_votes(seen.report).granted == 0) {
        text = text_format("%s was not broken: it is free", name);
    } else if (strcmp(report_owner(seen.report), owner) != 0) {
        text = text_format("%s was not broken: another client holds it now", name);
    } else {
        struct breaking breaking = {.before = seen.report};
        int error = breaking_run(top->rl, name, &breaking);
        text = error == REDLOCK_OK
                   ? text_format("%s: deleted on %u of %u servers", name, breaking_count(&breaking),
                                 report_info(breaking.broken).nodes)
                   : text_format("%s: %s", name, report_reason(breaking.broken, error));
        seen.report = NULL;
        breaking_free(&breaking);
    }
    redlock_report_free(seen.report);
    free(seen.name);
    return text;
}

/* Does what the user has asked for, if there is something. */
static void break_lock(struct top *top)
{
    char owner[TOP_OWNER_MAX];
    char *name = take_request(top, owner);

    if (!name)
        return;
    char *text = break_if_same(top, name, owner);
    pthread_mutex_lock(&top->mutex);
    snprintf(top->message, sizeof top->message, "%s", text);
    struct top_lock *lock = top_find(&top->model, name);
    if (lock)
        lock->seen_ns = 1; /* inspected again at once */
    pthread_mutex_unlock(&top->mutex);
    top->refresh_ns = 0;
    free(text);
    free(name);
}

/* Waits until the next work is due, or the screen wakes this thread. Returns false if the thread
 * has to end. */
static bool wait_for_work(struct top *top)
{
    struct pollfd work = {.fd = top->work_fd, .events = POLLIN};
    uint64_t next_ns = top->refresh_ns, count;

    if (top->searches && top->scan.due_ns < next_ns)
        next_ns = top->scan.due_ns;
    poll(&work, 1, poll_timeout(boottime_ns(), next_ns));
    if (work.revents && read(top->work_fd, &count, sizeof count) < 0)
        return true;
    pthread_mutex_lock(&top->mutex);
    bool goes_on = !top->stop;
    pthread_mutex_unlock(&top->mutex);
    return goes_on;
}

/* Collects until top_close() stops it. `context` is the struct top. */
static void *run(void *context)
{
    struct top *top = context;

    client_meet(top->rl);
    do {
        break_lock(top);
        search(top);
        if (boottime_ns() >= top->refresh_ns) {
            top->refresh_ns = boottime_ns() + top->interval_ns;
            refresh(top, INSPECT_MAX);
            notify(top->news_fd);
        }
    } while (wait_for_work(top));
    return NULL;
}

/* Starts the thread that collects. */
int top_start(struct top *top)
{
    int error = pthread_create(&top->thread, NULL, run, top);

    top->running = error == 0;
    return error;
}

/* Stores the request and wakes the thread. */
void top_break(struct top *top, const char *name, const char *owner)
{
    pthread_mutex_lock(&top->mutex);
    free(top->break_name);
    top->break_name = text_copy(name);
    snprintf(top->break_owner, sizeof top->break_owner, "%s", owner);
    top->message[0] = '\0';
    pthread_mutex_unlock(&top->mutex);
    notify(top->work_fd);
}
