/* SPDX-License-Identifier: MIT
 * The error list and the list of causes: complete, distinct, and stable in number. */
#include "core/cause.h"

#include <redlock/redlock.h>
#include <string.h>

#include "suite.h"

struct expected {
    int code;
    const char *name, *text;
    bool retriable;
};

/* A second, hand-written list: it reveals a number or an attribute that changes by accident. */
static const struct expected ERRORS[] = {
    {0, "REDLOCK_OK", "success", false},
    {-1, "REDLOCK_EINVAL", "invalid argument", false},
    {-2, "REDLOCK_ENOMEM", "out of memory", true},
    {-3, "REDLOCK_ESYS", "operating system call failed", true},
    {-4, "REDLOCK_ECLOSED", "client is shutting down", false},
    {-5, "REDLOCK_ECANCELED", "operation was canceled", false},
    {-6, "REDLOCK_EBUSY", "another operation runs on this lock", true},
    {-7, "REDLOCK_EDEADLK", "blocking call in a callback", false},
    {-8, "REDLOCK_EFORKED", "handle was created before fork()", false},
    {-9, "REDLOCK_EQUEUEFULL", "too many acquisitions wait in this client", true},
    {-10, "REDLOCK_EMODE", "not available in this mode", false},
    {-11, "REDLOCK_ELIBRARY", "another version of a library is loaded", false},
    {-20, "REDLOCK_ECONTENDED", "held by another client", true},
    {-21, "REDLOCK_ENOQUORUM", "no quorum", true},
    {-22, "REDLOCK_ETOOSLOW", "quorum was reached too late", true},
    {-23, "REDLOCK_ELOST", "lock is no longer held", false},
    {-24, "REDLOCK_EEXCLUDED", "too few servers are eligible", true},
    {-25, "REDLOCK_EAUTH", "too many servers refused the user", false},
    {-26, "REDLOCK_EFENCE", "fence record not usable", true},
    {-27, "REDLOCK_EDUPLICATE", "two addresses of the same server", false},
};
#define ERROR_COUNT (sizeof ERRORS / sizeof ERRORS[0])

START_TEST(error_has_name_text_and_verdict)
{
    const struct expected *expected = &ERRORS[_i];
    ck_assert_str_eq(redlock_error_name(expected->code), expected->name);
    ck_assert_str_eq(redlock_strerror(expected->code), expected->text);
    ck_assert_int_eq(redlock_error_is_retriable(expected->code), expected->retriable);
}
END_TEST

/* The table above has every code of the header. */
START_TEST(every_code_is_known)
{
    size_t count = 1;
#define XX(name, value, text) count++;
    REDLOCK_ERROR_MAP(XX)
#undef XX
    ck_assert_uint_eq(count, ERROR_COUNT);
}
END_TEST

/* redlock_error_at() lists each error of the table above once. */
START_TEST(list_at_run_time_is_complete)
{
    unsigned listed[ERROR_COUNT] = {0};
    size_t length = 0;

    for (int error; (error = redlock_error_at(length)) != REDLOCK_OK; length++) {
        size_t at = 0;
        while (at < ERROR_COUNT && ERRORS[at].code != error)
            at++;
        ck_assert_msg(at < ERROR_COUNT, "%d is not an error", error);
        listed[at]++;
    }
    ck_assert_uint_eq(length, ERROR_COUNT - 1);
    for (size_t i = 0; i < ERROR_COUNT; i++)
        ck_assert_uint_eq(listed[i], ERRORS[i].code != REDLOCK_OK);
    ck_assert_int_eq(redlock_error_at(length + 1), REDLOCK_OK);
    ck_assert_int_eq(redlock_error_at(SIZE_MAX), REDLOCK_OK);
}
END_TEST

START_TEST(unknown_codes_have_a_text)
{
    static const int unknown[] = {1, -12, -999, 1 << 30, -(1 << 30)};
    for (size_t i = 0; i < sizeof unknown / sizeof unknown[0]; i++) {
        ck_assert_str_eq(redlock_strerror(unknown[i]), "unknown error");
        ck_assert_str_eq(redlock_error_name(unknown[i]), "REDLOCK_UNKNOWN");
        ck_assert(!redlock_error_is_retriable(unknown[i]));
    }
}
END_TEST

START_TEST(version_is_the_project_s)
{
    unsigned major, minor, patch;
    ck_assert_int_eq(sscanf(TEST_VERSION, "%u.%u.%u", &major, &minor, &patch), 3);
    ck_assert_uint_eq(redlock_version_number(), major << 16 | minor << 8 | patch);
    ck_assert_str_eq(redlock_version_string(), TEST_VERSION);
    ck_assert_uint_eq(REDLOCK_VERSION_NUMBER, redlock_version_number());
}
END_TEST

START_TEST(build_text_names_the_libraries_compiled_with)
{
    ck_assert_str_eq(redlock_build_text(), TEST_BUILD);
}
END_TEST

/* A second, hand-written list of the causes. */
static const char *const CAUSES[] = {
    [0] = "REDLOCK_CAUSE_NONE",         [1] = "REDLOCK_CAUSE_TIMEOUT",
    [2] = "REDLOCK_CAUSE_RESOLVE",      [3] = "REDLOCK_CAUSE_CONNECT",
    [4] = "REDLOCK_CAUSE_DISCONNECT",   [5] = "REDLOCK_CAUSE_PROTOCOL",
    [6] = "REDLOCK_CAUSE_AUTH",         [7] = "REDLOCK_CAUSE_NOPERM",
    [8] = "REDLOCK_CAUSE_READONLY",     [9] = "REDLOCK_CAUSE_OOM",
    [10] = "REDLOCK_CAUSE_BUSY",        [11] = "REDLOCK_CAUSE_WRONGTYPE",
    [12] = "REDLOCK_CAUSE_ERROR_REPLY", [13] = "REDLOCK_CAUSE_RESTARTED",
    [14] = "REDLOCK_CAUSE_REPLICA",     [15] = "REDLOCK_CAUSE_LOADING",
    [16] = "REDLOCK_CAUSE_PROMOTED",    [17] = "REDLOCK_CAUSE_EVICTING",
    [18] = "REDLOCK_CAUSE_DUPLICATE",   [19] = "REDLOCK_CAUSE_CLOCK_STEP",
    [20] = "REDLOCK_CAUSE_NO_INFO",     [21] = "REDLOCK_CAUSE_FENCE_RECORD",
    [22] = "REDLOCK_CAUSE_NO_MEMORY",   [23] = "REDLOCK_CAUSE_CLUSTER",
    [24] = "REDLOCK_CAUSE_HEALED",      [25] = "REDLOCK_CAUSE_FENCE_RECORDS_UNREAD",
    [26] = "REDLOCK_CAUSE_NO_SOCKET",   [27] = "REDLOCK_CAUSE_TLS",
    [28] = "REDLOCK_CAUSE_PROTECTED",   [29] = "REDLOCK_CAUSE_SENTINEL",
    [30] = "REDLOCK_CAUSE_NO_SCRIPTS",
};
#define CAUSE_COUNT (sizeof CAUSES / sizeof CAUSES[0])

/* Returns true if the header has this cause. The compiler rejects a switch that misses one. */
static bool is_cause_in_header(int cause)
{
    switch ((enum redlock_cause)cause) {
    case REDLOCK_CAUSE_NONE:
    case REDLOCK_CAUSE_TIMEOUT:
    case REDLOCK_CAUSE_RESOLVE:
    case REDLOCK_CAUSE_CONNECT:
    case REDLOCK_CAUSE_DISCONNECT:
    case REDLOCK_CAUSE_PROTOCOL:
    case REDLOCK_CAUSE_AUTH:
    case REDLOCK_CAUSE_NOPERM:
    case REDLOCK_CAUSE_READONLY:
    case REDLOCK_CAUSE_OOM:
    case REDLOCK_CAUSE_BUSY:
    case REDLOCK_CAUSE_WRONGTYPE:
    case REDLOCK_CAUSE_ERROR_REPLY:
    case REDLOCK_CAUSE_RESTARTED:
    case REDLOCK_CAUSE_REPLICA:
    case REDLOCK_CAUSE_LOADING:
    case REDLOCK_CAUSE_PROMOTED:
    case REDLOCK_CAUSE_EVICTING:
    case REDLOCK_CAUSE_DUPLICATE:
    case REDLOCK_CAUSE_CLOCK_STEP:
    case REDLOCK_CAUSE_NO_INFO:
    case REDLOCK_CAUSE_FENCE_RECORD:
    case REDLOCK_CAUSE_NO_MEMORY:
    case REDLOCK_CAUSE_CLUSTER:
    case REDLOCK_CAUSE_HEALED:
    case REDLOCK_CAUSE_FENCE_RECORDS_UNREAD:
    case REDLOCK_CAUSE_NO_SOCKET:
    case REDLOCK_CAUSE_TLS:
    case REDLOCK_CAUSE_PROTECTED:
    case REDLOCK_CAUSE_SENTINEL:
    case REDLOCK_CAUSE_NO_SCRIPTS:
        return true;
    }
    return false;
}

START_TEST(causes_have_names_and_distinct_texts)
{
    ck_assert_uint_eq(redlock_cause_count(), CAUSE_COUNT);
    for (int i = 0; i < (int)CAUSE_COUNT; i++) {
        ck_assert_str_eq(redlock_cause_name(i), CAUSES[i]);
        ck_assert_str_ne(rl_cause_of(i)->text, "unknown cause");
        for (int j = 0; j < i; j++)
            ck_assert_str_ne(rl_cause_of(i)->text, rl_cause_of(j)->text);
    }
    for (int cause = -100; cause <= 100; cause++) {
        const bool known = is_cause_in_header(cause);
        ck_assert_int_eq(strcmp(rl_cause_of(cause)->text, "unknown cause") != 0, known);
        ck_assert_int_eq(strcmp(redlock_cause_name(cause), "REDLOCK_CAUSE_UNKNOWN") != 0, known);
    }
}
END_TEST

/* A cause has at most one class: it decides a status, excludes a node, or means "no reply". */
START_TEST(causes_are_of_one_class)
{
    for (int i = -1; i <= (int)CAUSE_COUNT; i++) {
        const struct rl_cause *cause = rl_cause_of(i);
        ck_assert_int_le((cause->status != 0) + cause->excludes + cause->unanswered, 1);
        ck_assert(!cause->retry_slowly || cause->status != 0);
        if (i <= 0 || i == (int)CAUSE_COUNT)
            ck_assert(cause->status == 0 && !cause->excludes && !cause->unanswered);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("core_error");
    TCase *tcase = tcase_create("error");
    suite_add_tcase(suite, tcase);
    tcase_add_loop_test(tcase, error_has_name_text_and_verdict, 0, (int)ERROR_COUNT);
    tcase_add_test(tcase, every_code_is_known);
    tcase_add_test(tcase, list_at_run_time_is_complete);
    tcase_add_test(tcase, unknown_codes_have_a_text);
    tcase_add_test(tcase, version_is_the_project_s);
    tcase_add_test(tcase, build_text_names_the_libraries_compiled_with);
    tcase_add_test(tcase, causes_have_names_and_distinct_texts);
    tcase_add_test(tcase, causes_are_of_one_class);
    return suite_run(suite);
}
