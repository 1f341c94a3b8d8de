/* SPDX-License-Identifier: MIT
 * The main function of a test program: runs Check suites and reports in TAP on stdout.
 *
 *     int main(void)
 *     {
 *         return suite_run(drift_suite());
 *     }
 *
 * A program that cannot run here says so before it runs anything:
 *
 *     if (!cluster_available())
 *         return suite_skip("no redis-server, valkey-server or redis-check-rdb in PATH");
 */
#ifndef TEST_SUITE_H
#define TEST_SUITE_H

#include <check.h>

/* Check writes a note to a pipe for each assertion that holds. A test that makes hundreds of
 * thousands of them defines SUITE_MANY_ASSERTIONS first and goes without: a crash is then reported
 * by the test's name only. */
#ifdef SUITE_MANY_ASSERTIONS
#define _mark_point(file, line) ((void)0)
#endif
#include <stdio.h>
#include <stdlib.h>

/* Returns what main() returns: 0 if every case passed. A program without a single case fails. */
static inline int suite_run(Suite *suite)
{
    SRunner *runner = srunner_create(suite);
    srunner_set_tap(runner, "-");
    srunner_run_all(runner, CK_SILENT);
    const int run = srunner_ntests_run(runner);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return run > 0 && failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

/* For programs with threads or with servers that must die with the process that started them: all
 * cases run in this process. */
static inline int suite_run_nofork(Suite *suite)
{
    setenv("CK_FORK", "no", 1);
    return suite_run(suite);
}

static inline int suite_skip(const char *reason)
{
    printf("1..0 # SKIP %s\n", reason);
    return EXIT_SUCCESS;
}

#endif
