/* SPDX-License-Identifier: MIT
 * Makes and prints JSON, on top of Jansson. Running out of memory ends the process.
 */
#include "json.h"

#include <stdio.h>
#include <stdlib.h>

#include "say.h"
#include "shown.h"

/* Returns a JSON string of text_utf8(text): bytes that are not UTF-8 are replaced. To be freed by
 * json_decref(), or by the object that takes it. */
json_t *json_text(const char *text)
{
    char *utf8 = text_utf8(text);
    json_t *value = must(json_string(utf8));

    free(utf8);
    return value;
}

/* Returns the object as one line, with '\n' and with unprintable characters escaped. Frees the
 * object. To be freed. */
char *json_line(json_t *object)
{
    char *text = must(json_dumps(must(object), JSON_COMPACT));
    char *shown = json_shown(text);
    char *line = text_format("%s\n", shown);

    free(shown);
    free(text);
    json_decref(object);
    return line;
}

/* Prints the object as one line to stdout, and frees it. Returns false if that failed. */
bool json_print(json_t *object)
{
    char *line = json_line(object);
    bool failed = fputs(line, stdout) < 0;

    failed = fflush(stdout) != 0 || failed;
    free(line);
    return !failed;
}
