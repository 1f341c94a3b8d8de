/* SPDX-License-Identifier: MIT
 * `redlock status`: shows who holds a lock, and who waits for it. Inspects the lock and prints the
 * report of the inspection, as text or (--json) as a JSON object. With --permits it inspects the
 * lock of each slot of a semaphore instead; the report on the first slot says who waits for a
 * permit.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client.h"
#include "commands.h"
#include "exits.h"
#include "holding.h"
#include "inspect.h"
#include "json.h"
#include "reports.h"
#include "say.h"
#include "shown.h"
#include "stuck.h"
#include "waiters.h"

/* Time limit for closing the client, which sends pending undos first. */
#define CLOSE_BUDGET_MS 1000

/* Returns the exit code for one inspected lock: STATUS_HELD, STATUS_FREE or STATUS_UNKNOWN; another
 * one, from EXIT_USAGE on, if the servers refused the user or the request was not valid. */
static int status_exit(int error, const redlock_report_t *report)
{
    if (error == REDLOCK_EAUTH || error == REDLOCK_EINVAL)
        return exit_of_error(error, EXIT_HELD);
    int state = report_info(report).state;
    if (state == REDLOCK_STATE_UNKNOWN)
        return STATUS_UNKNOWN;
    return state == REDLOCK_STATE_HELD ? STATUS_HELD : STATUS_FREE;
}

/* Warns if the key of the lock never expires, or not within max_ttl. */
static void warn_if_stuck(const struct settings *settings, const char *name,
                          const redlock_report_t *report)
{
    char text[STUCK_TEXT_MAX];

    if (stuck_text(report, settings->max_ttl_ms, text, sizeof text))
        say(SAY_WARNING, "%s: %s", name, text);
}

/* Inspects and prints one lock. Returns the exit code of status_exit(). */
static int show_one(const struct options *options, const struct settings *settings, redlock_t *rl,
                    const char *name)
{
    int error;
    redlock_report_t *report = inspect_one(rl, name, &error);
    int result = status_exit(error, report);

    if (options->json) {
        json_t *object = holding_json("redlock.status/1", name, report);
        waiters_to_json(object, report, SIZE_MAX);
        json_print(object);
    } else {
        holding_print(name, report);
        waiters_print(report);
    }
    warn_if_stuck(settings, name, report);
    if (result >= EXIT_USAGE) {
        say(SAY_ERROR, "%s: %s", name, report_reason(report, error));
        report_say_nodes(report, SAY_ERROR);
    }
    redlock_report_free(report);
    return result;
}

/* How many permits of a semaphore are held, free and unknown. */
struct permits {
    unsigned held, free, unknown; /* numbers of slots in each state */
    int error; /* error code of the last slot whose inspection failed; REDLOCK_OK: none */
};

/* Returns the JSON object for one slot of a semaphore. */
static json_t *slot_json(const char *name, unsigned slot, const redlock_report_t *report)
{
    json_t *object = holding_json("redlock.status/1", name, report);

    json_object_set_new(object, "slot", json_integer(slot));
    return object;
}

/* Prints one line: the number of a slot of a semaphore, its state and its holder. `report` is that
 * of its inspection. */
static void print_slot(unsigned slot, const redlock_report_t *report)
{
    struct holding holding = holding_of(report);
    int state = report_info(report).state;

    show("  %-4u %s", slot, state_name(state));
    if (state == REDLOCK_STATE_HELD)
        holding_print_holder(&holding, "");
    show("\n");
}

/* Returns the exit code for a semaphore: STATUS_FREE if a permit is free; else STATUS_UNKNOWN if
 * the state of a slot is not known; else STATUS_HELD. Another one if the servers refused the user.
 */
static int permits_exit(const struct permits *permits)
{
    if (permits->error == REDLOCK_EAUTH || permits->error == REDLOCK_EINVAL)
        return exit_of_error(permits->error, EXIT_HELD);
    if (permits->free > 0)
        return STATUS_FREE;
    return permits->unknown > 0 ? STATUS_UNKNOWN : STATUS_HELD;
}

/* Inspects all slots of a semaphore. Returns an array of `slots` elements, in the order of the
 * slots. The array, its names and its reports are to be freed by the caller. */
static struct inspection *inspect_slots(redlock_t *rl, const char *name, unsigned slots)
{
    struct inspection *seen = must(calloc(slots, sizeof *seen));

    for (unsigned i = 0; i < slots; i++)
        seen[i].name = text_format("%s{#%u}", name, i);
    inspect_all(rl, seen, slots);
    return seen;
}

/* Counts the slots by the state that their inspections `seen` have found. */
static struct permits count_permits(const struct inspection *seen, unsigned slots)
{
    struct permits permits = {.error = REDLOCK_OK};

    for (unsigned i = 0; i < slots; i++) {
        int state = report_info(seen[i].report).state;
        permits.held += state == REDLOCK_STATE_HELD;
        permits.free += state == REDLOCK_STATE_FREE;
        permits.unknown += state == REDLOCK_STATE_UNKNOWN;
        permits.error = seen[i].error != REDLOCK_OK ? seen[i].error : permits.error;
    }
    return permits;
}

/* Prints the semaphore as one JSON object with its waiters and an array of its slots. `seen` are
 * the inspections of the slots. */
static void permits_json(const char *name, const struct permits *permits,
                         const struct inspection *seen, unsigned slots)
{
    json_t *list = must(json_array());

    for (unsigned i = 0; i < slots; i++)
        json_array_append_new(list, slot_json(seen[i].name, i, seen[i].report));
    json_t *object =
        must(json_pack("{s:s, s:o, s:i, s:i, s:i, s:i, s:o}", "schema", "redlock.permits/1", "name",
                       json_text(name), "permits", (int)slots, "held", (int)permits->held, "free",
                       (int)permits->free, "unknown", (int)permits->unknown, "slots", list));
    waiters_to_json(object, seen[0].report, SIZE_MAX);
    json_print(object);
}

/* Prints the semaphore as text: a line about all permits, one for each slot, and one for each
 * waiter. `seen` are the inspections of the slots. */
static void permits_print(const char *name, const struct permits *permits,
                          const struct inspection *seen, unsigned slots)
{
    show("%s: %u of %u permits held, %u free%s\n", name, permits->held, slots, permits->free,
         permits->unknown ? ", the others unknown" : "");
    for (unsigned i = 0; i < slots; i++)
        print_slot(i, seen[i].report);
    waiters_print(seen[0].report);
}

/* Inspects and prints the semaphore `name` with options->permits permits. Returns the exit code of
 * permits_exit(). */
static int show_permits(const struct options *options, const struct settings *settings,
                        redlock_t *rl, const char *name)
{
    unsigned slots = options->permits;
    struct inspection *seen = inspect_slots(rl, name, slots);
    struct permits permits = count_permits(seen, slots);

    for (unsigned i = 0; i < slots; i++)
        warn_if_stuck(settings, seen[i].name, seen[i].report);
    (options->json ? permits_json : permits_print)(name, &permits, seen, slots);
    int result = permits_exit(&permits);
    if (result >= EXIT_USAGE)
        say(SAY_ERROR, "%s: %s", name, redlock_strerror(permits.error));
    for (unsigned i = 0; i < slots; i++) {
        redlock_report_free(seen[i].report);
        free(seen[i].name);
    }
    free(seen);
    return result;
}

/* Runs `redlock status`: checks the names, and inspects and prints each lock or semaphore. Returns
 * the highest of their exit codes, or the exit code of the first error. */
int cmd_status(const struct options *options)
{
    struct settings settings;
    redlock_t *rl;
    int worst = 0, result = -1;

    if (options->operand_count == 0) {
        say(SAY_ERROR, "status: no name; write: redlock status NAME...");
        return EXIT_USAGE;
    }
    for (size_t i = 0; i < options->operand_count && result < 0; i++) {
        result = client_check_name("status", options->operands[i]);
        if (result < 0)
            result = client_check_slots("status", options->operands[i], options->permits);
    }
    if (result < 0)
        result = client_open(options, &settings, &rl);
    if (result >= 0)
        return result;
    for (size_t i = 0; i < options->operand_count; i++) {
        result = (options->permits ? show_permits : show_one)(options, &settings, rl,
                                                              options->operands[i]);
        if (result > worst)
            worst = result;
    }
    client_close(rl, CLOSE_BUDGET_MS);
    settings_free(&settings);
    return worst;
}
