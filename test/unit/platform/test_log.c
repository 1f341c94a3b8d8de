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
            struct rl_log log = {level_max, record_message, &recorded, NULL};
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
    struct rl_log log = {.level_max = 4};
    rl_logf(&log, 1, "%s", "unheard"); /* must not call NULL */
}
END_TEST

START_TEST(long_messages_are_cut_and_marked)
{
    char text[2 * RL_LOG_MAX];
    struct recorded recorded = {0};
    struct rl_log log = {4, record_message, &recorded, NULL};

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
    struct rl_log log = {4, record_message, &recorded, NULL};
    rl_logf(&log, 2, "%s", "a\nb\r\x1b[31m\x7f\tz \xc3\xa4");
    ck_assert_str_eq(recorded.message, "a?b??[31m??z \xc3\xa4");
}
END_TEST

/* Lines of a log with a queue wait there, in order. What does not fit is counted, and a line says
 * so at its place. A line that is not queued does not wait. */
START_TEST(queued_lines_wait_and_lost_ones_are_counted)
{
    static struct rl_log_queue queue;
    struct recorded recorded = {0};
    struct rl_log log = {4, record_message, &recorded, &queue};
    struct rl_log_line line;
    char text[32];

    ck_assert(!rl_log_has_lines(&log) && !rl_log_take(&log, &line));
    for (unsigned round = 0; round < 2; round++) {
        for (unsigned i = 0; i < RL_LOG_LINES + 3; i++)
            rl_logf(&log, 2, "line %u", i);
        for (unsigned i = 0; i < RL_LOG_LINES; i++) {
            ck_assert(rl_log_has_lines(&log) && rl_log_take(&log, &line));
            snprintf(text, sizeof text, "line %u", i);
            ck_assert_str_eq(line.text, text);
            ck_assert_int_eq(line.level, 2);
            if (i == 0)
                rl_logf(&log, 2, "lost as well"); /* there is room, but not before the others */
        }
        ck_assert(rl_log_has_lines(&log) && rl_log_take(&log, &line));
        ck_assert_ptr_nonnull(strstr(line.text, "4 log lines were lost"));
        ck_assert(!rl_log_has_lines(&log));
    }
    ck_assert_uint_eq(recorded.count, 0);
    rl_log_now(&log, 1, "%s", "now");
    ck_assert_str_eq(recorded.message, "now");
    ck_assert(!rl_log_has_lines(&log));
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
    tcase_add_test(tcase, queued_lines_wait_and_lost_ones_are_counted);
    return suite_run(suite);
}
