/* SPDX-License-Identifier: MIT
 * JSON values and lines.
 */
#include "json.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "say.h"

json_t *json_text(const char *text)
{
    json_t *value = json_string(text);

    if (value)
        return value;
    /* Not UTF-8: which bytes belong together is unknown, so each one is replaced. */
    char *mended = must(malloc(strlen(text) * 3 + 1));
    char *to = mended;
    for (const char *at = text; *at; at++) {
        if ((unsigned char)*at < 0x80)
            *to++ = *at;
        else
            to = stpcpy(to, "\xEF\xBF\xBD");
    }
    *to = '\0';
    value = must(json_string(mended));
    free(mended);
    return value;
}

char *json_line(json_t *object)
{
    char *text = must(json_dumps(must(object), JSON_COMPACT));
    char *line = text_format("%s\n", text);

    free(text);
    json_decref(object);
    return line;
}

bool json_print(json_t *object)
{
    char *line = json_line(object);
    bool failed = fputs(line, stdout) < 0;

    failed = fflush(stdout) != 0 || failed;
    free(line);
    return !failed;
}
