/* SPDX-License-Identifier: MIT
 * No spelling of an address, however wrong, gets a password into a text.
 *
 * Uses url_list.h: parse() adds the addresses of a text to a list of parsed addresses and returns
 * 0 or an error. */
/* Saves the time of Check's note about each assertion; see suite.h. */
#define SUITE_MANY_ASSERTIONS
#include "api/url.h"
#include "api/url_mask.h"

#include <redlock/redlock.h>
#include <string.h>

#include "suite.h"
#include "url_list.h"

START_TEST(masked_addresses_show_no_password)
{
    static const struct {
        const char *list, *shown;
    } cases[] = {
        {"redis://h:1/2", "redis://h:1/2"},
        {"redis://u:secret@h:1", "redis://***@h:1"},
        {"redis://secret@h", "redis://***@h"},
        {"RediSS://u:sec@ret@h", "RediSS://***@h"},
        {"redis://u:sec/ret@h", "redis://***@h"},
        {"redis://u:sec?ret@h", "redis://***@h"},
        {"http://u:secret@h", "***"},
        {"secret://h", "***"},
        {"u:secret@h", "***"},
        {"redis://u:secret", "redis://u:***"}, /* "@host" is missing */
        {"u:secret/0", "u:***"},
        {"redis://h?password=secret", "redis://h?..."},
        {"unix:///r?db=0&password=secret", "unix:///r?..."},
        {"unix://u:secret@/r", "unix://***@/r"},
        {"[::1]:7000", "[::1]:7000"},
        {"[::1]:secret", "[::1]:***"},
        {"h\x1b[31m", "h***"},
        {"/r\x1b[31m", "/r?[31m"},
        {"/r:secret", "/r:***"},
        {"unix://u:secret", "unix://***"},
        {"redis://h/secret", "redis://h/***"},
        {"redis://u:123456", "redis://u:***"}, /* six digits are no port */
        {"redis:///secret", "redis:///***"},
        {"redis://u:secret@[::1%eth0]:1/2?x", "redis://***@[::1%eth0]:1/2?..."},
        {"u:secret@a:1;redis://u:secret@b:1", "***"},
        {"u:secret@a:1|redis://u:secret@b:1", "***"},
        {"u:secret@a:1/redis://x", "***"},
        {"redis://u:secret@a:1|redis://u:secret@b:1", "redis://***@b:1"},
        {"redis://a|secret", "redis://a***"},
        {"", ""},
    };
    char shown[RL_URL_SHOWN_MAX];
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        rl_url_mask(cases[i].list, cases[i].list, strlen(cases[i].list), shown);
        ck_assert_str_eq(shown, cases[i].shown);
    }
}
END_TEST

START_TEST(long_address_is_cut)
{
    char text[400];
    char shown[RL_URL_SHOWN_MAX];
    for (size_t len = 1; len < sizeof text - 1; len++) {
        memset(text, 'x', len);
        text[len] = '\0';
        rl_url_mask(text, text, len, shown);
        ck_assert_uint_lt(strlen(shown), sizeof shown);
        if (len > RL_URL_SHOWN_MAX - 4) {
            ck_assert_uint_eq(strlen(shown), RL_URL_SHOWN_MAX - 1);
            ck_assert_str_eq(shown + RL_URL_SHOWN_MAX - 4, "...");
        } else {
            ck_assert_str_eq(shown, text);
        }
    }
}
END_TEST

/* A comma or a blank in a password cuts it. No piece of it may be shown. */
START_TEST(passwords_cut_by_separators_are_not_shown)
{
    static const char *const lists[] = {
        "redis://u:QQQQ,QQQQ@h",       "redis://u:QQ@QQ,QQQQ@h",  "redis://u:QQQQ QQQQ@h,redis://i",
        "redis://u:QQQQ,QQ@QQ,QQQQ@h", "a,redis://u:QQ,QQ@h,b:0", "redis://:QQ,12,QQ@h",
        "redis://u:QQQQ@QQQQ@QQ,QQ@h"};
    struct list list = empty_list();
    ck_assert_int_eq(parse(&list, lists[_i]), REDLOCK_EINVAL);
    ck_assert_msg(strstr(list.error, "QQ") == NULL, "%s", list.error);
    ck_assert_msg(strstr(list.error, "%2C") != NULL, "%s", list.error);
    done(&list);
}
END_TEST

/* Checks that a changed address shows its password (the only place with two Q in a row) neither in
 * the error nor in a name, and that only a refused address has an error text. */
static void check_mutant(const char *text)
{
    struct list list = empty_list();
    int rc = parse(&list, text);
    ck_assert_msg(rc == 0 || rc == REDLOCK_EINVAL, "%s: %d", text, rc);
    ck_assert_msg((rc == 0) == (list.error[0] == '\0'), "%s: %d, \"%s\"", text, rc, list.error);
    ck_assert_msg((rc == 0) == (list.count > 0), "%s: %d", text, rc);
    ck_assert_msg(strstr(list.error, "QQ") == NULL, "\"%s\" gives \"%s\"", text, list.error);
    for (size_t i = 0; i < list.count; i++)
        ck_assert_msg(strstr(list.nodes[i].name, "QQ") == NULL, "\"%s\" names \"%s\"", text,
                      list.nodes[i].name);
    done(&list);
}

START_TEST(no_changed_byte_shows_a_password)
{
    static const char *const originals[] = {"redis://ada:QQQQQQ@[::1]:7000/3",
                                            "a:1,valkey://:QQQQQQ@host:7000,/run/r",
                                            "unix://ada:QQQQQQ@/run/redis.sock?db=5"};
    const char *original = originals[_i];
    size_t len = strlen(original);
    char text[128];

    for (size_t at = 0; at <= len; at++) {
        for (unsigned byte = 1; byte < 256; byte++) {
            memcpy(text, original, at); /* a byte is inserted */
            text[at] = (char)byte;
            strcpy(text + at + 1, original + at);
            check_mutant(text);
            strcpy(text, original); /* a byte is changed */
            if (at < len)
                text[at] = (char)byte;
            check_mutant(text);
        }
        memcpy(text, original, at); /* a byte is left out, or the text is cut */
        strcpy(text + at, at < len ? original + at + 1 : "");
        check_mutant(text);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("api_url_passwords");
    TCase *tcase = tcase_create("secrets");
    suite_add_tcase(suite, tcase);
    tcase_set_timeout(tcase, 60);
    tcase_add_test(tcase, masked_addresses_show_no_password);
    tcase_add_test(tcase, long_address_is_cut);
    tcase_add_loop_test(tcase, passwords_cut_by_separators_are_not_shown, 0, 7);
    tcase_add_loop_test(tcase, no_changed_byte_shows_a_password, 0, 3);
    return suite_run(suite);
}
