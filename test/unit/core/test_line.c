/* SPDX-License-Identifier: MIT
 * The reply of the script of the line: rl_line_parse() reads each correct one and no other. */
#include "core/line.h"
#include "suite.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Parses the text, from a copy without a byte behind it, so that the sanitizers see a read past its
 * end. */
static bool parse(const char *text, struct rl_line_reply *ret)
{
    size_t len = strlen(text);
    char *copy = malloc(len + (len == 0));

    ck_assert_ptr_nonnull(copy);
    memcpy(copy, text, len);
    bool ok = rl_line_parse(copy, len, ret);
    free(copy);
    return ok;
}

static const struct {
    const char *text;
    struct rl_line_reply reply;
} correct[] = {
    {"0 - 0 -2", {.place = 0, .length = 0}},
    {"0 - 0 -1", {.exists = true}},
    {"0 - 2 -1 77 0 900", {.length = 2, .exists = true, .head = 77, .head_trip_us = 900}},
    {"1 h 1 5000 77 3 900",
     {.place = 1,
      .length = 1,
      .is_head = true,
      .exists = true,
      .pttl_ms = 5000,
      .head = 77,
      .head_beat = 3,
      .head_trip_us = 900}},
    {"1 h 1 0 77 3 0", /* the key expires within this millisecond */
     {.place = 1, .length = 1, .is_head = true, .exists = true, .head = 77, .head_beat = 3}},
    {"1 h 1 -1 77 3 0", /* the key never expires */
     {.place = 1, .length = 1, .is_head = true, .exists = true, .head = 77, .head_beat = 3}},
    {"1 h 1 -2 77 3 0", /* there is no key */
     {.place = 1, .length = 1, .is_head = true, .head = 77, .head_beat = 3}},
    {"2 w 3 -1 77 3 900",
     {.place = 2, .length = 3, .exists = true, .head = 77, .head_beat = 3, .head_trip_us = 900}},
    {"3 d 3 -2", {.place = 3, .length = 3}},
    {"4294967295 w 4294967295 -2", {.place = UINT32_MAX, .length = UINT32_MAX}},
    {"1 h 1 9223372036854775807 9223372036854775807 9223372036854775807 9223372036854775807",
     {.place = 1,
      .length = 1,
      .is_head = true,
      .exists = true,
      .pttl_ms = INT64_MAX,
      .head = INT64_MAX,
      .head_beat = INT64_MAX,
      .head_trip_us = INT64_MAX}},
};
#define CORRECT ((int)(sizeof correct / sizeof correct[0]))

START_TEST(each_correct_reply_is_read)
{
    const struct rl_line_reply *wanted = &correct[_i].reply;
    struct rl_line_reply reply;

    memset(&reply, 0xff, sizeof reply);
    ck_assert(parse(correct[_i].text, &reply));
    ck_assert_uint_eq(reply.place, wanted->place);
    ck_assert_uint_eq(reply.length, wanted->length);
    ck_assert_int_eq(reply.is_head, wanted->is_head);
    ck_assert_int_eq(reply.exists, wanted->exists);
    ck_assert_uint_eq(reply.pttl_ms, wanted->pttl_ms);
    ck_assert_uint_eq(reply.head, wanted->head);
    ck_assert_uint_eq(reply.head_beat, wanted->head_beat);
    ck_assert_uint_eq(reply.head_trip_us, wanted->head_trip_us);
}
END_TEST

static const char *const malformed[] = {
    "",
    " ",
    "X",
    "0",
    "0 -",
    "0 - 0",
    "0 - 0 ",
    "0 - 0 -2 ", /* a blank behind the last word */
    "0 -  0 -2",
    " 0 - 0 -2",
    "0 - 0 -3",
    "0 - 0 -",
    "0 - 0 -22",
    "0 - 0 x",
    "0 - 0 2x",
    "0 - 0 +2",
    "-1 - 0 -2",
    "x - 0 -2",
    "0 -- 0 -2",
    "0 hh 1 -2",
    "1 x 1 -2",   /* no state */
    "0 w 1 -2",   /* not in the line, but with a state */
    "1 - 1 -2",   /* in the line, but without a state */
    "2 w 1 -1",   /* behind the end of the line */
    "1 w 1 5",    /* a time for one that is no head */
    "1 h 1 5000", /* a head, but none is named */
    "0 - x -2",
    "0 - -1 -2",
    "0 - 4294967296 -2",
    "4294967296 w 4294967296 -2",
    "0 - 18446744073709551616 -2",
    "0 - 0 -2 77",
    "0 - 0 -2 77 0",
    "0 - 1 -2 77 0 ",
    "0 - 1 -2 77 0 x",
    "0 - 1 -2 x 0 9",
    "0 - 1 -2 77 x 9",
    "0 - 1 -2 77 -1 9",
    "0 - 1 -2 77 0 9 ",
    "0 - 1 -2 77 0 9 1",
    "0 - 0 -2 77 0 9",                  /* a head in an empty line */
    "1 h 1 9223372036854775808 77 0 9", /* 2^63 */
    "1 h 1 18446744073709551615 77 0 9",
    "1 h 1 18446744073709551616 77 0 9", /* 2^64 */
    "1 h 1 99999999999999999999999999999999999999 77 0 9",
    "0 - 1 -2 9223372036854775808 0 9",
    "0 - 1 -2 77 9223372036854775808 9",
    "0 - 1 -2 77 0 9223372036854775808",
    "0\t-\t0\t-2",
    "0 - 0 -2\r\n",
    "0 - 0 -2\n",
    "1,h,1,5000",
};
#define MALFORMED ((int)(sizeof malformed / sizeof malformed[0]))

START_TEST(a_malformed_reply_is_refused)
{
    struct rl_line_reply reply;

    ck_assert_msg(!parse(malformed[_i], &reply), "\"%s\" was read", malformed[_i]);
}
END_TEST

/* Each correct reply that ends early, up to the last number, and each with a NUL in it. */
START_TEST(a_damaged_reply_is_refused)
{
    const char *text = correct[_i].text;
    size_t len = strlen(text);
    char copy[128];
    struct rl_line_reply reply;

    for (size_t at = 0; at < len; at++) {
        memcpy(copy, text, len);
        copy[at] = '\0';
        ck_assert_msg(!rl_line_parse(copy, len, &reply), "\"%s\" with a NUL at %zu", text, at);
    }
    size_t words = 1;
    for (size_t at = 0; at < len; at++) {
        if (text[at] != ' ')
            continue;
        bool complete = words == 4 && strchr(text, 'h') == NULL; /* only the head is missing */
        ck_assert_msg(rl_line_parse(text, at, &reply) == complete, "%.*s", (int)at, text);
        ck_assert_msg(!rl_line_parse(text, at + 1, &reply), "%.*s", (int)at + 1, text);
        words++;
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("core_line");
    TCase *tcase = tcase_create("reply");
    suite_add_tcase(suite, tcase);
    tcase_add_loop_test(tcase, each_correct_reply_is_read, 0, CORRECT);
    tcase_add_loop_test(tcase, a_malformed_reply_is_refused, 0, MALFORMED);
    tcase_add_loop_test(tcase, a_damaged_reply_is_refused, 0, CORRECT);
    return suite_run(suite);
}
