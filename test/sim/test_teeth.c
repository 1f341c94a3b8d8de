/* SPDX-License-Identifier: MIT
 * Would the simulator notice? Reads rules.txt: each rule that has a switch is switched off, and the
 * seed of its row must then end in a violation, and must not without it. */
#include "crowd.h"
#include "rules.h"
#include "suite.h"
#include "world.h"

#include <inttypes.h>
#include <sodium.h>
#include <string.h>
#include <unistd.h>

#define ROWS_MAX    100
#define LINE_MAX_   400
#define RULES       49 /* R1 to R49 */
#define TRIES       6000
#define CROWD_SEEDS 30

struct row {
    char line[LINE_MAX_];
    unsigned rule; /* 0: not of the list */
    int off;       /* -1: no switch */
    uint64_t seed;
    const struct sim_case *question; /* NULL: a seed is needed */
    const char *words;
};

static struct row rows[ROWS_MAX];
static unsigned row_count;

static char *column(char **rest)
{
    char *text = *rest, *end = strchr(text, '|');

    *rest = end != NULL ? end + 1 : text + strlen(text);
    if (end != NULL)
        *end = '\0';
    text += strspn(text, " ");
    for (size_t len = strlen(text); len > 0 && (text[len - 1] == ' ' || text[len - 1] == '\n');)
        text[--len] = '\0';
    return text;
}

static void parse(struct row *row)
{
    char *rest = row->line;
    const char *rule = column(&rest), *name = column(&rest), *seed = column(&rest);

    row->words = column(&rest);
    row->rule = rule[0] == 'R' ? (unsigned)strtoul(rule + 1, NULL, 10) : 0;
    row->off = strcmp(name, "-") == 0 ? -1 : sim_rule_find(name);
    ck_assert_msg(row->off >= 0 || strcmp(name, "-") == 0, "no switch is called %s", name);
    ck_assert_msg(row->words[0] != '\0', "%s, %s: the last column is empty", rule, name);
    row->seed = strtoull(seed, NULL, 10);
    bool asks = strcmp(seed, "crowd") == 0;
    row->question = asks ? sim_case_find(row->words) : NULL;
    ck_assert_msg(!asks || row->question != NULL, "there is no case called %s", row->words);
}

static void read_rows(void)
{
    FILE *file = fopen(RULES_FILE, "r");

    ck_assert_ptr_nonnull(file);
    row_count = 0;
    while (row_count < ROWS_MAX && fgets(rows[row_count].line, LINE_MAX_, file) != NULL) {
        if (rows[row_count].line[0] == '#' || rows[row_count].line[0] == '\n')
            continue;
        parse(&rows[row_count++]);
    }
    fclose(file);
    ck_assert_uint_lt(row_count, ROWS_MAX);
}

START_TEST(each_rule_has_a_row)
{
    for (unsigned rule = 1; rule <= RULES; rule++) {
        bool found = false;
        for (unsigned i = 0; i < row_count; i++)
            found = found || rows[i].rule == rule;
        ck_assert_msg(found, "R%u has no row", rule);
    }
    for (int off = 0; off < RL_RULE_COUNT; off++) {
        bool found = false;
        for (unsigned i = 0; i < row_count; i++)
            found = found || rows[i].off == off;
        ck_assert_msg(found, "%s has no row", sim_rule_name((enum rl_rule)off));
    }
}
END_TEST

/* Where a row says "test/...", there is such a file. */
START_TEST(tests_that_are_named_exist)
{
    unsigned seen = 0;

    for (unsigned i = 0; i < row_count; i++) {
        const char *at = rows[i].off < 0 ? strstr(rows[i].words, "test/") : NULL;
        for (; at != NULL; at = strstr(at + 1, "test/")) {
            char path[LINE_MAX_ + 200];
            int len = (int)strcspn(at, " ,;)");
            snprintf(path, sizeof path, "%s/%.*s", SOURCE_ROOT, len, at);
            ck_assert_msg(access(path, R_OK) == 0, "R%u: there is no %.*s", rows[i].rule, len, at);
            seen++;
        }
    }
    ck_assert_uint_gt(seen, 0);
}
END_TEST

/* The seed is clean, and is not without the rule, for the reason that its row gives. */
static bool notices(const struct row *row, uint64_t seed)
{
    static struct sim_world world;

    rl_rules_off[row->off] = true;
    bool good = sim_world_run(&world, seed, false);
    rl_rules_off[row->off] = false;
    bool as_said = !good && strstr(world.violation, row->words) != NULL;
    sim_world_free(&world);
    if (!as_said)
        return false;
    good = sim_world_run(&world, seed, false);
    sim_world_free(&world);
    return good;
}

static bool stays_within_bounds(const struct row *row, uint64_t seed, bool off)
{
    static struct sim_world world;
    static struct sim_crowd crowd;

    rl_rules_off[row->off] = off;
    bool good = sim_case_run(row->question, seed, false, &world, &crowd);
    rl_rules_off[row->off] = false;
    fprintf(stderr, "%s, %s %s: %s\n", row->question->name, sim_rule_name((enum rl_rule)row->off),
            off ? "off" : "on", good ? "within its bounds" : world.violation);
    sim_world_free(&world);
    return good;
}

/* The case stays within its bounds, and does not without the rule: with some seed at least, where
 * it takes bad luck. */
static void ask(const struct row *row)
{
    for (uint64_t seed = 1; seed <= CROWD_SEEDS; seed++) {
        ck_assert(stays_within_bounds(row, seed, false));
        if (!stays_within_bounds(row, seed, true))
            return;
    }
    ck_abort_msg("nobody notices that %s is switched off", sim_rule_name((enum rl_rule)row->off));
}

/* A change of the library can make another run of a seed. Then others are tried: the rule must be
 * noticed, and the row wants a new seed. */
START_TEST(is_noticed)
{
    const struct row *row = &rows[_i];

    if (_i < (int)row_count && row->question != NULL) {
        ask(row);
        return;
    }
    if (_i >= (int)row_count || row->off < 0 || notices(row, row->seed))
        return;
    for (uint64_t seed = 1; seed <= TRIES; seed++) {
        if (!notices(row, seed))
            continue;
        fprintf(stderr, "%s: seed %" PRIu64 " is worn out, %" PRIu64 " is sharp\n",
                sim_rule_name((enum rl_rule)row->off), row->seed, seed);
        return;
    }
    ck_abort_msg("nobody notices that %s is switched off", sim_rule_name((enum rl_rule)row->off));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("teeth");
    TCase *tc = tcase_create("teeth");

    if (sodium_init() < 0)
        return EXIT_FAILURE;
    tcase_add_checked_fixture(tc, read_rows, NULL);
    tcase_set_timeout(tc, 280);
    tcase_add_test(tc, each_rule_has_a_row);
    tcase_add_test(tc, tests_that_are_named_exist);
    tcase_add_loop_test(tc, is_noticed, 0, ROWS_MAX);
    suite_add_tcase(suite, tc);
    return suite_run_nofork(suite);
}
