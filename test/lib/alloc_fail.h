/* SPDX-License-Identifier: MIT
 * Makes chosen allocations fail. A program that links alloc_fail_dep replaces malloc, calloc,
 * realloc, posix_memalign and aligned_alloc for the whole process, so allocations of hiredis,
 * libsodium and libc (strdup, getaddrinfo, pthread_create) count too.
 *
 * The loop that runs every failure path finds its own end:
 *
 *     for (uint64_t k = 0;; k++) {
 *         alloc_fail_once(k, ALLOC_FAIL_ALL_THREADS);
 *         run_the_code();
 *         const bool hit = alloc_fail_stop();
 *         check_the_result(hit);
 *         if (!hit)
 *             break;          k allocations were made in all
 *     }
 */
#ifndef TEST_ALLOC_FAIL_H
#define TEST_ALLOC_FAIL_H

#include <stdbool.h>
#include <stdint.h>

enum alloc_fail_scope {
    ALLOC_FAIL_ALL_THREADS, /* except threads inside alloc_fail_exempt(true) */
    ALLOC_FAIL_THIS_THREAD  /* only the thread that starts the injection */
};

/* Start an injection at allocation 0. An injection that is under way ends. */
void alloc_fail_count(enum alloc_fail_scope scope);            /* none fails, all are counted */
void alloc_fail_once(uint64_t k, enum alloc_fail_scope scope); /* only number k fails */
void alloc_fail_from(uint64_t k,
                     enum alloc_fail_scope scope); /* number k and all later ones fail */

/* Ends the injection. Returns true if an allocation has failed. */
bool alloc_fail_stop(void);

/* Returns the number of allocations since the start of the injection, failed ones included. */
uint64_t alloc_fail_seen(void);

/* Exempts the calling thread: while `on`, its allocations are neither counted nor failed. Calls
 * nest. */
void alloc_fail_exempt(bool on);

/* Exempts the allocations that shared libraries make whose path contains one of the two names: from
 * now on they are neither counted nor failed. Call this function when the libraries are loaded, and
 * before threads allocate. A library that is linked statically is not exempted. */
void alloc_fail_exempt_libraries(const char *name, const char *other);

/* Returns the number of blocks of the whole process that are allocated and not freed, for
 * comparisons before and after. */
int64_t alloc_fail_live(void);

#endif
