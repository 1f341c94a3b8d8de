/* SPDX-License-Identifier: MIT
 * The log function: called for the chosen levels only, with one bounded, printable line. */
#include "platform/log.h"

#include <string.h>

#include "suite.h"

struct recorded {
    unsigned count;
    int level;
    char message[2 * RL_LOG_MAX];
};

/* Records the last message and the number of messages. */
static void record_message(int level, const char *message, void *userdata)
{
    struct recorded *recorded = userdata;
    recorded->count++;
    recorded->level = level;
    snprintf(recorded->message, sizeof recorded->message, "%s", message);
}

START_TEST(levels_up_to_the_limit_are_logged)
{
    for (int level_max = 0; level_max <= 4; level_max++)
        for (int level = 1; level <= 4; level++) {
            struct recorded recorded = {0};
            struct rl_log log = {level_max, record_message, &recorded};
            rl_logf(&log, level, "node %d: %s", 3, "up");
            ck_assert_uint_eq(recorded.count, level <= level_max ? 1 : 0);
            if (level <= level_max) {
                ck_assert_int_eq(recorded.level, level);
                ck_assert_str_eq(recorded.message, "node 3: up");
            }
        }
}
END_TEST

START_TEST(without_a_function_nothing_is_called)
{
    struct rl_log log = {4, NULL, NULL};
    rl_logf(&log, 1, "%s", "unheard"); /* must not call NULL */
}
END_TEST

START_TEST(long_messages_are_cut_and_marked)
{
    char text[2 * RL_LOG_MAX];
    struct recorded recorded = {0};
    struct rl_log log = {4, record_message, &recorded};

    memset(text, 'x', sizeof text);
    text[RL_LOG_MAX - 1] = '\0';
    rl_logf(&log, 1, "%s", text);
    ck_assert_str_eq(recorded.message, text); /* fits exactly */

    text[RL_LOG_MAX - 1] = 'x';
    text[RL_LOG_MAX] = '\0';
    rl_logf(&log, 1, "%s", text);
    ck_assert_uint_eq(strlen(recorded.message), RL_LOG_MAX - 1);
    ck_assert_str_eq(recorded.message + RL_LOG_MAX - 5, "x...");
    ck_assert_uint_eq(recorded.count, 2);
}
END_TEST

START_TEST(control_bytes_do_not_reach_a_terminal)
{
    struct recorded recorded = {0};
    struct rl_log log = {4, record_message, &recorded};
    rl_logf(&log, 2, "%s", "a\nb\r\x1b[31m\x7f\tz \xc3\xa4");
    ck_assert_str_eq(recorded.message, "a?b??[31m??z \xc3\xa4");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("platform_log");
    TCase *tcase = tcase_create("log");
    suite_add_tcase(suite, tcase);
    tcase_add_test(tcase, levels_up_to_the_limit_are_logged);
    tcase_add_test(tcase, without_a_function_nothing_is_called);
    tcase_add_test(tcase, long_messages_are_cut_and_marked);
    tcase_add_test(tcase, control_bytes_do_not_reach_a_terminal);
    return suite_run(suite);
}
