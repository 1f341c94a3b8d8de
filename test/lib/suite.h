/* SPDX-License-Identifier: MIT
 * The main function of a test program: runs Check suites and reports in TAP on stdout.
 *
 *     int main(void)
 *     {
 *         return suite_run(drift_suite());
 *     }
 *
 * A program that cannot run on this machine reports that before it runs anything:
 *
 *     if (!cluster_available())
 *         return suite_skip("no redis-server, valkey-server or redis-check-rdb in PATH");
 */
#ifndef TEST_SUITE_H
#define TEST_SUITE_H

#include <check.h>

/* Check writes a note to a pipe for each assertion that holds. A test program with hundreds of
 * thousands of assertions defines SUITE_MANY_ASSERTIONS before it includes this file and saves
 * those notes. The report of a crash then names the test, but not the last assertion. */
#ifdef SUITE_MANY_ASSERTIONS
#define _mark_point(file, line) ((void)0)
#endif
#include <stdio.h>
#include <stdlib.h>

/* Runs all cases of the suite. Returns what main() is to return: 0 if every case passed. A program
 * without a single case fails. */
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

/* Runs all cases in this process: for programs with threads, or with servers that must die with the
 * process that started them. Returns what suite_run() does. */
static inline int suite_run_nofork(Suite *suite)
{
    setenv("CK_FORK", "no", 1);
    return suite_run(suite);
}

/* Reports that the program cannot run here, for the given reason. Returns what main() is to return.
 */
static inline int suite_skip(const char *reason)
{
    printf("1..0 # SKIP %s\n", reason);
    return EXIT_SUCCESS;
}

#endif
