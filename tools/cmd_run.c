/* SPDX-License-Identifier: MIT
 * `redlock run`: the steps before the command runs. cmd_run() checks everything that can be checked
 * without the servers. run_guarded() starts the guardian, before the library starts a thread, and
 * the client. acquire_lock() waits for the lock, and run_locked() starts the command. Two
 * more processes take part: the starter executes the command, and the guardian kills the command if
 * the lock is about to be lost. run_loop.c and run_end.c have the steps that follow. Functions that
 * return an int return -1 to continue, or the exit code of the program.
 */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client.h"
#include "clock.h"
#include "command_path.h"
#include "commands.h"
#include "descendants.h"
#include "exits.h"
#include "mask.h"
#include "pass_file.h"
#include "run.h"
#include "say.h"
#include "shown.h"
#include "signals.h"
#include "wait.h"

/* Time limit for closing the client, which sends pending undos first. */
#define CLOSE_BUDGET_MS 1000
/* Time, in ms, that is reserved for a second try to extend, if no node timeout is configured. */
#define TRY_MS 250

/* Checks that a name and a command were given, and collects the names of the lock in run->names.
 * Returns -1 on success, or an exit code after a message. */
static int check_operands(struct run *run)
{
    const struct options *options = run->options;

    if (options->operand_count == 0) {
        say(SAY_ERROR, "run: no name and no command; write: redlock run NAME -- CMD");
        return EXIT_USAGE;
    }
    const char *name = options->operands[0];
    if (options->shell_command && options->operand_count > 1) {
        say(SAY_ERROR, "run: a command and -c were given; quote all of it: -c 'CMD ARG'");
        return EXIT_USAGE;
    }
    if (!options->shell_command && options->operand_count < 2) {
        char *word = shell_word(name);
        say(SAY_ERROR,
            "run: no command for %s; write: redlock run %s -- CMD (a lock without a command: "
            "redlock acquire)",
            name, word);
        free(word);
        return EXIT_USAGE;
    }
    int result = names_collect(&run->names, options, 1);
    run->name = run->names.text;
    return result;
}

/* Returns true if run->names has one of the names that an enclosing `redlock run` holds. These are
 * `name` and, if it holds several, the lines of the variable REDLOCK_NAMES. */
static bool is_held(const struct run *run, const char *name)
{
    const char *at = getenv("REDLOCK_NAMES");
    bool found = names_have(&run->names, name, strlen(name));

    while (at && *at && !found) {
        size_t len = strcspn(at, "\n");
        found = names_have(&run->names, at, len);
        at += len + (at[len] != '\0');
    }
    return found;
}

/* Returns true if an enclosing `redlock run`, whose variables are in our environment, holds what
 * this one would wait for: the same lock, or a permit of the same semaphore. REDLOCK_SLOT is set if
 * the enclosing one holds a permit. A permit holds the lock `name{#slot}`, so a lock of that name
 * would wait for it, too. A lock and a semaphore of the same name do not wait for each other. */
static bool is_inside(const struct run *run)
{
    const char *held = getenv("REDLOCK_HELD"), *name = getenv("REDLOCK_NAME");
    const char *slot = getenv("REDLOCK_SLOT");
    bool wants_permit = run->options->permits != 0;

    if (!held || strcmp(held, "1") != 0 || !name)
        return false;
    if (wants_permit || !slot)
        return (slot || !wants_permit) && is_held(run, name);
    char *slot_name = text_format("%s{#%s}", name, slot);
    bool found = is_held(run, slot_name);
    free(slot_name);
    return found;
}

/* Refuses to wait for a lock that an enclosing `redlock run` holds. Returns -1 on success, or
 * EXIT_USAGE after a message. */
static int check_nested(const struct run *run)
{
    bool permit = run->options->permits != 0;

    if (run->options->allow_nested || !is_inside(run))
        return -1;
    say(SAY_ERROR,
        permit
            ? "run: this already runs under a permit of %s, and a second one might wait for ever; "
              "leave the inner `redlock run` out, or give --allow-nested"
            : "run: this already runs under the lock %s and would wait for itself; leave the "
              "inner `redlock run` out, or give --allow-nested",
        run->name);
    return EXIT_USAGE;
}

/* Fills in run->timing and checks that the durations fit together. Returns -1 on success, or
 * EXIT_CONFIG after a message. */
static int check_timing(struct run *run)
{
    const struct settings *settings = &run->settings;
    char why[512];

    if (!run->options->no_renew && !settings_renews(settings))
        return EXIT_CONFIG;
    run->timing = (struct timing){
        .ttl_ms = settings->ttl_ms,
        .max_ttl_ms = settings->max_ttl_ms,
        .validity_ms = client_validity_ms(settings),
        .renew_ms = run->options->no_renew ? 0 : settings->renew_ms,
        .grace_ms = settings->grace_ms,
        .min_hold_ms = run->options->min_hold_ms,
        .max_hold_ms = run->options->max_hold_ms,
        .try_ms = settings->node_timeout_ms ? settings->node_timeout_ms : TRY_MS,
    };
    if (timing_check(&run->timing, why, sizeof why))
        return -1;
    say(SAY_ERROR, "run: %s", why);
    return EXIT_CONFIG;
}

/* Sets run->argv to the command and run->path to the file of its program. Returns -1 on success, or
 * an exit code after a message. */
static int find_command(struct run *run)
{
    static const char *shell[] = {"/bin/sh", "-c", NULL, NULL};

    if (run->options->shell_command) {
        shell[2] = run->options->shell_command;
        run->argv = (char **)(void *)shell;
    } else {
        run->argv = run->options->operands + 1;
    }
    const char *shown = mask_word(run->argv[0]);
    int result = command_resolve(run->argv[0], &run->path);
    if (result == 0)
        return -1;
    /* A later "--" suggests that the word was meant as a second name, not as the command. */
    for (size_t i = 2; result == EXIT_NOT_FOUND && i < run->options->operand_count; i++)
        if (!strcmp(run->options->operands[i], "--") && !run->options->shell_command) {
            char *first = shell_word(run->options->operands[0]), *second = shell_word(shown);
            say(SAY_ERROR,
                "run: %s: command not found; if it is a second lock: redlock run %s -a %s -- CMD",
                shown, first, second);
            free(first);
            free(second);
            return result;
        }
    say(SAY_ERROR, "run: %s: %s (the lock was not requested)", shown,
        result == EXIT_NOT_FOUND ? COMMAND_NOT_FOUND : COMMAND_CANNOT_RUN);
    return result;
}

/* Sets the variable `name` of the environment to `value` as decimal number. */
static void set_number(struct environment *environment, const char *name, uint64_t value)
{
    char text[24];

    snprintf(text, sizeof text, "%" PRIu64, value);
    environment_set(environment, name, text);
}

/* Sets REDLOCK_NAMES to the names, one in each line, if there are several; else removes it. */
static void set_names(struct environment *environment, const struct names *names)
{
    char *text = text_copy(names->list[0]);

    for (size_t i = 1; i < names->count; i++) {
        char *longer = text_format("%s\n%s", text, names->list[i]);
        free(text);
        text = longer;
    }
    environment_unset(environment, "REDLOCK_NAMES");
    if (names->count > 1)
        environment_set(environment, "REDLOCK_NAMES", text);
    free(text);
}

/* Makes the environment of the command: a copy of ours, with the variables that describe the lock
 * and, without --keep-env, without passwords. */
static void fill_environment(struct run *run)
{
    struct environment *environment = &run->environment;

    environment_copy(environment);
    if (!run->options->keep_env)
        environment_remove_passwords(environment);
    environment_unset(environment, "REDLOCK_TOKEN");
    environment_unset(environment, "REDLOCK_FENCE");
    environment_unset(environment, "REDLOCK_SLOT");
    environment_set(environment, "REDLOCK_HELD", "1");
    environment_set(environment, "REDLOCK_NAME", run->names.list[0]);
    set_names(environment, &run->names);
    environment_set(environment, "REDLOCK_KEY", run->key);
    environment_set(environment, "REDLOCK_OWNER", client_owner());
    set_number(environment, "REDLOCK_TTL_MS", run->timing.ttl_ms);
    set_number(environment, "REDLOCK_ACQUIRED_AT", unix_ms());
    if (run->options->fence)
        set_number(environment, "REDLOCK_FENCE", redlock_lock_fence(run->lock));
    if (run->options->permits)
        set_number(environment, "REDLOCK_SLOT", (uint64_t)redlock_lock_slot(run->lock));
    if (run->options->export_token)
        environment_set(environment, "REDLOCK_TOKEN", redlock_lock_token(run->lock));
}

/* Returns the options of the acquisition. The library undoes grants that leave no time to work
 * before the command would have to be stopped. */
static redlock_opts_t lock_options(const struct run *run)
{
    const struct timing *timing = &run->timing;
    /* time before the deadline at which the command gets its stop signal, or is killed */
    uint64_t end_ms = timing->grace_ms > KILL_RESERVE_MS ? timing->grace_ms : KILL_RESERVE_MS;
    redlock_opts_t opts = redlock_opts(timing->ttl_ms);

    opts.wait_ms = run->settings.wait_ms;
    if (run->options->fence)
        opts.flags |= REDLOCK_FLAG_FENCE;
    opts.validity_ms_min = end_ms + 1;
    opts.hold_ms_max = timing->max_hold_ms;
    /* The event "endangered" comes at the margin. It has to come before the stop of the command, as
     * an event of its own, so a tenth of the TTL is added. */
    opts.margin_ms = end_ms + timing->ttl_ms / 10;
    if (timing->renew_ms) {
        opts.flags |= REDLOCK_FLAG_AUTO_EXTEND;
        opts.extend_at_ms = timing_extend_at_ms(timing);
    }
    return opts;
}

/* Acquires the lock and reports it as message and event. Returns -1, with run->lock set, or an exit
 * code after a message. */
static int acquire_lock(struct run *run)
{
    struct wait wait = {.session = &run->session,
                        .events = &run->events,
                        .names = &run->names,
                        .max_ttl_ms = run->settings.max_ttl_ms,
                        .quorum_wait_ms = run->settings.quorum_wait_ms,
                        .conflict_code = run->options->conflict_code,
                        .permits = run->options->permits,
                        .signal_fd = run->signal_fd,
                        .watch_fd = run->job.guardian.report_fd};
    int result = wait_for_lock(&wait, lock_options(run));

    run->lock = wait.lock;
    if (result < 0 && wait.report) {
        redlock_report_info_t info = report_info(wait.report);
        uint64_t validity_ms = redlock_lock_remaining_ms(run->lock);
        say(SAY_INFO,
            "%s: acquired on %u of %u servers after %" PRIu64 " ms, valid for %" PRIu64 " ms",
            run->name, info.granted, info.nodes, wait.waited_ms, validity_ms);
        json_t *fields = must(json_pack(
            "{s:i, s:i, s:i, s:i, s:I, s:I}", "granted", (int)info.granted, "configured",
            (int)info.nodes, "quorum", (int)info.quorum, "attempts", (int)info.attempts,
            "waited_ms", (json_int_t)wait.waited_ms, "validity_ms", (json_int_t)validity_ms));
        if (run->options->fence)
            json_object_set_new(fields, "fence",
                                must(json_integer((json_int_t)redlock_lock_fence(run->lock))));
        names_to_json(&run->names, fields);
        if (run->options->permits)
            json_object_set_new(fields, "slot", must(json_integer(redlock_lock_slot(run->lock))));
        event_emit(&run->events, "acquired", fields);
    }
    redlock_report_free(wait.report);
    return result;
}

/* Starts the command under the lock, runs the loop until the command has ended, and does what
 * follows. If the starter has ended or the command cannot be started, releases the lock and says so
 * instead. Returns the exit code. */
static int run_locked(struct run *run)
{
    run->acquired_ns = boottime_ns();
    run_figures_held(run->figures, run->lock);
    run_refresh_deadline(run);
    /* The guardian has the kill time before there is a process to kill. */
    run_feed_guardian(run);
    run->key = client_key(&run->settings, run->names.list[0], run->lock);
    fill_environment(run);
    if (run->reports_end || job_start(&run->job, run->path, run->argv, run->environment.list,
                                      run->options->foreground) != 0)
        return run_not_started(run);
    guardian_close_requests(&run->job.guardian);
    run_job(run);
    return run_end(run);
}

/* Starts guardian and client, acquires the lock, runs the command, and ends client and guardian.
 * `config` is the configuration of the client and stays the caller's. Returns the exit code. */
static int run_guarded(struct run *run, redlock_config_t *config)
{
    redlock_t *rl = NULL;
    int result;

    if (!descendants_visible())
        say(SAY_WARNING,
            "%s: /proc cannot be read, or is that of another PID namespace: processes outside of "
            "the command's process group get no grace and are not counted; mount /proc",
            run->name);
    signals_block();
    if (guardian_start(&run->job.guardian, NULL) != 0) {
        guardian_say_no_process("run: cannot fork", errno);
        return EXIT_SYSTEM;
    }
    run->signal_fd = signals_open();
    result = client_start(&run->settings, config, &rl);
    if (result < 0) {
        run_figures_watch(run->figures, rl);
        pass_file_follow(&run->settings, rl);
        client_warn(&run->settings, rl, true);
        client_meet(rl);
        result = session_open(&run->session, rl);
        if (result < 0)
            result = acquire_lock(run);
        if (result < 0)
            result = run_locked(run);
        run_figures_leave(run->figures);
        redlock_lock_free(run->lock);
        run_report_release(run, session_close(&run->session, CLOSE_BUDGET_MS) != REDLOCK_OK);
    }
    bool killed = guardian_end(&run->job.guardian, run->stop == STOP_INTERNAL);
    close(run->signal_fd);
    /* The guardian killed although this process never sent the stop signal: it was stopped
     * itself. */
    if (killed && !run->stop && run->end_signals < 2 && result == EXIT_SIGNAL_BASE + SIGKILL) {
        say(SAY_ERROR,
            "%s: redlock was suspended for too long, and its guardian killed the command; raise -t "
            "if "
            "that may happen again",
            run->name);
        return run->options->preserve_status ? result : EXIT_STOPPED;
    }
    return result;
}

/* Runs `redlock run`. Returns the exit code: that of the command, or that of the reason why it was
 * not started or was stopped. */
int cmd_run(const struct options *options)
{
    struct run run = {.options = options, .session = {.note_read = -1, .note_write = -1}};
    redlock_config_t *config = NULL;
    int result = check_operands(&run);

    if (result < 0)
        result = check_nested(&run);
    if (result < 0)
        result = settings_load(options, &run.settings);
    if (result < 0)
        result = check_timing(&run);
    if (result < 0)
        result = client_configure(&run.settings, &config);
    if (result < 0)
        result = find_command(&run);
    if (result < 0)
        result = run_figures_begin(options->metrics_file, run.names.list[0], &run.figures);
    if (result < 0) {
        events_open(&run.events, run.names.list[0], options->status_fd, options->json);
        result = run_guarded(&run, config);
        const struct run_ending ending = run_ending_of(&run, result);
        run_figures_end(run.figures, &ending);
    }
    redlock_config_free(config);
    environment_free(&run.environment);
    names_free(&run.names);
    free(run.key);
    free(run.path);
    redlock_report_free(run.release_report);
    settings_free(&run.settings);
    return result;
}
