/* SPDX-License-Identifier: MIT
 * Collects and checks the names of locks that a command line gives.
 */
#include "names.h"

#include <stdlib.h>
#include <string.h>

#include "client.h"
#include "exits.h"
#include "json.h"
#include "say.h"

/* Returns true if one of the names equals the `len` bytes at `name`. */
bool names_have(const struct names *names, const char *name, size_t len)
{
    for (size_t i = 0; i < names->count; i++)
        if (strlen(names->list[i]) == len && !memcmp(names->list[i], name, len))
            return true;
    return false;
}

/* Checks a name and adds it to the list. `command` is the subcommand, for messages. Returns -1 on
 * success, or EXIT_USAGE after a message. */
static int add(struct names *names, const char *command, const char *name)
{
    int result = client_check_name(command, name);

    if (result >= 0)
        return result;
    if (names_have(names, name, strlen(name))) {
        say(SAY_ERROR, "%s: %s is named twice; name each lock once", command, name);
        return EXIT_USAGE;
    }
    if (names->count == REDLOCK_RESOURCES_MAX) {
        say(SAY_ERROR, "%s: more than %d names; name fewer locks", command, REDLOCK_RESOURCES_MAX);
        return EXIT_USAGE;
    }
    char *text = names->count == 0 ? text_copy(name) : text_format("%s, %s", names->text, name);
    free(names->text);
    names->text = text;
    names->list[names->count++] = name;
    return -1;
}

/* Fills *ret_names with the first `operands` operands and the names of --also. Checks their length
 * and number, that no name is given twice, and that --fence and --permits have a single name.
 * Returns -1 on success, or EXIT_USAGE after a message. */
int names_collect(struct names *ret_names, const struct options *options, size_t operands)
{
    int result = -1;

    *ret_names = (struct names){.count = 0};
    for (size_t i = 0; i < operands && result < 0; i++)
        result = add(ret_names, options->command_name, options->operands[i]);
    for (size_t i = 0; i < options->also_count && result < 0; i++)
        result = add(ret_names, options->command_name, options->also[i]);
    if (result < 0 && options->fence && ret_names->count > 1) {
        say(SAY_ERROR,
            "%s: --fence with several names: a fencing token belongs to one lock; name one, or "
            "leave "
            "--fence out",
            options->command_name);
        result = EXIT_USAGE;
    }
    if (result < 0 && options->permits && ret_names->count > 1) {
        say(SAY_ERROR,
            "%s: --permits with several names: a permit belongs to one name; name one, or leave "
            "--permits out",
            options->command_name);
        result = EXIT_USAGE;
    }
    if (result < 0)
        result = client_check_slots(options->command_name, ret_names->list[0], options->permits);
    return result;
}

/* Frees the text of the names. The names themselves are borrowed. */
void names_free(struct names *names)
{
    free(names->text);
    names->text = NULL;
}

/* Sets opts->also to all names but the first; `names` must outlive `opts`. */
void names_to_opts(const struct names *names, redlock_opts_t *opts)
{
    opts->also = names->list + 1;
    opts->also_count = names->count - 1;
}

/* Adds an array "names" with all names to `object` if there are two or more. */
void names_to_json(const struct names *names, json_t *object)
{
    if (names->count < 2)
        return;
    json_t *array = must(json_array());
    for (size_t i = 0; i < names->count; i++)
        json_array_append_new(array, json_text(names->list[i]));
    json_object_set_new(object, "names", array);
}
