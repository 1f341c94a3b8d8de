/* SPDX-License-Identifier: MIT
 * The figures of one `redlock run` in a file, and the thread that writes it.
 *
 * The main thread changes the state and wakes the writer; it never waits for the disk, except at
 * the begin, before it requests the lock, and at the end. The writer composes the text with the
 * mutex held, and writes it without.
 */
#include "run_figures.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "clock.h"
#include "exits.h"
#include "figures.h"
#include "figures_file.h"
#include "say.h"

/* How long run_figures_end() waits for the writer, in ms. */
#define END_WAIT_MS 5000
/* Name of the figure that outlives the run. */
#define SUCCESS "run_last_success_timestamp_seconds"

/* Where a run is. */
enum state { STATE_WAITING = 0, STATE_RUNNING, STATE_ENDED };

/* All figures of one run. `mutex` guards the fields that follow it; those before it are constant
 * once the thread runs. Times are ns of CLOCK_BOOTTIME unless their name says otherwise. */
struct run_figures {
    const char *path;    /* the file; borrowed */
    const char *name;    /* name of the lock, for messages; borrowed */
    char *label_value;   /* the name as value of a label; owned */
    char *file;          /* name of the file as value of a label; owned */
    char *labels;        /* `name="...",file="..."`, on each figure; owned */
    uint64_t start_ms;   /* when the run began, in ms since 1970 */
    uint64_t start_ns;   /* the same on CLOCK_BOOTTIME */
    pthread_t writer;    /* valid if has_writer is set */
    bool has_writer;     /* the thread was started */
    pthread_cond_t wake; /* the state has changed, or the writer has ended */
    pthread_mutex_t mutex;
    enum state state;
    redlock_t *rl;         /* borrowed; NULL: there is no client, or it must not be used any more */
    redlock_lock_t *lock;  /* borrowed; NULL: not held */
    uint64_t acquired_ns;  /* when the lock was acquired; 0: not yet */
    uint64_t left_ns;      /* when the lock was released or left; 0: not yet */
    redlock_stats_t stats; /* of the client, as read last */
    uint64_t nodes, quorum, eligible; /* numbers of servers, as read last; 0: not known */
    struct run_ending ending;         /* with STATE_ENDED; before that only `lost` */
    uint64_t success_ms; /* when this run ended with success, in ms since 1970; 0: it has not */
    bool changed;        /* something has changed since the writer composed the text */
    bool written;        /* the writer has ended */
    int error;           /* errno of the last write; 0: it succeeded */
};

/* Reads the client's statistics and counts its servers: those of the shard with the smallest
 * reserve, if there are several. The mutex is held. */
static void read_client(struct run_figures *figures)
{
    uint64_t nodes[REDLOCK_SHARDS_MAX] = {0}, eligible[REDLOCK_SHARDS_MAX] = {0};
    redlock_node_stats_t node;

    if (!figures->rl)
        return;
    redlock_get_stats(figures->rl, &figures->stats, sizeof figures->stats);
    for (size_t i = 0; i < redlock_node_count(figures->rl); i++) {
        if (redlock_get_node_stats(figures->rl, i, &node, sizeof node) != REDLOCK_OK)
            return;
        nodes[node.shard_index]++;
        eligible[node.shard_index] += node.eligible != 0;
    }
    figures->nodes = 0;
    for (size_t i = 0; i < redlock_shard_count(figures->rl); i++) {
        int64_t reserve = (int64_t)eligible[i] - (int64_t)(nodes[i] / 2 + 1);
        if (figures->nodes && reserve >= (int64_t)figures->eligible - (int64_t)figures->quorum)
            continue;
        figures->nodes = nodes[i];
        figures->eligible = eligible[i];
        figures->quorum = nodes[i] / 2 + 1;
    }
}

/* Adds one family with one gauge in seconds. */
static void seconds(struct figures *text, const struct run_figures *figures, const char *name,
                    const char *help, uint64_t ms)
{
    figures_family(text, name, help);
    figures_seconds(text, name, figures->labels, ms);
}

/* Adds one family with one gauge that is a number. */
static void number(struct figures *text, const struct run_figures *figures, const char *name,
                   const char *help, uint64_t value)
{
    figures_family(text, name, help);
    figures_number(text, name, figures->labels, (int64_t)value);
}

/* Adds one gauge that is 1 and has one more label. */
static void choice(struct figures *text, const struct run_figures *figures, const char *name,
                   const char *label, const char *value)
{
    char *labels = figures_label(text_copy(figures->labels), label, value);

    figures_number(text, name, labels, 1);
    free(labels);
}

/* Adds the times of the run: begin, update, wait, hold and validity. The mutex is held. */
static void add_times(struct figures *text, const struct run_figures *figures)
{
    uint64_t now_ns = boottime_ns();
    uint64_t waited_until_ns = figures->acquired_ns ? figures->acquired_ns
                               : figures->left_ns   ? figures->left_ns
                                                    : now_ns;
    uint64_t held_until_ns = figures->left_ns ? figures->left_ns : now_ns;
    uint64_t held_ns = figures->acquired_ns ? held_until_ns - figures->acquired_ns : 0;

    seconds(text, figures, "run_start_timestamp_seconds", "When the last run began.",
            figures->start_ms);
    seconds(text, figures, "run_update_timestamp_seconds",
            "When this file was written: every 10 s while the run lasts, and at its end.",
            unix_ms());
    seconds(text, figures, "run_wait_seconds", "How long the last run has waited for the lock.",
            (waited_until_ns - figures->start_ns) / NS_PER_MS);
    seconds(text, figures, "run_hold_seconds", "How long the last run has held the lock.",
            held_ns / NS_PER_MS);
    seconds(text, figures, "run_validity_seconds",
            "Time until the deadline of the lock at the last update; 0: not held.",
            figures->lock ? redlock_lock_remaining_ms(figures->lock) : 0);
}

/* Adds what has happened to the lock in the run, and which servers there were. The mutex is held.
 */
static void add_counts(struct figures *text, const struct run_figures *figures)
{
    static const char extensions[] = "run_extensions";
    char *extended = figures_label(text_copy(figures->labels), "result", "extended");
    char *failed = figures_label(text_copy(figures->labels), "result", "failed");

    number(text, figures, "run_attempts",
           "Attempts of the last run in which a server was asked for the lock.",
           figures->stats.attempts);
    figures_family(text, extensions, "Rounds of extensions of the last run, by result.");
    figures_number(text, extensions, extended, (int64_t)figures->stats.extended);
    figures_number(text, extensions, failed, (int64_t)figures->stats.extend_failed);
    free(extended);
    free(failed);
    number(text, figures, "run_endangered",
           "Times in the last run that the margin before the deadline began.",
           figures->stats.endangered);
    number(text, figures, "run_lost", "1: the last run has lost the lock.", figures->ending.lost);
    if (!figures->nodes)
        return;
    number(text, figures, "run_servers_configured", "Servers in the configuration of the last run.",
           figures->nodes);
    number(text, figures, "run_servers_eligible",
           "Servers whose votes counted at the last update of the last run.", figures->eligible);
    number(text, figures, "run_servers_quorum", "Servers that must grant the lock of the last run.",
           figures->quorum);
}

/* Adds the result of the run, if it has ended. The mutex is held. */
static void add_ending(struct figures *text, const struct run_figures *figures)
{
    static const char *const names[] = {
        [RUN_SUCCESS] = "success",     [RUN_FAILED] = "failed",     [RUN_SIGNALED] = "signal",
        [RUN_LOST] = "lost",           [RUN_MAX_HOLD] = "max_hold", [RUN_HELD] = "held",
        [RUN_NO_QUORUM] = "no_quorum", [RUN_REFUSED] = "refused",   [RUN_ERROR] = "error"};

    if (figures->state != STATE_ENDED)
        return;
    number(text, figures, "run_exit_code", "Exit code of the last run.",
           (uint64_t)figures->ending.exit_code);
    number(text, figures, "run_kept", "1: the last run has left the lock to expire (--keep).",
           figures->ending.kept);
    figures_family(text, "run_result", "1, with the result of the last run.");
    choice(text, figures, "run_result", "result", names[figures->ending.result]);
}

/* Returns the whole text but the time of the last success, to be freed. The mutex is held. */
static struct figures compose(struct run_figures *figures)
{
    static const char *const names[] = {"waiting", "running", "ended"};
    const redlock_label_t labels[] = {{"name", figures->label_value}, {"file", figures->file}};
    struct figures text;

    read_client(figures);
    figures_begin(&text);
    figures_family(&text, "run_state", "1, with the state of the last run.");
    choice(&text, figures, "run_state", "state", names[figures->state]);
    add_times(&text, figures);
    add_counts(&text, figures);
    add_ending(&text, figures);
    /* The last state of the servers would be in the file until the next run. */
    if (figures->rl)
        figures_servers(&text, figures->rl, labels, sizeof labels / sizeof labels[0]);
    figures->changed = false;
    return text;
}

/* Writes the text to the file, with the time of the last success: that of this run, or else the one
 * in the old file, which another run may have changed meanwhile. `success_ms`: of this run; 0:
 * none. Frees the text. Returns 0, or errno. */
static int write_text(const struct run_figures *figures, struct figures *text, uint64_t success_ms)
{
    char *line = text_format("redlock_" SUCCESS "{%s}", figures->labels);
    int lock = figures_file_begin(figures->path);
    double before = figures_file_number(figures->path, line);
    uint64_t before_ms = before > 0 && before < 1e12 ? (uint64_t)(before * 1000 + 0.5) : 0;

    free(line);
    seconds(text, figures, SUCCESS, "When a run last ended with success; 0: never.",
            before_ms > success_ms ? before_ms : success_ms);
    int error = figures_file_write(figures->path, text->text, text->len) ? 0 : errno;
    figures_file_end(lock);
    figures_free(text);
    return error;
}

/* Writes the present figures, and notes in figures->error whether that succeeded. The mutex is
 * held; it is released while the file is written. */
static void update(struct run_figures *figures)
{
    struct figures text = compose(figures);
    uint64_t success_ms = figures->success_ms;

    pthread_mutex_unlock(&figures->mutex);
    int error = write_text(figures, &text, success_ms);
    pthread_mutex_lock(&figures->mutex);
    figures->error = error;
}

/* Waits until the condition is signaled, at most for `wait_ms`. Returns false after that time. The
 * mutex is held. */
static bool wait_for(struct run_figures *figures, uint64_t wait_ms)
{
    struct timespec until;

    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += (time_t)(wait_ms / 1000);
    return pthread_cond_timedwait(&figures->wake, &figures->mutex, &until) == 0;
}

/* Runs the writer: writes the file after each change and every FIGURES_INTERVAL_MS, until the run
 * has ended and its last figures are written. */
static void *write_figures(void *data)
{
    struct run_figures *figures = data;
    bool ended = false;

    pthread_mutex_lock(&figures->mutex);
    while (!ended) {
        while (!figures->changed && wait_for(figures, FIGURES_INTERVAL_MS))
            continue;
        ended = figures->state == STATE_ENDED;
        update(figures);
    }
    figures->written = true;
    pthread_cond_signal(&figures->wake);
    pthread_mutex_unlock(&figures->mutex);
    return NULL;
}

/* Frees the figures. The writer has ended, or was never started. */
static void free_figures(struct run_figures *figures)
{
    pthread_cond_destroy(&figures->wake);
    pthread_mutex_destroy(&figures->mutex);
    free(figures->label_value);
    free(figures->file);
    free(figures->labels);
    free(figures);
}

/* Writes the first figures. Returns -1 with *ret_figures, which is NULL if `path` is; or
 * EXIT_OUTPUT after a message. */
int run_figures_begin(const char *path, const char *name, struct run_figures **ret_figures)
{
    pthread_condattr_t attributes;

    *ret_figures = NULL;
    if (!path)
        return -1;
    figures_file_warn_name("run", path);
    struct run_figures *figures = must(calloc(1, sizeof *figures));
    figures->path = path;
    figures->name = name;
    figures->label_value = figures_label_value(name);
    figures->file = figures_file_label(path);
    figures->labels = figures_label(NULL, "name", figures->label_value);
    figures->labels = figures_label(figures->labels, "file", figures->file);
    figures->start_ms = unix_ms();
    figures->start_ns = boottime_ns();
    pthread_mutex_init(&figures->mutex, NULL);
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&figures->wake, &attributes);
    pthread_condattr_destroy(&attributes);
    struct figures text = compose(figures);
    int error = write_text(figures, &text, 0);
    if (error == 0) {
        *ret_figures = figures;
        return -1;
    }
    char *why = figures_file_error(error);
    say(SAY_ERROR, "run: the lock was not requested: --metrics-file %s cannot be written: %s", path,
        why);
    free(why);
    free_figures(figures);
    return EXIT_OUTPUT;
}

/* Starts the writer. Without a thread, the file is only written again at the end. */
void run_figures_watch(struct run_figures *figures, redlock_t *rl)
{
    if (!figures)
        return;
    figures->rl = rl;
    figures->has_writer = pthread_create(&figures->writer, NULL, write_figures, figures) == 0;
}

/* Wakes the writer because the state has changed, and releases the mutex. */
static void unlock_changed(struct run_figures *figures)
{
    figures->changed = true;
    pthread_cond_signal(&figures->wake);
    pthread_mutex_unlock(&figures->mutex);
}

/* Notes that the lock is held. */
void run_figures_held(struct run_figures *figures, redlock_lock_t *lock)
{
    if (!figures)
        return;
    pthread_mutex_lock(&figures->mutex);
    figures->state = STATE_RUNNING;
    figures->lock = lock;
    figures->acquired_ns = boottime_ns();
    unlock_changed(figures);
}

/* Notes that the lock is lost. */
void run_figures_lost(struct run_figures *figures)
{
    if (!figures)
        return;
    pthread_mutex_lock(&figures->mutex);
    figures->ending.lost = true;
    unlock_changed(figures);
}

/* Reads the client for the last time, and forgets client and lock. */
void run_figures_leave(struct run_figures *figures)
{
    if (!figures)
        return;
    pthread_mutex_lock(&figures->mutex);
    read_client(figures);
    figures->rl = NULL;
    figures->lock = NULL;
    figures->left_ns = boottime_ns();
    pthread_mutex_unlock(&figures->mutex);
}

/* Waits until the writer has written the last figures, at most END_WAIT_MS. Returns false if it is
 * still writing then. The mutex is held and released. */
static bool join_writer(struct run_figures *figures)
{
    uint64_t give_up_ns = boottime_ns() + END_WAIT_MS * NS_PER_MS;

    while (!figures->written && boottime_ns() < give_up_ns)
        wait_for(figures, END_WAIT_MS);
    bool written = figures->written;
    pthread_mutex_unlock(&figures->mutex);
    if (written)
        pthread_join(figures->writer, NULL);
    return written;
}

/* Writes the last figures, warns if that failed, and frees the figures. A writer that hangs keeps
 * them. */
void run_figures_end(struct run_figures *figures, const struct run_ending *ending)
{
    if (!figures)
        return;
    pthread_mutex_lock(&figures->mutex);
    figures->state = STATE_ENDED;
    figures->ending = *ending;
    figures->success_ms = ending->result == RUN_SUCCESS ? unix_ms() : 0;
    figures->changed = true;
    if (!figures->has_writer) {
        update(figures);
        pthread_mutex_unlock(&figures->mutex);
    } else {
        pthread_cond_signal(&figures->wake);
        if (!join_writer(figures)) {
            say(SAY_WARNING,
                "%s: --metrics-file %s lacks the last figures: the disk is too slow; name a file "
                "on another disk",
                figures->name, figures->path);
            return;
        }
    }
    if (figures->error) {
        char *why = figures_file_error(figures->error);
        say(SAY_WARNING, "%s: --metrics-file %s lacks the last figures: %s", figures->name,
            figures->path, why);
        free(why);
    }
    free_figures(figures);
}
