/* SPDX-License-Identifier: MIT
 * Lays out tables of text. If a table is wider than it may be, optional columns are left out, the
 * last one first. Then columns are cut, the first one first.
 */
#include "text_table.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "say.h"
#include "shown.h"

/* Blanks between two columns. */
#define GAP 2

/* Sets a cell to a copy of the text. */
static void set_cell(struct text_table *table, size_t row, size_t column, const char *text)
{
    char **cell = &table->cells[row * table->column_count + column];

    free(*cell);
    *cell = text_shown(text);
}

/* Begins a table with its headings. */
void table_init(struct text_table *table, const struct table_column *columns, size_t count)
{
    if (count > TABLE_COLUMNS_MAX)
        abort();
    *table = (struct text_table){.columns = columns, .column_count = count};
    table_add_row(table);
    for (size_t i = 0; i < count; i++)
        set_cell(table, 0, i, columns[i].title);
}

/* Appends a row of empty cells. */
void table_add_row(struct text_table *table)
{
    size_t cells = (table->row_count + 1) * table->column_count;

    table->cells = must(realloc(table->cells, cells * sizeof *table->cells));
    for (size_t i = 0; i < table->column_count; i++)
        table->cells[table->row_count * table->column_count + i] = text_copy("");
    table->row_count++;
}

/* Sets a cell of the last row. */
void table_set(struct text_table *table, size_t column, const char *format, ...)
{
    va_list args;
    char *text = NULL;

    va_start(args, format);
    if (vasprintf(&text, format, args) < 0)
        text = NULL;
    va_end(args);
    must(text);
    set_cell(table, table->row_count - 1, column, text);
    free(text);
}

/* Returns the width of the widest cell of each column in `widths`; 0 for a column that is left out
 * because it is empty. */
static void measure(const struct text_table *table, size_t widths[TABLE_COLUMNS_MAX])
{
    for (size_t column = 0; column < table->column_count; column++) {
        bool any = !table->columns[column].if_any;
        widths[column] = 0;
        for (size_t row = 0; row < table->row_count; row++) {
            size_t width = text_width(table->cells[row * table->column_count + column]);
            widths[column] = width > widths[column] ? width : widths[column];
            any = any || (row > 0 && width > 0);
        }
        if (!any)
            widths[column] = 0;
    }
}

/* Returns the width of a line. A column of width 0 is left out. */
static size_t total(const struct text_table *table, const size_t widths[TABLE_COLUMNS_MAX])
{
    size_t sum = 0;

    for (size_t i = 0; i < table->column_count; i++)
        sum += widths[i] ? widths[i] + (sum ? GAP : 0) : 0;
    return sum;
}

/* Makes the columns narrower until a line is at most `width` wide, as far as that is allowed. */
static void fit(const struct text_table *table, size_t width, size_t widths[TABLE_COLUMNS_MAX])
{
    for (size_t i = table->column_count; i-- > 0 && total(table, widths) > width;)
        if (table->columns[i].optional)
            widths[i] = 0;
    for (size_t i = 0; i < table->column_count && total(table, widths) > width; i++) {
        size_t least = table->columns[i].least, excess = total(table, widths) - width;
        if (!least || widths[i] <= least)
            continue;
        widths[i] = widths[i] - least > excess ? widths[i] - excess : least;
    }
}

/* Appends `count` blanks to the line. */
static void append_blanks(FILE *line, size_t count)
{
    fprintf(line, "%*s", (int)count, "");
}

/* Returns one line of the table. To be freed. */
static char *line_of(const struct text_table *table, size_t row,
                     const size_t widths[TABLE_COLUMNS_MAX])
{
    char *text = NULL;
    size_t size, pending = 0; /* blanks that are due before the next cell that is not empty */
    FILE *line = must(open_memstream(&text, &size));

    for (size_t i = 0; i < table->column_count; i++) {
        if (!widths[i])
            continue;
        char *cell = text_cut(table->cells[row * table->column_count + i], widths[i]);
        size_t blanks = widths[i] - text_width(cell);
        if (*cell) {
            append_blanks(line, pending + (table->columns[i].right ? blanks : 0));
            fputs(cell, line);
            pending = table->columns[i].right ? 0 : blanks;
        } else {
            pending += blanks;
        }
        pending += GAP;
        free(cell);
    }
    fclose(line);
    return must(text);
}

/* Lays out all rows. A line that still is too wide is cut. */
char **table_lines(const struct text_table *table, size_t width)
{
    size_t widths[TABLE_COLUMNS_MAX];
    char **lines = must(calloc(table->row_count, sizeof *lines));

    measure(table, widths);
    fit(table, width, widths);
    for (size_t i = 0; i < table->row_count; i++) {
        char *line = line_of(table, i, widths);
        lines[i] = text_cut(line, width);
        free(line);
    }
    return lines;
}

/* Frees an array of lines. */
void table_free_lines(char **lines, size_t count)
{
    for (size_t i = 0; i < count; i++)
        free(lines[i]);
    free(lines);
}

/* Frees all cells. */
void table_free(struct text_table *table)
{
    table_free_lines(table->cells, table->row_count * table->column_count);
}
