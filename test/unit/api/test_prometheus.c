/* SPDX-License-Identifier: MIT
 * The text for Prometheus: escaping, numbers, which labels are allowed, and buffers that are too
 * small. The clients here never connect. test/live/test_prometheus.c compares the figures of a
 * client that does. */
/* Saves the time of Check's note about each assertion; see suite.h. */
#define SUITE_MANY_ASSERTIONS
#include "api/prometheus_text.h"

#include <stdint.h>
#include <string.h>

#include "suite.h"

#define ROOM 200000 /* bytes; enough for every text here */

static redlock_config_t *config;
static redlock_t *client;
static char text[ROOM];

/* Fixture: creates an embedded client whose addresses have passwords. It does not connect. */
static void setup(void)
{
    ck_assert_int_eq(redlock_config_new(&config, NULL), REDLOCK_OK);
    ck_assert_int_eq(redlock_config_set_mode(config, REDLOCK_MODE_EMBEDDED), REDLOCK_OK);
    ck_assert_int_eq(redlock_config_add_nodes(config, "redis://u:Qsecret@127.0.0.1:1,"
                                                      "redis://:Qsecret@127.0.0.1:2,127.0.0.1:3"),
                     REDLOCK_OK);
    ck_assert_int_eq(redlock_new(&client, config), REDLOCK_OK);
}

/* Fixture: frees the client and the configuration. */
static void teardown(void)
{
    redlock_free(client);
    redlock_config_free(config);
}

/* Returns the status of a call with one label. */
static int with_label(const char *name, const char *value)
{
    const redlock_label_t label = {name, value};

    return redlock_stats_prometheus(client, &label, 1, text, sizeof text);
}

/* Writes one line with one label, and returns it. */
static const char *line_with(const char *value)
{
    struct rl_prom prom = rl_prom_open(text, sizeof text, NULL, 0);

    rl_prom_begin(&prom, "x", "");
    rl_prom_label(&prom, "l", value);
    rl_prom_value(&prom, 1);
    rl_prom_close(&prom);
    return text;
}

/* Values of labels are escaped, valid UTF-8 is kept, and each other byte becomes U+FFFD. */
START_TEST(values_of_labels_are_escaped)
{
    static const struct {
        const char *value, *line;
    } cases[] = {
        {"", "redlock_x{l=\"\"} 1\n"},
        {"a b{}=,#", "redlock_x{l=\"a b{}=,#\"} 1\n"},
        {"\\", "redlock_x{l=\"\\\\\"} 1\n"},
        {"\"", "redlock_x{l=\"\\\"\"} 1\n"},
        {"a\nb", "redlock_x{l=\"a\\nb\"} 1\n"},
        {"a\r\tb\x7f", "redlock_x{l=\"a\r\tb\x7f\"} 1\n"},
        {"\xc3\xa9\xe2\x82\xac\xf0\x9f\x94\x92",
         "redlock_x{l=\"\xc3\xa9\xe2\x82\xac\xf0\x9f\x94\x92\"} 1\n"},
        {"\xff", "redlock_x{l=\"\xef\xbf\xbd\"} 1\n"},
        {"\xc3", "redlock_x{l=\"\xef\xbf\xbd\"} 1\n"},
        {"\xc3(", "redlock_x{l=\"\xef\xbf\xbd(\"} 1\n"},
        {"\xe2\x82", "redlock_x{l=\"\xef\xbf\xbd\xef\xbf\xbd\"} 1\n"},
        {"\x80z", "redlock_x{l=\"\xef\xbf\xbdz\"} 1\n"},
        {"\xc0\xaf", "redlock_x{l=\"\xef\xbf\xbd\xef\xbf\xbd\"} 1\n"}, /* overlong */
        {"\xe0\x80\xaf",
         "redlock_x{l=\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\"} 1\n"}, /* overlong */
        {"\xed\xa0\x80",
         "redlock_x{l=\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\"} 1\n"}, /* surrogate */
        {"\xf4\x90\x80\x80",
         "redlock_x{l=\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\"} 1\n"}, /* too large */
        {"\xf0\x80\x80\xaf",
         "redlock_x{l=\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\"} 1\n"}, /* overlong */
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        ck_assert_str_eq(line_with(cases[i].value), cases[i].line);
}
END_TEST

/* Whole numbers, and microseconds as seconds without zeros at the end. */
START_TEST(numbers_are_decimal)
{
    struct rl_prom prom = rl_prom_open(text, sizeof text, NULL, 0);
    static const int64_t times_us[] = {0,       1,         999999,   1000000, 1500000,
                                       2000010, -1,        -1500000, 64,      INT64_C(2147483648),
                                       10,      INT64_MIN, INT64_MAX};

    rl_prom_begin(&prom, "x", "_sum");
    rl_prom_value(&prom, 0);
    rl_prom_begin(&prom, "x", "");
    rl_prom_value(&prom, UINT64_MAX);
    for (size_t i = 0; i < sizeof times_us / sizeof times_us[0]; i++) {
        rl_prom_begin(&prom, "s", "");
        rl_prom_value_us(&prom, times_us[i]);
    }
    rl_prom_begin(&prom, "b", "");
    rl_prom_label_us(&prom, "le", 128);
    rl_prom_label(&prom, "m", "n");
    rl_prom_value(&prom, 7);
    rl_prom_close(&prom);
    ck_assert_str_eq(text, "redlock_x_sum 0\nredlock_x 18446744073709551615\n"
                           "redlock_s 0\nredlock_s 0.000001\nredlock_s 0.999999\nredlock_s 1\n"
                           "redlock_s 1.5\nredlock_s 2.00001\nredlock_s -0.000001\n"
                           "redlock_s -1.5\nredlock_s 0.000064\nredlock_s 2147.483648\n"
                           "redlock_s 0.00001\nredlock_s -9223372036854.775808\n"
                           "redlock_s 9223372036854.775807\n"
                           "redlock_b{le=\"0.000128\",m=\"n\"} 7\n");
}
END_TEST

/* A text that does not fit is cut, with a NUL, and nothing behind the buffer is written; the length
 * is always that of the whole text. */
START_TEST(a_text_that_does_not_fit_is_cut)
{
    static char whole[ROOM];

    int len = redlock_stats_prometheus(client, NULL, 0, whole, sizeof whole);
    ck_assert_int_gt(len, 1000);
    ck_assert_uint_eq(strlen(whole), (size_t)len);
    ck_assert_int_eq(redlock_stats_prometheus(client, NULL, 0, NULL, 0), len);
    for (size_t size = 1; size <= (size_t)len + 1;
         size += size < 300 || size > (size_t)len - 300 ? 1 : 97) {
        memset(text, 'Z', size + 1);
        ck_assert_int_eq(redlock_stats_prometheus(client, NULL, 0, text, size), len);
        ck_assert_mem_eq(text, whole, size - 1);
        ck_assert_int_eq(text[size - 1], '\0');
        ck_assert_int_eq(text[size], 'Z');
    }
}
END_TEST

/* Labels of the caller are on each figure, before those of the library. */
START_TEST(labels_are_on_each_figure)
{
    const redlock_label_t labels[] = {{"service", "bil\"ling"}, {"_a1", ""}};
    const char *expected = "{service=\"bil\\\"ling\",_a1=\"\"";
    unsigned figures = 0;

    ck_assert_int_gt(redlock_stats_prometheus(client, labels, 2, text, sizeof text), 0);
    for (char *line = strtok(text, "\n"); line != NULL; line = strtok(NULL, "\n")) {
        if (line[0] == '#')
            continue;
        figures++;
        const char *found = strchr(line, '{');
        ck_assert_msg(found != NULL && strncmp(found, expected, strlen(expected)) == 0, "%s", line);
    }
    ck_assert_uint_gt(figures, 50);
}
END_TEST

/* Names and values of labels that the contract forbids are refused, those that it allows not. */
START_TEST(labels_are_checked)
{
    static const char *const wrong[] = {"",         "1a",     "a-b",    "a b",    "a:b",    "__a",
                                        "\xc3\xa9", "cause",  "le",     "role",   "shard",  "state",
                                        "policy",   "server", "result", "rounds", "version"};
    char name[REDLOCK_LABEL_NAME_MAX + 2], value[REDLOCK_LABEL_VALUE_MAX + 2];
    redlock_label_t many[REDLOCK_LABELS_MAX + 1];
    char names[REDLOCK_LABELS_MAX + 1][2];

    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        ck_assert_msg(with_label(wrong[i], "x") == REDLOCK_EINVAL, "%s", wrong[i]);
    ck_assert_int_gt(with_label("_", "x"), 0);
    ck_assert_int_gt(with_label("Le9", "x"), 0);
    ck_assert_int_eq(with_label(NULL, "x"), REDLOCK_EINVAL);
    ck_assert_int_eq(with_label("a", NULL), REDLOCK_EINVAL);
    memset(name, 'n', sizeof name);
    memset(value, 'v', sizeof value);
    name[REDLOCK_LABEL_NAME_MAX + 1] = value[REDLOCK_LABEL_VALUE_MAX + 1] = '\0';
    ck_assert_int_eq(with_label(name, "x"), REDLOCK_EINVAL);
    ck_assert_int_eq(with_label("a", value), REDLOCK_EINVAL);
    name[REDLOCK_LABEL_NAME_MAX] = value[REDLOCK_LABEL_VALUE_MAX] = '\0';
    ck_assert_int_gt(with_label(name, value), 0);
    for (size_t i = 0; i <= REDLOCK_LABELS_MAX; i++) {
        names[i][0] = (char)('a' + i);
        names[i][1] = '\0';
        many[i] = (redlock_label_t){names[i], "x"};
    }
    ck_assert_int_eq(redlock_stats_prometheus(client, many, REDLOCK_LABELS_MAX + 1, NULL, 0),
                     REDLOCK_EINVAL);
    ck_assert_int_gt(redlock_stats_prometheus(client, many, REDLOCK_LABELS_MAX, NULL, 0), 0);
    names[3][0] = 'a';
    ck_assert_int_eq(redlock_stats_prometheus(client, many, REDLOCK_LABELS_MAX, NULL, 0),
                     REDLOCK_EINVAL);
}
END_TEST

/* Arguments that the contract forbids are refused. */
START_TEST(arguments_are_checked)
{
    ck_assert_int_eq(redlock_stats_prometheus(NULL, NULL, 0, text, sizeof text), REDLOCK_EINVAL);
    ck_assert_int_eq(redlock_stats_prometheus(client, NULL, 0, NULL, 1), REDLOCK_EINVAL);
    ck_assert_int_eq(redlock_stats_prometheus(client, NULL, 1, text, sizeof text), REDLOCK_EINVAL);
    ck_assert_int_gt(redlock_stats_prometheus(client, NULL, 0, text, 0), 0);
}
END_TEST

/* Passwords in addresses are not in the text. Servers that were not reached have neither a cause
 * nor figures that only a server can report. */
START_TEST(addresses_show_no_password)
{
    ck_assert_int_gt(redlock_stats_prometheus(client, NULL, 0, text, sizeof text), 0);
    ck_assert_ptr_null(strstr(text, "secret"));
    ck_assert_ptr_nonnull(strstr(text, "\nredlock_server_eligible{server=\"127.0.0.1:1\"} 0\n"));
    ck_assert_ptr_null(strstr(text, "\nredlock_server_excluded{"));
    ck_assert_ptr_nonnull(strstr(text, "\nredlock_servers_configured 3\n"));
    ck_assert_ptr_nonnull(strstr(text, "\nredlock_servers_eligible 0\n"));
    ck_assert_ptr_nonnull(strstr(text, "\nredlock_servers_quorum 2\n"));
    ck_assert_ptr_null(strstr(text, "\nredlock_server_uptime_seconds"));
    ck_assert_ptr_null(strstr(text, "\nredlock_server_info{"));
    ck_assert_ptr_null(strstr(text, "\nredlock_shortest_validity_seconds"));
}
END_TEST

/* Makes the suite. */
static Suite *prometheus_suite(void)
{
    Suite *suite = suite_create("prometheus");

    TCase *texts = tcase_create("text");
    tcase_add_test(texts, values_of_labels_are_escaped);
    tcase_add_test(texts, numbers_are_decimal);
    suite_add_tcase(suite, texts);
    TCase *clients = tcase_create("client");
    tcase_add_checked_fixture(clients, setup, teardown);
    tcase_add_test(clients, a_text_that_does_not_fit_is_cut);
    tcase_add_test(clients, labels_are_on_each_figure);
    tcase_add_test(clients, labels_are_checked);
    tcase_add_test(clients, arguments_are_checked);
    tcase_add_test(clients, addresses_show_no_password);
    suite_add_tcase(suite, clients);
    return suite;
}

/* Runs the suite. */
int main(void)
{
    return suite_run(prometheus_suite());
}
