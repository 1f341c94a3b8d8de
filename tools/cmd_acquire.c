/* SPDX-License-Identifier: MIT
 * `redlock acquire`: acquires a lock that outlives the process, and prints its token to stdout.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client.h"
#include "commands.h"
#include "exits.h"
#include "json.h"
#include "pass_file.h"
#include "say.h"
#include "signals.h"
#include "timing.h"
#include "wait.h"

/* Time limit for closing the client, which sends pending undos first. */
#define CLOSE_BUDGET_MS 1000

/* Returns the JSON object that describes the acquired lock. `wait` holds the lock and its
 * report. */
static json_t *acquired_json(const struct settings *settings, const struct wait *wait,
                             const char *token)
{
    uint64_t fence = redlock_lock_fence(wait->lock);
    redlock_report_info_t info = report_info(wait->report);
    const char *name = wait->names->list[0];
    char *key = client_key(settings, name, wait->lock);
    json_t *object = must(
        json_pack("{s:s, s:o, s:o, s:s, s:s, s:I, s:I, s:i, s:i, s:i, s:i, s:I}", "schema",
                  "redlock.acquire/1", "name", json_text(name), "key", json_text(key), "token",
                  token, "owner", client_owner(), "ttl_ms", (json_int_t)settings->ttl_ms,
                  "validity_ms", (json_int_t)redlock_lock_remaining_ms(wait->lock), "configured",
                  (int)info.nodes, "granted", (int)info.granted, "quorum", (int)info.quorum,
                  "attempts", (int)info.attempts, "waited_ms", (json_int_t)wait->waited_ms));

    if (redlock_lock_slot(wait->lock) >= 0)
        json_object_set_new(object, "slot", must(json_integer(redlock_lock_slot(wait->lock))));
    if (fence)
        json_object_set_new(object, "fence", must(json_integer((json_int_t)fence)));
    names_to_json(wait->names, object);
    free(key);
    return object;
}

/* Prints token and fence; of a permit also the name of its slot, first, because that name is
 * what `extend` and `release` need. Returns false if stdout could not be written. */
static bool print_words(const struct options *options, const struct wait *wait)
{
    const char *token = redlock_lock_token(wait->lock);
    char *slot = options->permits ? client_slot_name(wait->names->list[0], wait->lock) : NULL;
    bool written = !slot || printf("%s ", slot) > 0;

    if (options->fence)
        written = written && printf("%s %" PRIu64 "\n", token, redlock_lock_fence(wait->lock)) > 0;
    else
        written = written && printf("%s\n", token) > 0;
    free(slot);
    return fflush(stdout) == 0 && written;
}

/* Prints the token, then detaches the lock, so that it is held by its token alone. If the token
 * could not be written, the lock stays attached, and the caller releases it. Returns the exit
 * code. */
static int hand_out(const struct options *options, const struct settings *settings,
                    const struct wait *wait)
{
    const char *token = redlock_lock_token(wait->lock);
    bool written;

    if (options->json)
        written = json_print(acquired_json(settings, wait, token));
    else
        written = print_words(options, wait);
    if (!written) {
        say(SAY_ERROR,
            "%s: the lock was released, because its token could not be written to stdout; check "
            "where stdout goes (a full disk, a closed pipe)",
            wait->names->text);
        return EXIT_OUTPUT;
    }
    int error = redlock_lock_detach(wait->lock);
    if (error == REDLOCK_OK)
        return EXIT_OK;
    say(SAY_ERROR, "%s: %s", wait->names->text, redlock_strerror(error));
    return exit_of_error(error, options->conflict_code);
}

/* Acquires the lock with a started client and prints its token. Closes the client. Returns the
 * exit code. */
static int acquire_with(const struct options *options, const struct settings *settings,
                        const struct names *names, redlock_t *rl)
{
    struct session session;
    struct events events;
    struct wait wait = {.session = &session,
                        .events = &events,
                        .names = names,
                        .max_ttl_ms = settings->max_ttl_ms,
                        .quorum_wait_ms = settings->quorum_wait_ms,
                        .conflict_code = options->conflict_code,
                        .permits = options->permits,
                        .signal_fd = signals_open(),
                        .watch_fd = -1};
    redlock_opts_t opts = redlock_opts(settings->ttl_ms);
    int result = session_open(&session, rl);

    events_open(&events, names->list[0], -1, options->json);
    opts.wait_ms = settings->wait_ms;
    if (options->fence)
        opts.flags |= REDLOCK_FLAG_FENCE;
    if (result < 0)
        result = wait_for_lock(&wait, opts);
    if (result < 0)
        result = hand_out(options, settings, &wait);
    redlock_lock_free(wait.lock);
    redlock_report_free(wait.report);
    session_close(&session, CLOSE_BUDGET_MS);
    close(wait.signal_fd);
    return result;
}

/* Checks that the TTL is long enough for the library and at most max_ttl. Returns -1 on success, or
 * an exit code after a message. */
static int check(const struct options *options, const struct settings *settings)
{
    struct timing timing = {.ttl_ms = settings->ttl_ms, .max_ttl_ms = settings->max_ttl_ms};
    char why[512];

    if (timing_check_ttl(&timing, why, sizeof why))
        return -1;
    say(SAY_ERROR, "%s: %s", options->command_name, why);
    return EXIT_CONFIG;
}

/* Runs `redlock acquire`: checks names and settings, starts a client, and acquires the lock.
 * Returns the exit code. */
int cmd_acquire(const struct options *options)
{
    struct settings settings;
    struct names names;
    redlock_config_t *config;
    redlock_t *rl;

    if (options->operand_count == 0) {
        say(SAY_ERROR, "acquire: no name; write: redlock acquire NAME...");
        return EXIT_USAGE;
    }
    int result = names_collect(&names, options, options->operand_count);
    if (result < 0)
        result = settings_load(options, &settings);
    if (result >= 0) {
        names_free(&names);
        return result;
    }
    result = check(options, &settings);
    if (result < 0)
        result = client_configure(&settings, &config);
    if (result < 0) {
        /* The signals are blocked before the client starts its thread, which inherits the mask. */
        signals_block();
        result = client_start(&settings, config, &rl);
        redlock_config_free(config);
        if (result < 0) {
            pass_file_follow(&settings, rl);
            client_warn(&settings, rl, true);
            client_meet(rl);
            result = acquire_with(options, &settings, &names, rl);
        }
    }
    settings_free(&settings);
    names_free(&names);
    return result;
}
