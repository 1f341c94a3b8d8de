/* SPDX-License-Identifier: MIT
 * The format of the configuration file. */
#include <stdio.h>
#include <string.h>

#include "../../../tools/ini_text.h"
#include "suite.h"

static char taken[8192]; /* what take() was called with, as "LINE[SECTION]NAME=VALUE;" each */
static size_t most;      /* of the calls of take(), after which it ends the reading */

/* Implements ini_take_fn: appends the value to `taken`. */
static bool take(void *user, unsigned line, const char *section, const char *name,
                 const char *value)
{
    size_t len = strlen(taken);

    ck_assert_ptr_eq(user, taken);
    snprintf(taken + len, sizeof taken - len, "%u[%s]%s=%s;", line, section, name, value);
    return --most > 0;
}

/* Reads a copy of the text. Returns what ini_read() does. */
static unsigned read_text(const char *text)
{
    static char copy[8192];

    taken[0] = '\0';
    most = 100;
    snprintf(copy, sizeof copy, "%s", text);
    return ini_read(copy, take, taken);
}

/* Lines of the format, and the values that are in them. */
START_TEST(values)
{
    static const struct {
        const char *text, *values;
    } rows[] = {
        {"", ""},
        {"\n\n", ""},
        {"a=1", "1[]a=1;"},
        {"\xef\xbb\xbf"
         "a=1\n",
         "1[]a=1;"},
        {"[s]\na = 1\nb: 2\r\n", "2[s]a=1;3[s]b=2;"},
        {"[s]\n\n \t a  \t=\t 1 2 \t\n", "3[s]a=1 2;"},
        {"[s] ; comment\n[t ]\na=\n", "3[t ]a=;"},
        {"a==:\nb:=\n", "1[]a==:;2[]b==;"},
        {"=1\n", "1[]=1;"},
        {"#a=1\n ;b=2\n  # c\n", ""},
        {"a = 1 ; comment\nb = 1;2\nc = # 1\nd = ; 1\n", "1[]a=1;2[]b=1;2;3[]c=# 1;4[]d=;"},
        {"a = 1\n  2\n\n\t3 ; comment\n# comment\n 4=5\nb = 6\n",
         "1[]a=1;2[]a=2;4[]a=3;6[]a=4=5;7[]b=6;"},
        {"[s]\na = 1\n[t]\n  b = 2\n", "2[s]a=1;4[t]b=2;"},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        ck_assert_uint_eq(read_text(rows[i].text), 0);
        ck_assert_str_eq(taken, rows[i].values);
    }
}
END_TEST

/* A line that is not of the format ends the reading, and is named. */
START_TEST(other_lines)
{
    ck_assert_uint_eq(read_text("a = 1\nword\nb = 2\n"), 2);
    ck_assert_str_eq(taken, "1[]a=1;");
    ck_assert_uint_eq(read_text("\n\n[s\n"), 3);
    ck_assert_uint_eq(read_text(" word\n"), 1);
    ck_assert_uint_eq(read_text("a = 1\n[s]\n word\n"), 3);
    ck_assert_uint_eq(read_text("a ; = 1"), 1);
}
END_TEST

/* A line has no limit. */
START_TEST(long_line)
{
    char text[4100], expected[4200];
    int len = snprintf(text, sizeof text, "[s]\na = ");

    memset(text + len, 'x', sizeof text - (size_t)len);
    text[sizeof text - 1] = '\0';
    snprintf(expected, sizeof expected, "2[s]a=%s;", text + len);
    ck_assert_uint_eq(read_text(text), 0);
    ck_assert_str_eq(taken, expected);
}
END_TEST

/* The caller ends the reading. */
START_TEST(ended)
{
    char text[] = "a = 1\nb = 2\nword\n";

    taken[0] = '\0';
    most = 1;
    ck_assert_uint_eq(ini_read(text, take, taken), 0);
    ck_assert_str_eq(taken, "1[]a=1;");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("tools_ini_text");
    TCase *tcase = tcase_create("ini_text");
    suite_add_tcase(suite, tcase);
    tcase_add_test(tcase, values);
    tcase_add_test(tcase, other_lines);
    tcase_add_test(tcase, long_line);
    tcase_add_test(tcase, ended);
    return suite_run(suite);
}
