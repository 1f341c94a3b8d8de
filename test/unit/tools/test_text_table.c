/* SPDX-License-Identifier: MIT
 * Tables of text: their layout, what is left out and cut in a narrow terminal, and texts that are
 * cut.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "../../../tools/shown.h"
#include "../../../tools/text_table.h"
#include "suite.h"

static const struct table_column COLUMNS[] = {
    {.title = "NAME", .least = 6},     {.title = "SHARD", .if_any = true},
    {.title = "VOTES", .right = true}, {.title = "VERSION", .optional = true},
    {.title = "HOLDER", .least = 8},
};

/* Fills in a table of two rows. `shard` is a cell of the first one. */
static void fill(struct text_table *table, const char *shard)
{
    table_init(table, COLUMNS, sizeof COLUMNS / sizeof COLUMNS[0]);
    table_add_row(table);
    table_set(table, 0, "%s", "backup/4711");
    table_set(table, 1, "%s", shard);
    table_set(table, 2, "%u/%u", 5, 5);
    table_set(table, 3, "%s", "7.2");
    table_set(table, 4, "%s", "web3/4711/1769860800");
    table_add_row(table);
    table_set(table, 0,
              "a\x1b"
              "b");
    table_set(table, 4, "\u65e5\u672c");
}

/* Compares the lines of the table with what is expected. */
static void check(const char *shard, size_t width, const char *const expected[3])
{
    struct text_table table;

    fill(&table, shard);
    char **lines = table_lines(&table, width);
    for (size_t i = 0; i < 3; i++) {
        ck_assert_str_eq(lines[i], expected[i]);
        ck_assert(text_width(lines[i]) <= width);
    }
    table_free_lines(lines, table.row_count);
    table_free(&table);
}

/* Columns are as wide as their widest cell, and an empty column that needs not be there is not. */
START_TEST(wide)
{
    check("", SIZE_MAX,
          (const char *[]){"NAME         VOTES  VERSION  HOLDER",
                           "backup/4711    5/5  7.2      web3/4711/1769860800",
                           "a\\x1bb                       \u65e5\u672c"});
    check("east", SIZE_MAX,
          (const char *[]){"NAME         SHARD  VOTES  VERSION  HOLDER",
                           "backup/4711  east     5/5  7.2      web3/4711/1769860800",
                           "a\\x1bb                              \u65e5\u672c"});
}
END_TEST

/* Too narrow: the optional column goes first, then the first column is cut, then the last one, then
 * the line. */
START_TEST(narrow)
{
    check("", 48,
          (const char *[]){"NAME         VOTES  HOLDER", "backup/4711    5/5  web3/4711/1769860800",
                           "a\\x1bb              \u65e5\u672c"});
    check("", 36,
          (const char *[]){"NAME     VOTES  HOLDER", "back...    5/5  web3/4711/1769860800",
                           "a\\x1bb          \u65e5\u672c"});
    check("", 25,
          (const char *[]){"NAME    VOTES  HOLDER", "bac...    5/5  web3/47...",
                           "a\\x1bb         \u65e5\u672c"});
    check("", 10, (const char *[]){"NAME   ...", "bac... ...", "a\\x1bb ..."});
}
END_TEST

static const struct cut_row {
    const char *text;
    size_t columns;
    const char *cut;
} CUTS[] = {
    {"hello", 5, "hello"},
    {"hello!", 5, "he..."},
    {"hello", 2, "he"},
    {"", 0, ""},
    {"x", 0, ""},
    {"\u65e5\u672c\u8a9e", 6, "\u65e5\u672c\u8a9e"},
    {"\u65e5\u672c\u8a9e", 5, "\u65e5..."},
    {"\u65e5\u672c\u8a9e", 4, "..."},        /* half of a character is not shown */
    {"e\u0301e\u0301", 2, "e\u0301e\u0301"}, /* an accent takes no column */
};

START_TEST(cut)
{
    char *text = text_cut(CUTS[_i].text, CUTS[_i].columns);

    ck_assert_str_eq(text, CUTS[_i].cut);
    free(text);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("tools_text_table");
    TCase *tcase = tcase_create("text_table");
    suite_add_tcase(suite, tcase);
    tcase_add_test(tcase, wide);
    tcase_add_test(tcase, narrow);
    tcase_add_loop_test(tcase, cut, 0, (int)(sizeof CUTS / sizeof CUTS[0]));
    return suite_run(suite);
}
