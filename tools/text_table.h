/* SPDX-License-Identifier: MIT
 * Tables of text: columns as wide as their longest cell, and narrower ones if a terminal has not
 * enough columns.
 */
#ifndef TOOLS_TEXT_TABLE_H
#define TOOLS_TEXT_TABLE_H

#include <stdbool.h>
#include <stddef.h>

/* Most columns of a table. */
#define TABLE_COLUMNS_MAX 16

/* One column. */
struct table_column {
    const char *title; /* its heading */
    bool right;        /* its cells are aligned to the right */
    bool if_any;       /* it is left out if all its cells are empty */
    bool optional;     /* it is left out if the table does not fit */
    size_t least;      /* it may be cut to this width if the table does not fit; 0: never */
};

/* A table. Row 0 has the headings. */
struct text_table {
    const struct table_column *columns; /* borrowed */
    size_t column_count;
    char **cells; /* by row, then by column; printable; owned */
    size_t row_count;
};

/* Begins a table with a row of headings. table_free() is needed. */
void table_init(struct text_table *table, const struct table_column *columns, size_t count);
/* Appends a row of empty cells. */
void table_add_row(struct text_table *table);
/* Sets a cell of the last row, as printf() does. Unprintable characters are escaped. */
void table_set(struct text_table *table, size_t column, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Returns an array of one line for each row, none wider than `width` columns of a terminal
 * (SIZE_MAX: no limit), without blanks at their ends. To be freed with table_free_lines(). */
char **table_lines(const struct text_table *table, size_t width);
/* Frees what table_lines() has returned. */
void table_free_lines(char **lines, size_t count);
/* Frees all cells. */
void table_free(struct text_table *table);

#endif
