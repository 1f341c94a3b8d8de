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

/* Typed anew, not generated: a number or a verdict that changes by accident shows here. */
static const struct expected ERRORS[] = {
    {0, "REDLOCK_OK", "success", false},
    {-1, "REDLOCK_EINVAL", "invalid argument", false},
    {-2, "REDLOCK_ENOMEM", "out of memory", true},
    {-3, "REDLOCK_ESYS", "operating system call failed", true},
    {-4, "REDLOCK_ECLOSED", "client is shutting down", false},
    {-5, "REDLOCK_ECANCELED", "operation was canceled", false},
    {-6, "REDLOCK_EBUSY", "another operation runs on this lock", true},
    {-7, "REDLOCK_EDEADLK", "blocking call in a callback", false},
    {-8, "REDLOCK_EFORKED", "handle is from before fork()", false},
    {-9, "REDLOCK_EQUEUEFULL", "too many locks wait in this client", true},
    {-10, "REDLOCK_EMODE", "not available in this mode", false},
    {-11, "REDLOCK_ELIBRARY", "another version of a library is loaded", false},
    {-20, "REDLOCK_ECONTENDED", "held by another client", true},
    {-21, "REDLOCK_ENOQUORUM", "too few nodes answered", true},
    {-22, "REDLOCK_ETOOSLOW", "quorum came too late", true},
    {-23, "REDLOCK_ELOST", "lock is no longer held", false},
    {-24, "REDLOCK_EREFUSED", "too few nodes may vote", true},
    {-25, "REDLOCK_EAUTH", "too many nodes refused the user", false},
    {-26, "REDLOCK_EFENCE", "fence record not usable", true},
    {-27, "REDLOCK_EDUPLICATE", "two addresses, one server", false},
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

/* The table above misses no code of the header. */
START_TEST(every_code_is_known)
{
    size_t count = 1;
#define XX(name, value, text) count++;
    REDLOCK_ERROR_MAP(XX)
#undef XX
    ck_assert_uint_eq(count, ERROR_COUNT);
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
}
END_TEST

START_TEST(build_text_names_the_libraries_compiled_with)
{
    ck_assert_str_eq(redlock_build_text(), TEST_BUILD);
}
END_TEST

START_TEST(causes_have_distinct_texts)
{
    static const int known[] = {
        REDLOCK_CAUSE_NONE,         REDLOCK_CAUSE_TIMEOUT,    REDLOCK_CAUSE_RESOLVE,
        REDLOCK_CAUSE_CONNECT,      REDLOCK_CAUSE_DISCONNECT, REDLOCK_CAUSE_PROTOCOL,
        REDLOCK_CAUSE_AUTH,         REDLOCK_CAUSE_NOPERM,     REDLOCK_CAUSE_READONLY,
        REDLOCK_CAUSE_OOM,          REDLOCK_CAUSE_BUSY,       REDLOCK_CAUSE_WRONGTYPE,
        REDLOCK_CAUSE_ERROR_REPLY,  REDLOCK_CAUSE_FENCE,      REDLOCK_CAUSE_REPLICA,
        REDLOCK_CAUSE_LOADING,      REDLOCK_CAUSE_DUPLICATE,  REDLOCK_CAUSE_NO_MEMORY,
        REDLOCK_CAUSE_CLUSTER,      REDLOCK_CAUSE_HEALED,     REDLOCK_CAUSE_RESTARTED,
        REDLOCK_CAUSE_PROMOTED,     REDLOCK_CAUSE_EVICTING,   REDLOCK_CAUSE_CLOCK_STEP,
        REDLOCK_CAUSE_NO_INFO,      REDLOCK_CAUSE_NO_AOF,     REDLOCK_CAUSE_NOT_ON_DISK,
        REDLOCK_CAUSE_FENCE_UNREAD,
    };
    size_t count = sizeof known / sizeof known[0];
    size_t named = 0;

    for (size_t i = 0; i < count; i++) {
        ck_assert_str_ne(rl_cause_text(known[i]), "unknown cause");
        for (size_t j = 0; j < i; j++)
            ck_assert_str_ne(rl_cause_text(known[i]), rl_cause_text(known[j]));
    }
    for (int cause = -100; cause <= 100; cause++)
        named += strcmp(rl_cause_text(cause), "unknown cause") != 0;
    ck_assert_uint_eq(named, count);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("error");
    TCase *tcase = tcase_create("error");
    suite_add_tcase(suite, tcase);
    tcase_add_loop_test(tcase, error_has_name_text_and_verdict, 0, (int)ERROR_COUNT);
    tcase_add_test(tcase, every_code_is_known);
    tcase_add_test(tcase, unknown_codes_have_a_text);
    tcase_add_test(tcase, version_is_the_project_s);
    tcase_add_test(tcase, build_text_names_the_libraries_compiled_with);
    tcase_add_test(tcase, causes_have_distinct_texts);
    return suite_run(suite);
}
