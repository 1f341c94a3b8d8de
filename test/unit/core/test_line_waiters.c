/* SPDX-License-Identifier: MIT
 * Who waits in a line: the text of a waiter's record, and the reader of the value of a line's key.
 * The value is not trusted: it may be cut or damaged, or made by another program. */
#include "core/line.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "suite.h"

#define TEXT(s) ((struct rl_arg){.data = (s), .len = sizeof(s) - 1})

/* Returns what the reader makes of a value: "state since owner" of each waiter, separated by '|',
 * with '0' for NUL; "-" if the value is not that of a line. The value is in memory of exactly its
 * length, so that valgrind and ASan see a read behind it. */
static const char *read_all(struct rl_arg value)
{
    static char text[4096];
    char *copy = malloc(value.len + (value.len == 0));
    struct rl_arg records;
    struct rl_line_waiter waiter;
    size_t at = 0;

    ck_assert_ptr_nonnull(copy);
    memcpy(copy, value.data, value.len);
    text[0] = '\0';
    if (!rl_line_open((struct rl_arg){copy, value.len}, &records)) {
        free(copy);
        return "-";
    }
    while (rl_line_next_waiter(&records, &waiter)) {
        ck_assert(waiter.owner.data >= copy &&
                  waiter.owner.data + waiter.owner.len <= copy + value.len);
        at += (size_t)snprintf(text + at, sizeof text - at, "%s%c %llu ", at == 0 ? "" : "|",
                               waiter.state, (unsigned long long)waiter.since_ms);
        for (size_t i = 0; i < waiter.owner.len; i++)
            text[at++] = waiter.owner.data[i] != '\0' ? waiter.owner.data[i] : '0';
        text[at] = '\0';
    }
    free(copy);
    return text;
}

/* A value, and what the reader makes of it. */
struct reading {
    const char *bytes;
    size_t len;
    const char *expected;
};

#define BYTES(s) (s), sizeof(s) - 1
static const struct reading READINGS[] = {
    {BYTES("redlock-line\n71 3 h 250 1700000000001 web-1:99\n8 0 w 0 1700000000002 web-2\n"),
     "h 1700000000001 web-1:99|w 1700000000002 web-2"},
    {BYTES("redlock-line\n"), ""},
    {BYTES("redlock-line\n7 0 d 0 5 two words and \xc3\xa4\n"), "d 5 two words and \xc3\xa4"},
    /* without an owner label, without a time, without both */
    {BYTES("redlock-line\n7 0 w 0 1700000000000 \n"), "w 1700000000000 "},
    {BYTES("redlock-line\n7 0 w 0 17x nobody\n"), "w 0 17x nobody"},
    {BYTES("redlock-line\n7 0 w 0 \n"), "w 0 "},
    {BYTES("redlock-line\n7 0 w 0\n"), "w 0 "},
    {BYTES("redlock-line\n7 0 w 0 99999999999999999999999 me\n"), "w 0 99999999999999999999999 me"},
    /* damaged records between good ones */
    {BYTES("redlock-line\n\n \n7\n7 0\n7 0 w\n7 x w 0 1 a\n7 0 ww 0 1 b\n7 0 w -1 1 c\n 0 w 0 1 d\n"
           "9 0 w 0 1 good\n"),
     "w 1 good"},
    {BYTES("redlock-line\n7 0 w 0 1 a\0b\n9 0 h 0 2 c\n"), "w 1 a0b|h 2 c"},
    /* cut inside of a record */
    {BYTES("redlock-line\n7 0 w 0 1 whole\n8 0 w 0 2 ha"), "w 1 whole"},
    {BYTES("redlock-line\n7 0 w 0 1 cut"), ""},
    /* not a line */
    {BYTES(""), "-"},
    {BYTES("redlock-line"), "-"},
    {BYTES("redlock-lines\n7 0 w 0 1 a\n"), "-"},
    {BYTES("0123456789012345678901234567890123456789@owner"), "-"},
};

START_TEST(a_value_is_read_as_a_list_of_waiters)
{
    const struct reading *reading = &READINGS[_i];

    ck_assert_str_eq(read_all((struct rl_arg){reading->bytes, reading->len}), reading->expected);
}
END_TEST

/* Every beginning of a value is read without a read behind its end, and gives the whole records. */
START_TEST(a_value_may_be_cut_anywhere)
{
    const struct rl_arg whole = TEXT("redlock-line\n7 0 h 12 1 a\n8 3 w 0 2 b c\n");

    for (size_t len = 0; len <= whole.len; len++) {
        const char *got = read_all((struct rl_arg){whole.data, len});
        const char *expected = len < 13          ? "-"
                               : len < 26        ? ""
                               : len < whole.len ? "h 1 a"
                                                 : "h 1 a|w 2 b c";
        ck_assert_msg(strcmp(got, expected) == 0, "%zu: \"%s\" instead of \"%s\"", len, got,
                      expected);
    }
}
END_TEST

START_TEST(a_written_text_is_read_again)
{
    char text[RL_LINE_TEXT_MAX], value[64 + RL_LINE_TEXT_MAX], expected[64 + RL_LINE_TEXT_MAX],
        longest[RL_OWNER_MAX + 8];

    memset(longest, 'x', sizeof longest);
    const struct rl_arg owners[] = {
        TEXT(""), TEXT("web:1"), TEXT("a b \xc3\xa4"), {longest, sizeof longest}};
    const uint64_t times[] = {1, 1700000000123, UINT64_MAX / 10 - 1};
    for (size_t i = 0; i < sizeof owners / sizeof owners[0]; i++) {
        for (size_t k = 0; k < sizeof times / sizeof times[0]; k++) {
            size_t len = rl_line_write_text(text, times[k], owners[i]);
            ck_assert_uint_le(len, sizeof text);
            snprintf(value, sizeof value, "redlock-line\n7 0 w 0 %.*s\n", (int)len, text);
            snprintf(expected, sizeof expected, "w %llu %.*s", (unsigned long long)times[k],
                     (int)(owners[i].len < RL_OWNER_MAX ? owners[i].len : RL_OWNER_MAX),
                     owners[i].data);
            ck_assert_str_eq(read_all((struct rl_arg){value, strlen(value)}), expected);
        }
    }
}
END_TEST

/* An owner label cannot end its record, or make one of its own. */
START_TEST(a_label_with_control_bytes_stays_one_label)
{
    char text[RL_LINE_TEXT_MAX];
    size_t len = rl_line_write_text(text, 7,
                                    TEXT("a\nb\r\0\x1b\x7f"
                                         "c"));

    ck_assert_uint_eq(len, 10);
    ck_assert_int_eq(memcmp(text, "7 a?b????c", 10), 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("core_line_waiters");
    TCase *tcase = tcase_create("line");

    suite_add_tcase(suite, tcase);
    tcase_add_loop_test(tcase, a_value_is_read_as_a_list_of_waiters, 0,
                        sizeof READINGS / sizeof READINGS[0]);
    tcase_add_test(tcase, a_value_may_be_cut_anywhere);
    tcase_add_test(tcase, a_written_text_is_read_again);
    tcase_add_test(tcase, a_label_with_control_bytes_stays_one_label);
    return suite_run(suite);
}
