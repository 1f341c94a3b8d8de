/* SPDX-License-Identifier: MIT
 * Figures for Prometheus as text (text format 0.0.4): gauges of the command, and those of the
 * library. All names begin with "redlock_", which the functions add.
 */
#ifndef TOOLS_FIGURES_H
#define TOOLS_FIGURES_H

#include <stddef.h>
#include <stdint.h>

#include "redlock/redlock.h"

/* A text that grows. figures_begin() makes one, figures_free() frees it. */
struct figures {
    char *text; /* the figures; NUL-terminated; owned */
    size_t len; /* bytes of the text, without its NUL */
};

/* Makes an empty text. */
void figures_begin(struct figures *figures);
/* Frees the text. */
void figures_free(struct figures *figures);

/* Returns the value of a label: a copy of `text` that is UTF-8 and has at most
 * REDLOCK_LABEL_VALUE_MAX bytes. To be freed. */
char *figures_label_value(const char *text);
/* Appends `name="value"` with the value escaped to `labels`, a list of labels that may be NULL, and
 * frees `labels`. Returns the longer list. To be freed. */
char *figures_label(char *labels, const char *name, const char *value);

/* Begins a family of gauges. `help` has no '\\' and no line end. */
void figures_family(struct figures *figures, const char *name, const char *help);
/* Adds a gauge of the family `name` with a whole number. `labels`: from figures_label(); may be
 * NULL. */
void figures_number(struct figures *figures, const char *name, const char *labels, int64_t value);
/* Adds a gauge in seconds; `ms` are milliseconds. */
void figures_seconds(struct figures *figures, const char *name, const char *labels, uint64_t ms);

/* Adds what the client knows of its servers: those figures of the library that are gauges and whose
 * names begin with "redlock_server". Its counters are left out, because they would begin at 0 with
 * each run of the command. `labels`: the labels on each of them, `label_count` of them. */
void figures_servers(struct figures *figures, redlock_t *rl, const redlock_label_t *labels,
                     size_t label_count);

#endif
