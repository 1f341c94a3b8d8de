/* SPDX-License-Identifier: MIT
 * Makes the allocations fail that the input chooses, and ends a run that found an error. */
#include "fuzz.h"

#include <stdio.h>
#include <stdlib.h>

#include "alloc_fail.h"

#define EVER 0x8000u

static bool injecting;

/* Takes the two bytes that choose the failing allocation. 0: none. Otherwise number n - 1,
 * counted from here; if the highest bit is set, that one and all later ones. */
void fuzz_alloc_begin(struct fuzz_input *input)
{
    fuzz_alloc_choose(fuzz_short(input));
}

/* Does the same as fuzz_alloc_begin() with two bytes that were taken before. */
void fuzz_alloc_choose(unsigned choice)
{
    uint64_t number = choice & ~EVER;

    injecting = number != 0;
    if (!injecting)
        return;
    if (choice & EVER)
        alloc_fail_from(number - 1, ALLOC_FAIL_THIS_THREAD);
    else
        alloc_fail_once(number - 1, ALLOC_FAIL_THIS_THREAD);
}

/* Ends the injection. Returns true if an allocation has failed. */
bool fuzz_alloc_end(void)
{
    bool failed = injecting && alloc_fail_stop();

    injecting = false;
    return failed;
}

/* Exempts the test's own allocations: while `on`, they neither count nor fail. */
void fuzz_alloc_exempt(bool on)
{
    alloc_fail_exempt(on);
}

/* Prints the failed condition and ends the run, as a crash for the fuzzer. */
void fuzz_wrong(const char *file, int line, const char *what)
{
    alloc_fail_stop();
    fprintf(stderr, "%s:%d: must hold: %s\n", file, line, what);
    abort();
}
