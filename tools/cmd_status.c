/* SPDX-License-Identifier: MIT
 * `redlock status` and `redlock break`: show who holds a lock, and delete its key. Both inspect the
 * lock and print the report of the inspection, as text or (--json) as a JSON object. In such a
 * report, a grant of a node means that its server has a key under the name, and a denial that it
 * has none. The holder is the client whose label most servers name. With --permits, `status`
 * inspects the lock of each slot of a semaphore instead.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client.h"
#include "commands.h"
#include "exits.h"
#include "inspect.h"
#include "json.h"
#include "reports.h"
#include "say.h"
#include "shown.h"
#include "stuck.h"

/* Time limit for closing the client, which sends pending undos first. */
#define CLOSE_BUDGET_MS 1000

/* The key on one server, compared with the holder that most servers name: no key, a key of that
 * holder, a key of another holder, no reply. */
enum value { VALUE_NONE = 0, VALUE_MATCH, VALUE_OTHER, VALUE_ERROR };

/* Compares the key on one server with the label `owner`. */
static enum value value_of(const redlock_node_report_t *node, const char *owner)
{
    if (node->vote == REDLOCK_VOTE_GRANTED)
        return strcmp(node->owner, owner) == 0 ? VALUE_MATCH : VALUE_OTHER;
    return node->vote == REDLOCK_VOTE_DENIED ? VALUE_NONE : VALUE_ERROR;
}

/* Returns the JSON array of what each server has under the name, compared with the holder
 * `owner`. */
static json_t *nodes_json(const redlock_report_t *report, const char *owner)
{
    static const char *const names[] = {"none", "match", "other", "error"};
    json_t *array = must(json_array());
    redlock_node_report_t node;

    for (size_t i = 0; report_node(report, i, &node); i++) {
        json_t *object =
            must(json_pack("{s:o, s:s, s:I}", "server", json_text(node.node), "value",
                           names[value_of(&node, owner)], "rtt_us", (json_int_t)node.rtt_us));
        if (node.vote == REDLOCK_VOTE_GRANTED && node.pttl_ms != UINT64_MAX)
            json_object_set_new(object, "pttl_ms", json_integer((json_int_t)node.pttl_ms));
        if (*node.owner)
            json_object_set_new(object, "owner", json_text(node.owner));
        if (*node.text)
            json_object_set_new(object, "text", json_text(node.text));
        json_array_append_new(array, object);
    }
    return array;
}

/* Returns the JSON object for one lock: its holder, votes and servers. `schema` names the format of
 * the object. */
static json_t *holding_json(const char *schema, const char *name, const redlock_report_t *report)
{
    struct holding holding = holding_of(report);
    redlock_report_info_t info = report_info(report);
    json_t *object =
        must(json_pack("{s:s, s:o, s:s, s:o, s:i, s:i, s:o}", "schema", schema, "name",
                       json_text(name), "state", state_name(info.state), "owner",
                       json_text(holding.owner), "votes", (int)holding.votes.granted, "quorum",
                       (int)info.quorum, "servers", nodes_json(report, holding.owner)));

    if (info.shard && *info.shard)
        json_object_set_new(object, "shard", json_string(info.shard));
    if (holding.pttl_min_ms != UINT64_MAX)
        json_object_set_new(object, "ttl_ms",
                            json_pack("{s:I, s:I}", "min", (json_int_t)holding.pttl_min_ms, "max",
                                      (json_int_t)holding.pttl_max_ms));
    return object;
}

/* Prints the state and the holder of one lock, and a line for each server about its key. */
static void print_holding(const char *name, const redlock_report_t *report)
{
    /* the words for enum value */
    static const char *const values[] = {"free", "held", "other", "error"};
    struct holding holding = holding_of(report);
    redlock_report_info_t info = report_info(report);
    redlock_node_report_t node;
    size_t count = info.nodes;
    size_t answered = holding.votes.granted + holding.votes.denied;

    show("%s: %s", name, state_name(info.state));
    if (holding.votes.granted > 0)
        show("%s by %s on %u of %zu servers", info.state == REDLOCK_STATE_HELD ? "" : ", but held",
             *holding.owner ? holding.owner : "a client without a label", holding.votes.granted,
             count);
    if (holding.pttl_min_ms != UINT64_MAX)
        show(", expires in %" PRIu64 " to %" PRIu64 " ms", holding.pttl_min_ms,
             holding.pttl_max_ms);
    if (info.shard && *info.shard)
        show(" (shard %s)", info.shard);
    show("\n");
    for (size_t i = 0; report_node(report, i, &node); i++)
        show("  %-24s %-6s %s\n", node.node, values[value_of(&node, holding.owner)],
             node.vote == REDLOCK_VOTE_DENIED ? "" : node.text);
    if (answered < count)
        show("  (only %zu of %zu servers replied)\n", answered, count);
}

/* Inspects one lock. Returns the report, to be freed by the caller; NULL if there is none. Sets
 * *ret_error to the error code of the inspection. */
static redlock_report_t *inspect(redlock_t *rl, const char *name, int *ret_error)
{
    struct inspection inspection = {.name = text_copy(name)};

    inspect_all(rl, &inspection, 1);
    free(inspection.name);
    *ret_error = inspection.error;
    return inspection.report;
}

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
    redlock_report_t *report = inspect(rl, name, &error);
    int result = status_exit(error, report);

    if (options->json)
        json_print(holding_json("redlock.status/1", name, report));
    else
        print_holding(name, report);
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
        show(" by %s", *holding.owner ? holding.owner : "a client without a label");
    if (state == REDLOCK_STATE_HELD && holding.pttl_min_ms != UINT64_MAX)
        show(", expires in %" PRIu64 " to %" PRIu64 " ms", holding.pttl_min_ms,
             holding.pttl_max_ms);
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

/* Prints the semaphore as one JSON object with an array of its slots. `seen` are the inspections of
 * the slots. */
static void permits_json(const char *name, const struct permits *permits,
                         const struct inspection *seen, unsigned slots)
{
    json_t *list = must(json_array());

    for (unsigned i = 0; i < slots; i++)
        json_array_append_new(list, slot_json(seen[i].name, i, seen[i].report));
    json_print(
        must(json_pack("{s:s, s:o, s:i, s:i, s:i, s:i, s:o}", "schema", "redlock.permits/1", "name",
                       json_text(name), "permits", (int)slots, "held", (int)permits->held, "free",
                       (int)permits->free, "unknown", (int)permits->unknown, "slots", list)));
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
    if (options->json)
        permits_json(name, &permits, seen, slots);
    else
        show("%s: %u of %u permits held, %u free%s\n", name, permits.held, slots, permits.free,
             permits.unknown ? ", the others unknown" : "");
    int result = permits_exit(&permits);
    if (result >= EXIT_USAGE)
        say(SAY_ERROR, "%s: %s", name, redlock_strerror(permits.error));
    for (unsigned i = 0; i < slots; i++) {
        if (!options->json)
            print_slot(i, seen[i].report);
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

/* Prints who holds the lock, and then deletes its key on all servers. Returns STATUS_FREE if there
 * was no key, EXIT_OK if the key was deleted, else the exit code of the error. */
static int break_it(const struct options *options, redlock_t *rl, const char *name)
{
    int error;
    redlock_report_t *before = inspect(rl, name, &error);
    bool has_key = report_votes(before).granted > 0;
    redlock_report_t *after = NULL;

    if (!options->json)
        print_holding(name, before);
    if (error == REDLOCK_OK && !has_key) {
        if (options->json)
            json_print(holding_json("redlock.break/1", name, before));
        redlock_report_free(before);
        return STATUS_FREE;
    }
    error = redlock_break(rl, name, &after);
    unsigned deleted = report_votes(after).granted;
    if (options->json) {
        json_t *object = holding_json("redlock.break/1", name, before);
        json_object_set_new(object, "deleted", json_integer(deleted));
        json_print(object);
    } else {
        show("%s: deleted on %u servers\n", name, deleted);
    }
    int result = exit_of_error(error, EXIT_HELD);
    if (result != EXIT_OK) {
        say(SAY_ERROR, "%s: %s", name, report_reason(after, error));
        report_say_nodes(after, SAY_ERROR);
    }
    redlock_report_free(before);
    redlock_report_free(after);
    return result;
}

/* Runs `redlock break`: does nothing without --yes, else prints the holder of one lock and deletes
 * the key. Returns the exit code. */
int cmd_break(const struct options *options)
{
    struct settings settings;
    redlock_t *rl;

    if (options->operand_count != 1) {
        say(SAY_ERROR, "break: %s; write: redlock break --yes NAME",
            options->operand_count ? "more than one name" : "no name");
        return EXIT_USAGE;
    }
    int result = client_check_name("break", options->operands[0]);
    if (result >= 0)
        return result;
    if (!options->yes) {
        say(SAY_ERROR,
            "break: nothing was done; this deletes the lock %s, and its holder works on without "
            "it: check with `redlock status`, then add --yes",
            options->operands[0]);
        return EXIT_USAGE;
    }
    result = client_open(options, &settings, &rl);
    if (result >= 0)
        return result;
    result = break_it(options, rl, options->operands[0]);
    client_close(rl, CLOSE_BUDGET_MS);
    settings_free(&settings);
    return result;
}
