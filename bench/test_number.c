/* SPDX-License-Identifier: MIT
 * Checks number.h: which texts are numbers on a command line. */
#include "number.h"

#include "suite.h"

#define UNTOUCHED 77 /* value of the result before a call that must not change it */

/* Proves that decimal numbers from `min` to `max` are parsed as `number`. */
START_TEST(numbers_within_bounds_are_parsed)
{
    static const struct {
        const char *text;
        uint64_t min, max, number;
    } cases[] = {
        {"0", 0, 0, 0},
        {"007", 1, 9, 7},
        {"4096", 1, 4096, 4096},
        {"18446744073709551615", 0, UINT64_MAX, UINT64_MAX},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        uint64_t number = UNTOUCHED;
        ck_assert_msg(number_parse(cases[i].text, cases[i].min, cases[i].max, &number), "%s",
                      cases[i].text);
        ck_assert_uint_eq(number, cases[i].number);
    }
}
END_TEST

/* Refuses other texts and numbers out of bounds, and leaves the result unchanged. */
START_TEST(other_texts_are_refused)
{
    static const struct {
        const char *text;
        uint64_t min, max;
    } cases[] = {
        {"", 0, 9},
        {"-1", 0, UINT64_MAX},
        {"+1", 0, 9},
        {" 1", 0, 9},
        {"1 ", 0, 9},
        {"1k", 0, 9},
        {"0x1", 0, 9},
        {"0", 1, 9},
        {"10", 1, 9},
        {"18446744073709551616", 0, UINT64_MAX}, /* too large by the last digit */
        {"18446744073709551620", 0, UINT64_MAX},
        {"99999999999999999999999", 0, UINT64_MAX},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        uint64_t number = UNTOUCHED;
        ck_assert_msg(!number_parse(cases[i].text, cases[i].min, cases[i].max, &number), "%s",
                      cases[i].text);
        ck_assert_uint_eq(number, UNTOUCHED);
    }
}
END_TEST

/* Proves that only the given length of a text is read. */
START_TEST(a_part_of_a_text_is_parsed)
{
    uint64_t number = UNTOUCHED;
    ck_assert(number_parse_part("12,34", 2, 0, 99, &number));
    ck_assert_uint_eq(number, 12);
    ck_assert(!number_parse_part("12,34", 3, 0, 99, &number));
    ck_assert(!number_parse_part("12", 0, 0, 99, &number));
}
END_TEST

/* Runs all cases. Returns 0 if they pass. */
int main(void)
{
    TCase *tc = tcase_create("number");
    tcase_add_test(tc, numbers_within_bounds_are_parsed);
    tcase_add_test(tc, other_texts_are_refused);
    tcase_add_test(tc, a_part_of_a_text_is_parsed);
    Suite *suite = suite_create("bench_number");
    suite_add_tcase(suite, tc);
    return suite_run(suite);
}
