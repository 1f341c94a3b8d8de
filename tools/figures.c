/* SPDX-License-Identifier: MIT
 * Figures for Prometheus as text: gauges of the command, and those of the library.
 */
#include "figures.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "say.h"
#include "shown.h"

/* Room for the text of the library if the first try does not say more. */
#define CLIENT_ROOM 32768

/* Appends `len` bytes. */
static void append(struct figures *figures, const char *bytes, size_t len)
{
    figures->text = must(realloc(figures->text, figures->len + len + 1));
    memcpy(figures->text + figures->len, bytes, len);
    figures->len += len;
    figures->text[figures->len] = '\0';
}

/* Appends a text of text_format(), and frees it. */
static void append_text(struct figures *figures, char *text)
{
    append(figures, text, strlen(text));
    free(text);
}

/* Makes an empty text. */
void figures_begin(struct figures *figures)
{
    *figures = (struct figures){.text = text_copy("")};
}

/* Frees the text. */
void figures_free(struct figures *figures)
{
    free(figures->text);
    *figures = (struct figures){.text = NULL};
}

/* Returns a copy of `text` as UTF-8, cut before the first character that does not fit into the
 * value of a label. To be freed. */
char *figures_label_value(const char *text)
{
    char *value = text_utf8(text);
    size_t len = strlen(value);

    if (len > REDLOCK_LABEL_VALUE_MAX) {
        len = REDLOCK_LABEL_VALUE_MAX;
        while (((unsigned char)value[len] & 0xc0) == 0x80)
            len--;
        value[len] = '\0';
    }
    return value;
}

/* Appends `name="value"`, escaped, to the list `labels` (may be NULL), and frees that. Returns the
 * longer list. To be freed. */
char *figures_label(char *labels, const char *name, const char *value)
{
    char *escaped = must(malloc(2 * strlen(value) + 1)), *to = escaped;

    for (const char *at = value; *at; at++) {
        if (*at == '\\' || *at == '"' || *at == '\n')
            *to++ = '\\';
        *to++ = *at == '\n' ? 'n' : *at;
    }
    *to = '\0';
    char *longer =
        text_format("%s%s%s=\"%s\"", labels ? labels : "", labels ? "," : "", name, escaped);
    free(escaped);
    free(labels);
    return longer;
}

/* Begins a family of gauges. */
void figures_family(struct figures *figures, const char *name, const char *help)
{
    append_text(figures,
                text_format("# HELP redlock_%s %s\n# TYPE redlock_%s gauge\n", name, help, name));
}

/* Adds a line: name, labels (may be NULL) and the text of the value, which is freed. */
static void add(struct figures *figures, const char *name, const char *labels, char *value)
{
    append_text(figures, text_format("redlock_%s%s%s%s %s\n", name, labels ? "{" : "",
                                     labels ? labels : "", labels ? "}" : "", value));
    free(value);
}

/* Adds a gauge with a whole number. */
void figures_number(struct figures *figures, const char *name, const char *labels, int64_t value)
{
    add(figures, name, labels, text_format("%" PRId64, value));
}

/* Adds a gauge in seconds. */
void figures_seconds(struct figures *figures, const char *name, const char *labels, uint64_t ms)
{
    add(figures, name, labels, text_format("%" PRIu64 ".%03u", ms / 1000, (unsigned)(ms % 1000)));
}

/* Returns the whole text of the library, to be freed; NULL if the client is closed. */
static char *client_text(redlock_t *rl, const redlock_label_t *labels, size_t label_count)
{
    size_t room = CLIENT_ROOM;
    char *text = NULL;

    for (;;) {
        text = must(realloc(text, room));
        int len = redlock_stats_prometheus(rl, labels, label_count, text, room);
        if (len >= 0 && (size_t)len < room)
            return text;
        if (len < 0)
            break;
        room = (size_t)len + 1024;
    }
    free(text);
    return NULL;
}

/* Adds the families of the library that are gauges of servers. In its text each family begins with
 * a line HELP and a line TYPE. */
void figures_servers(struct figures *figures, redlock_t *rl, const redlock_label_t *labels,
                     size_t label_count)
{
    static const char wanted[] = "# HELP redlock_server";
    char *text = client_text(rl, labels, label_count);

    for (char *family = text, *next; family && *family; family = next) {
        char *type = strstr(family, "\n# TYPE ");
        next = strstr(family + 1, "\n# HELP ");
        next = next ? next + 1 : family + strlen(family);
        bool gauge = type && type < next && !strncmp(strchr(type + 8, ' '), " gauge\n", 7);
        if (gauge && !strncmp(family, wanted, strlen(wanted)))
            append(figures, family, (size_t)(next - family));
    }
    free(text);
}
