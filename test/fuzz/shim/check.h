/* SPDX-License-Identifier: MIT
 * Check's assertions for parts of the unit tests that a fuzz target uses: they end the process,
 * and cost no more than the comparison. */
#ifndef TEST_FUZZ_SHIM_CHECK_H
#define TEST_FUZZ_SHIM_CHECK_H

#include "fuzz.h"

#include <string.h>

#define ck_assert(condition)           MUST(condition)
#define ck_assert_msg(condition, ...)  MUST(condition)
#define ck_assert_int_eq(a, b)         MUST((intmax_t)(a) == (intmax_t)(b))
#define ck_assert_uint_eq(a, b)        MUST((uintmax_t)(a) == (uintmax_t)(b))
#define ck_assert_uint_gt(a, b)        MUST((uintmax_t)(a) > (uintmax_t)(b))
#define ck_assert_uint_lt(a, b)        MUST((uintmax_t)(a) < (uintmax_t)(b))
#define ck_assert_uint_le(a, b)        MUST((uintmax_t)(a) <= (uintmax_t)(b))
#define ck_assert_ptr_eq(a, b)         MUST((a) == (b))
#define ck_assert_str_eq(a, b)         MUST(strcmp((a), (b)) == 0)
#define ck_assert_ptr_nonnull(pointer) MUST((pointer) != NULL)

#endif
