/* SPDX-License-Identifier: MIT
 * Creates and frees clients, lets calls enter and leave a client, and lets the program's own loop
 * drive it. To enter a client means to lock its mutex for one call of the user, to check that the
 * client may be used, and to read the clocks. To leave it means to send what the call has queued
 * and to release the mutex. The poller (struct rl_io) is what waits for the client's sockets and
 * timer. */
#include "api/client.h"

#include "api/fence.h"
#include "api/review.h"
#include "api/tls_settings.h"
#include "platform/thread.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define OWN_DESCRIPTORS 5 /* file descriptors that a client needs beside one for each node */

/* Adds a reference to the client and returns `rl`. Needs no mutex. */
struct redlock_client *rl_client_ref(struct redlock_client *rl)
{
    atomic_fetch_add_explicit(&rl->refs, 1, memory_order_relaxed);
    return rl;
}

/* Maps a page that the kernel zeroes in a forked child, because reading it is the cheapest check
 * for a fork. Without such a page (an old kernel), rl_client_is_forked() compares the pid. */
static void mark_process(struct redlock_client *rl)
{
    size_t size = (size_t)sysconf(_SC_PAGESIZE);
    unsigned char *page =
        mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    rl->pid = (int)getpid();
    if (page == MAP_FAILED)
        return;
    if (madvise(page, size, MADV_WIPEONFORK) != 0) {
        munmap(page, size);
        return;
    }
    page[0] = 1;
    rl->fork_mark = page;
}

/* Unmaps the page that mark_process() has mapped, if there is one. */
static void unmark_process(struct redlock_client *rl)
{
    if (rl->fork_mark != NULL)
        munmap((void *)(uintptr_t)rl->fork_mark, (size_t)sysconf(_SC_PAGESIZE));
}

/* Returns whether this process is a forked child of the process that created the client. */
bool rl_client_is_forked(const struct redlock_client *rl)
{
    if (rl->fork_mark != NULL)
        return rl->fork_mark[0] == 0;
    return (int)getpid() != rl->pid;
}

/* Drops a reference to the client. The last one frees the client and everything that it owns. The
 * mutex is not held, because it is destroyed here. */
void rl_client_drop(struct redlock_client *rl)
{
    if (atomic_fetch_sub_explicit(&rl->refs, 1, memory_order_acq_rel) != 1)
        return;
    if (rl->wake_fd >= 0)
        close(rl->wake_fd);
    rl_dispatch_close(rl);
    rl_wake_free(&rl->wakes);
    pthread_mutex_destroy(&rl->mutex);
    unmark_process(rl);
    struct rl_mem mem = rl->mem;
    rl_free(&mem, rl->log.queue);
    redlock_config_free(rl->config);
    rl_free(&mem, rl);
}

/* Locks the mutex for a call of the user. `blocks`: the call may block. `timed`: reads the clocks
 * for the engines. Returns REDLOCK_OK with the mutex held; or, without it, EFORKED in a forked
 * child, ECLOSED after redlock_free(), and for a call that blocks also EMODE in embedded mode and
 * EDEADLK in a callback of this client. */
static int enter(struct redlock_client *rl, bool blocks, bool timed)
{
    if (rl_client_is_forked(rl))
        return REDLOCK_EFORKED;
    if (blocks && rl->mode == REDLOCK_MODE_EMBEDDED)
        return REDLOCK_EMODE;
    rl_leader_enter(rl);
    bool deadlock = blocks && rl_dispatch_is_own_callback(rl);
    if (deadlock || rl->closed) {
        rl_client_leave(rl); /* another caller may have left its requests to this thread */
        return deadlock ? REDLOCK_EDEADLK : REDLOCK_ECLOSED;
    }
    /* Also in a callback, because time has passed since the tick began. */
    if (timed)
        rl_io_refresh(&rl->io);
    return REDLOCK_OK;
}

/* Locks the mutex and reads the clocks for a call that queues nothing to be sent. Returns
 * REDLOCK_OK with the mutex held; or REDLOCK_EFORKED or REDLOCK_ECLOSED without it.
 * rl_client_unlock() ends the call. */
int rl_client_enter_readonly(struct redlock_client *rl)
{
    if (rl_client_is_forked(rl))
        return REDLOCK_EFORKED;
    pthread_mutex_lock(&rl->mutex);
    if (rl->closed) {
        rl_client_unlock(rl);
        return REDLOCK_ECLOSED;
    }
    rl_io_refresh(&rl->io);
    return REDLOCK_OK;
}

/* Locks the mutex and reads the clocks for a call that does not block. Results as enter(). */
int rl_client_enter(struct redlock_client *rl)
{
    return enter(rl, false, true);
}

/* Locks the mutex for a call that does not block, without reading the clocks. Results as
 * enter(). */
int rl_client_enter_untimed(struct redlock_client *rl)
{
    return enter(rl, false, false);
}

/* Locks the mutex and reads the clocks for a call that blocks. Results as enter(). */
int rl_client_enter_blocking(struct redlock_client *rl)
{
    return enter(rl, true, true);
}

/* Sends the requests that a call has queued, or has another thread send them. Keeps the mutex,
 * which is held. In embedded mode the next redlock_process() sends them. */
void rl_client_send(struct redlock_client *rl)
{
    if (rl->closed)
        return;
    if (rl->mode == REDLOCK_MODE_EMBEDDED) {
        /* The next tick sends what was queued, so that many starts share one write per node. */
        if (!rl->loop.turning)
            rl_io_wake(&rl->io);
        return;
    }
    rl_leader_send(rl);
}

/* Ends a call: sends what was queued, releases the mutex and wakes the threads whose operations
 * have ended. */
void rl_client_leave(struct redlock_client *rl)
{
    rl_client_send(rl);
    rl_client_unlock(rl);
}

/* Opens the next element of rl->shards: its engine and its sockets, for the shard `from` of the
 * configuration. On success counts it in rl->shard_count. Returns REDLOCK_OK or the error of
 * rl_io_add(). */
static int open_shard(struct redlock_client *rl, const struct rl_config_shard *from)
{
    struct redlock_config *config = rl->config;
    struct rl_shard *shard = &rl->shards[rl->shard_count];
    uint64_t max_ttl_ns = config->max_ttl_ms * RL_MS;
    const struct rl_engine_params params = {
        .mem = &rl->mem,
        .log = &rl->log,
        .specs = config->nodes + from->first,
        .nodes = from->count,
        .user = config->user,
        .password = config->password,
        .owner = config->owner,
        .owner_len = config->owner_len,
        .admission = {.drift = config->drift,
                      .max_ttl_ns = config->max_ttl_ms * RL_MS,
                      .lenient = config->admission == REDLOCK_ADMISSION_LENIENT,
                      .proven = config->admission == REDLOCK_ADMISSION_PROVEN},
        .backoff = {config->retry_ms_min * RL_MS, config->retry_ms_max * RL_MS},
        .connect_timeout_ns = config->connect_timeout_ms * RL_MS,
        .node_timeout_ns = config->node_timeout_ms * RL_MS,
        .keepalive_s = (config->keepalive_ms + 999) / 1000,
        .fence_record = {config->fence_key, config->fence_key_len},
        .fence_config = {shard->fence_config,
                         rl_fence_config_text(config, from, shard->fence_config)},
        .fence_wait_ns = rl_add_sat(max_ttl_ns, rl_drift_ns(max_ttl_ns, &config->drift)),
        .fence_run_bound = config->fence_records != REDLOCK_FENCE_RECORDS_DURABLE,
        .heartbeat_ns = config->heartbeat_ms * RL_MS,
        .notifications = config->notifications,
        .lines = config->notifications && config->line,
        .queue_max = config->queue_max,
    };

    shard->rl = rl;
    shard->config = from;
    int error = rl_io_add(&rl->io, &shard->io, &shard->engine, &params);
    rl->shard_count += error == REDLOCK_OK;
    return error;
}

/* Starts the threads that the mode needs: the I/O thread, and in threaded mode the callback thread
 * if the configuration has functions for it. From then on log lines are queued for the callback
 * thread. Returns REDLOCK_OK; or ENOMEM or ESYS, and then no thread runs. */
static int start_threads(struct redlock_client *rl)
{
    bool threaded = rl->mode == REDLOCK_MODE_THREADED, logs = rl->log.fn != NULL;

    if (rl->mode == REDLOCK_MODE_EMBEDDED)
        return REDLOCK_OK;
    if (threaded && logs) {
        rl->log.queue = rl_alloc(&rl->mem, sizeof *rl->log.queue);
        if (rl->log.queue == NULL)
            return REDLOCK_ENOMEM;
    }
    int error = logs || rl->config->event_fn != NULL ? rl_callbacks_start(rl) : REDLOCK_OK;
    if (error == REDLOCK_OK)
        error = rl_loop_start(rl);
    if (error != REDLOCK_OK)
        rl_callbacks_stop(rl);
    return error;
}

/* Opens the poller, all shards and the descriptors for wake-ups. Starts the I/O thread, except in
 * embedded mode. Returns REDLOCK_OK or an error; then the poller and the shards are closed again,
 * and rl->config->error has the reason or is empty. */
static int open_shards(struct redlock_client *rl)
{
    struct redlock_config *config = rl->config;

    config->error[0] = '\0';
    int error = rl_io_open(&rl->io);
    if (error != REDLOCK_OK)
        return error;
    error = rl_io_load_tls(&rl->io, &rl->mem, &rl->log, config->nodes, config->node_count,
                           config->error, sizeof config->error);
    for (unsigned i = 0; error == REDLOCK_OK && i < config->shard_count; i++)
        error = open_shard(rl, &config->shards[i]);
    if (error != REDLOCK_OK) {
        rl_io_close(&rl->io);
        return error;
    }
    rl->wake_fd = rl_io_copy_wake_fd(&rl->io);
    error = rl->wake_fd >= 0 ? rl_dispatch_open(rl) : REDLOCK_ESYS;
    if (error == REDLOCK_OK)
        error = start_threads(rl);
    if (error != REDLOCK_OK)
        rl_io_close(&rl->io);
    return error;
}

/* Logs a warning if the shard has one node or an even number of nodes. */
static void warn_about_count(const struct redlock_client *rl, const struct rl_config_shard *shard)
{
    const char *name = shard->name, *colon = name[0] != '\0' ? ": " : "";

    if (shard->count == 1)
        rl_logf(&rl->log, REDLOCK_LOG_WARN,
                "%s%sone server: if it fails, all locks are lost; use three or five", name, colon);
    else if (shard->count % 2 == 0)
        rl_logf(&rl->log, REDLOCK_LOG_WARN,
                "%s%s%u servers tolerate no more failures than %u: use an odd number", name, colon,
                shard->count, shard->count - 1);
}

/* Checks that the settings of TLS fit together for each node. Returns REDLOCK_OK; or REDLOCK_EINVAL
 * with a reason in `config`. */
static int check_tls(struct redlock_config *config)
{
    for (size_t i = 0; i < config->node_count; i++) {
        const struct rl_node_spec *spec = &config->nodes[i];
        if (!spec->tls)
            continue;
        struct rl_tls_settings settings = rl_tls_settings_of(spec, &config->tls);
        const char *flaw = rl_tls_settings_flaw(&settings);
        if (flaw != NULL) {
            rl_config_refuse(config, "%s: %s", spec->name, flaw);
            return REDLOCK_EINVAL;
        }
    }
    return REDLOCK_OK;
}

/* Checks what no setter can check alone: that there is a server, that the settings of TLS fit
 * together, and that max_ttl_ms is longer than the drift. Also prepares the source of random
 * numbers. Returns REDLOCK_OK; REDLOCK_EINVAL with a reason in `config`; or the error of
 * rl_random_init(). */
static int check_config(struct redlock_config *config)
{
    if (config->node_count == 0) {
        rl_config_refuse(config, "no server was added: call redlock_config_add_nodes() or "
                                 "redlock_config_add_shard() first");
        return REDLOCK_EINVAL;
    }
    uint64_t ttl_ns = config->max_ttl_ms * RL_MS;
    if (rl_usable_ns(ttl_ns, &config->drift) == 0) {
        rl_config_refuse(config, "clock drift uses up a TTL of max_ttl_ms: raise max_ttl_ms or "
                                 "lower the drift");
        return REDLOCK_EINVAL;
    }
    int error = check_tls(config);
    return error != REDLOCK_OK ? error : rl_random_init();
}

/* Writes into `config`, for redlock_config_error(), why the client cannot start. Returns
 * `error`. */
static int refuse_start(struct redlock_config *config, int error)
{
    if (error == REDLOCK_ESYS)
        rl_config_refuse(config,
                         "the client cannot start: %s: it needs %zu descriptors (see "
                         "ulimit -n) and a thread (see ulimit -u)",
                         redlock_strerror(error), config->node_count + OWN_DESCRIPTORS);
    else
        rl_config_refuse(config, "the client cannot start: %s", redlock_strerror(error));
    return error;
}

/* Checks that the versions of the libraries loaded at run time fit those of the build. Returns
 * REDLOCK_OK, or REDLOCK_ELIBRARY or another error with a reason in `config`. */
static int check_libraries(struct redlock_config *config)
{
    char text[sizeof config->error];

    int error = rl_engine_check_libraries(text, sizeof text);
    if (error == REDLOCK_ELIBRARY)
        rl_config_refuse(config, "%s", text);
    else if (error != REDLOCK_OK)
        refuse_start(config, error);
    return error;
}

/* Public function: creates a client from a copy of `config`, which stays the caller's. Returns
 * REDLOCK_OK and the client in `ret_rl`; or an error, with a reason in `config`. */
REDLOCK_API int redlock_new(redlock_t **ret_rl, redlock_config_t *config)
{
    if (ret_rl == NULL || config == NULL)
        return REDLOCK_EINVAL;
    int error = check_config(config);
    if (error == REDLOCK_OK)
        error = check_libraries(config);
    if (error != REDLOCK_OK)
        return error;
    struct redlock_client *rl =
        rl_alloc(&config->mem, sizeof *rl + config->shard_count * sizeof rl->shards[0]);
    if (rl == NULL)
        return refuse_start(config, REDLOCK_ENOMEM);
    rl->mem = config->mem;
    rl->wake_fd = -1;
    rl_dispatch_init(rl);
    rl->mode = config->mode;
    rl->log = config->log;
    error = rl_config_copy(&rl->config, config);
    if (error != REDLOCK_OK) {
        rl_free(&config->mem, rl);
        return refuse_start(config, error);
    }
    rl_config_label(rl->config);
    atomic_init(&rl->refs, 1);
    pthread_mutex_init(&rl->mutex, NULL);
    rl_wake_init(&rl->wakes, &rl->mem, &rl->mutex);
    mark_process(rl);
    for (unsigned i = 0; i < rl->config->shard_count; i++)
        warn_about_count(rl, &rl->config->shards[i]);
    error = open_shards(rl);
    if (error != REDLOCK_OK) {
        rl->closed = true;
        if (rl->config->error[0] != '\0')
            rl_config_refuse(config, "%s", rl->config->error);
        else
            (void)refuse_start(config, error);
        rl_client_drop(rl);
        return error;
    }
    *ret_rl = rl;
    return REDLOCK_OK;
}

/* Frees a client in a forked child, where the descriptors and the connections belong to the parent.
 * If a thread of the parent held the mutex during the fork, the memory may be inconsistent: then
 * only the descriptors are closed, and the memory is leaked. */
static void free_in_child(struct redlock_client *rl)
{
    rl_dispatch_close(rl); /* first, because a write to it would reach the parent */
    if (pthread_mutex_trylock(&rl->mutex) == 0) {
        rl_io_abandon(&rl->io);
        rl->closed = true;
        rl_client_unlock(rl);
        rl_dispatch_abandon(rl);
        rl_review_abandon(rl, rl->client_ops);
        rl_client_drop(rl);
        return;
    }
    rl_io_close_descriptors(&rl->io);
    close(rl->wake_fd);
}

/* Public function: stops the I/O thread, ends all operations with ECLOSED, releases held locks
 * without waiting for replies, closes the connections, runs the pending callbacks and drops the
 * user's reference. Returns REDLOCK_OK (also for NULL), or REDLOCK_EDEADLK in a callback of this
 * client, where it does nothing. */
REDLOCK_API int redlock_free(redlock_t *rl)
{
    if (rl == NULL)
        return REDLOCK_OK;
    if (rl_client_is_forked(rl)) {
        free_in_child(rl);
        return REDLOCK_OK;
    }
    pthread_mutex_lock(&rl->mutex);
    bool inside = rl_dispatch_is_own_callback(rl);
    rl_client_unlock(rl);
    if (inside)
        return REDLOCK_EDEADLK;
    rl_callbacks_stop(rl); /* first: while a callback runs, locks are extended */
    rl_loop_stop(rl);
    pthread_mutex_lock(&rl->mutex);
    rl_review_begin_shutdown(rl);
    rl_review_end_all(rl, REDLOCK_ECLOSED);
    for (unsigned i = 0; i < rl->shard_count; i++)
        rl_engine_end_locks(&rl->shards[i].engine);
    (void)rl_dispatch_take(rl);
    rl_leader_end(rl);
    if (rl_io_is_lost(&rl->io)) /* their numbers may be those of other files by now */
        rl->wake_fd = rl->pending.fd = -1;
    rl_io_close(&rl->io);
    (void)rl_dispatch_take(rl);
    rl->closed = true;
    while (rl_dispatch_has_pending(rl))
        rl_dispatch(rl);
    rl_client_unlock(rl);
    rl_client_drop(rl);
    return REDLOCK_OK;
}

/* Returns REDLOCK_OK if the caller may drive the loop of this client or run its callbacks, else
 * EINVAL, EFORKED or EMODE. */
static int check_driven(const struct redlock_client *rl)
{
    if (rl == NULL)
        return REDLOCK_EINVAL;
    if (rl_client_is_forked(rl))
        return REDLOCK_EFORKED;
    return rl->mode == REDLOCK_MODE_THREADED ? REDLOCK_EMODE : REDLOCK_OK;
}

/* Public function: returns the descriptor on which the program's loop waits before it calls
 * redlock_process(), or a negative REDLOCK_EINVAL, EFORKED or EMODE (threaded mode). */
REDLOCK_API int redlock_get_fd(redlock_t *rl)
{
    int error = check_driven(rl);

    if (error != REDLOCK_OK)
        return error;
    return rl->mode == REDLOCK_MODE_HYBRID ? rl_dispatch_fd(rl) : rl_io_fd(&rl->io);
}

/* Does the work of redlock_process(). Returns REDLOCK_OK, or EDEADLK in a callback of this client.
 */
static int process(struct redlock_client *rl)
{
    pthread_mutex_lock(&rl->mutex);
    bool inside = rl_dispatch_is_own_callback(rl);
    if (!inside && rl->mode == REDLOCK_MODE_EMBEDDED)
        rl_loop_poll(rl);
    rl_client_unlock(rl);
    if (inside)
        return REDLOCK_EDEADLK;
    if (rl->mode == REDLOCK_MODE_EMBEDDED)
        return REDLOCK_OK;
    rl_dispatch_clear(rl); /* before the callbacks run, so that later signals are not lost */
    pthread_mutex_lock(&rl->mutex);
    rl_io_refresh(&rl->io);
    rl_dispatch(rl);
    rl_client_send(rl);
    rl_client_unlock(rl);
    return REDLOCK_OK;
}

/* Public function: makes one turn of the loop without waiting (embedded mode), or runs the pending
 * callbacks (hybrid mode). Returns REDLOCK_OK, EINVAL, EFORKED, EMODE (threaded mode), or EDEADLK
 * in a callback of this client. */
REDLOCK_API int redlock_process(redlock_t *rl)
{
    int error = check_driven(rl);

    if (error != REDLOCK_OK)
        return error;
    pthread_testcancel(); /* the only place where this call may be cancelled */
    int cancel = rl_thread_hold_cancel();
    error = process(rl);
    rl_thread_allow_cancel(cancel);
    return error;
}

/* Public function: returns the number of nodes of all shards; 0 for NULL. */
REDLOCK_API size_t redlock_node_count(const redlock_t *rl)
{
    return rl != NULL ? rl->config->node_count : 0;
}
