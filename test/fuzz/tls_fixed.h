/* SPDX-License-Identifier: MIT
 * Makes OpenSSL do the same in each run of an input: its random bytes come from a counter, and its
 * time is a variable. For a fuzz program only: the bytes are no secret. */
#ifndef TEST_FUZZ_TLS_FIXED_H
#define TEST_FUZZ_TLS_FIXED_H

#include <stdint.h>

#define TLS_FIXED_BEGIN_S INT64_C(1800000000) /* time at which a run begins */

/* Replaces the random bytes of OpenSSL for the whole process, and begins them at their start. */
void tls_fixed_begin(void);
/* Begins the random bytes at a start of their own for the run of an input, and the time at that of
 * the program's start. */
void tls_fixed_restart(void);
/* Moves the time forward. */
void tls_fixed_pass(int64_t seconds);
/* Returns the time, in seconds of Unix time. */
int64_t tls_fixed_now_s(void);

#endif
