/* SPDX-License-Identifier: MIT
 * `redlock break`: shows who holds a lock, deletes its key, says on how many servers, and prints
 * those on which nothing was deleted.
 */
#include <stdlib.h>
#include <string.h>

#include "breaking.h"
#include "client.h"
#include "commands.h"
#include "exits.h"
#include "holding.h"
#include "inspect.h"
#include "json.h"
#include "say.h"
#include "shown.h"

/* Time limit for closing the client, which sends pending undos first. */
#define CLOSE_BUDGET_MS 1000

/* Returns the JSON array of the servers on which nothing was deleted, with what is there now. */
static json_t *others_json(const struct breaking *breaking)
{
    json_t *array = must(json_array());
    redlock_node_report_t node;

    for (size_t i = 0; report_node(breaking->after, i, &node); i++) {
        if (breaking_has_deleted(breaking, i))
            continue;
        json_t *object =
            must(json_pack("{s:o, s:s}", "server", json_text(node.node), "value",
                           value_name(value_of(&node, report_owner(breaking->before)))));
        if (node.vote != REDLOCK_VOTE_DENIED && *node.text)
            json_object_set_new(object, "text", json_text(node.text));
        json_array_append_new(array, object);
    }
    return array;
}

/* Prints a line for each server on which nothing was deleted: it has no key, it was not reached, or
 * a key is there. */
static void print_others(const struct breaking *breaking)
{
    redlock_node_report_t node;

    for (size_t i = 0; report_node(breaking->after, i, &node); i++) {
        enum value value = value_of(&node, report_owner(breaking->before));
        if (breaking_has_deleted(breaking, i))
            continue;
        show("  %-24s %-6s %s%s\n", node.node, value_word(value),
             value == VALUE_NONE ? "no key" : node.text,
             value == VALUE_ERROR ? ": its key, if any, expires by itself" : "");
    }
}

/* Prints the result, as text or JSON. */
static void print_result(const struct options *options, const char *name,
                         const struct breaking *breaking)
{
    unsigned deleted = breaking_count(breaking), count = report_info(breaking->broken).nodes;

    if (options->json) {
        json_t *object = holding_json("redlock.break/1", name, breaking->before);
        json_object_set_new(object, "deleted", json_integer(deleted));
        json_object_set_new(object, "configured", json_integer(count));
        json_object_set_new(object, "others", others_json(breaking));
        json_print(object);
        return;
    }
    show("%s: deleted on %u of %u servers\n", name, deleted, count);
    print_others(breaking);
}

/* Prints who holds the lock, and then deletes its key on all servers. Returns STATUS_FREE if there
 * was no key, EXIT_OK if the key was deleted, else the exit code of the error. */
static int break_it(const struct options *options, redlock_t *rl, const char *name)
{
    int error;
    struct breaking breaking = {.before = inspect_one(rl, name, &error)};
    bool has_key = report_votes(breaking.before).granted > 0;

    if (!options->json)
        holding_print(name, breaking.before);
    if (error == REDLOCK_OK && !has_key) {
        if (options->json)
            json_print(holding_json("redlock.break/1", name, breaking.before));
        redlock_report_free(breaking.before);
        return STATUS_FREE;
    }
    error = breaking_run(rl, name, &breaking);
    print_result(options, name, &breaking);
    int result = exit_of_error(error, EXIT_HELD);
    if (result != EXIT_OK) {
        say(SAY_ERROR, "%s: %s", name, report_reason(breaking.broken, error));
        report_say_nodes(breaking.broken, SAY_ERROR);
    }
    breaking_free(&breaking);
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
